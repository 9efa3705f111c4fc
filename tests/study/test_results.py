"""Who counts, what is paid, what is listed, and files that a spreadsheet can open safely."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
    assert (results.answers, results.excluded, results.complete) == (8, 4, 4)
    rows = {one.worker: one for one in results.workers}
    asleep = rows["asleep"]
    assert (asleep.counts, asleep.checks, asleep.passed, asleep.amount) == (False, 2, 0, 0.5)
    assert rows["plain"].counts
    assert rows["plain"].seconds == 6.0
    assert all(one.completion_code for one in results.workers)
    assert len({one.completion_code for one in results.workers}) == 3


def test_agreement_is_that_of_the_answers_that_count(study: Any) -> None:
    assert study_results(study).disputed == ()
    assert study_results(study).agreement.majority.value == 1.0


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
