"""Images travel byte-exact."""

import io
import zipfile

import numpy as np
import PIL.Image
import pytest

from pfungst.core import BytesImage, DataError, FileImage, LazyImage, ZipImage
from pfungst.core.images import as_rgb, image_size


@pytest.fixture
def jpeg() -> bytes:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    PIL.Image.fromarray(pixels).save(buffer, format="JPEG")
    return buffer.getvalue()


def test_file_zip_and_memory_give_the_same_bytes_and_digest(jpeg, tmp_path):
    (tmp_path / "a.jpg").write_bytes(jpeg)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("folder/a.jpg", jpeg)
    images = [FileImage(tmp_path / "a.jpg"), ZipImage(tmp_path / "a.zip", "folder/a.jpg"), BytesImage(jpeg)]
    assert {image.read() for image in images} == {jpeg}
    assert len({image.digest for image in images}) == 1
    assert {image_size(image) for image in images} == {(30, 20)}


def test_a_changed_file_has_another_digest(jpeg, tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg)
    before = FileImage(path).digest
    path.write_bytes(jpeg + b"\0")
    assert FileImage(path).digest != before


def test_a_lazy_image_is_drawn_only_when_it_is_read():
    drawn = []
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    image = LazyImage("name", lambda: drawn.append(1) or pixels, (4, 2))
    assert (image.digest, image_size(image), drawn) == ("name", (4, 2), [])
    assert np.array_equal(np.asarray(PIL.Image.open(io.BytesIO(image.read()))), pixels)
    assert drawn == [1]


@pytest.mark.parametrize("data", [b"", b"not an image", b"\x89PNG\r\n\x1a\n" + b"\0" * 30])
def test_a_broken_image_is_a_sentence(data, tmp_path):
    (tmp_path / "broken.png").write_bytes(data)
    with pytest.raises(DataError, match="broken.png.*not an image"):
        FileImage(tmp_path / "broken.png").pil()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the file is empty"),
        (b"\0\0\0\x18ftypheic\0\0\0\0heicmif1" + bytes(64), "it is HEIC: convert it"),
        (b"<html>404 Not Found</html>", "it is a web page"),
        (b"no image", "its format is unknown"),
    ],
)
def test_a_broken_image_says_what_it_is_and_never_where_in_memory(data, why):
    for look in (lambda image: image.pil(), image_size):
        with pytest.raises(DataError, match=why) as caught:
            look(BytesImage(data))
        assert " object at " not in str(caught.value)


def test_a_missing_image_is_a_sentence(tmp_path):
    with pytest.raises(DataError, match=r"gone.png.*Check the image folder"):
        FileImage(tmp_path / "gone.png").read()


def saved(picture: PIL.Image.Image, kind: str, **options: object) -> BytesImage:
    buffer = io.BytesIO()
    picture.save(buffer, format=kind, **options)
    return BytesImage(buffer.getvalue())


def seen(image: BytesImage) -> np.ndarray:
    picture = as_rgb(image)
    assert picture.mode == "RGB"
    return np.asarray(picture)


def turned(picture: PIL.Image.Image, kind: str, orientation: int, **options: object) -> BytesImage:
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    return saved(picture, kind, exif=exif.tobytes(), **options)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP"])
def test_plain_rgb_keeps_its_very_pixels(kind):
    image = saved(PIL.Image.fromarray(np.random.default_rng(1).integers(0, 256, (9, 7, 3), dtype=np.uint8)), kind)
    assert np.array_equal(seen(image), np.asarray(image.pil()))


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_keep_their_upper_eight(kind):
    image = saved(PIL.Image.fromarray(np.arange(65536, dtype=np.uint16).reshape(256, 256)), kind)
    assert image.pil().mode.startswith("I")
    assert np.array_equal(seen(image)[..., 0], np.repeat(np.arange(256), 256).reshape(256, 256))


def test_an_x_ray_of_twelve_bits_in_a_file_of_sixteen_is_not_black():
    pixels = seen(saved(PIL.Image.fromarray(np.arange(4096, dtype=np.uint16).reshape(64, 64)), "PNG"))[..., 0]
    assert np.array_equal(np.unique(pixels), np.arange(256))
    assert (np.diff(pixels.ravel().astype(int)) >= 0).all()


def test_a_narrow_range_is_spread():
    pixels = seen(saved(PIL.Image.fromarray(np.arange(30000, 31024, dtype=np.uint16).reshape(32, 32)), "PNG"))[..., 0]
    assert (pixels.min(), pixels.max(), len(np.unique(pixels))) == (0, 255, 256)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[-1000, 0, 3000]], np.int32), [0, 64, 255]),
        (np.array([[0.0, 0.5, 1.0]], np.float32), [0, 128, 255]),
        (np.array([[0.0, 100.0, 255.0]], np.float32), [0, 100, 255]),
        (np.array([[np.nan, 0.0, 1e9]], np.float32), [0, 0, 255]),
        (np.array([[7, 7, 7]], np.int32), [7, 7, 7]),
    ],
)
def test_other_numbers_are_brought_to_eight_bits(values, expected):
    assert seen(saved(PIL.Image.fromarray(values), "TIFF"))[0, :, 0].tolist() == expected


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_a_turned_photograph_stands_upright(kind, orientation):
    upright = np.random.default_rng(2).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    # what the camera stored, so that turning it as EXIF says gives `upright` (EXIF 2.3, tag 0x0112)
    stored = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: np.rot90(a),
        7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
        8: lambda a: np.rot90(a, -1),
    }[orientation](upright)
    options = {"lossless": True} if kind == "WEBP" else {}
    image = turned(PIL.Image.fromarray(np.ascontiguousarray(stored)), kind, orientation, **options)
    assert np.array_equal(seen(image), upright)
    assert image_size(image) == (6, 4)


def test_a_turned_jpeg_stands_upright_and_damaged_exif_data_are_passed_over():
    picture = PIL.Image.new("RGB", (6, 4), (10, 20, 30))
    assert as_rgb(turned(picture, "JPEG", 6)).size == (4, 6)
    assert as_rgb(turned(picture, "JPEG", 77)).size == (6, 4)
    assert as_rgb(saved(picture, "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")).size == (6, 4)


def test_inks_become_colours():
    inks = PIL.Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    image = saved(inks, "JPEG", quality=100)
    assert image.pil().mode == "CMYK"
    assert np.abs(seen(image).astype(int) - (255, 0, 0)).max() <= 3
    assert np.abs(seen(saved(PIL.Image.new("CMYK", (8, 8)), "TIFF")).astype(int) - 255).max() <= 3
    broken = saved(inks, "JPEG", quality=100, icc_profile=b"no profile")
    assert np.abs(seen(broken).astype(int) - (255, 0, 0)).max() <= 3


def test_transparent_pixels_lie_on_white():
    half = PIL.Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    half.putpixel((1, 0), (200, 100, 0, 255))
    expected = [[255, 255, 255], [200, 100, 0]]
    assert seen(saved(half, "PNG"))[0].tolist() == expected
    assert seen(saved(half, "WEBP", lossless=True))[0].tolist() == expected
    grey = PIL.Image.new("LA", (2, 1), (0, 0))
    grey.putpixel((1, 0), (90, 255))
    assert seen(saved(grey, "PNG"))[0].tolist() == [[255] * 3, [90] * 3]
    palette = PIL.Image.new("P", (2, 1), 0)
    palette.putpalette([0, 0, 0, 200, 100, 0])
    palette.putpixel((1, 0), 1)
    for kind in ("PNG", "GIF"):
        image = saved(palette, kind, transparency=0)
        assert image.pil().mode == "P"
        assert seen(image)[0].tolist() == expected
    key = PIL.Image.new("RGB", (2, 1), (1, 2, 3))
    key.putpixel((1, 0), (200, 100, 0))
    assert seen(saved(key, "PNG", transparency=(1, 2, 3)))[0].tolist() == expected
    assert np.asarray(as_rgb(half.quantize(4).convert("PA")))[0].tolist() == expected


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_of_an_animation_is_seen(kind):
    frames = [PIL.Image.new("RGB", (3, 2), color) for color in ((250, 0, 0), (0, 250, 0))]
    image = saved(frames[0], kind, save_all=True, append_images=frames[1:], lossless=True)
    assert image.pil().n_frames == 2
    assert seen(image)[0, 0].tolist() == [250, 0, 0]


def test_one_bit_is_black_and_white():
    assert seen(saved(PIL.Image.fromarray(np.array([[True, False]])), "PNG"))[0].tolist() == [[255] * 3, [0] * 3]


def test_postscript_never_reaches_ghostscript(tmp_path, monkeypatch):
    """A file called .png that is a program: Pillow would start Ghostscript for it."""
    called = tmp_path / "called"
    program = tmp_path / "gs"
    program.write_text(f"#!/bin/sh\ntouch {called}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)
    (tmp_path / "a.png").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"
    )
    image = FileImage(tmp_path / "a.png")
    for look in (as_rgb, image_size):
        with pytest.raises(DataError, match="PostScript"):
            look(image)
    assert not called.exists()
