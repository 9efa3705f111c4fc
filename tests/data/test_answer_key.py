"""How a data set names the right option: one reading for all its rows."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pfungst.core import DataError
from pfungst.data import check, load
from pfungst.logs import read_log

NUMBERS = ["4", "2", "0", "1"]
COLOURS = ["red", "blue", "green", "white"]


def table(tmp_path: Path, rows: Sequence[tuple[Sequence[Any], Any]], suffix: str = ".csv") -> Path:
    path = tmp_path / f"mine{suffix}"
    if suffix == ".csv":
        lines = [f"Which {at}?,{'|'.join(map(str, choices))},{answer}" for at, (choices, answer) in enumerate(rows)]
        path.write_text("\n".join(["question,choices,answer", *lines]))
    else:
        records = (
            {"question": f"Which {at}?", "choices": choices, "answer": a} for at, (choices, a) in enumerate(rows)
        )
        path.write_text("\n".join(map(json.dumps, records)))
    return path


@pytest.mark.parametrize("at", [0, 3, 6])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_an_index_stays_one_where_an_option_is_spelt_like_it(tmp_path: Path, at: int, suffix: str) -> None:
    rows: list[tuple[Sequence[str], Any]] = [(COLOURS, number % 4) for number in range(6)]
    rows.insert(at, (NUMBERS, 1))
    data = load(table(tmp_path, rows, suffix))
    assert [example.target for example in data] == [choices[answer] for choices, answer in rows]
    assert [example.answers for example in data] == [(example.target,) for example in data]
    assert [example.question for example in data] == [f"Which {number}?" for number in range(7)]


def test_texts_stay_texts_where_they_are_numbers(tmp_path: Path) -> None:
    rows = [(["1", "2", "3", "4"], "3"), (["5", "6", "7", "8"], "7")]
    assert [example.target for example in load(table(tmp_path, rows))] == ["3", "7"]


def test_a_letter_stays_one_where_an_option_is_that_letter(tmp_path: Path) -> None:
    rows = [(["B", "A", "C"], "A"), (COLOURS, "B")]
    assert [example.target for example in load(table(tmp_path, rows))] == ["B", "blue"]


@pytest.mark.parametrize(("named", "right"), [("index", "2"), ("text", "1")])
@pytest.mark.parametrize(
    "rows",
    [
        [(NUMBERS, "1")],
        [(NUMBERS, "1"), (COLOURS, "red"), (COLOURS, "2")],
        [(COLOURS, "red"), (COLOURS, "2"), (NUMBERS, "1")],
    ],
    ids=["nothing decides", "rows differ later", "rows differ before"],
)
def test_what_no_row_decides_is_refused_until_it_is_named(
    tmp_path: Path, rows: list[tuple[Sequence[str], str]], named: str, right: str
) -> None:
    path = table(tmp_path, rows)
    with pytest.raises(DataError, match=r"line \d.*'1' \(\?answer_is=text.*'2' \(\?answer_is=index"):
        load(path)
    report = check(path)
    assert not report.ok
    assert "answer_is=index" in str(report)
    data = load(f"{path}?answer_is={named}&skip_bad=yes")
    assert [example.target for example in data if example.choices == tuple(NUMBERS)] == [right]


def test_a_row_that_does_not_fit_the_named_reading_is_bad(tmp_path: Path) -> None:
    path = table(tmp_path, [(COLOURS, "1"), (COLOURS, "red")])
    with pytest.raises(DataError, match=r"line 3.*'red' is not its number"):
        load(f"{path}?answer_is=index")


def test_the_reading_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = table(tmp_path, [(COLOURS, "1"), (NUMBERS, "1")])
    with caplog.at_level(logging.INFO, "pfungst.data"):
        load(path)
    assert "right answers are read as its number, counted from 0" in caplog.text
    assert "Right answers are read as: its number, counted from 0." in str(check(path))


def test_numbers_of_json_beside_numbers_may_be_options(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="answer_is"):
        load(table(tmp_path, [([4, 2, 0, 1], 1)], ".jsonl"))
    assert load(table(tmp_path, [([4, 2, 0, 1], 1), ([4, 2, 9, 1], 9)], ".jsonl"))[0].target == "1"


def test_the_limit_changes_no_reading(tmp_path: Path) -> None:
    path = table(tmp_path, [(NUMBERS, "1"), *((COLOURS, "red") for _ in range(5)), (COLOURS, "blue")])
    assert load(path, limit=1)[0].target == "1"


def test_answers_of_another_tool_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("id,choices,answer,reply\n1,red|blue|green|white,2,green\n2,4|2|0|1,1,2\n")
    assert [record.target for record in read_log(path).records] == ["green", "2"]
    path.write_text("id,choices,answer,reply\n2,4|2|0|1,1,2\n")
    with pytest.raises(DataError, match="answer_is"):
        read_log(path)
    assert read_log(f"{path}?answer_is=text").records[0].target == "1"
