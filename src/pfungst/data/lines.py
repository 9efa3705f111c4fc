"""Text files read line by line, in bounded memory."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pfungst.core import DataError
from pfungst.data.fields import Bad, shown
from pfungst.data.files import File
from pfungst.data.json_records import CHUNK, Utf8

MAX_LINE = 64 << 20
"""Characters of one line; more is taken for damage."""
csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))  # a cell may hold an image


def lines(file: File) -> Iterator[str]:
    """The lines without their ends (`\\n` or `\\r\\n`), the byte order mark taken away."""
    decode = Utf8(file.label)
    number, pending, length = 0, [""], 0
    with file.open() as stream:
        while True:
            data = stream.read(CHUNK)
            *whole, rest = decode(data, final=not data).split("\n")
            if whole:
                whole[0] = "".join(pending) + whole[0]
                pending, length = [], 0
                for line in whole:
                    number += 1
                    yield line.removesuffix("\r")
            pending.append(rest)
            length += len(rest)
            if length > MAX_LINE:
                raise DataError.at(file.label, f"line {number + 1}", f"it is longer than {MAX_LINE:,} characters.")
            if not data:
                break
    if last := "".join(pending):
        yield last.removesuffix("\r")


def json_lines(file: File) -> Iterator[tuple[int, Any]]:
    """(line number, value) of every line that is not blank; the value is a `Bad` where the line is not JSON."""
    for number, line in enumerate(lines(file), start=1):
        if not line or line.isspace():
            continue
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            yield number, Bad(f"the line is not JSON: {error.msg} at character {error.pos + 1}.")
        except RecursionError:
            yield number, Bad("lists or objects are nested too deeply.")
        except ValueError as error:  # an integer of thousands of digits
            yield number, Bad(f"the line cannot be read: {error}.")


def delimiter(head: str, suffix: str = "") -> str:
    """What stands between the cells of a table, by its first line: a comma, or a tab or semicolon where there is none.

    Spreadsheets write semicolons where the comma is the decimal mark.
    """
    if suffix == ".tsv":
        return "\t"
    return next((mark for mark in ",\t;" if mark in head), ",")


def table(
    file: File, named: Callable[[Sequence[str]], None] | None = None
) -> Iterator[tuple[int, dict[str, Any] | Bad, tuple[int, int]]]:
    """(line number, row, first byte and the one behind the last) of a CSV or TSV file whose first line names the
    columns; empty cells are left out. The bytes are for whom rows are too large to keep.

    named: is told the columns."""
    end = [0]
    taken: list[tuple[str, int]] = []
    between = delimiter(file.head().partition("\n")[0], file.suffix)
    reader = csv.reader(_with_ends(file, end, taken), delimiter=between)
    columns: list[str] | None = None
    while True:
        start = end[0]
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
            yield reader.line_num, Bad(f"the row cannot be read: {error}."), (start, end[0])
            continue
        if not any(cells):
            continue
        row: dict[str, Any] | Bad
        if columns is None:
            columns = [cell.strip() for cell in cells]
            for column, _ in (one for one in Counter(filter(None, columns)).items() if one[1] > 1):
                raise DataError.at(file.label, "line 1", f"the column {shown(column)} appears twice.")
            if named is not None:
                named(columns)
            continue
        tabs = len(columns) - 1 if between == "\t" else 0
        if tabs and len(taken) > 1 and all(line.count("\t") == tabs for line, _ in taken):
            # Every line is a row: a quotation mark that is only text has swallowed those behind it.
            for number, (line, behind) in enumerate(taken, reader.line_num - len(taken) + 1):
                plain = zip(columns, line.removesuffix("\n").split("\t"))
                yield number, {column: cell for column, cell in plain if cell}, (start, behind)
                start = behind
            continue
        if len(cells) != len(columns):
            row = Bad(f"the row has {len(cells)} cells, but there are {len(columns)} columns.")
        else:
            row = {column: cell for column, cell in zip(columns, cells) if cell}
        yield reader.line_num, row, (start, end[0])


def _with_ends(file: File, end: list[int], taken: list[tuple[str, int]]) -> Iterator[str]:
    """The lines with their ends, which csv needs to join quoted cells; `end` is kept behind the last byte, and the
    lines are added to `taken`, each with the byte behind it."""
    decode = Utf8(file.label)
    number = 0
    with file.open() as stream:
        while line := stream.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise DataError.at(file.label, f"line {number}", f"it is longer than {MAX_LINE:,} characters.")
            end[0] += len(line)
            taken.append((decode(line).removesuffix("\n").removesuffix("\r") + "\n", end[0]))
            yield taken[-1][0]
