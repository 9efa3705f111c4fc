"""Where a data set holds questions in several wordings, every probe asks the originals; `rephrase` asks the rest."""

from dataclasses import replace

import pytest

import pfungst
from pfungst.core import Answer, Dataset, read_config
from pfungst.data.selection import select, select_again
from pfungst.probes import get_probe
from tests.conftest import squares

PROBES = ("control", "blind", "surface", "picture", "noise:ranker=rouge,k=7", "rephrase")


@pytest.fixture
def worded() -> Dataset:
    """Twelve questions in three wordings each; the original is the last of its group in the data."""
    base = squares(12, 1)
    wordings = [
        replace(one, id=f"{one.id}{end}", question=f"{start}{one.question[:-1]} in picture {number}?", group=one.id)
        for number, one in enumerate(base)
        for end, start in (("/1", "Say: "), ("/2", "Well, "), ("", ""))
    ]
    return replace(base, examples=wordings)


class Wordy:
    """Right about the original wordings alone."""

    name = fingerprint = "wordy"
    batch_size = 50

    def __init__(self, data):
        self.right = {one.question: one.target for one in data.originals}

    def answer(self, queries):
        return [Answer(self.right.get(query.question, "no idea")) for query in queries]


def test_clean_accuracy_is_over_originals_in_every_probe(worded, tmp_path):
    run = pfungst.examine(Wordy(worded), worded, PROBES, tmp_path / "run")
    clean = {found.probe: (found.clean.value, found.clean.n) for found in run.findings}
    assert set(clean.values()) == {clean["rephrase"]}
    assert clean["rephrase"][1] == 12
    assert "12 questions in 36 wordings" in run.report.read_text("utf-8")


def test_the_limit_counts_originals_and_takes_all_their_wordings(worded):
    part = select(worded, limit=5)
    assert (len(part), len(part.originals)) == (15, 5)
    assert [one.id for one in part.originals] == [one.id for one in worded.originals][:5]


def test_examples_of_a_group_that_differ_in_answer_are_no_wordings(worded):
    mixed = replace(worded, examples=[replace(one, group="all") for one in worded.originals])
    assert mixed.originals is mixed


def test_a_wording_asked_for_by_its_id_is_asked(worded):
    some = select(worded, only=[worded[0].id])
    assert list(some.originals) == [worded[0]]


def test_a_run_whose_limit_counted_wordings_is_read_as_it_was_asked(worded, tmp_path):
    run = pfungst.examine(Wordy(worded), worded, ["control"], tmp_path / "run", limit=5)
    about = read_config(run.path)["data"]
    assert len(select_again(worded, about)) == 15
    assert [one.id for one in select_again(worded, {**about, "examples": 5})] == [one.id for one in worded][:5]


def test_settings_of_earlier_versions_do_not_stand_in_the_way_of_rescoring(worded, tmp_path):
    from pfungst.probes import probe_again

    assert probe_again("noise", {"ranker": "rouge", "rephrasings": False}) == get_probe("noise:ranker=rouge")
