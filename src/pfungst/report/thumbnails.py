"""The images of a page: small copies, each kept once, as many as there is room for."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path

import PIL.Image

from pfungst.core import Image, PfungstError
from pfungst.core.images import as_rgb
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
