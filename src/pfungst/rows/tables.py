"""Tables read row by row: CSV and TSV, Parquet whose images stay in the file, and the first sheet of a workbook."""

from __future__ import annotations

import csv
import io
import math
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from pfungst.core import DataError, MissingExtra
from pfungst.core.files import PARQUET_READING
from pfungst.rows.fields import Bad, shown
from pfungst.rows.files import File, check_unpacked
from pfungst.rows.json_records import MAX_RECORD, lines_and_ends

Row = dict[str, Any] | Bad
"""A row under the names of its columns, or what is wrong with it."""

BATCH = 4_096
"""Rows of Parquet decoded at once."""
csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD))  # a cell may hold an image


def _header(label: str | Path, where: str, cells: Sequence[Any]) -> list[str]:
    """The names of the columns, each of them once."""
    columns = [str(cell).strip() for cell in cells]
    twice = next((column for column, count in Counter(filter(None, columns)).items() if count > 1), None)
    if twice is not None:
        raise DataError.at(label, where, f"the column {shown(twice)} appears twice.")
    return columns


def _row(columns: Sequence[str], cells: Sequence[Any], empty: bool) -> Row:
    if len(cells) != len(columns):
        return Bad(f"the row has {len(cells)} cells, but there are {len(columns)} columns.")
    return {column: cell for column, cell in zip(columns, cells) if (cell or empty) and column}


# --- CSV and TSV ------------------------------------------------------------------------------------------------------


def delimiter(head: str, suffix: str = "") -> str:
    """What stands between the cells of a table, by its first line: a comma, or a tab or semicolon where there is none.

    Spreadsheets write semicolons where the comma is the decimal mark.
    """
    if suffix == ".tsv":
        return "\t"
    return next((mark for mark in ",\t;" if mark in head), ",")


def csv_rows(
    file: File,
    named: Callable[[Sequence[str]], None] | None = None,
    *,
    text: str | None = None,
    empty: bool = False,
) -> Iterator[tuple[int, Row, tuple[int, int]]]:
    """(line number, row, first byte and the one behind the last) of a CSV or TSV file whose first line names the
    columns. The bytes are for whom rows are too large to keep.

    named: is told the columns.
    text: the content of the file, where it is in memory already; then no bytes are counted.
    empty: whether empty cells stand in the rows, or are left out.
    """
    taken: list[tuple[str, int]] = []
    head = file.head() if text is None else text
    between = delimiter(head.partition("\n")[0], file.suffix)
    # csv needs the ends of lines to join quoted cells
    source = ((f"{line}\n", end) for line, end in lines_and_ends(file))
    if text is not None:
        source = ((line, 0) for line in io.StringIO(text, newline=""))
    reader = csv.reader(_noted(source, taken), delimiter=between)
    columns: list[str] | None = None
    end, only_text = 0, False
    while True:
        start = end
        taken.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if columns is None:
                if "new-line character" in str(error):
                    hint = "Save it with LF or CRLF at the end of each line."
                    raise DataError.at(file.label, "line 1", "its lines end in CR alone.", hint) from error
                raise DataError.at(file.label, "line 1", f"the column names cannot be read ({error}).") from error
            end = taken[-1][1] if taken else start
            yield reader.line_num, Bad(f"the row cannot be read: {error}."), (start, end)
            continue
        end = taken[-1][1]
        if not any(cells):
            continue
        if columns is None:
            columns = _header(file.label, f"line {reader.line_num}", cells)
            if named is not None:
                named(columns)
            continue
        tabs = len(columns) - 1 if between == "\t" else 0
        if tabs and (len(taken) > 1 or only_text) and all(line.count("\t") == tabs for line, _ in taken):
            # Every line is a row: a quotation mark that is only text has swallowed those behind it. Of replies, which
            # are kept to the letter, all marks behind it are only text as well.
            only_text = text is not None
            for number, (line, behind) in enumerate(taken, reader.line_num - len(taken) + 1):
                yield number, _row(columns, line.rstrip("\r\n").split("\t"), empty), (start, behind)
                start = behind
            continue
        yield reader.line_num, _row(columns, cells, empty), (start, end)


def _noted(lines: Iterator[tuple[str, int]], taken: list[tuple[str, int]]) -> Iterator[str]:
    """The lines; those that were taken are added to a list."""
    for line in lines:
        taken.append(line)
        yield line[0]


# --- Parquet ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """The images in a cell of Parquet, which stay in the file."""

    count: int
    path: str
    """What the file calls the first of them; empty where it does not say."""
    fetch: Callable[[], bytes]
    """Reads the first of them."""


def parquet_rows(file: File) -> Iterator[tuple[int, dict[str, Any], Mapping[str, Stored]]]:
    """(row number, row, the images of the row by column) of a Parquet file; the row has no column of images."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = file.random_access()
    number = 0
    try:
        with pq.ParquetFile(source, **PARQUET_READING) as table:
            schema = _named_once(file, table.schema_arrow)
            kept = [name for name in schema.names if _holds_bytes(schema.field(name).type)]
            columns = [name for name in schema.names if name not in kept]
            nested = {name for name in kept if pa.types.is_nested(schema.field(name).type)}
            leaves = [table.schema.column(leaf).path for leaf in range(len(table.schema))]
            # enough to know which rows hold an image, and how many
            columns += [leaf for leaf in leaves if leaf.partition(".")[0] in nested and leaf.endswith(".path")]
            for group in range(table.num_row_groups):
                within = 0
                for batch in table.iter_batches(batch_size=BATCH, row_groups=[group], columns=columns):
                    for row in batch.to_pylist():
                        number += 1
                        images = {}
                        for name in kept:
                            cell = row.pop(name, None)
                            if cell or name not in nested:
                                path = str(cell.get("path") or "") if isinstance(cell, dict) else ""
                                fetch = partial(_fetch, source, name, group, within)
                                images[name] = Stored(len(cell) if isinstance(cell, list) else 1, path, fetch)
                        within += 1
                        yield number, row, images
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, RecursionError) as error:
        first = str(error).strip().partition("\n")[0]
        raise DataError.at(
            file.label, f"after row {number}", f"this is not readable Parquet ({first}).", "Write it again."
        ) from error


def _named_once(file: File, schema: Any) -> Any:
    """A schema that has every name once."""
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise DataError.at(file.label, "", f"two columns are called {twice!r}.", "Rename one of them.")
    return schema


def parquet_columns(file: File) -> tuple[list[str], list[str]]:
    """The columns of a Parquet file, and those of them that hold images."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file.random_access()) as table:
            schema = _named_once(file, table.schema_arrow)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError.at(file.label, "", f"this is not readable Parquet ({error}).", "Write it again.") from error
    return schema.names, [name for name in schema.names if _holds_bytes(schema.field(name).type)]


def _holds_bytes(type_: Any) -> bool:
    """Whether a column holds images: bytes, an object with bytes, or a list of either."""
    import pyarrow as pa

    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.types.is_struct(type_.value_type) and _holds_bytes(type_.value_type)
    if pa.types.is_struct(type_):
        return any(field.name == "bytes" and _holds_bytes(field.type) for field in type_)
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _fetch(source: Path | io.BytesIO, column: str, group: int, within: int) -> bytes:
    value = _column(source, column, group)[within].as_py()
    if isinstance(value, list) and value:
        value = value[0]
    data = value.get("bytes") if isinstance(value, dict) else value
    if not isinstance(data, bytes):
        raise DataError(f"Row {within + 1} of row group {group} of {source} holds no image.")
    return data


@lru_cache(maxsize=2)
def _column(source: Path | io.BytesIO, column: str, group: int) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(source, **PARQUET_READING) as table:
            return table.read_row_group(group, columns=[column]).column(0)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError.at(str(source), f"row group {group}", f"the images cannot be read ({error}).") from error


# --- workbooks --------------------------------------------------------------------------------------------------------


def workbook_rows(path: Path, raw: bytes) -> Iterator[tuple[int, Row]]:
    """(row number, row) of the first sheet of an xlsx workbook, every cell as its own text."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise MissingExtra(f"Reading {path.name}", "xlsx") from error
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        check_unpacked(path, archive, len(raw))
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(raw))
        sheet = workbook.get_sheet_by_index(0).to_python(skip_empty_area=False)
    except (CalamineError, OSError, ValueError, IndexError) as error:
        raise DataError.at(path, "", f"the workbook cannot be read ({error}).", "Save it again.") from error
    columns: list[str] | None = None
    for number, cells in enumerate(([_cell(value) for value in row] for row in sheet), 1):
        if columns is None and any(cells):
            columns = _header(path, f"row {number}", cells)
        elif columns is not None and any(cells):
            yield number, _row(columns, cells, empty=True)


def _cell(value: Any) -> str:
    """A cell as its text. Workbooks know only one kind of number, so 3 comes back as 3.0."""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return "" if value is None else str(value)
