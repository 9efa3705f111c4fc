"""The image operations: the same pixels everywhere, and what an independent implementation makes of them."""

from __future__ import annotations

import hashlib
import io
import itertools

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from pfungst.core import BytesImage
from pfungst.core.images import as_rgb
from pfungst.probes.picture import OPERATIONS, change, disturbed
from pfungst.probes.picture.kernels import Pixels
from pfungst.probes.picture.operations import blur, contrast, gamma_table, jpeg_at, noise, rescale, rotate, shift

PIXELS = [name for name in OPERATIONS.builtin if OPERATIONS.get(name).change is not None]
RESIZING = {"crop", "pad"}


def textured(height: int, width: int) -> Pixels:
    """Smooth colours with an edge and a little grain, from integers alone."""
    y, x = np.mgrid[:height, :width]
    grain = (x * 7919 + y * 104729) % 13
    channels = [(x * 3 + y) % 256 // 2 + 60, (y * 2) % 200 + grain, np.where((x - y) % 60 < 30, 180, 70) + grain]
    return np.stack(channels, axis=2).astype(np.uint8)


def distance(first: Pixels, second: Pixels) -> float:
    return float(np.abs(first.astype(int) - second.astype(int)).mean())


def test_every_machine_makes_the_same_pixels() -> None:
    """Digests made elsewhere: a change here means that all answers under this operation must be asked again, so
    VERSION in operations.py has to be counted up."""
    image = textured(97, 131)
    made = {}
    for name in PIXELS:
        if name != "webp":
            found = [OPERATIONS.get(name)(image, severity, 12345) for severity in (1, 3, 5)]
            made[name] = hashlib.sha256(b"".join(one.tobytes() for one in found)).hexdigest()[:16]
    assert made == DIGESTS


DIGESTS = {
    "mirror": "3689faccbc9d7fa0",
    "shift": "2762aee2193397ce",
    "crop": "e19e14bca4ea5db1",
    "pad": "3c8c773b7dcaf7b1",
    "rescale": "3cf05b118b4e3e0e",
    "rotate": "5049676207a1cff1",
    "gamma": "df9be4f7859f0006",
    "brightness": "b43eebe1ba32a5d9",
    "contrast": "614054985f84c676",
    "grey": "18ec089221fd28da",
    "blur": "10cd4522db8fef74",
    "noise": "ee0b877cdb55ad61",
    "fog": "42da2b80be578c0b",
    "jpeg": "1303fc50a5655bc1",
}


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(PIXELS), st.integers(1, 5), st.integers(0, 2**64 - 1))
def test_any_image_can_be_disturbed(height: int, width: int, name: str, severity: int, key: int) -> None:
    image = textured(height, width)
    before = image.copy()
    made = OPERATIONS.get(name)(image, severity, key)
    assert made.dtype == np.uint8 and made.ndim == 3 and made.shape[2] == 3 and made.size
    assert made.flags.c_contiguous
    assert (image == before).all(), "the original stays as it is"
    assert (made == OPERATIONS.get(name)(image, severity, key)).all()
    if name not in RESIZING:
        assert made.shape == image.shape


@pytest.mark.parametrize("sides", [(240, 320), (112, 100)])
@pytest.mark.parametrize("name", sorted({*PIXELS} - RESIZING - {"shift", "mirror"}))
def test_severities_move_further_from_the_original(name: str, sides: tuple[int, int]) -> None:
    image = textured(*sides)
    moved = [0.0, *(distance(OPERATIONS.get(name)(image, severity, 3), image) for severity in range(1, 6))]
    assert all(less < more for less, more in itertools.pairwise(moved))


@pytest.mark.parametrize("quality", [7, 15, 25, 60])
def test_jpeg_is_what_a_codec_makes(quality: int) -> None:
    image = textured(120, 173)
    buffer = io.BytesIO()
    PIL.Image.fromarray(image).save(buffer, "JPEG", quality=quality, subsampling="4:2:0")
    theirs = np.array(PIL.Image.open(buffer))
    ours = jpeg_at(image, quality)
    assert distance(ours, theirs) < 0.1 * distance(image, theirs) + 0.3


def test_blur_is_three_means_in_a_row() -> None:
    image = textured(300, 200)
    for severity, weights in ((2, [0.8, 1, 0.8]), (5, [0.6, 1, 1, 1, 1, 1, 0.6])):  # 0.4 and 1.3% of 200 pixels
        expected = image.astype(float)
        for _ in range(3):
            for axis in (0, 1):
                expected = ndimage.correlate1d(expected, np.array(weights) / sum(weights), axis, mode="nearest")
        assert np.abs(blur(image, severity, 0) - expected).max() <= 2.5  # every mean is rounded to a whole grey level


def test_rotation_is_that_of_scipy() -> None:
    image = textured(81, 121)
    turned = rotate(image, 5, 1)
    expected = np.stack(
        [ndimage.rotate(image[:, :, k].astype(float), 8, reshape=False, order=1, mode="nearest") for k in range(3)], 2
    )
    other = rotate(image, 5, 0)
    assert min(np.abs(turned - expected).max(), np.abs(other - expected).max()) <= 2


def test_rescaling_by_half_is_the_mean_of_four_pixels() -> None:
    image = textured(60, 80)
    small = image.reshape(30, 2, 40, 2, 3).mean((1, 3))
    expected = ndimage.zoom(small, (2, 2, 1), order=1, mode="nearest", grid_mode=True)
    assert np.abs(rescale(image, 2, 0) - expected).max() <= 1.5


def test_noise_has_the_deviation_it_says() -> None:
    flat = np.full((200, 300, 3), 128, np.uint8)
    added = noise(flat, 2, 99).astype(float) - 128
    assert abs(added.mean()) < 0.15 and added.std() == pytest.approx(16, rel=0.02)
    assert abs(np.corrcoef(added.ravel()[1:], added.ravel()[:-1])[0, 1]) < 0.02
    assert (noise(flat, 2, 99) != noise(flat, 2, 100)).mean() > 0.9


def test_shift_moves_the_content_and_repeats_the_edge() -> None:
    image = textured(200, 100)
    assert (shift(image, 3, 0)[4:] == image[:-4]).all() and (shift(image, 3, 0)[:4] == image[0]).all()
    assert (shift(image, 3, 3)[:, :-2] == image[:, 2:]).all()


def test_contrast_keeps_the_mean() -> None:
    image = textured(90, 70)
    assert np.abs(contrast(image, 4, 0).mean((0, 1)) - image.mean((0, 1))).max() < 1


def test_gamma_does_not_hang_on_the_last_bit_of_a_power() -> None:
    for severity in range(1, 6):
        for brighter in (True, False):
            power = (1.25, 1.5, 2.0, 2.5, 3.3)[severity - 1]
            exact = 255 * (np.arange(256) / 255) ** (1 / power if brighter else power)
            assert np.abs(exact % 1 - 0.5).min() > 1e-9
            assert np.abs(gamma_table(severity, brighter) - exact).max() <= 0.5


def test_the_player_gets_exactly_the_disturbed_pixels() -> None:
    buffer = io.BytesIO()
    PIL.Image.fromarray(textured(40, 50)).save(buffer, "PNG")
    image = BytesImage(buffer.getvalue())
    made = disturbed(image, "jpeg", 4, 7)
    decoded = np.array(PIL.Image.open(io.BytesIO(made.read())))
    assert (decoded == change(image, "jpeg", 4, 7)).all() and (np.array(as_rgb(made)) == decoded).all()
    assert made.digest == disturbed(image, "jpeg", 4, 7).digest
    assert len({disturbed(image, *one).digest for one in (("jpeg", 4, 8), ("jpeg", 5, 7), ("blur", 4, 7))}) == 3


@pytest.mark.parametrize(("ours", "theirs"), [("jpeg", "jpeg_compression"), ("contrast", "contrast")])
def test_beside_imagecorruptions(ours: str, theirs: str) -> None:
    """The library of ImageNet-C's corruptions, at the same severities: as far from the original, in the same order."""
    library = pytest.importorskip("imagecorruptions", exc_type=ImportError)
    image = textured(240, 320)
    for severity in (1, 3, 5):
        made = OPERATIONS.get(ours)(image, severity, 1)
        reference = library.corrupt(image, severity=severity, corruption_name=theirs)
        if ours == "jpeg":
            assert distance(made, reference) < 0.15 * distance(image, reference) + 0.5
        else:
            lost = [np.corrcoef(one[:, :, 2].ravel(), image[:, :, 2].ravel())[0, 1] for one in (made, reference)]
            assert min(lost) > 0.99


def test_beside_albumentations() -> None:
    """What the library does with the same amounts: the same pixels, but for rounding."""
    library = pytest.importorskip("albumentations", exc_type=ImportError)
    image = textured(240, 320)

    def theirs(name: str, **settings: object) -> Pixels:
        made: Pixels = getattr(library, name)(p=1.0, **settings)(image=image)["image"]
        return made

    assert (OPERATIONS.get("mirror")(image, 1, 0) == theirs("HorizontalFlip")).all()
    cut = OPERATIONS.get("crop")(image, 5, 0)
    assert (cut == theirs("CenterCrop", height=cut.shape[0], width=cut.shape[1])).all()
    grey = theirs("ToGray", num_output_channels=3).astype(int)
    assert np.abs(OPERATIONS.get("grey")(image, 5, 0).astype(int) - grey).max() <= 1
    darker = theirs("RandomGamma", gamma_limit=(200, 200)).astype(int)
    assert np.abs(OPERATIONS.get("gamma")(image, 3, 0).astype(int) - darker).max() <= 1
    step = 50 / 255
    brighter = theirs("RandomBrightnessContrast", brightness_limit=(step, step), contrast_limit=(0, 0)).astype(int)
    assert np.abs(OPERATIONS.get("brightness")(image, 2, 1).astype(int) - brighter).max() <= 1
    for quality in (25, 10):
        # It hands RGB to OpenCV, which takes it for BGR: red and blue change places in the colour transform.
        packed = theirs("ImageCompression", quality_range=(quality, quality))[:, :, ::-1]
        swapped = np.ascontiguousarray(image[:, :, ::-1])
        assert distance(jpeg_at(swapped, quality), packed) < 0.15 * distance(swapped, packed) + 0.5
