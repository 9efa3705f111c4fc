"""Images that visitors send: checked by what they are, not by what they are called."""

from __future__ import annotations

import io
import warnings

from pfungst.core import BytesImage, DataError
from pfungst.core.images import as_rgb

TYPES = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""Formats that are taken, as Pillow names them."""


def checked_image(data: bytes, max_bytes: int, max_pixels: int) -> BytesImage:
    """The upload as an image, byte for byte; DataError where it is none, or too large.

    The size stands in the header: what is too large is never decoded.
    """
    import PIL.Image

    if not data:
        raise DataError("The uploaded file is empty.")
    if len(data) > max_bytes:
        raise DataError(f"The uploaded file has {len(data):,} bytes; at most {max_bytes:,} are taken.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PIL.Image.DecompressionBombWarning)
            with PIL.Image.open(io.BytesIO(data), formats=TYPES) as header:
                width, height = header.size
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError):
        raise DataError("The uploaded file is not an image: PNG, JPEG, WebP, GIF and BMP are taken.") from None
    if width * height > max_pixels:
        raise DataError(f"The uploaded image has {width} x {height} pixels; at most {max_pixels:,} are taken.")
    image = BytesImage(data)
    try:
        as_rgb(image)  # decodes it: half a file is found now, not by the player
    except DataError:
        raise DataError("The uploaded image is damaged: it cannot be decoded to its end.") from None
    return image
