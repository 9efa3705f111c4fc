"""The noise probe and VQABQ on players whose behaviour is known."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from pfungst.core import Answer, AnsweredTrial, PfungstError, ProbeError
from pfungst.probes.noise import appending
from pfungst.probes.noise.appending import append, split
from pfungst.probes.noise.bqd import MainQuestion, write_bqd
from pfungst.probes.noise.probe import Noise, Vqabq
from pfungst.probes.noise.ranking import rank
from pfungst.scores import r_score
from tests.conftest import squares


@pytest.fixture
def data():
    base = squares(30, 1)
    examples = [
        replace(e, question=f"Is the number {i} on square {i * i} shown?", answer_type="yes/no")
        for i, e in enumerate(base)
    ]
    return replace(base, examples=examples)


def answered(probe, data, right):
    """right(variant number, example number) -> score."""
    examples = {example.id: (number, example) for number, example in enumerate(data)}
    rows = []
    for trial in probe.trials(data, 0):
        number, example = examples[trial.example_id]
        scores = tuple(float(right(v, number)) for v in range(len(trial.variants)))
        rows.append(AnsweredTrial(trial, example, tuple(Answer(str(s)) for s in scores), scores))
    return rows


def test_partitions_are_consecutive_and_equal():
    assert split("abcdefg", 3) == [("a", "b"), ("c", "d"), ("e", "f")]
    assert [len(part) for part in split([str(i) for i in range(21)])] == [3] * 7


def test_the_question_stands_first_and_can_be_cut_after_26_words():
    assert append("Who is it?", ["Is it he?", "Is it she?"]) == "Who is it? Is it he? Is it she?"
    assert append("a b c", ["d e", "f"], words=4) == "a b c d"


def test_every_variant_begins_with_the_main_question(data):
    for trial, example in zip(Noise(ranker="rouge").trials(data, 0), data, strict=True):
        assert [v.name for v in trial.variants[:3]] == ["clean", "First", "Second"]
        assert [v.name for v in trial.variants[8:]] == ["repeat", "filler", "random"]
        assert {v.role for v in trial.variants[8:]} == {"control"}
        assert all(v.query.question.startswith(example.question) for v in trial.variants)
        assert len({v.query.question for v in trial.variants}) == 11


@pytest.mark.parametrize("controls", ["first", "all"])
def test_controls_are_as_long_as_the_partition_they_are_compared_with(data, controls):
    texts = " ".join(example.question for example in data)
    for trial, example in zip(Noise(ranker="rouge", controls=controls).trials(data, 0), data, strict=True):
        words = {v.name: v.query.question[len(example.question) :].split() for v in trial.variants}
        for name in ("repeat", "filler", "random"):
            assert len(words[name]) == len(words["First"])
        assert {word.strip("?") for word in words["repeat"]} <= {word.strip("?") for word in example.question.split()}
        assert {word.strip("?") for word in words["random"]} <= {word.strip("?") for word in texts.split()}
        further = {name for name in words if name.startswith("random ")}
        assert further == ({f"random {level}" for level in range(2, 8)} if controls == "all" else set())
        for name in further:
            assert len(words[name]) == len(words[trial.variants[int(name.split()[1])].name])


def test_the_headline_is_what_the_ranked_questions_cost_beyond_their_controls(data):
    """Of 30 questions: 18 right with ranked questions, with the controls 24, 27 and 21."""
    right = [30, 18, *[18] * 6, 24, 27, 21]
    found = Noise(ranker="rouge").findings(answered(Noise(ranker="rouge"), data, lambda v, n: n < right[v]), 0)
    rows = {(one.name, one.condition): one for one in found.rows}
    for name, value in (("repeat", 0.2), ("filler", 0.3), ("random", 0.1)):
        assert rows["beyond control", f"First, {name}"].value == pytest.approx(value)
    beyond = rows["beyond controls", "First, mean of controls"]
    assert beyond.value == pytest.approx(0.2) and found.drop.value == pytest.approx(0.4)
    assert "the question itself again: 20.0 points" in found.verdict
    assert "Beyond their mean the ranked questions cost 20.0 points" in found.drop.note
    assert found.tables[0].title == "Controls of equal length" and len(found.tables[0].rows) == 4


def test_a_player_that_breaks_at_any_length_has_nothing_beyond_its_controls(data):
    rng = np.random.default_rng(0)
    found = Noise(ranker="rouge").findings(
        answered(Noise(ranker="rouge"), data, lambda v, _: v == 0 or rng.random() < 0.5), 0
    )
    beyond = next(one for one in found.rows if one.name == "beyond controls")
    assert found.drop.low > 0 and beyond.low < 0 < beyond.high


def test_without_controls_and_in_runs_of_earlier_versions_nothing_is_said_of_them(data):
    probe = Noise(ranker="rouge", controls="none")
    trials = answered(probe, data, lambda v, n: n >= 3 * v)
    assert {len(trial.trial.variants) for trial in trials} == {8}
    for found in (probe.findings(trials, 0), Noise(ranker="rouge").findings(trials, 0)):
        assert not found.drop.note and "cost" not in found.verdict


def test_an_effective_ranking_has_rank_correlation_minus_one(data):
    probe = Noise(ranker="rouge")
    found = probe.findings(answered(probe, data, lambda v, n: n >= 3 * v), 0)
    values = {one.name: one.value for one in found.rows if one.name not in ("accuracy", "drop")}
    assert values["rank correlation"] == -1 and values["inversions"] == 0
    assert found.drop.value == pytest.approx(0.1)
    assert values["R_score"] == pytest.approx(r_score(100, 90))


def test_a_random_ranking_shows_its_inversions(data):
    probe = Noise(ranker="rouge")
    levels = [0, 9, 3, 6, 0, 9, 3, 6, 0, 0, 0]
    found = probe.findings(answered(probe, data, lambda v, n: n >= levels[v]), 0)
    accuracy = [1 - level / 30 for level in levels[1:8]]
    expected = sum(accuracy[j] > accuracy[i] for i in range(7) for j in range(i + 1, 7))
    assert next(one.value for one in found.rows if one.name == "inversions") == expected


@pytest.mark.parametrize("fall", [0.0, 0.01])
def test_an_order_of_levels_that_no_run_can_tell_is_not_excluded(data, fall):
    """Levels that are the same, or fall by a point: percentiles of rank correlation and inversions never held it."""
    probe, rng, claimed = Noise(ranker="rouge"), np.random.default_rng(0), 0
    for _ in range(20):
        rows = {one.name: one for one in probe.findings(
            answered(probe, data, lambda v, _: rng.random() < 0.7 - fall * v), 0).rows}  # fmt: skip
        truth = (-1.0, 0.0) if fall else (0.0, 0.0)
        for name, value in zip(("rank correlation", "inversions"), truth, strict=True):
            assert rows[name].low <= value <= rows[name].high and rows[name].low <= rows[name].value <= rows[name].high
        claimed += rows["change per level"].high < 0
    assert fall or claimed <= 2


def test_the_change_per_level_is_the_slope_of_accuracy(data):
    probe = Noise(ranker="rouge")
    found = probe.findings(answered(probe, data, lambda v, n: n >= 3 * v), 0)
    change = next(one for one in found.rows if one.name == "change per level")
    assert (
        change.value == pytest.approx(-0.1)
        and change.high < 0
        and "accuracy falls with the noise level" in found.verdict
    )
    assert (
        found.verdict.count("R_score") == 1
        and "corrected for chance" in found.verdict
        and "by chance." in found.verdict
    )


def test_one_level_has_a_drop_and_says_nothing_of_levels(data):
    probe = Noise(ranker="rouge", k=3, partitions=1)
    found = probe.findings(answered(probe, data, lambda v, n: n >= 3 * v), 0)
    assert found.drop.value == pytest.approx(0.1)
    assert "levels" not in found.verdict and "unknown" not in found.verdict


def test_several_rankers_are_compared_in_one_table(data):
    probe = Noise(ranker="rouge+bleu1")
    found = probe.findings(answered(probe, data, lambda v, n: 1), 0)
    assert [table.title for table in found.tables][-1] == "Which ranking is effective?"
    assert [row[0] for row in found.tables[-1].rows] == ["rouge", "bleu1"]
    assert len(found.figures[0].series) == 2


def test_a_written_dataset_is_used_as_it_is(data, tmp_path):
    texts = [example.question for example in data]
    ranking = rank(texts, texts, "bleu2", k=21)
    write_bqd(tmp_path / "bqd.parquet", [MainQuestion(text) for text in texts], texts, ranking, {})
    stored = list(Noise(ranked=str(tmp_path / "bqd.parquet")).trials(data, 0))
    direct = list(Noise(ranker="bleu2").trials(data, 0))
    assert [[v.query.question for v in t.variants] for t in stored] == [
        [v.query.question for v in t.variants] for t in direct
    ]
    with pytest.raises(ProbeError, match="has no basic questions for"):
        list(Noise(ranked=str(tmp_path / "bqd.parquet")).trials(squares(2), 0))


def test_a_pool_of_one_type_that_the_data_lack_is_refused(data):
    with pytest.raises(ProbeError, match="has no yes/no questions"):
        list(
            Noise(pool_type="yes/no").trials(replace(data, examples=[replace(e, answer_type="other") for e in data]), 0)
        )


def questions_of(trials):
    return [[variant.query.question for variant in trial.variants] for trial in trials]


def test_a_limit_limits_what_is_asked_and_not_the_pool(data):
    probe = Noise(ranker="rouge")
    whole = questions_of(probe.trials(data, 0))
    part = data.subset(data.examples[:4])
    assert questions_of(probe.trials(part, 0)) == whole[:4]
    small = Noise(ranker="rouge", pool_limit=25)
    assert questions_of(small.trials(part, 0)) == questions_of(small.trials(data, 0))[:4]
    allowed = {e.question for e in data.examples[:25]}
    for row, example in zip(questions_of(small.trials(part, 0)), part, strict=True):
        assert all(
            f"{text}?" in allowed for q in row[1:8] for text in q[len(example.question) :].strip("? ").split("? ")
        )


@pytest.mark.parametrize(
    ("probe", "sentence"),
    [
        (Noise(k=5, partitions=7), "5 basic questions cannot make 7 partitions"),
        (Noise(controls="some"), "it can be first, all or none"),
        (Noise(k=30), "29 distinct questions in addition to the main question, fewer than the 30"),
        (Noise(pool_limit=10), "9 distinct questions in addition to the main question, fewer than the 21"),
        (Noise(pool_limit=-1), "pool_limit is -1"),
        (Noise(pool_type="number"), "`all` or `yes/no`"),
        (Noise(ranker="laso"), "Did you mean lasso"),
        (Noise(ranker="+"), "No ranker was named"),
        (Noise(ranked="nowhere.parquet"), "There is no file nowhere.parquet"),
        (Vqabq(pool_limit=2), "1 distinct questions in addition to the main question"),
        (Vqabq(ranker="rouge+cider"), "takes one ranker"),
        (Vqabq(k=2), "at least 3, not 2"),
    ],
)
def test_what_cannot_be_done_on_these_data_is_said_before_anything_is_ranked(data, probe, sentence, monkeypatch):
    monkeypatch.setattr("pfungst.probes.noise.ranking.rank", None)
    with pytest.raises(PfungstError, match=sentence):
        probe.check_data(data)


def test_good_data_pass_the_check(data):
    for probe in (Noise(), Noise(ranker="rouge+cider"), Vqabq()):
        assert probe.has("check_data") and probe.has("prepare")
        probe.check_data(data)


@pytest.mark.parametrize("probe", [Noise(ranker="lasso+rouge"), Vqabq()])
def test_ranking_happens_in_prepare_with_progress_and_once(data, probe, monkeypatch):
    alone = questions_of(probe.trials(data, 0))
    monkeypatch.setattr("pfungst.probes.noise.ranked._latest", None)
    told = []
    fresh = replace(data, name="fresh")
    monkeypatch.setattr("pfungst.probes.noise.ranked._read", lambda *arguments: None)
    monkeypatch.setattr("pfungst.probes.noise.ranked.write_atomic", lambda path, content: None)
    probe.prepare(fresh, 0, lambda what, done, total: told.append((what, done, total)))
    assert ("ranking", 30, 30) in told and all(done <= total for _, done, total in told)
    monkeypatch.setattr("pfungst.probes.noise.ranking.rank", None)  # nothing is ranked again
    assert questions_of(probe.trials(fresh, 0)) == alone


def test_algorithm_1_is_nested():
    scores = np.asarray([[0.7, 0.5, 0.3], [0.7, 0.5, 0.1], [0.7, 0.1, 0.09], [0.5, 0.5, 0.5], [0.61, 0.0, 0.0]])
    assert appending.count_appended(scores).tolist() == [3, 2, 1, 0, 1]
    assert np.bincount(appending.count_appended(scores)).tolist() == [1, 2, 1, 1], "Table 6"


def test_a_score_that_is_not_positive_never_passes_a_ratio():
    assert appending.count_appended(np.asarray([[0.9, -0.9, 0.5], [0.9, 0.8, -0.1]])).tolist() == [1, 2]


def test_score_statistics_of_a_hand_worked_case():
    found = appending.ScoreStatistics.of(np.asarray([[0.4, 0.2, 0.1], [0.2, 0.2, 0.1]]))
    assert found.mean == pytest.approx((0.3, 0.75, 0.5))
    assert found.std == pytest.approx((0.1, 0.25, 0.0))


def test_the_search_finds_the_thresholds_that_help():
    scores = np.asarray([[0.9, 0.1, 0.1], [0.2, 0.1, 0.1]])
    best, accuracy = appending.search_thresholds(
        scores, lambda counts: float(counts[0] == 1 and counts[1] == 0), [(0.95, 0.5, 0.5), (0.5, 0.5, 0.5)]
    )
    assert best == (0.5, 0.5, 0.5) and accuracy == 1


def test_vqabq_takes_the_answer_with_as_many_basic_questions_as_pass(data):
    probe = Vqabq(ranker="rouge", s1=-1.0, s2=-1.0, s3=2.0)  # two basic questions for everybody
    found = probe.findings(answered(probe, data, lambda v, n: v == 2), 0)
    assert found.clean.value == 0 and found.disturbed.value == 1 and found.drop.value == -1
    assert found.tables[1].rows[0] == ("# Q", 0, 0, 30, 0)


def test_rankings_of_third_parties_are_not_kept_for_another_version_of_them(data, tmp_path, monkeypatch):
    from pfungst.probes.noise import ranked
    from pfungst.probes.noise.rankers import TextMetric

    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path))
    asked = []

    class Theirs(TextMetric):
        def top(self, *given):
            asked.append(self.name)
            return TextMetric("rouge").top(*given)

    def get(registry, name):
        return Theirs if name == "theirs" else ours(registry, name)

    ours = type(ranked.RANKERS).get
    monkeypatch.setattr(type(ranked.RANKERS), "get", get)
    for _ in range(2):
        monkeypatch.setattr(ranked, "_latest", None)
        list(Noise(ranker="theirs").trials(data, 0))
        list(Noise(ranker="rouge").trials(data, 0))
    assert asked == ["theirs"] * 2 and len(list((tmp_path / "rankings").glob("*.npz"))) == 1


def test_an_exam_of_noise_loads_neither_the_game_nor_blender_nor_the_questions_of_the_world(tmp_path):
    questions = [{"id": str(i), "question": f"Is the number {i} shown?", "answer": "yes"} for i in range(24)]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, questions)))
    code = (
        "import pfungst, sys; pfungst.examine(lambda image, question: 'yes', 'd.jsonl', ['noise'], 'run');"
        "print([name for name in sys.modules if name.startswith(('pfungst.probes.game', 'pfungst.world.questions'))"
        " or 'blender' in name])"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"
