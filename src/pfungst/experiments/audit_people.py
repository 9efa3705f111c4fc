"""People as a row of the audit: what a study found out (`human.json` of `pfungst study results`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pfungst.core import DataError
from pfungst.core.files import read_json
from pfungst.core.stats import Interval
from pfungst.experiments.audit_config import Cell

ROWS = ("Human-A", "Human-IA", "Human-QA", "Human-IQA")
"""People who saw the choices alone, with the image, with the question, with both."""


def read_people(path: Path) -> tuple[Cell, ...]:
    """The cells of people, one for each choice set and each thing that was withheld."""
    if not path.is_file():
        raise DataError.at(
            path, "", "there is no such file.", "`pfungst study results DIR --out FOLDER` writes human.json."
        )
    found: Any = read_json(path)
    try:
        cells = tuple(_cell(record) for record in found["cells"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError.at(path, "", f"this is not human.json of a study ({type(error).__name__}: {error}).") from None
    strange = [cell.model for cell in cells if cell.model not in ROWS]
    if strange:
        raise DataError.at(path, "", f"there is no row {strange[0]!r}; there are {', '.join(ROWS)}.")
    return cells


def left_out(cells: Sequence[Cell], variants: Sequence[str]) -> list[str]:
    """Sentences about cells of choice sets that an audit does not have."""
    names = sorted({cell.variant for cell in cells} - set(variants))
    known = ", ".join(variants)
    return [f"People were asked about the choice set {name}, which is not audited here ({known})." for name in names]


def _cell(record: Any) -> Cell:
    one = record["accuracy"]
    low, high = (float("nan") if one[name] is None else float(one[name]) for name in ("low", "high"))
    accuracy = Interval(float(one["value"]), low, high, int(one["n"]), int(one["clusters"]), str(one["how"]))
    return Cell(str(record["variant"]), str(record["model"]), accuracy, str(record.get("note", "")))
