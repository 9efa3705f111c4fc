"""Images: found late, read once, passed on byte for byte.

A robustness number is worthless if the image was re-encoded on its way to the model, so an image is its encoded
bytes; pixels are decoded only where somebody asks for them.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pfungst.core.errors import DataError

if TYPE_CHECKING:
    import PIL.Image


@runtime_checkable
class Image(Protocol):
    """What a question is about. `digest` names the content: equal digests mean equal pixels."""

    @property
    def digest(self) -> str: ...

    def read(self) -> bytes:
        """The encoded file (PNG, JPEG, ...), byte for byte as published."""
        ...

    def pil(self) -> PIL.Image.Image:
        """The decoded pixels."""
        ...


def _decode(data: bytes, where: str) -> PIL.Image.Image:
    import PIL.Image

    try:
        image = PIL.Image.open(io.BytesIO(data))
        image.load()
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as error:
        raise DataError.at(where, "", f"this is not an image that can be decoded ({error}).") from error
    return image


def image_size(image: Image) -> tuple[int, int]:
    """Width and height, without decoding the pixels where that can be avoided."""
    known: tuple[int, int] | None = getattr(image, "size", None)
    if known is not None:
        return known
    import PIL.Image

    try:
        with PIL.Image.open(io.BytesIO(image.read())) as header:
            return header.size
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(f"An image of the data set cannot be decoded ({error}).") from error


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=1 << 20)
def _file_digest(path: str, size: int, modified_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class FileImage:
    """An image file. Nothing is read before it is needed."""

    path: Path

    @property
    def digest(self) -> str:
        try:
            status = self.path.stat()
        except OSError as error:
            raise DataError.at(self.path, "", "the image cannot be read.", "Check the image folder.") from error
        return _file_digest(str(self.path), status.st_size, status.st_mtime_ns)

    def read(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise DataError.at(self.path, "", "the image cannot be read.", "Check the image folder.") from error

    def pil(self) -> PIL.Image.Image:
        return _decode(self.read(), str(self.path))


@lru_cache(maxsize=8)
def _archive(path: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


@lru_cache(maxsize=1 << 20)
def _member_digest(path: str, member: str) -> str:
    return sha256(ZipImage(Path(path), member).read())


@dataclass(frozen=True, slots=True)
class ZipImage:
    """A member of a published archive, read without unpacking it."""

    archive: Path
    member: str

    @property
    def digest(self) -> str:
        return _member_digest(str(self.archive), self.member)

    def read(self) -> bytes:
        try:
            return _archive(str(self.archive)).read(self.member)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise DataError.at(self.archive, self.member, "the image cannot be read from the archive.") from error

    def pil(self) -> PIL.Image.Image:
        return _decode(self.read(), f"{self.archive}, {self.member}")


@dataclass(frozen=True, slots=True)
class BytesImage:
    """An image already in memory, encoded."""

    data: bytes

    @property
    def digest(self) -> str:
        return sha256(self.data)

    def read(self) -> bytes:
        return self.data

    def pil(self) -> PIL.Image.Image:
        return _decode(self.data, "an image in memory")


NAMED = "name:"
"""How the digest of an image begins whose content is unknown."""


@dataclass(frozen=True, slots=True)
class NamedImage:
    """An image that was not found, known by its name in the data set alone.

    It keeps two questions in the same words about two missing images apart. Its pixels cannot be had.
    """

    name: str

    @property
    def digest(self) -> str:
        return NAMED + self.name

    def read(self) -> bytes:
        raise DataError(
            f"The image {self.name} was not found; only its name is known. Say where the images are (--images FOLDER), "
            "or examine a player that reads none."
        )

    def pil(self) -> PIL.Image.Image:
        return _decode(self.read(), self.name)


@dataclass(frozen=True, slots=True)
class LazyImage:
    """An image made on demand, for example rendered from a scene.

    `digest` must name the content completely (what is drawn, how, by which version), because an answer is looked up
    by it without drawing anything.
    """

    digest: str
    make: Callable[[], Any]
    """Returns uint8 pixels (height, width, 3)."""
    size: tuple[int, int] | None = None
    """Width and height, where they are known without drawing."""

    def read(self) -> bytes:
        buffer = io.BytesIO()
        self.pil().save(buffer, format="PNG", compress_level=1)
        return buffer.getvalue()

    def pil(self) -> PIL.Image.Image:
        import PIL.Image

        return PIL.Image.fromarray(self.make())
