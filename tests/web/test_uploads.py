"""Uploaded images are checked by what they are."""

from __future__ import annotations

import io
import struct
import zlib

import PIL.Image
import pytest

from pfungst.core import DataError
from pfungst.web.pictures import checked_image


def encoded(kind: str, size: tuple[int, int] = (20, 10)) -> bytes:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", size, (200, 30, 30)).save(buffer, format=kind)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_an_image_passes_byte_for_byte(kind: str) -> None:
    data = encoded(kind)
    assert checked_image(data, 10_000, 1000).read() == data


def bomb() -> bytes:
    """A PNG whose header says 60,000 x 60,000 pixels."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "not an image"),
        (b"GIF89a<script>alert(1)</script>", "not an image|damaged"),
        (b"%PDF-1.7", "not an image"),
        (encoded("TIFF"), "not an image"),
        (encoded("PNG")[:40], "not an image|damaged"),
        (encoded("PNG", (400, 400))[:-200], "damaged"),
        (encoded("PNG", (100, 100)), "pixels"),
        (bomb(), "pixels|not an image"),
        (b"\0" * 20_000, "bytes"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_a_sentence(data: bytes, words: str) -> None:
    most = 200_000 if "damaged" in words or words == "pixels" else 10_000
    with pytest.raises(DataError, match=words):
        checked_image(data, most, 200_000 if words == "damaged" else 1000)
