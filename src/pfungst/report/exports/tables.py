"""csv and parquet: all answers, one row per variant, and the findings."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from pfungst.core.files import PARQUET_WRITING
from pfungst.report.exports.source import Source, scale_of
from pfungst.report.exports.writing import visible

FINDING_COLUMNS = {
    "probe": "string", "id": "string", "name": "string", "condition": "string", "headline": "string",
    "value": "float64", "low": "float64", "high": "float64", "at_least": "float64", "at_most": "float64",
    "n": "int64", "clusters": "int64", "p": "float64", "p_holm": "float64", "scale": "string", "how": "string",
    "note": "string",
}  # fmt: skip
"""Of findings.csv and findings.parquet. low, high: 95% interval; at_least, at_most: one-sided 95% bounds."""

_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")


def csv_files(source: Source) -> Iterable[tuple[str, bytes]]:
    """All answers and the findings as CSV, safe to open in a spreadsheet.

    answers.csv and findings.csv, UTF-8. Lists and notes are JSON; unknown numbers are empty.
    """
    answers = list(source.answers())
    columns = list(dict.fromkeys(name for row in answers for name in row))
    yield "answers.csv", csv_bytes(columns, ([row.get(name) for name in columns] for row in answers))
    yield "findings.csv", csv_bytes(list(FINDING_COLUMNS), (list(row.values()) for row in _finding_rows(source)))


def parquet_files(source: Source) -> Iterable[tuple[str, bytes]]:
    """All answers and the findings as Parquet."""
    import pyarrow as pa

    probes = [source.table(found["probe"]) for found in source.findings]
    yield "answers.parquet", _parquet(pa.concat_tables(probes, promote_options="default"))
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in FINDING_COLUMNS.items()])
    yield "findings.parquet", _parquet(pa.Table.from_pylist(_finding_rows(source), schema=schema))


def _finding_rows(source: Source) -> list[dict[str, Any]]:
    rows = ({**row, "scale": scale_of(row)} for row in source.finding_rows())
    return [{name: row.get(name) for name in FINDING_COLUMNS} for row in rows]


def _parquet(table: Any) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, **PARQUET_WRITING)
    return buffer.getvalue()


def csv_bytes(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """UTF-8 CSV, safe to open in a spreadsheet."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([_cell(name) for name in columns])
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return text.getvalue().encode("utf-8")


def _cell(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return ""
    if isinstance(value, list):
        value = json.dumps(value, ensure_ascii=False)
    return guard(visible(value)) if isinstance(value, str) else value


def guard(text: str) -> str:
    """A spreadsheet runs a cell that begins with = + - @ or a tab as a formula: such a text gets an apostrophe in
    front. To undo it, take one apostrophe away where one or more stand before such a sign."""
    return f"'{text}" if _FORMULA.match(text) else text
