"""Whose words a question is in (`Example.wording`), as tables and CLEVR files tell it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pfungst.core import DataError
from pfungst.data import load

ROWS = [
    {"id": "1", "question": "Is it red?", "target": "yes", "image_id": "p", "group": "g"},
    {"id": "2", "question": "Would you call it red?", "target": "yes", "image_id": "p", "group": "g"},
    {"id": "3", "question": "Is it big?", "target": "no", "image_id": "p", "group": "h"},
]
WORDINGS = ["train", "heldout", ""]


@pytest.mark.parametrize("column", ["wording", "phrasing_split"])
def test_a_jsonl_file_says_whose_words_a_question_is_in(tmp_path: Path, column: str) -> None:
    rows = [{**row, column: wording} for row, wording in zip(ROWS, WORDINGS, strict=True)]
    del rows[2][column]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [one.wording for one in load(str(path))] == WORDINGS


def test_a_csv_file_says_whose_words_a_question_is_in(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*ROWS[0], "wording"])
        writer.writeheader()
        writer.writerows({**row, "wording": wording} for row, wording in zip(ROWS, WORDINGS, strict=True))
    found = load(str(path))
    assert [one.wording for one in found] == WORDINGS
    assert [one.group for one in found] == ["g", "g", "h"]


def test_another_column_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{**row, "origin": wording} for row, wording in zip(ROWS, WORDINGS, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [one.wording for one in load(f"{path}?wording=origin")] == WORDINGS
    assert {one.wording for one in load(str(path))} == {""}


def test_a_clevr_file_says_whose_words_a_question_is_in(tmp_path: Path) -> None:
    asked = [
        {
            "question": row["question"],
            "answer": row["target"],
            "image_filename": "CLEVR_val_000000.png",
            "image_index": 0,
            "question_index": number,
            "group": 0,
            **({"phrasing_split": wording} if wording else {}),
        }
        for number, (row, wording) in enumerate(zip(ROWS, WORDINGS, strict=True))
    ]
    path = tmp_path / "CLEVR_val_questions.json"
    path.write_text(json.dumps({"info": {"split": "val"}, "questions": asked}))
    assert [one.wording for one in load(str(path))] == WORDINGS


def test_a_wording_that_is_no_text_names_the_record(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**ROWS[0], "wording": [1]}) + "\n")
    with pytest.raises(DataError, match="wording"):
        load(str(path))
