"""What the scorers of the audit see of an image: `features(image) -> float32 (dim,)`.

The paper uses the penultimate layer of ResNet-200. Here it is any backbone of `pfungst.models.features`, averaged over
the image, or colours and edges on a grid, which need no weights.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import Image, MissingExtra, NamedImage
from pfungst.core.files import cache_dir, write_atomic
from pfungst.core.images import as_rgb
from pfungst.core.types import Progress, no_progress, shifted

Floats = npt.NDArray[np.float32]
Features = Callable[[Image], Floats]

GRID, SIDE, BINS = 8, 128, 8
BATCH = 32
"""Images that a backbone sees at once."""
BLOCK = 64 * BATCH
"""Images whose features are kept in one file: what a killed audit computes again, at most."""


def image_features(name: str, device: str = "cpu") -> Features:
    """`grid` (colours and edges, needs no weights), or a backbone of `pfungst.models.features` by name."""
    if name == "grid":
        return grid_features
    try:
        from pfungst.models.features import get_backbone
    except ImportError:
        raise MissingExtra(f"Image features of {name}", "torch") from None
    return Pooled(get_backbone(name, device=device))


def is_there(image: Image | None) -> bool:
    """Whether there is something to look at, and more than a name."""
    return image is not None and not isinstance(image, NamedImage)


class Pooled:
    """The mean of a backbone's feature map over the image: float32 (channels,)."""

    def __init__(self, backbone: Any) -> None:
        self.backbone = backbone
        self.fingerprint: str = f"mean of {backbone.fingerprint}"

    def __call__(self, image: Image) -> Floats:
        return np.asarray(self.many([image])[0])

    def many(self, images: Sequence[Image], progress: Progress = no_progress) -> Floats:
        """(images, channels), a batch at a time."""
        rows = []
        for start in range(0, len(images), BATCH):
            part = images[start : start + BATCH]
            rows.append(np.asarray(self.backbone.extract(part), np.float32).mean((2, 3)))
            progress("reading images", start + len(part), len(images))
        return np.concatenate(rows) if rows else np.zeros((0, self.backbone.shape[0]), np.float32)


def grid_features(image: Image) -> Floats:
    """Colours and edges on an 8 x 8 grid, (896,): mean and spread of the three channels, and a histogram of the edge
    directions weighted by their strength. Deterministic, needs no weights, and knows nothing about objects."""
    import PIL.Image

    small = as_rgb(image).resize((SIDE, SIDE), PIL.Image.Resampling.BILINEAR)
    pixels = np.asarray(small, np.float32) / 255
    cells = pixels.reshape(GRID, SIDE // GRID, GRID, SIDE // GRID, 3)
    mean, spread = cells.mean((1, 3)), cells.std((1, 3))
    down, along = np.gradient(pixels.mean(2))
    strength = np.hypot(down, along)
    bins = (np.arctan2(down, along) % np.pi / np.pi * BINS).astype(int).clip(0, BINS - 1)
    edges = np.stack(
        [
            np.where(bins == number, strength, 0).reshape(GRID, SIDE // GRID, GRID, SIDE // GRID).mean((1, 3))
            for number in range(BINS)
        ],
        axis=-1,
    )
    return np.concatenate([mean.ravel(), spread.ravel(), edges.ravel()]).astype(np.float32)


def table_of(
    images: Sequence[Image],
    features: Features = grid_features,
    progress: Progress = no_progress,
    maps: npt.NDArray[Any] | None = None,
) -> Floats:
    """Features of the images, (images, dim); kept in the cache by the content of the images and the `fingerprint` of
    the features. A function of the user's without one is called again each time: it may not be what it was.

    A feature with a method `many(images, progress)` is asked for all at once. maps: what `grids_of` made of the images;
    then the mean is taken of these, and the images are not looked at twice.
    """
    if len(images) > BLOCK:
        blocks = []
        for start in range(0, len(images), BLOCK):
            some = slice(start, start + BLOCK)
            told = shifted(progress, start, len(images))
            blocks.append(table_of(images[some], features, told, None if maps is None else maps[some]))
        return np.concatenate(blocks)
    ours = f"{__name__}.grid_features" if features is grid_features else None
    version = getattr(features, "fingerprint", ours)
    digest = hashlib.sha256("\n".join([str(version), *(image.digest for image in images)]).encode()).hexdigest()
    path = None if version is None else cache_dir("features") / f"{digest}.npy"
    try:
        if path is not None and len(table := np.load(path, allow_pickle=False)) == len(images):
            return np.asarray(table)
    except (OSError, ValueError, EOFError):
        pass
    many = getattr(features, "many", None)
    if maps is not None and features is not grid_features:
        result = np.asarray(maps.mean((2, 3), dtype=np.float32))
    elif many is not None:
        result = np.asarray(many(images, progress), np.float32)
    else:
        result = _one_by_one(images, features, progress)
    if path is not None:
        buffer = io.BytesIO()
        np.save(buffer, result)
        write_atomic(path, buffer.getvalue())
    return result


def grids_of(images: Sequence[Image], features: Features, progress: Progress = no_progress) -> npt.NDArray[Any] | None:
    """Feature maps of the images, (images, channels, height, width), where the features are the mean of such maps, or
    the grid; None for any other function. Those of a backbone are kept in its cache."""
    if features is grid_features:
        table = table_of(images, features, progress)
        cells = GRID * GRID
        parts = np.split(table, [3 * cells, 6 * cells], axis=1)
        return np.concatenate([part.reshape(len(table), GRID, GRID, -1) for part in parts], -1).transpose(0, 3, 1, 2)
    backbone = getattr(features, "backbone", None)
    if backbone is None:
        return None
    from pfungst.models.features import FeatureCache

    return FeatureCache(backbone).get(images, progress)


def _one_by_one(images: Sequence[Image], features: Features, progress: Progress) -> Floats:
    rows = []
    for number, image in enumerate(images, start=1):
        rows.append(np.asarray(features(image), np.float32))
        if number % 50 == 0 or number == len(images):
            progress("reading images", number, len(images))
    return np.stack(rows) if rows else np.zeros((0, 1), np.float32)
