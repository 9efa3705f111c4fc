"""Hugging Face data sets: an id of the hub, or a folder written by `save_to_disk`.

`hf:ID#split`, with `?config=NAME` and `?revision=REVISION`. Columns are understood as those of plain tables are
(`rows.py`). Images are kept encoded, byte for byte as the data set holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, make_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pfungst.core import DataError, Image, MissingExtra
from pfungst.data.formats.rows import ColumnOptions, Rows
from pfungst.data.images import StoredImage
from pfungst.data.job import Format, Found, Job

HubOptions = make_dataclass(
    "HubOptions", [(name, str | None, field(default=None)) for name in ("config", "revision")], bases=(ColumnOptions,)
)
"""Columns, and which configuration and revision of a data set on the hub."""


_QUESTIONS, _IMAGES = "_instructions", "_images"
"""How two configurations that belong together are called."""
_LONGEST = 400
"""Characters of the library's own words in a message."""


class HuggingFace(Format):
    """A data set of the Hugging Face hub, or one saved to disk."""

    name = "hf"
    title = "Hugging Face datasets"
    expects = "an id of the hub or a folder written by save_to_disk"
    options = HubOptions
    reads_files = False

    def read(self, job: Job) -> Iterator[Found]:
        if not job.place:
            raise DataError("Name the data set: hf:ID or hf:FOLDER.")
        parts = _open(job)
        job.name = " ".join([job.place.rstrip("/").rpartition("/")[2], *parts])
        job.metric = job.options.get("metric", "")
        rows = Rows(job)
        yield from rows.settled(
            example for split in job.in_turn(list(parts)) for example in _split(job, rows, split, parts)
        )


def _open(job: Job) -> dict[str, Any]:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra("Reading Hugging Face data sets", "hf") from error

    folder = Path(job.place)
    saved = (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file()
    try:
        if saved:
            data = datasets.load_from_disk(job.place)
        else:
            data = datasets.load_dataset(
                job.place, name=job.options.get("config"), revision=job.options.get("revision")
            )
    except Exception as error:  # the library raises errors of every kind, its own and those of its transports
        told = " ".join(str(error).split())
        told = told if len(told) <= _LONGEST else f"{told[:_LONGEST]} ..."
        advice = " Name one: ?config=NAME." if "config name is missing" in told.lower() else ""
        raise DataError(
            f"The data set {job.place!r} cannot be loaded ({type(error).__name__}: {told.rstrip('.')}).{advice}"
        ) from error
    if isinstance(data, datasets.Dataset):
        name = str(data.split) if data.split is not None else ""
        return dict.fromkeys(job.choose([name]), data)
    if not isinstance(data, datasets.DatasetDict):
        raise DataError(f"{job.place!r} gave a {type(data).__name__}, not a data set with rows.")
    return {split: data[split] for split in job.choose(list(data))}


def _pictures_apart(job: Job, split: str, data: Any) -> Iterator[tuple[str, Image]]:
    """Images that another configuration holds, by id: `testdev_balanced_images` beside `testdev_balanced_instructions`
    in the GQA of the hub."""
    config = str(job.options.get("config") or "")
    if not config.endswith(_QUESTIONS) or any(_undecoded(feature) is not None for feature in data.features.values()):
        return
    found = replace(job, options={**job.options, "config": config.removesuffix(_QUESTIONS) + _IMAGES}, split=split)
    for images in _open(found).values():
        column = next((name for name, feature in images.features.items() if _undecoded(feature) is not None), None)
        if column is None or "id" not in images.column_names:
            raise DataError(f"The configuration {found.options['config']} of {job.place} holds no images with ids.")
        pictures = images.select_columns([column]).cast_column(column, _undecoded(images.features[column]))
        for index, id_ in enumerate(images["id"]):
            yield str(id_), StoredImage(partial(_fetch, job.place, pictures, column, index))


def _split(job: Job, rows: Rows, split: str, parts: Mapping[str, Any]) -> Iterator[Found]:
    rows.pictures.update(_pictures_apart(job, split, parts[split]))
    yield from _examples(job, rows, parts[split], f"{split}-" if len(parts) > 1 else "")


def _examples(job: Job, rows: Rows, data: Any, prefix: str) -> Iterator[Found]:
    column = rows.column(dict.fromkeys(data.column_names, True), "image")
    kept = {
        name: as_stored for name, feature in data.features.items() if (as_stored := _undecoded(feature)) is not None
    }
    # undecoded, an image is the bytes that were stored; decoding and encoding again would change them
    pictures = {name: data.select_columns([name]).cast_column(name, as_stored) for name, as_stored in kept.items()}
    there = {name: _filled(images, name) for name, images in pictures.items()}
    rest = data.remove_columns(list(kept)) if len(kept) < len(data.column_names) else [{} for _ in range(len(data))]
    for index, row in enumerate(rest):
        given = dict(row)
        stored = {
            name: (StoredImage(partial(_fetch, job.place, images, name, index)), there[name][index])
            for name, images in pictures.items()
            if there[name][index]
        }
        yield from rows.found(None, f"row {index + 1}", given, prefix, rows.picture_of(given, stored, column))


def _undecoded(feature: Any) -> Any:
    """The feature of a column of images, or of lists of images, that leaves them encoded; None for other columns."""
    import datasets

    if isinstance(feature, datasets.Image):
        return datasets.Image(decode=False)
    inner = getattr(feature, "feature", None)
    return type(feature)(datasets.Image(decode=False)) if isinstance(inner, datasets.Image) else None


def _filled(images: Any, column: str) -> Any:
    """How many images each row holds, found without reading any."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = images.data[column]
    if pa.types.is_list(cells.type) or pa.types.is_large_list(cells.type):
        return pc.fill_null(pc.list_value_length(cells), 0).to_numpy()
    return cells.is_valid().to_numpy()


def _fetch(place: str, pictures: Any, column: str, index: int) -> bytes:
    value = pictures[index][column]
    if isinstance(value, list):
        value = value[0] if value else None
    if value is None:
        raise DataError(f"Row {index + 1} of {place} has no image.")
    data = value.get("bytes")
    return data if isinstance(data, bytes) else Path(value["path"]).read_bytes()
