"""Images as files that a terminal can link to."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pfungst.core import Dataset, Image, PfungstError
from pfungst.core.files import cache_dir, write_atomic
from pfungst.core.images import FileImage, NamedImage


def image_files(rows: Iterable[Mapping[str, Any]], data: Dataset) -> list[Path | None]:
    """For each answer of a run the file of its image, where the data set has it.

    What is no file of its own (a member of an archive, a rendered scene) is written to the cache once. None for
    variants that saw another image than their example's, and where the image cannot be had.
    """
    rows = list(rows)
    ids = {row["example_id"] for row in rows}
    images = {example.id: example.image for example in data if example.id in ids}
    own: dict[tuple[str, str], str | None] = {}
    for row in rows:
        own.setdefault((row["probe"], row["example_id"]), row["image"])
    return [
        _file(images.get(row["example_id"]), row["image"])
        if row["image"] and row["image"] == own[row["probe"], row["example_id"]]
        else None
        for row in rows
    ]


def _file(image: Image | None, digest: str) -> Path | None:
    if image is None or isinstance(image, NamedImage):
        return None
    if isinstance(image, FileImage):
        return image.path.absolute() if image.path.exists() else None
    stem = digest.replace(":", "-")[:64]
    folder = cache_dir("shown")
    known = next(folder.glob(f"{glob.escape(stem)}.*"), None)
    if known is not None:
        return known
    try:
        content = image.read()
    except PfungstError:
        return None
    path = folder / f"{stem}.{_suffix(content)}"
    write_atomic(path, content)
    return path


def _suffix(content: bytes) -> str:
    """By what the file begins with: viewers go by the name."""
    starts = {b"\x89PNG": "png", b"\xff\xd8": "jpg", b"GIF8": "gif", b"BM": "bmp", b"II*": "tif", b"MM\0*": "tif"}
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((name for start, name in starts.items() if content.startswith(start)), "image")
