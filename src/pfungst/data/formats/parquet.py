"""Parquet in batches. Images stay in the file until they are asked for."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import DataError, Image
from pfungst.core.files import PARQUET_READING
from pfungst.data.fields import Bad
from pfungst.data.files import File
from pfungst.data.images import StoredImage

if TYPE_CHECKING:
    from pfungst.data.formats.rows import Rows

BATCH = 4_096
"""Rows decoded at once."""


def parquet_rows(file: File, rows: Rows) -> Iterator[tuple[int, Any, Image | None]]:
    """(row number, row, image) of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = file.random_access()
    number = 0
    try:
        with pq.ParquetFile(source, **PARQUET_READING) as table:
            schema = table.schema_arrow
            column = rows.column(dict.fromkeys(schema.names, True), "image")
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
                        picture = None
                        for name in kept:
                            several = isinstance(there := row.get(name), list) and len(there) > 1
                            stored = _stored(source, name, group, within, row, name in nested)
                            if name == column:
                                picture = stored
                                if several:
                                    rows.note_several()
                            else:
                                row[name] = stored
                        within += 1
                        yield number, row, picture
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, RecursionError) as error:
        if isinstance(error, Bad):
            raise
        first = str(error).strip().partition("\n")[0]
        raise DataError.at(
            file.label, f"after row {number}", f"this is not readable Parquet ({first}).", "Write it again."
        ) from error


def holds_images(file: File) -> bool:
    """Whether a file is a table of images alone: an id and an image, and nothing is asked."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.suffix != ".parquet":
        return False
    try:
        with pq.ParquetFile(file.random_access()) as table:
            schema = table.schema_arrow
    except (pa.ArrowException, OSError, ValueError, DataError):
        return False  # told when it is read
    images = [name for name in schema.names if _holds_bytes(schema.field(name).type)]
    return bool(images) and set(schema.names) - set(images) <= {"id", "image_id", "imageId"}


def _holds_bytes(type_: Any) -> bool:
    """Whether a column holds images: bytes, an object with bytes, or a list of either."""
    import pyarrow as pa

    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.types.is_struct(type_.value_type) and _holds_bytes(type_.value_type)
    if pa.types.is_struct(type_):
        return any(field.name == "bytes" and _holds_bytes(field.type) for field in type_)
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _stored(
    source: Path | io.BytesIO, column: str, group: int, within: int, row: dict[str, Any], struct: bool
) -> StoredImage | None:
    """The image of a row, which stays in the file; None where the row has none."""
    nested = row.pop(column, None)
    if struct and not nested:
        return None
    if isinstance(nested, dict) and nested.get("path"):
        row.setdefault("image_id", nested["path"])

    def fetch() -> bytes:
        value = _column(source, column, group)[within].as_py()
        if isinstance(value, list) and value:
            value = value[0]
        data = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(data, bytes):
            raise DataError(f"Row {within + 1} of row group {group} of {source} holds no image.")
        return data

    return StoredImage(fetch)


@lru_cache(maxsize=2)
def _column(source: Path | io.BytesIO, column: str, group: int) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(source, **PARQUET_READING) as table:
            return table.read_row_group(group, columns=[column]).column(0)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError.at(str(source), f"row group {group}", f"the images cannot be read ({error}).") from error
