"""Images on their way to a server: PNG, and the pixels unchanged."""

from __future__ import annotations

import base64
import io
import threading
from collections import OrderedDict
from concurrent.futures import Future

from pfungst.core import Image
from pfungst.core.images import as_rgb, shines_through, upright

_JPEG = b"\xff\xd8\xff"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# What PNG can hold as it is; others (CMYK, YCbCr, float) become RGB. Servers clip grey of 16 bits to white.
_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})
_DEEP_GREY = b"\x10\x00"
"""Bit depth 16, colour type grey, as the header of a PNG says them."""
_WITH_ALPHA = (b"\x04", b"\x06")
"""Colour types of PNG; a transparent colour of the others is in a chunk tRNS."""


def png_bytes(image: Image) -> bytes:
    """The image as PNG: the very bytes where it is one already, else decoded and encoded without loss.

    Never JPEG: a second lossy encoding would disturb the image behind the probe's back. Servers see what a person sees
    and what players on this machine see: EXIF orientation is applied, grey of 16 bits is scaled to 8, transparent
    pixels lie on white. No other metadata travels with an image that is encoded here.
    """
    data = image.read()
    as_it_is = data.startswith(_SIGNATURE) and data[24:26] != _DEEP_GREY and b"eXIf" not in data
    if as_it_is and data[25:26] not in _WITH_ALPHA and b"tRNS" not in data:
        return data
    pixels = upright(image.pil())
    if pixels.mode not in _MODES or shines_through(pixels):
        pixels = as_rgb(pixels)
    elif as_it_is:
        return data
    pixels.info = {key: value for key, value in pixels.info.items() if key == "transparency"}
    buffer = io.BytesIO()
    pixels.save(buffer, format="PNG", compress_level=1)
    return buffer.getvalue()


class DataURLs:
    """`data:` URLs of images, the latest kept. However many threads ask for one, it is encoded once."""

    def __init__(self, limit_bytes: int = 64 << 20) -> None:
        self._limit = limit_bytes
        self._kept: OrderedDict[str, Future[bytes]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def of(self, image: Image, digest: str | None = None, as_is: bool = False) -> bytes:
        """The URL, in ASCII; whoever comes while it is being made waits for it.

        as_is: the image's own bytes where they are a JPEG, which otherwise travels as a PNG of the same pixels.
        """
        name = f"{digest or image.digest}{' as is' if as_is else ''}"
        with self._lock:
            known = self._kept.get(name)
            if known is not None:
                self._kept.move_to_end(name)
            else:
                made: Future[bytes] = Future()
                self._kept[name] = made
        if known is not None:
            return known.result()
        try:
            own = image.read() if as_is else b""
            kind, data = (b"jpeg", own) if own.startswith(_JPEG) else (b"png", png_bytes(image))
            url = b"data:image/" + kind + b";base64," + base64.b64encode(data)
        except BaseException as error:
            with self._lock:
                del self._kept[name]
            made.set_exception(error)
            raise
        with self._lock:
            made.set_result(url)
            self._size += len(url)
            while self._size > self._limit and (oldest := self._oldest()) != name:
                self._size -= len(self._kept.pop(oldest).result())
        return url

    def _oldest(self) -> str:
        """Of those that are finished."""
        return next(name for name, made in self._kept.items() if made.done())
