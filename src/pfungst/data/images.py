"""Images found by the published file-name rules. They are looked up in one listing and opened only when asked for."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import posixpath
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pfungst.core import BytesImage, DataError, FileImage, Image, ZipImage
from pfungst.rows.fields import Bad, shown
from pfungst.rows.files import Listing, list_folder

if TYPE_CHECKING:
    import PIL.Image

_COCO = re.compile(r"coco_[a-z0-9_]+_(\d{12})")
_BACKSLASH = "\\"


def normal_path(path: str) -> str:
    """One spelling of a path inside a data set: `img\\a.jpg`, `./img/a.jpg` and `img/a.jpg` are one image."""
    if not path or "://" in path:
        return path
    return posixpath.normpath(path.replace(_BACKSLASH, "/"))


class ImageFinder:
    """Finds the image of a question. Built once per load; nothing is listed before the first look-up."""

    def __init__(self, listing: Callable[[], Listing], roots: Sequence[Path]) -> None:
        self._listing = listing
        self._roots = tuple(roots)
        """Folders that relative paths of images start from."""
        self._index: dict[str, list[tuple[str, str]]] | None = None
        # The questions about one image share it.
        self._pick: Callable[..., Image | None] = cache(self._found)
        self._at: Callable[[str], Image | None] = cache(self._resolve)

    @classmethod
    def under(cls, places: Sequence[str | os.PathLike[str]]) -> ImageFinder:
        """Images of the folders and zip archives a user names."""
        paths = [Path(place) for place in places]
        for path in paths:
            if not path.exists():
                raise DataError.at(path, "", "there is no such image folder or archive.", "Check `images`.")

        def listing() -> Listing:
            whole = Listing()
            for path in paths:
                if path.is_dir():
                    whole.pictures.extend(list_folder(path).pictures)
                else:
                    whole.add_archive(path, strict=True)
            return whole

        return cls(listing, [path for path in paths if path.is_dir()])

    def named(self, stem: str, suffix: str = ".jpg", split: str = "") -> Image | None:
        """The image whose file is called `stem`; `suffix` and a folder called like `split` decide between several."""
        return self._pick(stem, suffix, split)

    def within(self, stem: str, folder: str) -> Image | None:
        """The image called `stem` that lies in a folder of this name, at any depth; None where there is none."""
        return self._pick(stem, "", folder, folder.lower())

    def coco(self, image_id: int, subtype: str) -> Image | None:
        """An MS COCO image: `COCO_val2014_000000000042.jpg`, or `000000000042.jpg` as in the 2017 release.

        COCO numbers are unique over its splits, so an image of another split folder is still the right one.
        """
        number = f"{image_id:012d}"
        stems = (f"COCO_{subtype}_{number}", number, f"coco:{number}")
        return next(filter(None, (self._pick(stem, ".jpg", subtype) for stem in stems)), None)

    def at(self, path: str) -> Image | None:
        """The image at a path relative to the image folder, as tables name it. Never outside that folder."""
        return self._at(path)

    def _resolve(self, path: str) -> Image | None:
        if re.match(r"[a-z][a-z0-9+.-]+://", path, re.IGNORECASE):
            raise Bad(f"the image {shown(path)} is on the web; download it and give its path.")
        if "\0" in path:
            raise Bad(f"the image path {shown(path)} holds a null character.")
        inside = [root for root in self._roots if _is_inside(path, root)]
        if self._roots and not inside:
            raise Bad(f"the image {shown(path)} is outside the data folder; give its folder as `images`.")
        for root in inside:
            full = root / path
            try:
                if full.is_file():
                    return FileImage(full)
            except OSError:
                continue
        stem, suffix = os.path.splitext(path.replace(_BACKSLASH, "/").rpartition("/")[2])  # noqa: PTH122
        return self._pick(stem, suffix, path.replace(_BACKSLASH, "/").rpartition("/")[0]) if stem else None

    def _found(self, stem: str, suffix: str, split: str, within: str | None = None) -> Image | None:
        if self._index is None:
            self._index = _index(self._listing().pictures)
        places = [place for place in self._index.get(_folded(stem), ()) if within is None or within in _folders(place)]
        if not places:
            return None
        ranked = sorted(places, key=lambda place: (*_rank(place, suffix, split), place))
        if len(ranked) > 1 and _rank(ranked[0], suffix, split) == _rank(ranked[1], suffix, split):
            one, other = ("/".join(filter(None, place)) for place in ranked[:2])
            raise Bad(f"two images are called {shown(stem)}: {one} and {other}; name the right folder as `images`.")
        archive, name = ranked[0]
        return ZipImage(Path(archive), name) if archive else FileImage(Path(name))


class NoImages(ImageFinder):
    """Finds nothing, for questions that are asked without images."""

    def __init__(self) -> None:
        super().__init__(Listing, [])

    def _resolve(self, path: str) -> None:
        return None


def _is_inside(path: str, root: Path) -> bool:
    """Whether root/path stays below root: data of strangers must not make us read (and send) other files."""
    base = os.path.abspath(root)  # noqa: PTH100 - resolve() would follow links, which a user may place
    full = os.path.abspath(os.path.join(base, path))  # noqa: PTH100, PTH118 - Path keeps ".."
    return os.path.commonpath([base, full]) == base


def _folded(stem: str) -> str:
    """A name as it is looked up: lower case, letters with accents in one piece (macOS takes them apart)."""
    return stem.lower() if stem.isascii() else unicodedata.normalize("NFC", stem).lower()


def _index(pictures: Sequence[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    index: dict[str, list[tuple[str, str]]] = {}
    for place in pictures:
        stem = _folded(place[1].replace(_BACKSLASH, "/").rpartition("/")[2].rpartition(".")[0])
        index.setdefault(stem, []).append(place)
        if coco := _COCO.fullmatch(stem):
            index.setdefault(f"coco:{coco[1]}", []).append(place)
    return index


def _folders(place: tuple[str, str]) -> list[str]:
    """The folders that hold an image, those of its archive included."""
    return "/".join(filter(None, place)).replace(_BACKSLASH, "/").lower().split("/")[:-1]


def _rank(place: tuple[str, str], suffix: str, split: str) -> tuple[bool, bool, bool, int]:
    archive, name = place
    folders = name.replace(_BACKSLASH, "/").lower().split("/")[:-1]
    of_split = not split or split.lower().rpartition("/")[2] in folders or split.lower() in archive.lower()
    return not of_split, not name.lower().endswith(suffix.lower()), bool(archive), len(folders)


_ENCODED = ("/9j/", "iVBORw0KGgo", "R0lGOD", "UklGR", "Qk", "SUkq", "TU0AK")
"""How JPEG, PNG, GIF, WebP, BMP and TIFF begin in base64."""
_SHORTEST = 65
"""VLMEvalKit's rule: base64 of an image is longer than 64 characters."""


def is_base64(text: str) -> bool:
    """Whether a text is an encoded image rather than a path."""
    if text.startswith("data:"):
        return True
    return len(text) >= _SHORTEST and text.startswith(_ENCODED) and text.lower()[-5:].rpartition(".")[1] == ""


def from_base64(text: str) -> BytesImage:
    """An image that a table holds as base64, or as a data URL."""
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise Bad("the image is a data URL without base64 data.")
    try:
        return BytesImage(base64.b64decode("".join(text.split()), validate=True))
    except (binascii.Error, ValueError):
        raise Bad("the base64 data of the image are damaged.") from None


@dataclass(frozen=True, slots=True, eq=False)
class StoredImage:
    """An image inside a table (Parquet, Hugging Face), fetched by row when it is needed, byte for byte."""

    fetch: Callable[[], bytes]
    _digest: list[str] = field(default_factory=list, repr=False)

    @property
    def digest(self) -> str:
        if not self._digest:
            self._digest.append(hashlib.sha256(self.read()).hexdigest())
        return self._digest[0]

    def read(self) -> bytes:
        return self.fetch()

    def pil(self) -> PIL.Image.Image:
        return BytesImage(self.read()).pil()
