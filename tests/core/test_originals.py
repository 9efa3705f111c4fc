"""Where a data set holds questions in several wordings, every probe asks the originals; `rephrase` asks the rest."""

import csv
import json
from dataclasses import replace

import pytest

import pfungst
from pfungst.cli.examine import print_run
from pfungst.core import Answer, Dataset, read_config
from pfungst.data.loading import select, select_again
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
    page = run.report.read_text("utf-8")
    assert "12 questions in 36 wordings" in page and "Clean accuracies differ" not in page


def test_where_a_probe_cannot_ask_all_questions_it_is_said_beside_the_clean_accuracies(worded, tmp_path, capsys):
    """Three of twelve questions have no other wording, and the player is wrong about these."""
    alone = [one.id for one in worded.originals][:3]
    some = replace(worded, examples=[one for one in worded if one.id in alone or one.group not in alone])
    player = Wordy(some)
    player.right = {one.question: one.target for one in some.originals if one.id not in alone}
    run = pfungst.examine(player, some, ["control", "rephrase", "surface:edits=typo"], tmp_path / "run")
    clean = {found.probe: (found.clean.value, found.clean.n) for found in run.findings}
    assert clean["control"] == clean["surface"] == (0.75, 12) and clean["rephrase"] == (1.0, 9)
    sentence = (
        "Clean accuracies differ: each is over the questions that its probe can ask, in the form in which it asks them "
        "(control and surface: 12; rephrase: 9)."
    )
    assert run.report.read_text("utf-8").count(sentence) == 2  # below the summary figure and below the report card
    print_run(run.path, False)
    assert sentence in capsys.readouterr().out


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


@pytest.mark.parametrize("end", ["csv", "jsonl"])
def test_an_original_that_only_its_rephrasings_name_is_the_original(tmp_path, end):
    rows = [
        {"id": 2, "question": "Say: what is it?", "answer": "cup", "image_id": "a", "rephrasing_of": 1},
        {"id": 1, "question": "What is it?", "answer": "cup", "image_id": "a", "rephrasing_of": None},
        {"id": 3, "question": "The thing?", "answer": "cup", "image_id": "a", "rephrasing_of": 1},
        {"id": 4, "question": "How many?", "answer": "2", "image_id": "a", "rephrasing_of": None},
        {"id": 6, "question": "Say: how many?", "answer": "3", "image_id": "b", "rephrasing_of": 4},
        {"id": 7, "question": "The number?", "answer": "3", "image_id": "b", "rephrasing_of": 4},
    ]
    file = tmp_path / f"data.{end}"
    if end == "csv":
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = pfungst.load(file)
    # 4 is about another image than those that name it
    assert [[one.id for one in some] for some in data.wordings] == [["1", "2", "3"], ["6", "7"]]
    assert [one.id for one in data.originals] == ["1", "4", "6"]
