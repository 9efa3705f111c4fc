"""Who counts, what is paid, what is listed, and files that a spreadsheet can open safely."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pfungst.cli.app import app
from pfungst.core import UsageError
from pfungst.study import export_study, study_results
from pfungst.study.items import CHECK, ITEM, Content
from tests.study.conftest import work

Make = Callable[..., Any]


def answer_all(study: Any, code: str, place: int, attentive: bool = True) -> None:
    """A worker who always takes the option at one place; checks are passed, or not."""
    book, worker = study.book, study.book.join(code)
    while (turn := book.next(worker)) is not None:
        options = [value for value, _ in turn.content.fields[0].options]
        if turn.role == CHECK:
            right = next(value for value, words in turn.content.fields[0].options if f"“{words}”" in turn.content.task)
            value = right if attentive else next(one for one in options if one != right)
        else:
            value = options[place]
        book.clock.now += 6
        book.submit(worker, turn.id, {"choice": value})


@pytest.fixture
def study(make: Make) -> Any:
    study = make("withheld:training=1,conditions=IQA", limit=4, wanted=3, check_every=2, pay=0.125, currency="EUR")
    answer_all(study, "=cmd|' /C calc'!A0", 0)
    answer_all(study, "plain", 0)
    answer_all(study, "asleep", 1, attentive=False)
    return study


def test_those_who_fail_the_checks_do_not_count_but_are_paid(study: Any) -> None:
    results = study_results(study)
    assert (results.answers, results.excluded, results.complete) == (8, 4, 0), "two good answers an item, not three"
    rows = {one.worker: one for one in results.workers}
    asleep = rows["asleep"]
    assert (asleep.counts, asleep.checks, asleep.passed, asleep.amount) == (False, 2, 0, 0.5)
    assert rows["plain"].counts
    assert rows["plain"].seconds == 6.0
    assert all(one.completion_code for one in results.workers)
    assert len({one.completion_code for one in results.workers}) == 3


RULES = {"pass_training": 0.3, "min_seconds": 1.0}


def careless(study: Any, code: str, seconds: float, right: bool) -> None:
    """A worker who takes so long an item; training items are answered right, or wrong."""
    book, worker = study.book, study.book.join(code)
    while (turn := book.next(worker)) is not None:
        options = [value for value, _ in turn.content.fields[0].options]
        book.clock.now += seconds
        gold = next(
            (one for one, words in turn.content.fields[0].options if f"“{words}”" in turn.content.explanation), ""
        )
        chosen = next(one for one in options if (one == gold) == right) if gold else options[0]
        book.submit(worker, turn.id, {"choice": chosen})


def test_who_answers_in_half_a_second_or_fails_all_practice_does_not_count(make: Make, tmp_path: Path) -> None:
    study = make("withheld:training=3,conditions=IQA", limit=4, wanted=4, check_every=0, **RULES)
    for code, seconds, right in (("good", 4, True), ("fast", 0.5, True), ("lost", 4, False), ("both", 0.5, False)):
        careless(study, code, seconds, right)
    results = study_results(study)
    assert {one.worker: one.broken for one in results.workers} == {
        "good": "", "fast": "0.5 s per item", "lost": "0 of 3 practice items right",
        "both": "0 of 3 practice items right, 0.5 s per item",
    }  # fmt: skip
    assert (results.answers, results.excluded, results.outcome.numbers["I+Q+A"].n) == (4, 12, 4)
    workers = next(table for table in results.tables if table.title == "Workers")
    assert "no: 0.5 s per item" in [row[-1] for row in workers.rows] and "at least 1 s per item" in workers.note
    export_study(study, results, tmp_path / "found")
    with open(tmp_path / "found" / "payments.csv", newline="") as file:
        payments = {row["worker"]: (row["counts"], row["broken"]) for row in csv.DictReader(file)}
    assert payments["good"] == ("1", "") and payments["fast"] == ("0", "0.5 s per item")
    assert json.loads((tmp_path / "found" / "results.json").read_text())["rules"] == {"pass_checks": 0.5, **RULES}


def test_other_rules_may_be_tried_on_a_study(make: Make) -> None:
    study = make("withheld:training=1,conditions=IQA", limit=3, wanted=1, check_every=0, **RULES)
    careless(study, "fast", 0.5, True)
    assert study_results(study).answers == 0
    assert study_results(study, replace(study.settings, min_seconds=0.25)).answers == 3
    for chosen, answers in ((), 0), (("--set", "min_seconds=0.25"), 3):
        shown = CliRunner().invoke(app, ["study", "results", str(study.folder), "--json", *chosen])
        assert json.loads(shown.stdout)["answers"] == answers
    refused = CliRunner().invoke(app, ["study", "results", str(study.folder), "--set", "pay=9"])
    assert isinstance(refused.exception, UsageError) and "pass_training" in str(refused.exception)
    with pytest.raises(UsageError, match="between 0 and 1"):
        replace(study.settings, pass_training=2)


def test_agreement_is_that_of_the_answers_that_count(study: Any) -> None:
    assert study_results(study).disputed == ()
    assert study_results(study).agreement.majority.value == 1.0


def test_two_workers_say_nothing_about_people_and_five_do(make: Make) -> None:
    study = make("withheld:training=0,conditions=IQA", limit=8, wanted=6, check_every=0)
    for workers in (2, 6):
        for number in range(workers - len(study.book.workers())):
            answer_all(study, f"w{workers}-{number}", number % 3)
        results = study_results(study)
        accuracy, agreement = results.outcome.numbers["I+Q+A"], results.agreement
        assert accuracy.n == workers * 8
        given = [not math.isnan(one.low) for one in (accuracy, agreement.alpha, agreement.kappa, agreement.majority)]
        assert given == [workers == 6] * 4
        told = f"No interval over people can be given: {workers} took part"
        intervals = [table.note for table in results.tables if "interval" in table.note]
        assert len(intervals) == 2 and all((told in note) == (workers == 2) for note in intervals)
        shown = CliRunner().invoke(app, ["study", "results", str(study.folder)]).stdout
        assert (told in shown) == (workers == 2)


def test_items_that_people_disagree_about_are_listed(make: Make) -> None:
    study = make("withheld:training=0,conditions=IQA", limit=2, wanted=3, check_every=0)
    for number in range(3):
        answer_all(study, f"w{number}", number)
    results = study_results(study)
    assert len(results.disputed) == 2
    item, said = results.disputed[0]
    content = Content.of(next(row["content"] for row in study.book.items() if row["name"] == item))
    assert said == ", ".join(f"{words} (1)" for _, words in content.fields[0].options[:3]), "in words, not by number"
    assert results.agreement.alpha.value < 0


def test_no_cell_of_an_export_is_a_formula(study: Any, tmp_path: Path) -> None:
    files = export_study(study, study_results(study), tmp_path / "found")
    assert {file.name for file in files} == {"results.json", "answers.csv", "payments.csv", "human.json"}
    for name in ("answers.csv", "payments.csv"):
        rows = list(csv.reader(io.StringIO((tmp_path / "found" / name).read_text("utf-8"))))
        assert len(rows) > 3
        assert not [cell for row in rows for cell in row if cell[:1] in tuple("=+-@\t\r")]
    payments = list(csv.DictReader(io.StringIO((tmp_path / "found" / "payments.csv").read_text("utf-8"))))
    assert [row["amount"] for row in payments] == ["0.50"] * 3
    assert {row["currency"] for row in payments} == {"EUR"}
    found = json.loads((tmp_path / "found" / "results.json").read_text())
    assert found["answers"] == 8
    assert found["findings"]["I+Q+A"]["n"] == 8


def test_a_study_that_nobody_answered_has_results(make: Make, tmp_path: Path) -> None:
    for kind in ("rephrase", "withheld", "validate:generator=rules"):
        study = make(kind, limit=3)
        results = study_results(study)
        assert (results.answers, results.items > 0) == (0, True)
        assert results.tables
        assert export_study(study, results, tmp_path / kind.partition(":")[0])


def test_one_code_for_all_where_the_study_says_so(make: Make) -> None:
    study = make("rephrase", limit=1, wanted=1, completion_code="C0FFEE")
    work(study, "w")
    assert [one.completion_code for one in study_results(study).workers] == ["C0FFEE"]
    assert [row["role"] for row in study.book.answers()].count(ITEM) == 1
