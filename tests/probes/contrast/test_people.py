"""What people reach on the questions that the contrast probe asks of a player."""

from __future__ import annotations

from itertools import product

import pytest

from pfungst.core import Answer, AnsweredTrial, Dataset, Example
from pfungst.probes import get_probe
from pfungst.probes.contrast import people
from pfungst.scores.vqa import process

TEN = ("Black.", "black", "the black", "black", "dark", "dark", "brown", "grey", "black", "black")
OTHER = ("brown",) * 5 + ("black", "dark", "tan", "tan", "white")


def example(number: str, answers: tuple[str, ...], target: str) -> Example:
    return Example(number, "What color is the dog?", image_id=f"i{number}", answers=answers, target=target)


def answered(examples: list[Example], say: str = "black") -> list[AnsweredTrial]:
    trials = []
    for trial in get_probe("contrast:by=question").trials(Dataset("dogs", examples, metric="vqa"), 0):
        asked = next(one for one in examples if one.id == trial.example_id)
        said = tuple(Answer(say) for _ in trial.variants)
        trials.append(AnsweredTrial(trial, asked, said, (1.0, 0.0)))
    return trials


def test_the_ceiling_is_that_of_every_annotator_against_the_others_in_turn() -> None:
    """By hand, one person after the other."""
    both = [[process(one) for one in answers] for answers in (TEN, OTHER)]
    single = [min(3, ten.count(one) - 1) / 3 for ten in both for one in ten]
    agreed = [[ten.count(one) > 1 for one in ten] for ten in both]
    first, second = (people.answers_of(example(str(n), ten, "")) for n, ten in enumerate((TEN, OTHER)))
    assert (people.score(first) + people.score(second)) / 2 == pytest.approx(sum(single) / 20)
    assert people.right(first) * people.right(second) == pytest.approx(
        sum(one and other for one, other in product(*agreed)) / 100
    )
    assert people.same(first, second) == pytest.approx(sum(one == other for one, other in product(*both)) / 100)


def test_the_finding_says_what_people_reach_beside_the_player() -> None:
    examples = [
        one for pair in range(6) for one in (example(f"{pair}a", TEN, "black"), example(f"{pair}b", OTHER, "brown"))
    ]
    found = get_probe("contrast:by=question").findings(answered(examples), 0)
    ceiling = {one.condition: one for one in found.rows if one.name == people.NAME}
    assert list(ceiling) == [people.SINGLE, people.QUESTION, people.SAME]
    first, second = people.answers_of(examples[0]), people.answers_of(examples[1])
    assert ceiling[people.SAME].value == pytest.approx(people.same(first, second))
    assert (ceiling[people.SINGLE].n, ceiling[people.SAME].n) == (12, 6)
    assert "One annotator, against the others: " in found.verdict
    assert "What people reach" in [table.title for table in found.tables]


def test_where_one_person_answered_there_is_no_ceiling() -> None:
    examples = [example("a", TEN, "black"), example("b", ("brown",), "brown")]
    found = get_probe("contrast:by=question").findings(answered(examples), 0)
    assert not [one for one in found.rows if one.name == people.NAME]
    assert "annotator" not in found.verdict
