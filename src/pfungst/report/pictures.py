"""The images of a page: small copies, each kept once, as many as there is room for; and images as files that a terminal
can link to.
"""

from __future__ import annotations

import glob
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import PIL.Image

from pfungst.core import Dataset, Image, PfungstError
from pfungst.core.files import cache_dir, write_atomic
from pfungst.core.images import FileImage, NamedImage, as_rgb
from pfungst.report.page import data_url

LONGEST = 480
"""Longest side of an image in a report, pixels."""
MOST, LEAST = 4_000_000, 10_000
"""Characters of all images together; with less room than the second no further one is tried."""


@dataclass(frozen=True)
class Thumbnail:
    """A small copy for the eye."""

    name: str
    """Its id in the page."""
    width: int
    height: int
    href: str


@dataclass
class Thumbnails:
    """The images of one page. Where the room is used up, cases stand without an image."""

    room: int = MOST
    kept: dict[str, Thumbnail | None] = field(default_factory=dict)
    left_out: int = 0

    def of(self, key: str, image: Image | PIL.Image.Image | None) -> Thumbnail | None:
        """The copy of an image, made at its first use; None where it is absent, broken, or there is no room."""
        if image is None:
            return None
        if key not in self.kept:
            self.kept[key] = self._make(image)
        return self.kept[key]

    def all(self) -> list[Thumbnail]:
        return [one for one in self.kept.values() if one is not None]

    def _make(self, image: Image | PIL.Image.Image) -> Thumbnail | None:
        if self.room < LEAST:
            self.left_out += 1
            return None
        try:
            picture = as_rgb(image).copy()
        except PfungstError:
            return None
        picture.thumbnail((LONGEST, LONGEST))
        href = data_url("image/webp", webp(picture))
        if len(href) > self.room:
            self.left_out += 1
            return None
        self.room -= len(href)
        return Thumbnail(f"i{len(self.kept)}", picture.width, picture.height, href)


def webp(picture: PIL.Image.Image | Path) -> bytes:
    """An image, or the image of a file, as WebP: a page holds many."""
    if isinstance(picture, Path):
        try:
            picture = PIL.Image.open(picture).convert("RGB")
        except (OSError, ValueError) as error:
            raise PfungstError(f"{picture} cannot be read as an image ({error}).") from error
    buffer = io.BytesIO()
    picture.save(buffer, format="WEBP", quality=80)
    return buffer.getvalue()


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
