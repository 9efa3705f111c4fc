"""Any image as three channels of bytes in a given size.

There is one way to resize, for files and for what is rendered on a device: the pixels are the same to the bit. Columns
first, then rows, each time as Pillow's bilinear filter does it: whole numbers, weights of 22 bits, rounded to bytes
after each pass. Whole numbers add up alike everywhere. (Left to itself, Pillow chooses which pass comes first, and its
versions choose differently.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import PIL.Image
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfungst.core import DataError, Image
from pfungst.core.images import as_rgb
from pfungst.world.renderers.raycast import Packed, RenderedImage, draw, on_gpu

_BITS = 32 - 8 - 2
"""Bits behind the point of Pillow's weights."""
SHRUNK_FIRST = 4
"""Images so many times larger than wanted are averaged over whole factors first, which is far quicker."""


def image_batch(images: Sequence[Image], width: int, height: int, device: str = "cpu") -> Tensor:
    """uint8 (N, 3, height, width) on a device.

    On a GPU, images of scenes are rendered there instead of being read; the pixels are those of `image_array`.
    """
    pixels = torch.empty((len(images), 3, height, width), dtype=torch.uint8, device=device)
    read: list[int] = []
    rendered: dict[tuple[int, int], list[int]] = {}
    for at, image in enumerate(images):
        if pixels.is_cuda and isinstance(image, RenderedImage) and _factor(image.size, width, height) < SHRUNK_FIRST:
            rendered.setdefault(image.size, []).append(at)
        else:
            read.append(at)
    if read:
        arrays = np.stack([image_array(images[at], width, height) for at in read])
        pixels[read] = torch.from_numpy(arrays).to(device)
    for size, places in rendered.items():
        packed = [image.packed() for image in (images[at] for at in places) if isinstance(image, RenderedImage)]
        pixels[places] = rendered_batch(packed, size, width, height, device)
    return pixels


def rendered_batch(packed: Sequence[Packed], size: tuple[int, int], width: int, height: int, device: str) -> Tensor:
    """Scenes rendered in a size, then resized, all on a device: uint8 (N, 3, height, width)."""
    drawn = (torch.from_numpy(draw(scene, *size))[None] for scene in packed)
    if on_gpu(device):
        from pfungst.world.renderers.cuda import at_once, draw_on_device

        step, place = at_once(*size), torch.device(device)
        drawn = (draw_on_device(packed[at : at + step], *size, place) for at in range(0, len(packed), step))
    return torch.cat([resize_batch(part.permute(0, 3, 1, 2), width, height) for part in drawn])


def image_array(image: Image, width: int, height: int) -> NDArray[np.uint8]:
    """uint8 (3, height, width).

    What a person sees (`as_rgb`), resized; shrinking averages over all pixels. Raises DataError for what cannot be
    decoded.
    """
    picture = as_rgb(image)
    try:
        factor = _factor(picture.size, width, height)
        if factor >= SHRUNK_FIRST:
            picture = picture.reduce(factor // 2)
        resized = resize_file(picture, width, height)
    except (OSError, ValueError, MemoryError) as error:
        raise DataError(f"An image ({image.digest[:12]}) cannot be resized to {width}x{height}: {error}.") from error
    return np.ascontiguousarray(np.asarray(resized, np.uint8).transpose(2, 0, 1))


def _factor(size: tuple[int, int], width: int, height: int) -> int:
    return min(size[0] // width, size[1] // height)


def resize_file(image: PIL.Image.Image, width: int, height: int) -> PIL.Image.Image:
    """One decoded image, on the CPU."""
    bilinear = PIL.Image.Resampling.BILINEAR
    return image.resize((width, image.height), bilinear).resize((width, height), bilinear)


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
