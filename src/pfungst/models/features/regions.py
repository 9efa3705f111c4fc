"""Published bottom-up region features: TSV, NPZ folders and HDF5 files."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError, PfungstError

TSV_FIELDS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")
"""Columns of the published TSV files; boxes and features are float32 in base64."""
_FEATURES = ("features", "x", "feat", "image_features")
_BOXES = ("boxes", "bbox", "image_bb")


@dataclass(frozen=True)
class Regions:
    """The regions of one image."""

    features: NDArray[np.float32]
    """(R, D)"""
    boxes: NDArray[np.float32] | None = None
    """(R, 4): left, top, right, bottom in pixels."""


@dataclass(frozen=True)
class RegionFeatures:
    """Regions by the name of the image."""

    size: int
    """D."""
    names: Mapping[str, Any]
    read: Callable[[Any], Regions]

    def __len__(self) -> int:
        return len(self.names)

    def find(self, image: str) -> str | None:
        """The name under which an image is known: its own, that of its file, or the number in it."""
        number = _number(image)
        tries = [image, Path(image).name, Path(image).stem, number]
        return next((one for one in tries if one in self.names), None) or self._numbers.get(number)

    @cached_property
    def _numbers(self) -> dict[str, str | None]:
        """Number in a name -> the name (`42` for COCO_val2014_000000000042.jpg); None where two names have it."""
        found: dict[str, str | None] = {}
        for name in self.names:
            if number := _number(name):
                found[number] = None if number in found else name
        return found

    def get(self, image: str) -> Regions:
        """The regions of an image, by its name (`COCO_val2014_000000000042.jpg`) or number (`42`)."""
        found = self.find(image)
        if found is None:
            raise DataError(f"There are no region features for the image {image!r}.")
        regions = self.read(self.names[found])
        shape = regions.features.shape
        if len(shape) != 2 or not shape[0] or shape[1] != self.size:
            raise DataError(f"The region features of the image {found!r} are {shape}, not (regions, {self.size}).")
        if not np.isfinite(regions.features).all():
            raise DataError(f"The region features of the image {found!r} hold NaN or infinity.")
        return regions


def _number(name: str) -> str:
    """The number at the end of a name, without zeros before it; empty where there is none."""
    found = re.search(r"(\d+)(?:\.\w+)?$", name)
    return str(int(found[1])) if found else ""


def load_regions(path: str | Path, ids: Sequence[str | int] | str | Path | None = None) -> RegionFeatures:
    """Open published region features; nothing but the index is read yet.

    path: a .tsv file, a folder of .npz files (one per image), or an .h5/.hdf5 file.
    ids: for HDF5, the image of every row: a list, or a JSON file with a list or a table image -> row, where the
        file itself has none; by default the file of the same name that ends in .json. (Published files come with a
        pickled index; pickles are never read: write it as JSON.)
    """
    place = Path(path)
    if place.is_dir():
        return _npz(place)
    if place.suffix == ".tsv":
        return _tsv(place)
    if place.suffix in (".h5", ".hdf5"):
        return _h5(place, ids)
    raise DataError.at(place, "", "region features are a .tsv file, a folder of .npz files, or an .h5 file.")


def _tsv(path: Path) -> RegionFeatures:
    offsets: dict[str, int] = {}
    size = 0
    try:
        with path.open("rb") as file:
            place = 0
            for number, line in enumerate(file, 1):
                cells = line.rstrip(b"\r\n").split(b"\t")
                if len(cells) == len(TSV_FIELDS) and cells[0] != b"image_id":
                    offsets[cells[0].decode("utf-8", "replace")] = place
                    size = size or _parse_tsv(path, line).features.shape[1]
                elif len(cells) != len(TSV_FIELDS) and line.strip():
                    raise DataError.at(path, f"line {number}", f"it has {len(cells)} columns, not {len(TSV_FIELDS)}.")
                place += len(line)
    except OSError as error:
        raise DataError.at(path, "", "the region features cannot be read.") from error
    if not offsets:
        raise DataError.at(path, "", "there are no regions in it.")

    def read(offset: int) -> Regions:
        with path.open("rb") as file:
            file.seek(offset)
            return _parse_tsv(path, file.readline())

    return RegionFeatures(size, offsets, read)


def _parse_tsv(path: Path, line: bytes) -> Regions:
    cells = line.rstrip(b"\r\n").split(b"\t")
    name = cells[0].decode("utf-8", "replace")
    try:
        count = int(cells[3])
        boxes, features = (np.frombuffer(base64.b64decode(cell), np.float32).reshape(count, -1) for cell in cells[4:6])
    except ValueError as error:
        raise DataError.at(path, f"picture {name}", f"its regions cannot be decoded ({error}).") from error
    return Regions(features, boxes)


def _npz(folder: Path) -> RegionFeatures:
    files = {file.stem: file for file in sorted(folder.glob("*.npz"))}
    if not files:
        raise DataError.at(folder, "", "there are no .npz files in it.")

    def read(path: Path) -> Regions:
        try:
            with np.load(path, allow_pickle=False) as arrays:
                features, boxes = _named(path, arrays)
                features, boxes = features.astype(np.float32), None if boxes is None else boxes.astype(np.float32)
        except (OSError, ValueError) as error:
            raise DataError.at(path, "", f"the regions cannot be read ({error}).") from error
        # Some releases store (D, R): features are longer than there are regions.
        if boxes is not None and features.shape[0] != len(boxes) and features.shape[-1] == len(boxes):
            features = features.T
        if features.ndim > 2 and features.size:
            features = features.reshape(len(features), -1)
        return Regions(np.ascontiguousarray(features), boxes)

    return RegionFeatures(read(next(iter(files.values()))).features.shape[-1], files, read)


def _named(path: Path, arrays: Any) -> tuple[Any, Any]:
    """Features and boxes, under one of the names that releases give them; None for boxes that are not there."""
    features, boxes = (next((arrays[name] for name in names if name in arrays), None) for names in (_FEATURES, _BOXES))
    if features is None:
        raise DataError.at(path, "", f"it has none of the arrays {', '.join(_FEATURES)}.")
    return features, boxes


def _h5(path: Path, ids: Sequence[str | int] | str | Path | None) -> RegionFeatures:
    try:
        import h5py  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise PfungstError("Region features in HDF5 need h5py: pip install h5py.") from error
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise DataError.at(path, "", "this is not an HDF5 file that can be read.") from error
    features, boxes = _named(path, file)
    ends = file.get("pos_boxes")
    rows = _h5_rows(path, file, ids)

    def read(row: int) -> Regions:
        part = slice(int(ends[row][0]), int(ends[row][1])) if ends is not None else row
        values = np.asarray(features[part], np.float32)
        return Regions(values, None if boxes is None else np.asarray(boxes[part], np.float32)[:, :4])

    return RegionFeatures(int(features.shape[-1]), rows, read)


def _h5_rows(path: Path, file: Any, ids: Sequence[str | int] | str | Path | None) -> dict[str, int]:
    beside = path.with_suffix(".json")
    if ids is None and beside.exists():
        ids = beside
    listed: Any = ids
    if isinstance(ids, str | Path):
        try:
            listed = json.loads(Path(ids).read_bytes())
        except (OSError, ValueError) as error:
            raise DataError.at(ids, "", "this is not a JSON list or table of images.") from error
    if isinstance(listed, Mapping):
        return {str(name): int(row) for name, row in listed.items()}
    if listed is None:
        known = next((name for name in ("image_ids", "ids", "image_id") if name in file), None)
        if known is None:
            problem = "it does not say which image each row belongs to."
            raise DataError.at(
                path, "", problem, f"Write that to {beside.name} beside it: a JSON list, or image -> row."
            )
        listed = [one.decode() if isinstance(one, bytes) else one for one in file[known][:].tolist()]
    return {str(name): row for row, name in enumerate(listed)}
