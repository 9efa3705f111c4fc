"""Any picture as three channels of bytes in a given size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError, Image

if TYPE_CHECKING:
    import PIL.Image


def picture_array(image: Image, width: int, height: int) -> NDArray[np.uint8]:
    """uint8 (3, height, width).

    Grey pictures get three equal channels, transparent ones a white ground, 16-bit ones their upper 8 bits; pictures
    taken with a turned camera are set upright. Shrinking averages over all pixels. Raises DataError for what cannot be
    decoded.
    """
    import PIL.Image
    import PIL.ImageOps

    picture = image.pil()
    try:
        picture = PIL.ImageOps.exif_transpose(picture)
        picture = to_rgb(picture)
        # Averaging over whole factors first is far quicker for huge pictures, and the rest is still filtered.
        factor = min(picture.width // width, picture.height // height)
        if factor >= 4:
            picture = picture.reduce(factor // 2)
        resized = picture.resize((width, height), PIL.Image.Resampling.BILINEAR)
    except (OSError, ValueError, MemoryError) as error:
        raise DataError(f"A picture ({image.digest[:12]}) cannot be turned into {width}x{height}: {error}.") from error
    return np.ascontiguousarray(np.asarray(resized, np.uint8).transpose(2, 0, 1))


def to_rgb(picture: PIL.Image.Image) -> PIL.Image.Image:
    """RGB, whatever it was."""
    import PIL.Image

    if picture.mode == "RGB":
        return picture
    if picture.mode in ("I;16", "I;16L", "I;16B", "I;16N", "I", "F"):
        return PIL.Image.fromarray(_eight_bits(np.asarray(picture))).convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        over = picture.convert("RGBA")
        ground = PIL.Image.new("RGBA", over.size, (255, 255, 255, 255))
        return PIL.Image.alpha_composite(ground, over).convert("RGB")
    return picture.convert("RGB")


def _eight_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    """16-bit numbers lose their lower 8 bits; other large ranges are scaled to their own maximum."""
    numbers = np.nan_to_num(values.astype(np.float64))
    highest = numbers.max(initial=0.0)
    if highest > 255:
        numbers = numbers / (256.0 if highest < 65536 else highest / 255.0)
    elif values.dtype.kind == "f" and highest <= 1.0:
        numbers = numbers * 255.0
    result: NDArray[np.uint8] = np.clip(numbers, 0, 255).astype(np.uint8)
    return result
