"""One way to resize images, for files and for what is rendered on a device: the pixels are the same to the bit.

Columns first, then rows, each time as Pillow's bilinear filter does it: whole numbers, weights of 22 bits, rounded to
bytes after each pass. Whole numbers add up alike everywhere. (Left to itself, Pillow chooses which pass comes first,
and its versions choose differently.)
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    import PIL.Image

_BITS = 32 - 8 - 2
"""Bits behind the point of Pillow's weights."""


def resize_file(image: PIL.Image.Image, width: int, height: int) -> PIL.Image.Image:
    """One decoded image, on the CPU."""
    from PIL.Image import Resampling

    return image.resize((width, image.height), Resampling.BILINEAR).resize((width, height), Resampling.BILINEAR)


def resize_batch(images: Tensor, width: int, height: int) -> Tensor:
    """The same for tensors on any device: uint8 (N, C, H, W) to uint8 (N, C, height, width)."""
    return _along(_along(images, 3, width), 2, height)


def _along(images: Tensor, dim: int, after: int) -> Tensor:
    if images.shape[dim] == after:
        return images
    places, weights = _taps_on(images.shape[dim], after, images.device)
    shape = [-1 if axis == dim else 1 for axis in range(4)]
    total = torch.full((), 1 << (_BITS - 1), dtype=torch.int32, device=images.device)
    for place, weight in zip(places, weights, strict=True):
        total = total + images.index_select(dim, place).int() * weight.view(shape)
    return (total >> _BITS).clamp_(0, 255).byte()


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _taps_on(before: int, after: int, device: torch.device) -> tuple[Tensor, Tensor]:
    places, weights = _taps(before, after)
    return torch.from_numpy(places).to(device), torch.from_numpy(weights).to(device)


def _taps(before: int, after: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """(taps, after) places that each new pixel is made of, and their weights as whole numbers."""
    scale = before / after
    wide = max(scale, 1.0)
    count = 2 * math.ceil(wide) + 1
    places = np.zeros((count, after), np.int64)
    weights = np.zeros((count, after), np.int32)
    for pixel in range(after):
        centre = (pixel + 0.5) * scale
        first = max(int(centre - wide + 0.5), 0)
        last = min(int(centre + wide + 0.5), before)
        shares = [max(0.0, 1.0 - abs((place - centre + 0.5) * (1.0 / wide))) for place in range(first, last)]
        total = 0.0
        for share in shares:  # not sum(), which some versions of Python round otherwise
            total += share
        places[: last - first, pixel] = range(first, last)
        weights[: last - first, pixel] = [int(0.5 + share / total * (1 << _BITS)) for share in shares]
    return places, weights
