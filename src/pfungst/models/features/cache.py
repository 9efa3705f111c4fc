"""Features on disk, by the content of the image: each is computed once, ever.

A folder holds `features.bin` (rows of one size, one after the other), `rows.txt` (line i: the digest of image i and the
checksum of its row) and `about.json`. A row counts once its line is whole, so a killed writer loses at most its last
batch. A row whose checksum is wrong is computed again before it is used.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError, Image, Progress
from pfungst.core.files import cache_dir, only_here, write_atomic, write_json
from pfungst.models.features.backbones import Backbone

BATCH = 32
"""Pictures computed, and written, at once."""


class FeatureCache:
    """The features of a backbone; `folder` is below the user's cache folder unless one is given."""

    def __init__(self, backbone: Backbone, folder: str | Path | None = None) -> None:
        self.backbone = backbone
        name = hashlib.sha256(backbone.fingerprint.encode()).hexdigest()[:16]
        self.folder: Path = (
            Path(folder)
            if folder is not None
            else cache_dir("features") / f"{backbone.name.replace(':', '-').replace('/', '-')}-{name}"
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._rows: dict[str, int] = {}
        self._sums: list[str] = []
        self._checked: set[int] = set()
        """Rows whose checksum was right, or that were written just now."""
        self._dtype = np.dtype(np.uint8 if backbone.name == "pixels" else np.float16)
        self._claim()
        self._read_index()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, images: Sequence[Image], progress: Progress | None = None) -> NDArray[Any]:
        """Features of the images (N, C, H, W), in order; what is not known yet is computed and kept."""
        self.add(images, progress)
        rows = [self._rows[image.digest] for image in images]
        if not rows:
            return np.zeros((0, *self.backbone.shape), self._dtype)
        return np.asarray(self.rows()[rows])

    def rows(self) -> NDArray[Any]:
        """All rows, memory-mapped, read-only (M, C, H, W)."""
        return np.memmap(self._data, self._dtype, "r", shape=(len(self._rows), *self.backbone.shape))

    def row(self, image: Image) -> int:
        """The row of an image that was added."""
        return self._rows[image.digest]

    def add(self, images: Sequence[Image], progress: Progress | None = None) -> None:
        """Compute and keep what is not known yet."""
        self._read_index()
        unique = {image.digest: image for image in images}
        self._mend([image for digest, image in unique.items() if digest in self._rows])
        missing = [image for digest, image in unique.items() if digest not in self._rows]
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            self._append([image.digest for image in part], self.backbone.extract(part))
            if progress is not None:
                progress("looking at images", min(start + BATCH, len(missing)), len(missing))

    @property
    def _data(self) -> Path:
        return self.folder / "features.bin"

    @property
    def _index(self) -> Path:
        return self.folder / "rows.txt"

    def _mend(self, images: Sequence[Image]) -> None:
        """Compute again what was damaged on the disk."""
        rows = self.rows() if images else np.zeros(0)
        damaged = []
        for image in images:
            row = self._rows[image.digest]
            if row not in self._checked and _sum(rows[row]) != self._sums[row]:
                damaged.append(image)
            self._checked.add(row)
        for start in range(0, len(damaged), BATCH):
            part = damaged[start : start + BATCH]
            features = np.ascontiguousarray(self.backbone.extract(part), self._dtype)
            with only_here(self.folder / "lock"):
                self._read_index()
                with self._data.open("r+b") as file:
                    for image, values in zip(part, features, strict=True):
                        file.seek(self._rows[image.digest] * values.nbytes)
                        file.write(values.tobytes())
                        self._sums[self._rows[image.digest]] = _sum(values)
                lines = (f"{digest} {self._sums[row]}\n" for digest, row in self._rows.items())
                write_atomic(self._index, "".join(lines).encode())

    def _append(self, digests: Sequence[str], features: NDArray[Any]) -> None:
        size = int(np.prod(self.backbone.shape)) * self._dtype.itemsize
        with only_here(self.folder / "lock"):
            self._read_index()
            fresh = [i for i, digest in enumerate(digests) if digest not in self._rows]
            if not fresh:
                return
            count = len(self._rows)
            with self._data.open("r+b" if self._data.exists() else "w+b") as file:
                file.seek(count * size)
                written = np.ascontiguousarray(features[fresh], self._dtype)
                file.write(written.tobytes())
            # Lines follow the last whole one: half a line of a killed writer goes.
            whole = sum(len(digest) + len(known) + 2 for digest, known in zip(self._rows, self._sums, strict=True))
            sums = [_sum(values) for values in written]
            with self._index.open("r+b" if self._index.exists() else "w+b") as file:
                file.truncate(whole)
                file.seek(whole)
                file.write("".join(f"{digests[i]} {known}\n" for i, known in zip(fresh, sums, strict=True)).encode())
            self._checked.update(range(count, count + len(fresh)))
            for i in fresh:
                self._rows[digests[i]] = len(self._rows)
            self._sums += sums

    def _read_index(self) -> None:
        text = self._index.read_text(encoding="utf-8", errors="replace") if self._index.exists() else ""
        lines = [line.split(" ") for line in text[: text.rfind("\n") + 1].splitlines()]
        size = int(np.prod(self.backbone.shape)) * self._dtype.itemsize
        there = self._data.stat().st_size if self._data.exists() else 0
        whole = all(len(line) == 2 for line in lines) and there >= len(lines) * size
        self._rows = {line[0]: i for i, line in enumerate(lines)}
        self._sums = [line[-1] for line in lines]
        if not whole or len(self._rows) != len(lines):
            raise DataError.at(
                self.folder, "", "the feature cache is damaged.", "Delete the folder; it will be made again."
            )

    def _claim(self) -> None:
        about = {"backbone": self.backbone.name, "fingerprint": self.backbone.fingerprint, "shape": self.backbone.shape}
        path = self.folder / "about.json"
        if not path.exists():
            write_json(path, about)
            return
        try:
            before = json.loads(path.read_bytes())
        except ValueError:
            before = {}
        if before.get("fingerprint") != self.backbone.fingerprint:
            raise DataError.at(self.folder, "", "it holds features of another backbone.", "Choose another folder.")


def _sum(values: NDArray[Any]) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(values).data):08x}"
