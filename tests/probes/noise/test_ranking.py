"""Ranking basic questions: the pool, the rankers, the file."""

import json

import numpy as np
import pytest

from pfungst.core import PfungstError
from pfungst.probes.noise import Pool, normalise, rank
from pfungst.probes.noise.bqd import BasicQuestions, MainQuestion, build, read_source, write_bqd
from pfungst.probes.noise.ranking import Ranking, RankSettings

THINGS = ("car", "truck", "cat", "dog", "table", "phone", "tree", "boat")
POOL = [f"{start} {thing}?" for thing in THINGS for start in ("How old is the", "What color is the", "Where is the")]
MAIN = ["How old is the car?", "Is there a dog on the table?", "How old is the bicycle?"]


@pytest.mark.parametrize(
    "same", ["How old is the car?", "how old is the car", "How  old is THE car ?!", "“How old is the car?”"]
)
def test_case_punctuation_and_spacing_do_not_make_another_question(same):
    assert normalise(same) == normalise("How old is the car?")


def test_a_question_without_letters_is_still_a_question():
    assert normalise("???") == "???"


@pytest.mark.parametrize(
    ("one", "other"), [("\u0e1b\u0e35", "\u0e1b\u0e39"), ("\u0915\u093e", "\u0915\u0940"), ("\u00e9", "e")]
)
def test_vowel_signs_and_accents_make_another_question(one, other):
    assert normalise(f"{one} ?") == normalise(one) != normalise(other)


def test_a_list_of_questions_may_have_dots_in_its_name_and_a_byte_order_mark(tmp_path):
    file = tmp_path / "questions.v2.txt"
    file.write_bytes("\ufeffHow old is the car?\r\nWhere is it?\r\n".encode())
    assert read_source(str(file)).texts == ["How old is the car?", "Where is it?"]


def test_main_questions_like_none_of_the_pool_are_told(caplog, tmp_path):
    main = [MainQuestion("\U0001f431"), MainQuestion("How old is the car?")]
    with caplog.at_level("INFO", "pfungst"):
        build(tmp_path / "out.json", main, POOL, RankSettings(k=3))
    assert caplog.messages == [
        "1 of 2 main questions resemble no question of the pool: every score is 0, and the order means nothing."
    ]


def test_duplicates_become_one_question_and_keep_the_way_back():
    pool = Pool.of(["A b?", "", "c?", "a B", "d?"])
    assert pool.questions == ("A b?", "c?", "d?")
    assert pool.origin.tolist() == [0, 2, 4]


@pytest.mark.parametrize("ranker", ["lasso", "cosine", "bleu1", "rouge", "cider"])
def test_a_main_question_is_never_its_own_basic_question(ranker):
    pool = [*POOL, "how old is the CAR"]
    found = rank(MAIN, pool, ranker, k=21)
    assert found.indices.shape == (3, 21) == found.scores.shape
    for question, row in zip(MAIN, found.indices, strict=True):
        assert normalise(question) not in {normalise(pool[i]) for i in row}
        assert len(set(row.tolist())) == 21
    assert (np.diff(found.scores) <= 0).all()


def test_without_preprocessing_the_main_question_comes_first_and_alone():
    kept = rank(MAIN[:1], POOL, k=3, keep_main_questions=True, tol=1e-6)
    assert POOL[kept.indices[0, 0]] == MAIN[0]
    assert kept.scores[0, 0] == pytest.approx(1, abs=1e-3) and kept.scores[0, 1] == pytest.approx(0, abs=1e-3)


def test_every_lasso_ranking_carries_its_certificate():
    found = rank(MAIN, POOL, k=5, tol=1e-6)
    assert (found.gaps <= 1e-6).all()
    assert np.isnan(rank(MAIN, POOL, "rouge", k=5).gaps).all()


@pytest.mark.parametrize("ranker", ["lasso", "cosine"])
def test_an_encoder_may_be_an_object(ranker):
    class Lengths:
        name, dim = "lengths", 2
        __hash__ = None

        def __init__(self, sign):
            self.sign, self.fingerprint = sign, f"lengths {sign}"

        def encode(self, sentences):
            return np.array([(len(text), self.sign * text.count("a")) for text in sentences], np.float32).reshape(-1, 2)

    one, other = (rank(MAIN, POOL, ranker, Lengths(sign), k=3) for sign in (1, -1))
    assert one.settings["encoder"] == "lengths"
    assert (one.indices == rank(MAIN, POOL, ranker, Lengths(1), k=3).indices).all()
    assert one.scores.shape == other.scores.shape == (3, 3)


def test_repeated_main_questions_get_the_same_rows():
    found = rank([MAIN[0], MAIN[1], MAIN[0]], POOL, k=5)
    assert found.indices[0].tolist() == found.indices[2].tolist()


@pytest.mark.parametrize(
    ("main", "pool", "k", "message"),
    [
        (MAIN, [], 3, "no question to rank"),
        (MAIN, ["", "  "], 3, "no question to rank"),
        (MAIN[:1], [MAIN[0]], 1, "0 distinct questions in addition to the main question itself"),
        (MAIN, POOL, 25, "fewer than the 25 asked for"),
        (MAIN, POOL, 0, "at least 1"),
        (["  "], POOL, 3, "Main question number 0 is empty"),
        ("How old?", POOL, 3, "must be a list"),
        (MAIN, [*POOL, 7], 3, "Pool question number 24 is int"),
    ],
)
def test_bad_input_is_a_sentence(main, pool, k, message):
    with pytest.raises(PfungstError, match=message):
        rank(main, pool, k=k)


@pytest.mark.parametrize("ranker", ["lasso", "cosine", "rouge"])
def test_no_main_question_gives_an_empty_ranking(ranker):
    found = rank([], POOL, ranker, k=3)
    assert found.indices.shape == (0, 3) == found.scores.shape and found.gaps.shape == (0,)


def test_odd_questions_are_ranked_like_any_other():
    odd = ["word " * 10_000, "Wie alt ist das Auto?", "这辆车多少岁?", "?!"]
    found = rank(odd, POOL, k=5)
    assert found.indices.shape == (4, 5) and np.isfinite(found.scores).all()


def test_an_unknown_ranker_is_a_sentence():
    with pytest.raises(PfungstError, match="Did you mean lasso"):
        rank(MAIN, POOL, "laso", k=3)


def ranking(k=3):
    rng = np.random.default_rng(0)
    scores = np.sort(rng.random((3, k)))[:, ::-1]
    return Ranking(rng.integers(0, len(POOL), (3, k)), scores, np.asarray([1e-4, np.nan, 0.5]), "lasso", {"lam": 1e-6})


@pytest.mark.parametrize("ending", ["parquet", "json"])
def test_a_dataset_comes_back_as_it_was_written(tmp_path, ending):
    main = [MainQuestion(text, str(i), f"image {i}") for i, text in enumerate(MAIN)]
    write_bqd(tmp_path / f"gbqd.{ending}", main, POOL, ranking(), {"pool": 24})
    rows = BasicQuestions.read(tmp_path / f"gbqd.{ending}").rows
    for text, indices, scores, gap in zip(MAIN, ranking().indices, ranking().scores, (1e-4, None, 0.5), strict=True):
        assert rows[text] == (tuple(POOL[i] for i in indices), tuple(scores.tolist()), gap)


def test_json_has_the_layout_of_the_papers_authors(tmp_path):
    main = [MainQuestion(text, str(i), f"image {i}", f"COCO_{i}.jpg") for i, text in enumerate(MAIN)]
    write_bqd(tmp_path / "gbqd.json", main, POOL, ranking(), {})
    rows = json.loads((tmp_path / "gbqd.json").read_text())
    assert [(row["question_id"], row["question"], row["image_path"]) for row in rows] == [
        (i, text, f"COCO_{i}.jpg") for i, text in enumerate(MAIN)
    ]
    assert rows[2]["basic"][1] == {"question": POOL[ranking().indices[2, 1]], "score": ranking().scores[2, 1]}


def test_a_file_of_the_authors_is_read_with_its_holes_and_one_of_earlier_versions_too(tmp_path):
    basic = [{"question": "How old is the truck?", "score": 0.295}, {"question": "How old is this car?", "score": 0.24}]
    (tmp_path / "theirs.json").write_text(json.dumps([0, {"question": "How old is the car?", "basic": basic}]))
    old = {"info": {}, "questions": [{"main_question": "How old is the car?", "basic_questions": basic, "gap": None}]}
    (tmp_path / "old.json").write_text(json.dumps(old))
    for name in ("theirs.json", "old.json"):
        rows = BasicQuestions.read(tmp_path / name).rows
        texts = ("How old is the truck?", "How old is this car?")
        assert rows == {"How old is the car?": (texts, (0.295, 0.24), None)}


def test_a_file_that_is_no_dataset_is_a_sentence(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no")
    (tmp_path / "a.json").write_text('{"questions": [{"main_question": 3}]}')
    (tmp_path / "b.json").write_text('[{"question": "Why?", "basic": ["How?"]}]')
    (tmp_path / "c.json").write_text('["Why?"]')
    for name in ("a.parquet", "a.json", "b.json", "c.json", "gone.parquet"):
        with pytest.raises(PfungstError, match="not a basic question dataset"):
            BasicQuestions.read(tmp_path / name)


def test_a_killed_build_goes_on_and_leaves_no_parts(tmp_path, monkeypatch):
    from pfungst.probes.noise import bqd as module

    monkeypatch.setattr(module, "SHARD", 1)
    main = [MainQuestion(text, str(i)) for i, text in enumerate([*MAIN, MAIN[0]])]
    settings = RankSettings(ranker="rouge", k=4)
    calls = []

    def stop(what, done, total):
        calls.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "out.parquet", main, POOL, settings, stop)
    assert not (tmp_path / "out.parquet").exists()
    again = []
    build(tmp_path / "out.parquet", main, POOL, settings, lambda what, done, total: again.append(done))
    assert 1 not in again  # the first shard was finished before
    whole = rank([one.text for one in main], POOL, "rouge", k=4)
    rows = BasicQuestions.read(tmp_path / "out.parquet").rows
    assert rows[MAIN[2]][0] == tuple(POOL[i] for i in whole.indices[2])
    assert not (tmp_path / "out.parquet.parts").exists()


def test_rank_says_which_split_it_took_and_which_were_left(tmp_path):
    for split, thing in (("train", "car"), ("val", "dog")):
        rows = [{"question": f"How old is the {thing} number {i}?", "answer": "2"} for i in range(4)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = read_source(str(tmp_path))
    assert source.about()["splits"] == {"taken": ["val"], "left": ["train"]} and len(source.texts) == 4
    both = read_source(f"{tmp_path}#train+val")
    assert len(both.texts) == 8 and both.splits["left"] == []


def test_a_text_file_is_a_source_of_questions(tmp_path):
    (tmp_path / "pool.txt").write_text("Who?\n\nWhy?\n")
    assert read_source(str(tmp_path / "pool.txt")).about() == {"name": str(tmp_path / "pool.txt"), "questions": 2}
    with pytest.raises(PfungstError, match="does not say which of them are yes/no"):
        read_source(str(tmp_path / "pool.txt"), "yes/no")


def test_a_lambda_is_compared_with_the_papers_and_with_the_next_smaller_one():
    from pfungst.core.types import no_progress
    from pfungst.probes.noise.bqd import lambda_study

    main = [MainQuestion(text) for text in MAIN]
    rows = lambda_study(main, POOL, RankSettings(k=5, tol=1e-6), [1e-1, 1e-7, 1e-2], no_progress)
    assert [row["lambda"] for row in rows] == [1e-7, 1e-2, 1e-1]

    def top(lam):
        return [set(row) for row in rank(MAIN, POOL, k=5, lam=lam, tol=1e-6).indices.tolist()]

    def common(first, second):
        return np.mean([len(a & b) for a, b in zip(top(first), top(second), strict=True)])

    assert np.isnan(rows[0]["kept"]) and rows[0]["overlap"] == common(1e-7, 1e-6)
    assert [row["kept"] for row in rows[1:]] == [common(1e-2, 1e-7), common(1e-1, 1e-2)]
    assert all(row["gap"] <= 1e-6 for row in rows)
    assert rows[0]["nonzeros"] > rows[2]["nonzeros"]
