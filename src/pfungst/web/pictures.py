"""The images of examples, from the data set that a run names, loaded when somebody first looks; the scenes of a game
that fooled its player; and what visitors send, checked by what it is, not by what it is called.
"""

from __future__ import annotations

import io
import json
import threading
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

from pfungst.api import load_again, lost_images, part_again
from pfungst.core import BytesImage, DataError, Dataset, Example, Image, PfungstError
from pfungst.core.files import PARQUET_READING
from pfungst.core.images import as_rgb
from pfungst.probes.game.rows import fooled_rows, image_of, scenes_of
from pfungst.web.runs import NotHere, RunFolder
from pfungst.world.renderers.plan import plan_view
from pfungst.world.renderers.raycast import SceneImage

SMALL, LARGE = 240, 960
"""Longest side of an image in a list and on a page of its own, pixels."""
TYPES = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""Formats of uploads, as Pillow names them."""
_KEPT = 600
"""Encoded images in memory."""


class Pictures:
    """Data sets of runs, and the images of their examples as browsers show them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loading: dict[str, threading.Lock] = {}
        self._data: dict[str, Dataset | PfungstError] = {}
        self._examples: dict[str, Mapping[str, Example]] = {}
        self._encoded: OrderedDict[tuple[str, int], tuple[bytes, str]] = OrderedDict()

    def data(self, run: RunFolder) -> Dataset:
        """The data set that a run names; PfungstError where it cannot be had."""
        config = run.config()
        about = config["data"]
        key = json.dumps([str(about.get("spec")), about.get("options"), about.get("limit"), about.get("only"),
                          about.get("examples"), about.get("open"), about.get("fingerprint"),
                          "{run}" in str(about.get("spec")) and run.id],
                         sort_keys=True, default=str)  # fmt: skip
        with self._lock:
            lock = self._loading.setdefault(key, threading.Lock())
        with lock:
            if key not in self._data:
                self._data[key] = _load(config, run)
        found = self._data[key]
        if isinstance(found, PfungstError):
            raise found
        return found

    def example(self, run: RunFolder, example_id: str) -> Example | None:
        """The example of this id; None where the data set of the run cannot be had or does not have it."""
        try:
            data = self.data(run)
        except PfungstError:
            return None
        key = f"{id(data)}"
        if key not in self._examples:
            self._examples[key] = {example.id: example for example in data}
        return self._examples[key].get(example_id)

    def why_none(self, run: RunFolder) -> str:
        """Why a run has no images, in a sentence; empty where it has."""
        try:
            data = self.data(run)
        except PfungstError as error:
            return str(error)
        if any(example.image is not None for example in data):
            return ""
        if lost_images(data):
            return "None of its images was found. If they were moved, put them back and start again."
        return "The data set of this run has no images."

    def image(self, run: RunFolder, example_id: str) -> Image:
        example = self.example(run, example_id)
        if example is None or example.image is None:
            raise NotHere("There is no such image.")
        return example.image

    def encoded(self, image: Image, side: int) -> tuple[bytes, str]:
        """The image for a browser, at most `side` pixels long: bytes and type. Whatever the file was, what goes out
        was decoded and encoded here."""
        key = (image.digest, side)
        with self._lock:
            if key in self._encoded:
                self._encoded.move_to_end(key)
                return self._encoded[key]
        made = encode(image, side)
        with self._lock:
            self._encoded[key] = made
            while len(self._encoded) > _KEPT:
                self._encoded.popitem(last=False)
        return made


def encode(image: Image, side: int) -> tuple[bytes, str]:
    """A copy for the eye: PNG where nothing has to be made smaller and the image is small, else JPEG."""
    picture = as_rgb(image)
    exact = max(picture.size) <= side and picture.width * picture.height <= 320 * 320
    if not exact:
        picture = picture.copy()
        picture.thumbnail((side, side))
    buffer = io.BytesIO()
    if exact:
        picture.save(buffer, format="PNG", compress_level=1)
        return buffer.getvalue(), "image/png"
    picture.save(buffer, format="JPEG", quality=88)
    return buffer.getvalue(), "image/jpeg"


def checked_image(data: bytes, max_bytes: int, max_pixels: int) -> BytesImage:
    """The upload as an image, byte for byte; DataError where it is none, or too large.

    The size stands in the header: what is too large is never decoded.
    """
    if not data:
        raise DataError("The uploaded file is empty.")
    if len(data) > max_bytes:
        raise DataError(f"The uploaded file has {len(data):,} bytes; at most {max_bytes:,} are accepted.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PIL.Image.DecompressionBombWarning)
            with PIL.Image.open(io.BytesIO(data), formats=TYPES) as header:
                width, height = header.size
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError):
        raise DataError("The uploaded file is not an image: PNG, JPEG, WebP, GIF and BMP are accepted.") from None
    if width * height > max_pixels:
        raise DataError(f"The uploaded image has {width} x {height} pixels; at most {max_pixels:,} are accepted.")
    image = BytesImage(data)
    try:
        as_rgb(image)  # decodes it: half a file is found now, not by the player
    except DataError:
        raise DataError("The uploaded image is damaged: it cannot be decoded to its end.") from None
    return image


def _load(config: Mapping[str, Any], run: RunFolder) -> Dataset | PfungstError:
    try:
        data = load_again(config, run.path)
        fingerprint = config["data"].get("fingerprint")
        if fingerprint and data.fingerprint and data.fingerprint != fingerprint:
            return PfungstError(
                "The data set has changed since this run: its images may have changed, so they are not shown."
            )
        return part_again(replace(data), config)
    except PfungstError as error:
        return error
    except Exception as error:  # a data set may come from a package of somebody else's
        return PfungstError(f"The data set of this run cannot be loaded ({type(error).__name__}).")


@dataclass(frozen=True)
class MovedScene:
    """A scene before and after; `plan` is an SVG from above."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def plan(self) -> str:
        return plan_view(self.after, 300, moved_from=self.before)

    def image(self, which: str) -> SceneImage:
        return image_of(self.after if which == "after" else self.before)


def moved_scene(run: RunFolder, example_id: str) -> MovedScene | None:
    """The scene that fooled the player of this run about an example; None where none did."""
    file = run.file("game", "moves.parquet")
    if file is None:
        return None
    status = file.stat()
    return _all(run, status.st_size, status.st_mtime_ns).get(example_id)


@lru_cache(maxsize=16)
def _all(run: RunFolder, size: int, modified: int) -> dict[str, MovedScene]:
    columns = ["example_id", "scene", "after", "query", "camera", "fooled", "verified", "confirmed"]
    try:
        table = pq.read_table(
            run.path / "game" / "moves.parquet", columns=columns, filters=[("fooled", "=", True)], **PARQUET_READING
        )
        return {row["example_id"]: _scene(row) for row in fooled_rows(table.sort_by("query"))}
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, PfungstError):
        return {}


def _scene(row: Mapping[str, Any]) -> MovedScene:
    before, after = scenes_of(row)
    before.setdefault("camera", after["camera"])
    return MovedScene(before, after)
