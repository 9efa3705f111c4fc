"""Images on their way to a server: PNG, and the pixels unchanged."""

from __future__ import annotations

import base64
import io
import threading
from collections import OrderedDict

from pfungst.core import Image
from pfungst.core.images import as_rgb, upright

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# What PNG can hold as it is; others (CMYK, YCbCr, float) become RGB. Servers clip grey of 16 bits to white.
_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})
_DEEP_GREY = b"\x10\x00"
"""Bit depth 16, colour type grey, as the header of a PNG says them."""


def png_bytes(image: Image) -> bytes:
    """The image as PNG: the very bytes where it is one already, else decoded and encoded without loss.

    Never JPEG: a second lossy encoding would disturb the image behind the probe's back. Servers see what a person sees
    and what players on this machine see: EXIF orientation is applied, grey of 16 bits is scaled to 8. No other metadata
    travels with an image that is encoded here.
    """
    data = image.read()
    if data.startswith(_SIGNATURE) and data[24:26] != _DEEP_GREY and b"eXIf" not in data:
        return data
    pixels = upright(image.pil())
    if pixels.mode not in _MODES:
        pixels = as_rgb(pixels)
    pixels.info = {key: value for key, value in pixels.info.items() if key == "transparency"}
    buffer = io.BytesIO()
    pixels.save(buffer, format="PNG", compress_level=1)
    return buffer.getvalue()


class DataURLs:
    """`data:` URLs of images, the latest kept: a probe asks many questions about one image."""

    def __init__(self, limit_bytes: int = 64 << 20) -> None:
        self._limit = limit_bytes
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def of(self, image: Image) -> str:
        name = image.digest
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        url = "data:image/png;base64," + base64.b64encode(png_bytes(image)).decode("ascii")
        with self._lock:
            if name not in self._kept:
                self._kept[name] = url
                self._size += len(url)
            while self._size > self._limit and len(self._kept) > 1:
                self._size -= len(self._kept.popitem(last=False)[1])
        return url
