"""The conditions probe: groups, missing replies, repetitions; numbers worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pfungst.core import Answer, AnsweredTrial, Dataset, Example, ProbeError
from pfungst.logs.records import condition_of
from pfungst.probes.conditions import DIFFERS, KEEPS, Conditions, member_id


def data(*conditions: str, groups: int = 4) -> Dataset:
    return Dataset(
        "d",
        [
            Example(
                key if place == 0 else member_id(key, name),
                f"Is it {key}?",
                image_id=f"i{key}",
                target="yes",
                answers=("yes",),
                group=key,
                question_type="even" if int(key) % 2 == 0 else "odd",
            )
            for key in map(str, range(groups))
            for place, name in enumerate(conditions)
        ],
    )


def answered(probe: Conditions, of: Dataset, wrong: set[str]) -> list[AnsweredTrial]:
    examples = {example.id: example for example in of}
    found = []
    for trial in probe.trials(of, 0):
        ids = [variant.example_id for variant in trial.variants]
        said = tuple(Answer("no" if id_ in wrong else "yes") for id_ in ids)
        scores = tuple(float(id_ not in wrong) for id_ in ids)
        found.append(AnsweredTrial(trial, examples[trial.example_id], said, scores))
    return found


def value(probe: Conditions, trials: list[AnsweredTrial], name: str, condition: str = "") -> float:
    rows = probe.findings(trials, 0).rows
    return next(row.value for row in rows if (row.name, row.condition) == (name, condition))


def test_accuracy_drop_and_groups_by_hand() -> None:
    of = data("clean", "b", "c")
    probe = Conditions(("clean", "b", "c"))
    trials = answered(probe, of, {"0@b", "1@b", "1", "2@c"})
    assert value(probe, trials, "accuracy", "clean") == 0.75
    assert value(probe, trials, "drop", "b") == pytest.approx(0.75 - 0.5)
    assert value(probe, trials, "drop", "c") == pytest.approx(0.75 - 0.75)
    assert value(probe, trials, "drop", "mean of the other conditions") == pytest.approx(0.75 - 0.625)
    assert value(probe, trials, "all of group") == 0.25 and value(probe, trials, "none of group") == 0
    # pairs that agree: groups 0, 1 and 2 one of three each, group 3 all
    assert value(probe, trials, "agreement") == pytest.approx((1 / 3 * 3 + 1) / 4)
    assert value(probe, trials, "answers changed", "b") == 0.25, "group 1 is wrong in both in the same way"
    categories = probe.findings(trials, 0).tables[-1]
    assert [row[0] for row in categories.rows] == ["even", "odd"] and categories.columns[-2] == "all of group"


def test_a_missing_reply_leaves_its_group_out_of_group_scores_and_a_missing_clean_one_the_question() -> None:
    of = data("clean", "b")
    probe = Conditions(("clean", "b"), missing=("0@b", "1"))
    trials = answered(probe, of, {"2@b"})
    assert [trial.trial.example_id for trial in trials] == ["0", "2", "3"]
    found = {row.name: row for row in probe.findings(trials, 0).rows if not row.condition}
    assert (found["all of group"].value, found["all of group"].n) == (0.5, 2)


def test_repetitions_are_the_control_and_no_part_of_the_drop() -> None:
    of = data("clean", "again", "noisy")
    probe = Conditions(("clean", "again", "noisy"), again=("again",))
    trials = answered(probe, of, {"0@again", "1@noisy", "2@noisy"})
    found = probe.findings(trials, 0)
    assert found.drop is not None and found.drop.value == pytest.approx(0.5) and found.drop.condition == "noisy"
    assert "The repetition alone changes 25.0%" in found.verdict


def test_a_table_of_repetitions_says_what_counts_answers_and_what_questions() -> None:
    names = ("clean", "clean, epoch 2", "noisy", "noisy, epoch 2", "noisy, epoch 3")
    wanted = ("clean", "noisy")
    assert tuple(dict.fromkeys(map(condition_of, names))) == wanted
    probe = Conditions(names)
    trials = answered(probe, data(*names), {f"{n}@{name}" for n in range(4) for name in names[2:]} - {"3@noisy"})
    table = probe.findings(trials, 0).tables[0]
    noisy = dict(zip(table.columns, table.rows[1], strict=True))
    assert noisy["right to wrong"] == 11 and noisy["answers compared"] == 12 and noisy["n, questions"] == 4
    assert "counts answers" in table.note
    plain = Conditions(wanted)
    assert plain.findings(answered(plain, data(*wanted), set()), 0).tables[0].columns[-1] == "n"


def test_one_condition_gives_accuracy_alone() -> None:
    probe = Conditions(("clean",))
    found = probe.findings(answered(probe, data("clean"), {"0"}), 0)
    assert found.drop is None and found.clean is not None and found.clean.value == 0.75


def test_the_contract_says_where_right_answers_differ() -> None:
    same, other = data("clean", "b", groups=1).examples
    moved = Dataset("d", [same, Example("0@b", "Is it?", target="no", answers=("no",), group="0")])
    probe = Conditions(("clean", "b"))
    assert [trial.keeps for trial in probe.trials(Dataset("d", [same, other]), 0)] == [KEEPS]
    assert [trial.keeps for trial in probe.trials(moved, 0)] == [DIFFERS]
    trials = answered(probe, moved, set())
    assert math.isnan(value(probe, trials, "agreement"))


def test_an_unknown_clean_condition_is_a_sentence() -> None:
    of = Dataset("d", [Example("0@b", "Q", group="0")])
    with pytest.raises(ProbeError, match="under the condition 'clean'"):
        list(Conditions(("clean", "b")).trials(of, 0))


def test_two_replies_that_could_not_be_read_are_not_compared() -> None:
    of = data("clean", "b", groups=2)
    probe = Conditions(("clean", "b"))
    unread, other = Answer("I cannot say.", unread=True), Answer("It is hard to tell.", unread=True)
    first, second = answered(probe, of, set())
    trials = [
        replace(first, answers=(unread, other), scores=(0.0, 0.0)),
        replace(second, answers=(Answer("yes"), other)),
    ]
    rows = {(row.name, row.condition): row for row in probe.findings(trials, 0).rows}
    assert (rows["answers changed", "b"].value, rows["answers changed", "b"].n) == (1.0, 1)
    assert rows["agreement", ""].n == 1


def test_where_no_condition_costs_accuracy_none_is_said_to_cost_most():
    from pfungst.core import Finding
    from pfungst.probes.measure import largest_drop

    drops = [Finding("drop", value, 40, value - 0.1, value + 0.1, name) for name, value in (("a", -0.06), ("b", -0.1))]
    assert largest_drop(drops) == " Under none of the 2 does accuracy fall."
    assert "under c" in largest_drop([*drops, Finding("drop", 0.1, 40, 0.0, 0.2, "c")])
    untested = [Finding("drop", value, 6, condition=name, p_holm=math.nan) for name, value in (("a", 0.1), ("b", 0.2))]
    assert "nan" not in largest_drop(untested)
