"""The first screen: the summary figure and the verdict in two sentences."""

import re

import pytest

from pfungst.report.card import summary_rows, table_rows, verdict
from pfungst.report.plots import draw_narrow, draw_wide


def number(value, low=None, high=None, n=100, p=None, name="accuracy", condition=""):
    told = {"name": name, "value": value, "low": low, "high": high, "n": n, "p": p, "p_holm": p, "condition": condition}
    return {**told, "unit": "points" if name == "drop" else "%"}


def found(probe, clean, disturbed=None, p=None, rows=(), half=0.05):
    drop = None
    if disturbed is not None:
        lost = clean - disturbed
        drop = number(lost, lost - half, lost + half, p=p, name="drop")
    return {
        "probe": probe,
        "clean": number(clean, clean - half, clean + half),
        "disturbed": None if disturbed is None else number(disturbed, disturbed - half, disturbed + half),
        "drop": drop,
        "p_holm": p,
        "rows": list(rows),
        "verdict": "v",
        "role": {"control": "control", "blind": "removes"}.get(probe, "keeps"),
    }


CHANGED = number(0.02, 0.01, 0.03, name="answers changed", condition="again")
CONTROL = found("control", 0.8, 0.8, 1.0, [CHANGED])


def told(findings, again=()):
    rows = summary_rows(findings, again)
    return rows, verdict("M", rows, findings)


def test_the_largest_loss_is_named_with_its_interval_and_the_others_after_it():
    findings = [
        found("noise", 0.8, 0.7, 0.001),
        CONTROL,
        found("game", 0.8, 0.5, 0.001),
        found("decoys", 0.8, 0.79, 0.4),
    ]
    blind = found("blind", 0.8, 0.4, 0.001)
    blind["disturbed"]["condition"] = "other image"
    rows, said = told([*findings, blind])
    assert [row.probe for row in rows] == ["control", "noise", "game", "decoys", "blind"]
    assert [row.lost for row in rows] == [False, True, True, False, False]
    assert said == (
        "M scores 80.0% [75.0, 85.0] on 100 questions and loses 30.0 points [25.0, 35.0] under game; noise costs "
        "accuracy too. With the evidence taken away (blind, other image) it still scores 40.0% [35.0, 45.0] and asked "
        "again it changes 2.0% [1.0, 3.0] of its answers."
    )


def test_a_loss_is_named_with_what_it_is_beyond_its_controls():
    beyond = {**number(0.02, -0.05, 0.09, name="beyond controls"), "unit": "points"}
    largest = told([CONTROL, found("noise", 0.8, 0.7, 0.001, [beyond])])[1]
    assert (
        "loses 10.0 points [5.0, 15.0] under noise (2.0 points [-5.0, 9.0] beyond the mean of its controls)." in largest
    )
    second = told([CONTROL, found("game", 0.8, 0.5, 0.001), found("noise", 0.8, 0.7, 0.001, [beyond])])[1]
    assert "under game; noise (2.0 points [-5.0, 9.0] beyond the mean of its controls) costs accuracy too." in second


def test_without_a_proven_loss_the_verdict_says_what_cannot_be_ruled_out():
    _, said = told([CONTROL, found("noise", 0.8, 0.78, 0.4), found("game", 0.8, 0.8, 1.0, half=0.2)])
    assert (
        "none of the 2 disturbances costs it accuracy beyond chance, though a loss of up to 20.0 points under game fits"
        in said
    )
    _, said = told([CONTROL, found("noise", 0.8, 0.78, 0.4)])
    assert "and noise costs it no accuracy beyond chance, though a loss of up to 7.0 points under noise fits" in said


def test_recorded_answers_and_runs_without_control_say_so():
    assert told([found("control", 0.8)])[1] == (
        "M scores 80.0% [75.0, 85.0] on 100 questions. These are recorded answers, one per question, so sampling noise "
        "is unknown."
    )
    assert "The control did not run, so sampling noise is unknown." in told([found("noise", 0.8, 0.7, 0.001)])[1]


def test_conditions_are_rows_of_their_own_and_a_repetition_is_their_control():
    rows = [number(0.8, condition="base")]
    for name, value, p in (("noisy", 0.5, 0.001), ("twice", 0.79, 0.6)):
        rows.append(number(value, condition=name))
        rows.append(number(0.8 - value, 0.0, 0.4, p=p, name="drop", condition=name))
        rows.append(number(0.1, name="answers changed", condition=name))
    rows += [number(0.5, condition="noisy"), number(0.3, 0.0, 0.4, p=0.001, name="drop", condition="noisy")]
    summary, said = told([found("conditions", 0.8, 0.5, 0.001, rows)], again=["twice"])
    assert [(row.probe, row.is_control) for row in summary] == [("twice", True), ("noisy", False)]
    assert "loses 30.0 points [0.0, 40.0] under noisy. Asked again it changes 10.0% of its answers." in said


def test_a_run_without_a_known_accuracy_has_a_verdict_too():
    findings = [{**found("control", 0.8), "clean": number(None)}]
    assert told(findings) == ([], "No probe of this run measured an accuracy. The numbers of each probe are below.")


@pytest.mark.parametrize("draw", [draw_wide, draw_narrow])
def test_dots_stand_where_their_values_are(draw):
    rows, _ = told([found("noise", 1.0, 0.5, 0.001), found("game", 0.5, 0.0, 0.001)])
    svg = draw(rows)
    clean = [float(x) for x in re.findall(r'class="clean" cx="([\d.]+)"', svg)]
    low = [float(x) for x in re.findall(r'class="f1" cx="([\d.]+)" cy="[\d.]+" r="5"><title>disturbed', svg)]
    # 100%, 50% and 0% are equally far apart, in both rows.
    assert clean[0] - low[0] == pytest.approx(clean[1] - low[1], abs=0.2) and low[0] == pytest.approx(clean[1], abs=0.2)
    assert "noise: 100.0% clean, 50.0% disturbed" in svg


def test_the_numbers_of_the_figure_are_a_table():
    (row,) = table_rows(told([found("noise", 0.8, 0.7, 0.001)])[0])
    assert row[0] == "noise" and row[1] == 0.8 and row[4] == 0.7 and row[7:10] == pytest.approx([0.1, 0.05, 0.15])


@pytest.mark.parametrize("draw", [draw_wide, draw_narrow])
def test_the_figure_says_that_no_score_changed_where_the_interval_is_a_bound(draw):
    one = found("control", 0.8, 0.8, 1.0)
    still = {**one["drop"], "changed": 0, "at_most": 0.07, "clusters": 41}
    assert "0 of 100 scores changed</text>" in draw(told([{**one, "drop": still}])[0])
