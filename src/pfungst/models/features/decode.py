"""Any image as three channels of bytes in a given size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfungst.core import DataError, Image
from pfungst.core.images import as_rgb
from pfungst.models.features.resize import resize_batch, resize_file
from pfungst.world.images import RenderedImage
from pfungst.world.renderers.pack import Packed
from pfungst.world.renderers.raycast import draw, on_gpu

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
    parts: list[Tensor] = []
    if on_gpu(device):
        from pfungst.world.renderers.cuda import at_once, draw_on_device

        step = at_once(*size)
        for start in range(0, len(packed), step):
            drawn = draw_on_device(packed[start : start + step], *size, torch.device(device))
            parts.append(resize_batch(drawn.permute(0, 3, 1, 2), width, height))
    else:
        for scene in packed:
            drawn = torch.from_numpy(draw(scene, *size))[None]
            parts.append(resize_batch(drawn.permute(0, 3, 1, 2), width, height))
    return torch.cat(parts)


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
