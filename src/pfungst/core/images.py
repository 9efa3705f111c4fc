"""Images: found late, read once, passed on byte for byte.

A robustness number is worthless if the image was re-encoded on its way to the model, so an image is its encoded
bytes; pixels are decoded only where somebody asks for them.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pfungst.core.errors import BrokenImage
from pfungst.core.files import file_digest

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
        """The decoded pixels as they are stored: `as_rgb` makes of them what a person sees."""
        ...


_FORMATS = (
    "PNG", "JPEG", "MPO", "WEBP", "GIF", "BMP", "DIB", "TIFF", "PPM", "JPEG2000", "AVIF", "HEIF", "ICO", "TGA", "SGI",
)  # fmt: skip
"""What is decoded, told by content. Pillow knows more: of PostScript it makes a program that Ghostscript runs."""


@lru_cache(maxsize=1)
def _formats() -> tuple[str, ...]:
    """Those of the formats that this Pillow can decode."""
    import PIL.Image

    PIL.Image.init()
    return tuple(name for name in _FORMATS if name in PIL.Image.OPEN)


def _decode(data: bytes, where: str) -> PIL.Image.Image:
    import PIL.Image

    try:
        image = PIL.Image.open(io.BytesIO(data), formats=_formats())
        image.load()
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as error:
        raise BrokenImage.at(where, "", f"this is not an image that can be decoded ({_why(data, error)}).") from error
    return image


def _why(data: bytes, error: Exception) -> str:
    """Why an image cannot be decoded, in the same words every time."""
    import PIL

    if not data:
        return "the file is empty"
    if data[4:12] in (b"ftypheic", b"ftypheix", b"ftyphevc", b"ftypmif1"):
        return "it is HEIC: convert it to JPEG or PNG"
    if data.lstrip()[:1] == b"<":
        return "it is a web page or a drawing in XML: download it again, or convert it to PNG"
    if data.startswith((b"%!PS", b"\xc5\xd0\xd3\xc6")):
        return "it is PostScript, a program that draws: convert it to PNG"
    return "its format is unknown" if isinstance(error, PIL.UnidentifiedImageError) else str(error)


_ORIENTATION = 0x0112
_ON_ITS_SIDE = 5
"""EXIF orientations from here to 8 swap width and height."""
_DEEP = frozenset({"I", "I;16", "I;16L", "I;16B", "I;16N", "F"})
"""Grey with more than 8 bits, which most programs clip to white."""
_DEPTHS = (8, 10, 12, 14, 16)
_FEWEST_GREYS = 64


def as_rgb(image: Image | PIL.Image.Image) -> PIL.Image.Image:
    """The image as a person sees it, in RGB with 8 bits a channel; every player that looks at pixels gets these.

    - Plain RGB: the very pixels, unchanged.
    - A photograph taken with a turned camera (EXIF orientation) stands upright.
    - Transparent pixels (alpha, or a transparent colour of a palette) lie on white.
    - CMYK is converted by the ICC profile of the file where it has one, else by the plain formula.
    - Grey with more than 8 bits (X-rays, depth maps) is scaled to 8, see `_eight_bits`.
    - Of an animation the first frame is seen.

    Raises BrokenImage for what cannot be decoded or has no RGB form.
    """
    import PIL.Image

    pixels = image if isinstance(image, PIL.Image.Image) else image.pil()
    try:
        return _rgb(upright(pixels))
    except (OSError, ValueError, MemoryError) as error:
        raise BrokenImage(
            f"An image ({pixels.mode}, {pixels.width}x{pixels.height}) has no RGB form: {error}."
        ) from error


def upright(picture: PIL.Image.Image) -> PIL.Image.Image:
    """The same pixels in the orientation that the EXIF data ask for."""
    if _orientation(picture) == 1:
        return picture
    import PIL.ImageOps

    return PIL.ImageOps.exif_transpose(picture)


def _orientation(picture: PIL.Image.Image) -> int:
    try:
        value = picture.getexif().get(_ORIENTATION, 1)
    except Exception:  # damaged EXIF data raise errors of every kind, and do not make an image unreadable
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _rgb(picture: PIL.Image.Image) -> PIL.Image.Image:
    import PIL.Image

    if picture.mode in _DEEP:
        return PIL.Image.fromarray(_eight_bits(picture)).convert("RGB")
    if (over := _with_alpha(picture)) is not None:
        ground = PIL.Image.new("RGBA", over.size, (255, 255, 255, 255))
        return PIL.Image.alpha_composite(ground, over).convert("RGB")
    if picture.mode == "RGB":
        return picture
    if picture.mode == "CMYK" and (profile := picture.info.get("icc_profile")):
        return _by_profile(picture, profile)
    return picture.convert("RGB")


def _with_alpha(picture: PIL.Image.Image) -> PIL.Image.Image | None:
    """The picture in RGBA where it can have transparent pixels."""
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        return (picture.convert("LA") if picture.mode == "La" else picture).convert("RGBA")
    return None


def shines_through(picture: PIL.Image.Image) -> bool:
    """Whether some pixel is not opaque, so that what is seen depends on the ground."""
    over = _with_alpha(picture)
    return over is not None and over.getchannel("A").getextrema()[0] != 255


def _by_profile(picture: PIL.Image.Image, profile: bytes) -> PIL.Image.Image:
    """CMYK inks as colours on a screen; by the plain formula where the profile is damaged."""
    try:
        from PIL import ImageCms
    except ImportError:  # Pillow may be built without colour management
        return picture.convert("RGB")
    try:
        inks = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        seen = ImageCms.profileToProfile(picture, inks, ImageCms.createProfile("sRGB"), outputMode="RGB")
    except (OSError, ValueError, ImageCms.PyCMSError):
        seen = None
    return seen if seen is not None else picture.convert("RGB")


def _eight_bits(picture: PIL.Image.Image) -> Any:
    """Grey values of more than 8 bits as uint8.

    Files of 16 bits often hold 10, 12 or 14: the depth is the smallest of 8, 10, 12, 14, 16 that holds the brightest
    pixel, and its upper 8 bits are kept. Where that would leave fewer than 64 steps from the darkest to the brightest
    pixel, and for numbers outside 0 to 65,535, the image's own range is spread over 0 to 255. Numbers from 0 to 1 with
    a fraction count as shares of white.
    """
    import numpy as np

    values = np.nan_to_num(np.asarray(picture), posinf=0.0, neginf=0.0).astype(np.float64)
    low, high = float(values.min()), float(values.max())
    if picture.mode == "F" and low >= 0 and high <= 1:
        return np.round(values * 255).astype(np.uint8)
    if low >= 0 and high < 1 << _DEPTHS[-1]:
        bits = next(depth for depth in _DEPTHS if high < 1 << depth)
        step = 1 << bits - 8
        if bits == 8 or low == high or (high - low) / step >= _FEWEST_GREYS:
            return np.floor(values / step).astype(np.uint8)
    spread = high - low
    return np.round((values - low) * (255 / spread) if spread else np.clip(values, 0, 255)).astype(np.uint8)


def image_size(image: Image) -> tuple[int, int]:
    """Width and height as a person sees them, without decoding the pixels where that can be avoided."""
    known: tuple[int, int] | None = getattr(image, "size", None)
    if known is not None:
        return known
    import PIL.Image

    try:
        data = image.read()
        with PIL.Image.open(io.BytesIO(data), formats=_formats()) as header:
            width, height = header.size
            # an EXIF block behind the pixels of a PNG would have to be decoded for: it is left out here
            turned = "exif" in header.info and _orientation(header) >= _ON_ITS_SIDE
            return (height, width) if turned else (width, height)
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as error:
        raise BrokenImage(f"An image of the data set cannot be decoded ({_why(data, error)}).") from error


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=1 << 20)
def _file_digest(path: str, size: int, modified_ns: int) -> str:
    return file_digest(path)


@dataclass(frozen=True, slots=True)
class FileImage:
    """An image file. Nothing is read before it is needed."""

    path: Path

    @property
    def digest(self) -> str:
        try:
            status = self.path.stat()
        except OSError as error:
            raise BrokenImage.at(self.path, "", "the image cannot be read.", "Check the image folder.") from error
        return _file_digest(str(self.path), status.st_size, status.st_mtime_ns)

    def read(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise BrokenImage.at(self.path, "", "the image cannot be read.", "Check the image folder.") from error

    def pil(self) -> PIL.Image.Image:
        return _decode(self.read(), str(self.path))


MOST_BYTES = 1 << 28
"""Of an encoded image in an archive; more is taken for an archive bomb."""


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
            archive = _archive(str(self.archive))
            if archive.getinfo(self.member).file_size > MOST_BYTES:
                raise ValueError("larger than any image")
            return archive.read(self.member)
        except (OSError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise BrokenImage.at(self.archive, self.member, "the image cannot be read from the archive.") from error

    def pil(self) -> PIL.Image.Image:
        return _decode(self.read(), f"{self.archive}, {self.member}")


@dataclass(frozen=True, slots=True)
class BytesImage:
    """An image already in memory, encoded."""

    data: bytes
    _digest: list[str] = field(default_factory=list, init=False, repr=False, compare=False)
    """Found out when it is first asked for: every question about the image asks several times."""

    @property
    def digest(self) -> str:
        if not self._digest:
            self._digest.append(sha256(self.data))
        return self._digest[0]

    def read(self) -> bytes:
        return self.data

    def pil(self) -> PIL.Image.Image:
        return _decode(self.data, f"an image in memory (SHA-256 {self.digest[:12]})")


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
        raise BrokenImage(
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
