"""Parquet in batches. Images stay in the file until they are asked for."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import DataError, Image
from pfungst.data.fields import Bad
from pfungst.data.files import File
from pfungst.data.images import StoredImage

if TYPE_CHECKING:
    from pfungst.data.formats.rows import Rows

BATCH = 4_096
"""Rows decoded at once."""


def parquet_rows(file: File, rows: Rows) -> Iterator[tuple[int, Any, Callable[[], Image] | None]]:
    """(row number, row, image) of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = file.random_access()
    number = 0
    try:
        with pq.ParquetFile(source) as table:
            schema = table.schema_arrow
            column = rows.column(dict.fromkeys(schema.names, True), "image")
            stored = column in schema.names and _holds_bytes(schema.field(column).type)
            columns = [name for name in schema.names if not (stored and name == column)]
            if stored and pa.types.is_struct(schema.field(column).type):
                columns.append(f"{column}.path")
            for group in range(table.num_row_groups):
                within = 0
                for batch in table.iter_batches(batch_size=BATCH, row_groups=[group], columns=columns):
                    for row in batch.to_pylist():
                        number += 1
                        picture = None
                        if stored:
                            picture = _picture(source, column, group, within, row)
                        within += 1
                        yield number, row, picture
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, RecursionError) as error:
        if isinstance(error, Bad):
            raise
        first = str(error).strip().partition("\n")[0]
        raise DataError.at(
            file.label, f"after row {number}", f"this is not readable Parquet ({first}).", "Write it again."
        ) from error


def _holds_bytes(type_: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(type_):
        return any(field.name == "bytes" and _holds_bytes(field.type) for field in type_)
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _picture(
    source: Path | io.BytesIO, column: str, group: int, within: int, row: dict[str, Any]
) -> Callable[[], Image] | None:
    """How the image of a row is fetched; a row whose image is a path is left to the usual rules."""
    nested = row.pop(column, None)
    if isinstance(nested, dict) and nested.get("path"):
        row.setdefault("image_id", nested["path"])

    def fetch() -> bytes:
        value = _column(source, column, group)[within].as_py()
        data = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(data, bytes):
            raise DataError(f"Row {within + 1} of row group {group} of {source} holds no image.")
        return data

    return lambda: StoredImage(fetch)


@lru_cache(maxsize=2)
def _column(source: Path | io.BytesIO, column: str, group: int) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(source) as table:
            return table.read_row_group(group, columns=[column]).column(0)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError.at(str(source), f"row group {group}", f"the images cannot be read ({error}).") from error
