"""What the player read of disturbed questions stands in the findings, in the run, and after a rescore."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import pfungst
from pfungst.core import Answer, Example, PfungstError, Player, Query, Reading, Run
from pfungst.players.zoo import load as load_model
from pfungst.probes.noise.probe import Noise
from pfungst.probes.rephrase import Rephrase
from pfungst.probes.surface import Surface
from tests.conftest import squares

LENGTH = 9


class Reader(Player):
    """Reads the first nine words, and knows none with a z: it is wrong where any of either is lost."""

    name = "reader"
    fingerprint = "reader 1"
    asked = 0

    def answer(self, queries):
        type(self).asked += len(queries)
        return [Answer("yes" if self._whole(query.question) else "lost") for query in queries]

    def reading(self, queries):
        words = [query.question.split() for query in queries]
        return [Reading(len(some), max(0, len(some) - LENGTH), sum("z" in word for word in some)) for some in words]

    def _whole(self, question):
        words = question.split()
        return len(words) <= LENGTH and not any("z" in word for word in words)


class Silent(Reader):
    """The same, but it does not tell."""

    name = "silent"
    fingerprint = "silent 1"
    reading = Player.reading


def worded():
    """Twelve groups of three wordings: in the second a word of every other group is unknown."""
    examples = []
    for number in range(12):
        texts = f"Is it {number}?", f"Is this {'zebra' if number % 2 else 'horse'} {number}?", f"Can it be {number}?"
        examples += [
            Example(f"{number}.{place}", text, None, str(number), ("yes",), "yes", "yes/no", group=f"{number}.0")
            for place, text in enumerate(texts)
        ]
    data = squares(1, 1)
    return type(data)("worded", examples, metric="exact", fingerprint="worded 1")


def found(run, name):
    return {one.condition: one for one in run.findings[0].rows if one.name == name}


def test_rephrasings_in_known_words_and_the_others_are_two_numbers(tmp_path):
    run = pfungst.examine(Reader(), worded(), [Rephrase()], tmp_path / "run")
    accuracy = found(run, "accuracy")
    assert accuracy["all rephrasings, all words known"].value == 1.0
    assert accuracy["all rephrasings, some word unknown"].value == 0.0
    (table,) = [one for one in run.findings[0].tables if one.title == "Known and unknown words"]
    assert [row[1:4] for row in table.rows] == [("all words known", 18, 12), ("some word unknown", 6, 6)]
    assert (
        "100.0%" in run.findings[0].verdict
        and "of 6 rephrasings with an unknown word correctly" in run.findings[0].verdict
    )
    share = found(run, "unknown words")["all rephrasings"]
    assert share.value == pytest.approx(np.mean([(1 / 4 if number % 2 else 0) / 2 for number in range(12)]))


def test_a_rescore_without_the_player_says_the_same(tmp_path):
    run = pfungst.examine(Reader(), worded(), [Rephrase()], tmp_path / "run")
    before, asked = (run.path / "findings.json").read_bytes(), Reader.asked
    pfungst.rescore(run.path, worded(), [Rephrase()])
    assert (run.path / "findings.json").read_bytes() == before
    pfungst.rescore(run.path, worded(), [Rephrase()], metric="vqa")
    assert found(Run.open(run.path, "vqa"), "unknown words")["all rephrasings"].value > 0
    assert Reader.asked == asked


def test_the_table_of_the_run_says_what_was_read(tmp_path):
    run = pfungst.examine(Reader(), worded(), [Rephrase()], tmp_path / "run")
    for row in run.rows(whole=True):
        words = row["question"].split()
        assert (row["words"], row["words_cut"]) == (len(words), 0)
        assert row["words_unknown"] == sum("z" in word for word in words)


def test_a_run_of_an_earlier_version_lacks_only_that(tmp_path):
    run = pfungst.examine(Reader(), worded(), [Rephrase()], tmp_path / "run")
    path = run.file("rephrase")
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["words", "words_cut", "words_unknown"]), path)
    assert {row["words"] for row in run.rows()} == {None}
    assert run.table("rephrase").column_names == table.column_names
    pfungst.rescore(run.path, worded(), [Rephrase()])
    assert "does not tell how many words it reads" in Run.open(run.path).findings[0].verdict


def test_who_does_not_tell_is_said_not_to(tmp_path):
    for probe in (Rephrase(), Surface(edits=("upper",)), Noise(ranker="rouge", k=1, partitions=1)):
        run = pfungst.examine(Silent(), worded(), [probe], tmp_path / probe.name)
        told = json.dumps(json.loads((run.path / "findings.json").read_text())["findings"])
        assert "does not tell how many words it reads and which it knows" in told
        assert not found(run, "questions cut")


def test_noise_says_what_was_cut_and_what_is_lost_where_nothing_was(tmp_path):
    probe = Noise(ranker="rouge", k=3, partitions=3, controls="none")
    run = pfungst.examine(Reader(), worded(), [probe], tmp_path / "run")
    texts = {row["question"] for row in run.rows([("variant", "=", "First")])}
    cut, whole = found(run, "questions cut")["First"], found(run, "drop of those read whole")["First"]
    assert cut.value == np.mean([len(text.split()) > LENGTH for text in texts])
    rows = [row for row in run.rows([("variant", "=", "First")]) if not row["words_cut"]]
    assert whole.n == len(rows)
    assert whole.value == pytest.approx(np.mean([row["clean_score"] - row["score"] for row in rows]))


def test_only_what_fits_counts_where_that_is_wanted(tmp_path):
    data = worded()
    long = [example for example in data if len(example.question.split()) > 3]
    data = data.subset([*data.examples, *(type(one)(f"long {one.id}", f"{one.question} {one.question} {one.question}",
                                                    None, one.image_id, ("yes",), "yes", "yes/no")
                                          for one in long[:4])])  # fmt: skip
    probe = Noise(ranker="rouge", k=1, partitions=1, controls="none", fit=True)
    run = pfungst.examine(Reader(), data, [probe], tmp_path / "run")
    rows = list(run.trials())
    fits = [trial for trial in rows if not any(row["words_cut"] for row in trial)]
    assert 0 < len(fits) < len(rows)
    assert run.findings[0].drop.n == len(fits)
    assert f"{len(rows) - len(fits)} of {len(rows)} questions were left out" in run.findings[0].verdict
    with pytest.raises(PfungstError, match="reads none of the 16 questions whole.*append fewer"):
        pfungst.examine(Reader(), data, [Noise(ranker="rouge", k=9, partitions=1, fit=True)], tmp_path / "none")
    silent = pfungst.examine(Silent(), data, [probe], tmp_path / "silent")
    assert silent.findings[0].drop.n == 16 and "So none was left out." in silent.findings[0].verdict


def test_surface_weighs_edits_as_its_headline_does(tmp_path):
    run = pfungst.examine(Reader(), worded(), [Surface(edits=("typo", "upper"))], tmp_path / "run")
    rows = list(run.trials())
    drops = []
    for clean, *others in rows:
        known = [row for row in others if not row["words_unknown"]]
        groups = [[r["score"] for r in known if r["variant"].startswith(name)] for name in ("typo", "upper")]
        means = [np.mean(some) for some in groups if some]
        drops += [clean["score"] - np.mean(means)] if means else []
    assert found(run, "drop of those in known words")["all edits"].value == pytest.approx(np.mean(drops))


def test_a_model_of_the_zoo_tells_by_its_vocabulary_and_length():
    player = load_model("rn-state")
    known = set(player.trained.vocabulary.words)
    texts = ["How many large cubes are there?", "Whether zyzzyva's there", "cube " * 60, ""]
    readings = player.reading([Query(text) for text in texts])
    assert "zyzzyva's" not in known and {"how", "many", "cubes"} <= known
    assert readings[0] == Reading(6, 0, 0)
    assert readings[1] == Reading(3, 0, sum(word not in known for word in ("whether", "zyzzyva's", "there")))
    assert readings[2] == Reading(60, 10, 0)
    assert readings[3] == Reading(0, 0, 0)


@pytest.mark.parametrize("probe", [Noise(ranker="rouge", k=2, partitions=2, fit=True), Rephrase(), Surface()])
def test_trials_that_are_too_many_to_hold_say_the_same(probe, tmp_path, monkeypatch):
    held = pfungst.examine(Reader(), worded(), [probe], tmp_path / "held")
    monkeypatch.setattr("pfungst.core.exam.HELD", 0)
    streamed = pfungst.examine(Reader(), worded(), [probe], tmp_path / "streamed")
    first, second = ((run.path / "findings.json").read_bytes() for run in (held, streamed))
    assert first == second and b"questions cut" in first
