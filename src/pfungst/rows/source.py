"""A file as rows, whatever it is: JSON, JSON lines, CSV, TSV, Parquet, xlsx, or inspect's zip. The content decides; the
suffix only tells CSV from TSV."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pfungst.core import DataError, MissingExtra
from pfungst.rows.fields import Bad
from pfungst.rows.files import File, check_unpacked
from pfungst.rows.json_records import json_line
from pfungst.rows.tables import csv_rows, parquet_rows, workbook_rows

Row = tuple[str, Mapping[str, Any]]
"""Position in the file, and the row."""

MAX_MEMBER = 256 << 20
"""Bytes of one sample of an inspect log; more is taken for damage."""
_ZSTD = 93
"""Zip's number for zstandard, which inspect writes and Python's zipfile before 3.14 cannot read."""
_BROKEN = (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zlib.error)
_LOOKED_AT = 50
"""Rows whose columns decide which format a file has."""
_ID = {"id", "question_id", "questionId", "index", "qid"}
"""Columns that name a question; where a row has none, its key does."""
_LISTS = ("samples", "logs", "records", "results", "predictions", "answers", "data")
"""Lists that hold the records of a JSON object, in this order."""


@dataclass(frozen=True)
class Source:
    """The rows of a file, and what stands around them."""

    path: Path
    rows: Sequence[Row]
    fingerprint: str
    header: Mapping[str, Any] = field(default_factory=dict)
    """What the file says beside its rows."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Of the first rows."""
        return tuple(dict.fromkeys(column for _, row in self.rows[:_LOOKED_AT] for column in row))

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Position in the file -> number of the row, counted from 1: a cell may run over several lines."""
        return {where: number for number, (where, _) in enumerate(self.rows, 1)}

    @property
    def stem(self) -> str:
        """The name of the file without its endings."""
        return File(self.path).stem


def open_source(path: Path) -> Source:
    """Read a file into rows. Raises DataError where it cannot be read or has none."""
    file = File(path)
    with file.open() as stream:
        raw = stream.read()
    header: Mapping[str, Any] = {}
    rows: list[Row]
    if path.suffix.lower() in (".pkl", ".pickle") or raw[:1] == b"\x80":
        raise DataError.at(
            path,
            "",
            "this is a pickle, which can run any program when it is opened: nothing is unpickled here.",
            "Save the same records as xlsx, tsv or json (VLMEvalKit: PRED_FORMAT=tsv).",
        )
    if raw[:4] == b"PAR1":
        rows = [(f"row {number}", row) for number, row, _ in parquet_rows(file)]
    elif raw[:4] == b"PK\x03\x04":
        header, rows = _zip(path, raw)
    else:
        text = _text(path, raw)
        if file.suffix in (".csv", ".tsv") or text.lstrip()[:1] not in ("[", "{", ""):
            table = csv_rows(file, partial(_check_columns, path), text=text, empty=True)
            rows = _table(path, "line", ((number, row) for number, row, _ in table))
        else:
            header, rows = _json(path, text)
    if not rows:
        raise DataError.at(path, "", "there are no answers in this file.")
    return Source(path, rows, hashlib.sha256(raw).hexdigest(), header)


def _text(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError.at(path, f"line {line}", "this is not UTF-8 text.", "Save the file as UTF-8.") from error


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    if len(columns) < 2:
        raise DataError.at(path, "line 1", f"this is not a table of answers: it begins with {columns[0]!r:.60}.")


def _table(path: Path, unit: str, table: Iterable[tuple[int, Any]]) -> list[Row]:
    """The rows of a table, each of which must be whole."""
    rows = []
    for number, row in table:
        where = f"{unit} {number}"
        if isinstance(row, Bad):
            raise DataError.at(path, where, str(row))
        if not isinstance(row, Mapping):
            raise DataError.at(path, where, f"expected an object with an id and a reply, not {row!r:.60}.")
        rows.append((where, row))
    return rows


# --- JSON -------------------------------------------------------------------------------------------------------------


def _json(path: Path, text: str) -> tuple[Mapping[str, Any], list[Row]]:
    """JSON lines, a list of records, or an object around them."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        return {}, []
    if lines[0][1].lstrip()[0] == "{":
        first, several = json_line(lines[0][1]), len(lines) > 1
        if isinstance(first, Bad):  # a broken line before others, or the beginning of an object on many lines
            by_line = several and isinstance(json_line(lines[1][1]), dict)
        else:
            by_line = several or not any(test(first) for test in (_inner, _by_id, _no_samples, _nested))
        if by_line:
            return {}, _table(path, "line", ((number, json_line(line)) for number, line in lines))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError.at(path, "", f"this is not JSON ({error}).") from error
    header, records = ({}, value) if isinstance(value, list) else _unfold(value)
    return header, _table(path, "record", enumerate(records, 1))


def _unfold(value: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[Any]]:
    """An object around records: a list of them, answers by id, rows by id, columns, or one record."""
    if inner := _inner(value):
        return {name: part for name, part in value.items() if name != inner}, value[inner]
    if _by_id(value):
        return {}, [{"question_id": key, "answer": answer} for key, answer in value.items()]
    if _nested(value):
        by_key = _turned(value) if all(_is_rows(column) for column in value.values()) else value
        return {}, [row if _ID & set(row) else {"id": key, **row} for key, row in by_key.items()]
    return {}, [value] if value and not _no_samples(value) else []


def _no_samples(value: Mapping[str, Any]) -> bool:
    """An inspect log without samples."""
    return value.get("samples") == []


def _nested(value: Mapping[str, Any]) -> bool:
    """An object of objects: rows by id, `{"q1": {"response": "red"}}`, or columns as pandas writes them."""
    return bool(value) and all(isinstance(one, dict) and one for one in value.values())


def _is_rows(column: Mapping[str, Any]) -> bool:
    return list(column) == [str(number) for number in range(len(column))]


def _turned(columns: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """Columns of rows, `{"response": {"0": "red"}}`, as rows of columns."""
    numbers = dict.fromkeys(number for column in columns.values() for number in column)
    return {number: {name: column.get(number) for name, column in columns.items()} for number in numbers}


def _inner(value: Mapping[str, Any]) -> str:
    """The list of records in an object."""
    for name in _LISTS:
        part = value.get(name)
        if isinstance(part, list) and part and all(isinstance(one, dict) for one in part):
            return name
    return ""


def _by_id(value: Mapping[str, Any]) -> bool:
    """`{"262148000": "red", ...}`: every name is an id, every value an answer."""
    numbers = all(name.replace("_", "").replace("-", "").lstrip("vq").isdigit() for name in value)
    return bool(value) and numbers and all(isinstance(one, str | int | float) for one in value.values())


# --- archives ---------------------------------------------------------------------------------------------------------


def _zip(path: Path, raw: bytes) -> tuple[Mapping[str, Any], list[Row]]:
    """A zip is a workbook or an inspect log."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            names = archive.namelist()
    except _BROKEN as error:
        raise DataError.at(path, "", f"this is not a readable zip archive ({error}).", "Copy it again.") from error
    if any(name.startswith("xl/") for name in names):
        return {}, _table(path, "row", workbook_rows(path, raw))
    if "header.json" in names or "_journal/start.json" in names:
        return _inspect_log(path, raw)
    raise DataError.at(
        path, "", "this zip is neither an xlsx workbook nor an inspect log.", "Unpack it and name a file in it."
    )


def _inspect_log(path: Path, raw: bytes) -> tuple[Mapping[str, Any], list[Row]]:
    """Header and samples of an inspect log; of a run that did not end what there is."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        check_unpacked(path, archive, len(raw))
        # A name may stand there twice: the last one counts.
        members = {info.filename: info for info in archive.infolist()}
        head = members.get("header.json") or members["_journal/start.json"]
        header = _member(path, raw, archive, head)
        rows: list[Row] = []
        for name, info in members.items():
            folder, _, rest = name.partition("/")
            if folder != "samples" or not rest.endswith(".json"):
                continue
            if "/" in rest and not rest.endswith("/sample.json"):
                continue  # pieces of a large sample: metadata, events, attachments
            sample = _member(path, raw, archive, info)
            if not isinstance(sample, Mapping):
                raise DataError.at(path, name, "this sample is not an object.")
            if (beside := name.removesuffix("sample.json") + "metadata.json") in members and "/" in rest:
                sample = {**sample, "metadata": _member(path, raw, archive, members[beside])}
            rows.append((name, sample))
    return (header if isinstance(header, Mapping) else {}), rows


def _member(path: Path, raw: bytes, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    try:
        if info.file_size > MAX_MEMBER:
            raise ValueError(f"it is larger than {MAX_MEMBER:,} bytes")
        data = _zstd(path, raw, info) if info.compress_type == _ZSTD else archive.read(info)
        return json.loads(data)
    except (*_BROKEN, RecursionError) as error:
        raise DataError.at(
            path, info.filename, f"this part cannot be read ({error}).", "Copy the log again."
        ) from error


def _zstd(path: Path, raw: bytes, info: zipfile.ZipInfo) -> bytes:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtra(f"Reading {path.name}", "zstd") from error
    # The local header: 30 bytes, then the name and an extra field, whose lengths stand at 26 and 28.
    start = info.header_offset
    name, extra = (int.from_bytes(raw[start + at : start + at + 2], "little") for at in (26, 28))
    begin = start + 30 + name + extra
    try:
        with zstandard.ZstdDecompressor().stream_reader(raw[begin : begin + info.compress_size]) as stream:
            data: bytes = stream.read(MAX_MEMBER + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise ValueError("its checksum is wrong")
    return data
