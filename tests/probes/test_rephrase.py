"""The rephrase probe on groups with known answers."""

import math
from dataclasses import replace
from itertools import combinations

import pytest

from pfungst.core import Answer, AnsweredTrial, DataError, Dataset, ProbeError, UsageError
from pfungst.probes.rephrase import Rephrase
from pfungst.scores import consensus
from tests.conftest import squares


def grouped(sizes=(4, 4, 3, 2)) -> Dataset:
    base = squares(len(sizes), 1)
    examples = []
    for example, size in zip(base, sizes, strict=True):
        for number in range(size):
            name = example.id if number == 0 else f"{example.id}/{number}"
            examples.append(replace(example, id=name, question=f"{example.question} ({number})", group=example.id))
    return base.subset(examples[::-1])  # the original is not the first in the file


def answered(data, scores, texts=None):
    """Answer group by group with the given scores."""
    trials = list(Rephrase().trials(data, 0))
    examples = {example.id: example for example in data}
    rows = []
    for number, (trial, row) in enumerate(zip(trials, scores, strict=True)):
        said = texts[number] if texts else ["right" if score else "wrong" for score in row]
        rows.append(AnsweredTrial(trial, examples[trial.example_id], tuple(map(Answer, said)), tuple(row)))
    return rows


def by_name(findings, name):
    return next(one.value for one in findings.rows if one.name == name)


def test_a_trial_is_a_group_with_the_original_first():
    data = grouped()
    for trial in Rephrase().trials(data, 0):
        assert trial.variants[0].example_id == trial.example_id
        assert len({v.example_id for v in trial.variants}) == len(trial.variants)
    assert sorted(len(t.variants) for t in Rephrase().trials(data, 0)) == [2, 3, 4, 4]


def test_consensus_equals_the_definition_over_subsets():
    data = grouped((4, 4, 4))
    scores = [(1, 0.3, 0, 1), (1, 1, 1, 1), (0, 0, 0, 0.6)]
    found = Rephrase().findings(answered(data, scores), 0)
    for k in range(1, 5):
        expected = [
            sum(all(s > 0 for s in subset) for subset in combinations(row, k)) / math.comb(4, k) for row in scores
        ]
        assert by_name(found, f"CS({k})") == pytest.approx(sum(expected) / 3)
        assert by_name(found, f"CS({k})") == pytest.approx(consensus([[s > 0 for s in row] for row in scores], k))


def test_what_counts_as_correct_can_be_stricter():
    rows = answered(grouped((4,)), [(1, 0.3, 0.2, 1)])
    assert by_name(Rephrase().findings(rows, 0), "CS(1)") == 1
    assert by_name(Rephrase(correct="0.3").findings(rows, 0), "CS(1)") == 0.75
    assert by_name(Rephrase(correct="exact").findings(rows, 0), "CS(1)") == 0.5


def test_two_different_wrong_answers_are_consistent_but_do_not_agree():
    rows = answered(grouped((2,)), [(0, 0)], [["red", "blue"]])
    found = Rephrase().findings(rows, 0)
    assert by_name(found, "correct-consistency") == 1
    assert by_name(found, "agreement") == 0
    assert by_name(found, "any-flip rate") == 1


def test_original_rephrased_and_worst_accuracy():
    found = Rephrase().findings(answered(grouped((4, 2)), [(0, 1), (1, 1, 0, 0.5)]), 0)
    assert found.clean.value == 0.5
    assert found.disturbed.value == pytest.approx((0.5 + 1) / 2)
    assert by_name(found, "worst of n") == 0
    assert [failure.variant for failure in found.failures] == ["rephrasing 2"]


def test_a_group_with_two_answers_breaks_the_contract_and_is_left_out():
    data = grouped((2, 2))
    broken = data.subset([replace(e, target="other") if e.id == e.group == data[-1].group else e for e in data])
    assert len(list(Rephrase().trials(broken, 0))) == 1


def test_data_without_groups_is_refused():
    with pytest.raises(ProbeError, match="needs questions in several wordings"):
        list(Rephrase().trials(squares(3), 0))


def test_a_wrong_setting_is_refused_before_anything_is_asked():
    with pytest.raises(UsageError, match="one of any, 0.3, exact"):
        next(Rephrase(correct="mostly").trials(grouped(), 0))


def with_wordings(kinds):
    """One group a row of kinds, the original first."""
    data = grouped(tuple(len(row) for row in kinds))
    by_group = {name: iter(row) for name, row in zip(dict.fromkeys(e.group for e in data[::-1]), kinds, strict=True)}
    ordered = sorted(data, key=lambda e: (e.group != e.id, e.id))
    return data.subset([replace(e, wording=next(by_group[e.group])) for e in ordered])


def table(found, title):
    return next((one for one in found.tables if one.title == title), None)


def test_seen_and_heldout_wordings_are_told_apart_and_compared_with_their_own_originals():
    kinds = [("train", "train", "heldout"), ("train", "heldout", "heldout"), ("train", "train")]
    data = with_wordings(kinds)
    trials = {t.example_id: t for t in Rephrase().trials(data, 0)}
    examples = {e.id: e for e in data}
    worth = {"train": 1.0, "heldout": 0.0}
    rows = []
    for name, trial in trials.items():
        scores = tuple(1.0 if n == 0 else worth[examples[v.example_id].wording] for n, v in enumerate(trial.variants))
        rows.append(AnsweredTrial(trial, examples[name], tuple(Answer(str(s)) for s in scores), scores))
    found = Rephrase().findings(rows, 0)
    shown = {row[0]: row for row in table(found, "Seen and held-out wordings").rows}
    assert shown["seen wordings"][1:3] == (2, 2) and shown["held-out wordings"][1:3] == (3, 2)
    assert shown["seen wordings"][4].value == 1 and shown["seen wordings"][5].value == 0
    assert shown["held-out wordings"][4].value == 0 and shown["held-out wordings"][5].value == 1
    assert shown["held-out wordings"][3].value == 1


def test_without_wordings_there_is_no_table_of_them():
    found = Rephrase().findings(answered(grouped((2, 2)), [(1, 1), (1, 0)]), 0)
    assert table(found, "Seen and held-out wordings") is None


def test_the_world_says_which_wordings_are_held_out():
    from pfungst.world import embedded

    data = embedded(6, rephrasings=3)
    assert {one.wording for one in data} == {"train", "heldout"}
    assert all((one.wording == "heldout") == one.id.endswith("h") for one in data)
    trial = next(iter(Rephrase().trials(data, 0)))
    kinds = {one.id: one.wording for one in data}
    assert trial.notes["wordings"] == [kinds[v.example_id] for v in trial.variants]


def test_generated_wordings_of_the_world_are_held_out():
    from pfungst.world import embedded

    data = embedded(3, rephrasings=0)
    trial = next(iter(Rephrase(generator="world").trials(data, 0)))
    assert trial.notes["wordings"] == ["train"] + ["heldout"] * (len(trial.variants) - 1)


def votes(data, rows):
    """A table of judgements: id of a rephrasing -> judged, meaning, answer, grammar, valid."""
    by_id = {example.id: example for example in data}
    lines = ["original,question,text,judged,meaning,answer,grammar,valid\n"]
    for name, counts in rows.items():
        original = by_id[by_id[name].group]
        lines.append(",".join([original.id, original.question, by_id[name].question, *map(str, counts)]) + "\n")
    return "".join(lines)


def test_what_people_say_splits_the_rephrasings(tmp_path):
    data = grouped((3, 3))
    one, two = (example.id for example in data if example.id == example.group)
    # Of the first group one rephrasing is refused, of the second only one was judged: valid, by half of the people.
    file = tmp_path / "said.csv"
    file.write_text(
        votes(data, {f"{one}/1": (3, 1, 3, 3, 1), f"{one}/2": (3, 3, 3, 3, 3), f"{two}/1": (2, 2, 1, 2, 1)})
    )
    probe = Rephrase(validated=str(file))
    probe.check_data(data)
    examples = {example.id: example for example in data}
    rows = []
    for trial in probe.trials(data, 0):
        # Wrong about the refused rephrasing alone.
        scores = [0.0 if variant.example_id == f"{one}/1" else 1.0 for variant in trial.variants]
        answers = tuple(Answer("right" if score else "wrong") for score in scores)
        rows.append(AnsweredTrial(trial, examples[trial.example_id], answers, tuple(scores)))
    found = probe.findings(rows, 0)
    told = {(row.name, row.condition): row for row in found.rows}
    assert told["share", "rephrasings of the same meaning"].value == pytest.approx(2 / 3)
    assert told["share", "valid rephrasings"].value == pytest.approx(2 / 3)
    assert told["drop", "rephrasings"].value == pytest.approx(0.25)
    assert told["drop", "all but the refused"].value == 0
    assert told["drop", "judged"].value == pytest.approx(0.25)
    assert told["drop", "refused"].value == 1
    table = next(one for one in found.tables if one.title == "What people say about the rephrasings")
    counts = {row[0]: row[1:3] for row in table.rows}
    assert counts["all"] == (4, 2) and counts["all but the refused"] == (3, 2) and counts["refused"] == (1, 1)


def test_judgements_of_other_rephrasings_are_not_taken_for_these(tmp_path):
    data = grouped((2, 2))
    file = tmp_path / "said.csv"
    names = [example.id for example in data if example.id != example.group]
    text = votes(data, {names[0]: (1, 1, 1, 1, 1)})
    file.write_text(text.replace("(1)", "in words that nobody asks here"))
    probe = Rephrase(validated=str(file))
    assert all(trial.notes["validated"] == [None, None] for trial in probe.trials(data, 0))
    file.write_text(text.replace("(0)", "about another image of the same number"))
    with pytest.raises(ProbeError, match="none of these is among"):
        probe.check_data(data)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("valid\n", "ok\n", "no column valid"),
        (",3,3,3,3,3", ",3,4,3,3,3", "3 people judged it, but 4"),
        (",3,3,3,3,3", ",0,0,0,0,0", "0 people"),
        (",3,3,3,3,3", ",3,yes,3,3,3", "not a count"),
        (",3,3,3,3,3", ",3,,3,3,3", "line 2"),
    ],
)
def test_a_table_of_judgements_that_cannot_be_read_is_a_sentence(tmp_path, old, new, why):
    data = grouped((2,))
    name = next(example.id for example in data if example.id != example.group)
    file = tmp_path / "said.csv"
    file.write_text(votes(data, {name: (3, 3, 3, 3, 3)}).replace(old, new))
    with pytest.raises(DataError, match=why):
        Rephrase(validated=str(file)).check_data(data)
    with pytest.raises(DataError, match="no such file"):
        Rephrase(validated=str(tmp_path / "nothing")).check_data(data)
