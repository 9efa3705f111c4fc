"""Zip files that hold answers: xlsx workbooks (VLMEvalKit), and inspect's `.eval`."""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pfungst.core import DataError, MissingExtra
from pfungst.data.files import check_unpacked
from pfungst.logs.source import Row, named_rows

MAX_MEMBER = 256 << 20
"""Bytes of one sample of an inspect log; more is taken for damage."""
_ZSTD = 93
"""Zip's number for zstandard, which inspect writes and Python's zipfile before 3.14 cannot read."""
_BROKEN = (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zlib.error)


def member_names(path: Path, raw: bytes) -> list[str]:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return archive.namelist()
    except _BROKEN as error:
        raise DataError.at(path, "", f"this is not a readable zip archive ({error}).", "Copy it again.") from error


def read_workbook(path: Path, raw: bytes) -> list[Row]:
    """The first sheet, every cell as its own text."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise MissingExtra(f"Reading {path.name}", "xlsx") from error
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        check_unpacked(path, archive, len(raw))
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(raw))
        table = workbook.get_sheet_by_index(0).to_python(skip_empty_area=False)
    except (CalamineError, OSError, ValueError, IndexError) as error:
        raise DataError.at(path, "", f"the workbook cannot be read ({error}).", "Save it again.") from error
    cells = [[_cell(value) for value in row] for row in table]
    return list(named_rows(path, [(f"row {number}", row) for number, row in enumerate(cells, 1) if any(row)]))


def _cell(value: Any) -> str:
    """A cell as its text. Workbooks know only one kind of number, so 3 comes back as 3.0."""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return "" if value is None else str(value)


def read_eval(path: Path, raw: bytes) -> tuple[Mapping[str, Any], list[Row]]:
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
