"""Images travel byte-exact."""

import io
import zipfile

import numpy as np
import PIL.Image
import pytest

from pfungst.core import BytesImage, DataError, FileImage, LazyImage, ZipImage
from pfungst.core.images import image_size


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


def test_a_missing_image_is_a_sentence(tmp_path):
    with pytest.raises(DataError, match=r"gone.png.*Check the image folder"):
        FileImage(tmp_path / "gone.png").read()
