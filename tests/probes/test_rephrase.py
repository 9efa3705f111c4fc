"""The rephrase probe on groups with known answers."""

import math
from dataclasses import replace
from itertools import combinations

import pytest

from pfungst.core import Answer, AnsweredTrial, Dataset, ProbeError
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
    with pytest.raises(ProbeError, match="one of any, 0.3, exact"):
        next(Rephrase(correct="mostly").trials(grouped(), 0))
