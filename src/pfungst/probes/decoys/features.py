"""What a scorer sees of a picture.

`features(image) -> float32 (dim,)` is all that is asked of an image feature, so a network can take the place of the
simple one here. The paper uses the penultimate layer of ResNet-200.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from pfungst.core import Image
from pfungst.core.files import cache_dir, write_atomic

Floats = npt.NDArray[np.float32]
Features = Callable[[Image], Floats]

GRID, SIDE, BINS = 8, 128, 8


def grid_features(image: Image) -> Floats:
    """Colour and edges on an 8 x 8 grid, (896,): mean and spread of the three channels, and a histogram of the edge
    directions weighted by their strength. Deterministic, needs no weights, and knows nothing about objects."""
    import PIL.Image

    picture = image.pil().convert("RGB").resize((SIDE, SIDE), PIL.Image.Resampling.BILINEAR)
    pixels = np.asarray(picture, np.float32) / 255
    cells = pixels.reshape(GRID, SIDE // GRID, GRID, SIDE // GRID, 3)
    mean, spread = cells.mean((1, 3)), cells.std((1, 3))
    down, along = np.gradient(pixels.mean(2))
    strength = np.hypot(down, along)
    bins = (np.arctan2(down, along) % np.pi / np.pi * BINS).astype(int).clip(0, BINS - 1)
    edges = np.stack(
        [
            np.where(bins == one, strength, 0).reshape(GRID, SIDE // GRID, GRID, SIDE // GRID).mean((1, 3))
            for one in range(BINS)
        ],
        axis=-1,
    )
    return np.concatenate([mean.ravel(), spread.ravel(), edges.ravel()]).astype(np.float32)


def table_of(
    images: Sequence[Image],
    features: Features = grid_features,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Floats:
    """Features of the images, (images, dim); kept in the cache by the content of the images and the feature's name.

    A feature with a method `many(images, progress)` is asked for all at once.
    """
    name = f"{getattr(features, '__module__', '')}.{getattr(features, '__qualname__', repr(features))}"
    version = getattr(features, "fingerprint", name)
    digest = hashlib.sha256("\n".join([str(version), *(image.digest for image in images)]).encode()).hexdigest()
    path = cache_dir("features") / f"{digest}.npy"
    try:
        found: Floats = np.load(path, allow_pickle=False)
        if len(found) == len(images):
            return found
    except (OSError, ValueError, EOFError):
        pass
    many = getattr(features, "many", None)
    result = _one_by_one(images, features, progress) if many is None else np.asarray(many(images, progress), np.float32)
    buffer = io.BytesIO()
    np.save(buffer, result)
    write_atomic(path, buffer.getvalue())
    return result


def _one_by_one(images: Sequence[Image], features: Features, progress: Callable[[str, int, int], None]) -> Floats:
    rows = []
    for number, image in enumerate(images, start=1):
        rows.append(np.asarray(features(image), np.float32))
        if number % 50 == 0 or number == len(images):
            progress("reading images", number, len(images))
    return np.stack(rows) if rows else np.zeros((0, 1), np.float32)
