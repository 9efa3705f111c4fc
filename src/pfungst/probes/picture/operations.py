"""What is done to the pixels: one function an operation, five severities, integer arithmetic throughout.

Most follow ImageNet-C (Benchmarking Neural Network Robustness to Common Corruptions and Perturbations), written anew so
that the same seed gives the same pixels on every machine; amounts in pixels grow with the image.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import Example, LazyImage, Query
from pfungst.probes.picture import kernels
from pfungst.probes.picture.kernels import Pixels

VERSION = 2
"""Part of every digest: counted up when an operation makes other pixels."""
SEVERITIES = (1, 2, 3, 4, 5)
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1))
Band = Callable[[int, int, int], tuple[int, int]]
"""Height, width and severity to the rows and columns at the border that may get lost."""


@dataclass(frozen=True)
class Operation:
    """A change of pixels that no answer should depend on."""

    about: str
    """What it does, for tables."""
    change: Callable[[Pixels, int, int], Pixels] | None
    """Pixels (height, width, 3), severity 1 to 5 and a random number of 64 bits to new pixels. None: only a scene that
    is drawn anew can show it."""
    spoils: frozenset[str] = frozenset()
    """Topics that a question may not be about, see `topics`."""
    band: Band | None = None
    """What may get lost at the border; None: nothing."""
    version: Callable[[], str] = str
    """What the pixels depend on besides our own code."""
    graded: bool = True
    """Whether there is more and less of it; else it is done once, at the first severity."""
    proved: Callable[[Any, int, int], Query | str] | None = None
    """How it is done where the scene is known: a `redrawn.Stage`, severity and random number to the new query, or to
    the reason why there is none. There the program decides, not the words of the question. None: as everywhere."""

    def __call__(self, pixels: Pixels, severity: int, key: int) -> Pixels:
        assert self.change is not None, "only a scene can show it"
        return self.change(pixels, severity, key)


# --- what a question is about: an operation is refused where it could change the answer
#
# The question, its answers and its choices are read. The rules err on the side of refusing: a word that has several
# meanings counts ("right", "light"). They know English; a question in another script counts as being about everything.


DIRECTION, TEXT, CLOCK, COLOR, COUNT = "directions", "text", "clocks", "colour", "counting"
LIGHT, SHARPNESS, ANGLE, EDGE = "light or shade", "sharpness or quality", "angles", "the border of the image"

_WORDS = {
    DIRECTION: "left right above below under underneath beneath over top bottom behind front beside between upper "
    "lower leftmost rightmost north south east west up down upside next side sides direction directions facing "
    "faces face towards toward where position positioned located location opposite clockwise higher arrow pointing",
    TEXT: "text read reads reading say says said saying write writes written writing word words letter letters sign "
    "signs label labels labeled labelled logo brand brands spell spelled spelt title caption name named called license "
    "licence plate digit digits print printed inscription symbol character characters company website url address "
    "number numbers date year price headline banner screen display displayed formula equation "
    "chart graph table diagram axis legend map",
    CLOCK: "clock clocks watch watches time hour hours minute minutes o'clock dial gauge meter thermometer speedometer",
    COLOR: "color colors colour colours colored coloured colorful colourful hue hues shade shades tint red orange "
    "yellow green blue purple violet pink brown black white grey gray cyan magenta teal turquoise gold golden silver "
    "beige tan maroon navy blond blonde brunette ripe unripe rainbow",
    COUNT: "many count counts number numbers amount total fewer more most least less zero one two three four five six "
    "seven eight nine ten eleven twelve both several pair pairs couple single double alone only none",
    LIGHT: "light lights lighting lit bright brighter brightness dark darker darkness dim sun sunny sunlight shadow "
    "shadows shade shaded night day daytime nighttime evening morning dusk dawn sunset sunrise weather fog foggy mist "
    "misty haze hazy smoke smog cloud clouds cloudy overcast rain rainy raining snow snowing pale faded black white "
    "grey gray silver beige exposure exposed contrast shiny glossy",
    SHARPNESS: "blur blurry blurred blurriness focus focused sharp sharpness clear clarity noisy noise grain grainy "
    "quality resolution pixelated pixels compressed compression artifact artifacts jpeg smooth texture fuzzy",
    ANGLE: "angle angles angled tilt tilted tilting slanted slant level leaning lean upright straight horizontal "
    "vertical diagonal degree degrees slope sloped steep parallel perpendicular rotated rotation crooked horizon",
    EDGE: "edge edges border borders corner corners margin cropped cut frame framed outside partially partly visible "
    "center centre centered centred middle background foreground size width height resolution aspect",
}
TOPICS = frozenset(_WORDS)
_LISTED = {topic: frozenset(words.split()) for topic, words in _WORDS.items()}
_NUMBER = re.compile(r"\d")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def topics(example: Example) -> frozenset[str]:
    """What a question, its answers or its choices are about: a wrong choice must stay wrong."""
    answers = " ".join(dict.fromkeys((*example.answers, example.target or "", *example.choices)))
    return _topics(example.question, answers, example.answer_type)


@lru_cache(maxsize=4096)
def _topics(question: str, answers: str, answer_type: str) -> frozenset[str]:
    text = f"{question} {answers}".casefold().replace("\u2019", "'")
    if _foreign(text):
        return TOPICS
    words = set(_WORD.findall(text))
    found = {topic for topic, listed in _LISTED.items() if words & listed}
    if answer_type == "number" or _NUMBER.search(text):
        found.add(COUNT)
    return frozenset(found)


def _foreign(text: str) -> bool:
    """Whether there is a letter that is not Latin."""
    return not text.isascii() and any(
        letter.isalpha() and not unicodedata.name(letter, "").startswith("LATIN") for letter in text
    )


# --- images -----------------------------------------------------------------------------------------------------------


def made_later(named: Sequence[object], make: Callable[[], Pixels], size: tuple[int, int] | None = None) -> LazyImage:
    """An image that is made when somebody looks at it, named by what is done to which image."""
    return LazyImage(hashlib.sha256(json.dumps([VERSION, *named]).encode()).hexdigest(), make, size)


def _part(side: int, permille: int) -> int:
    """A share of a side in whole pixels, at least one, and never all."""
    return min(max(1, (side * permille + 500) // 1000), side - 1)


# --- where the content stands -----------------------------------------------------------------------------------------


_SHIFT = (5, 10, 20, 30, 50)  # permille of the side
_CROP = (10, 20, 30, 45, 60)
_PAD = (20, 50, 100, 200, 400)
_SCALE = (75, 50, 35, 25, 18)  # percent
_DEGREES = (1, 2, 3, 5, 8)


def shift(pixels: Pixels, severity: int, key: int) -> Pixels:
    height, width = pixels.shape[:2]
    down, right = SIDES[key % 4]
    down, right = down * _part(height, _SHIFT[severity - 1]), right * _part(width, _SHIFT[severity - 1])
    rows = np.clip(np.arange(height) - down, 0, height - 1)
    columns = np.clip(np.arange(width) - right, 0, width - 1)
    return np.ascontiguousarray(pixels[rows][:, columns])


def crop(pixels: Pixels, severity: int, key: int) -> Pixels:
    height, width = pixels.shape[:2]
    rows, columns = _crop_band(height, width, severity)
    return np.ascontiguousarray(pixels[rows : height - rows, columns : width - columns])


def pad(pixels: Pixels, severity: int, key: int) -> Pixels:
    height, width = pixels.shape[:2]
    rows, columns = (max(1, side * _PAD[severity - 1] // 2000) for side in (height, width))
    out = np.full((height + 2 * rows, width + 2 * columns, 3), 127, np.uint8)
    out[rows : rows + height, columns : columns + width] = pixels
    return out


def rescale(pixels: Pixels, severity: int, key: int) -> Pixels:
    height, width = pixels.shape[:2]
    small = np.empty((*(max(1, side * _SCALE[severity - 1] // 100) for side in (height, width)), 3), np.uint8)
    out = np.empty_like(pixels)
    kernels.shrink(pixels, small)
    kernels.enlarge(small, out)
    return out


def rotate(pixels: Pixels, severity: int, key: int) -> Pixels:
    angle = math.radians(_DEGREES[severity - 1]) * (1 if key % 2 else -1)
    out = np.empty_like(pixels)
    kernels.turn(pixels, round(65536 * math.cos(angle)), round(65536 * math.sin(angle)), out)
    return out


def _shift_band(height: int, width: int, severity: int) -> tuple[int, int]:
    return _part(height, _SHIFT[severity - 1]), _part(width, _SHIFT[severity - 1])


def _crop_band(height: int, width: int, severity: int) -> tuple[int, int]:
    rows, columns = (min(_part(side, _CROP[severity - 1]), (side - 1) // 2) for side in (height, width))
    return rows, columns


def _turn_band(height: int, width: int, severity: int) -> tuple[int, int]:
    """How far the border moves: half the other side times the sine, and the corner's own way inwards."""
    angle = math.radians(_DEGREES[severity - 1])
    sin, bend = math.sin(angle), 1 - math.cos(angle)
    return math.ceil((width * sin + height * bend) / 2) + 1, math.ceil((height * sin + width * bend) / 2) + 1


# --- light and colour -------------------------------------------------------------------------------------------------


_GAMMA = (125, 150, 200, 250, 330)  # percent
_BRIGHTNESS = (25, 50, 75, 100, 125)  # grey levels
_CONTRAST = (75, 55, 40, 28, 18)  # percent that stays
_GREY = (20, 40, 60, 80, 100)  # percent that goes
_LEVELS = np.arange(256, dtype=np.int64)


def gamma(pixels: Pixels, severity: int, key: int) -> Pixels:
    found: Pixels = gamma_table(severity, bool(key % 2))[pixels]
    return found


@cache
def gamma_table(severity: int, brighter: bool) -> Pixels:
    power = _GAMMA[severity - 1] / 100
    return np.floor(255 * (_LEVELS / 255) ** (1 / power if brighter else power) + 0.5).astype(np.uint8)


def brightness(pixels: Pixels, severity: int, key: int) -> Pixels:
    step = _BRIGHTNESS[severity - 1] * (1 if key % 2 else -1)
    found: Pixels = np.clip(_LEVELS + step, 0, 255).astype(np.uint8)[pixels]
    return found


def contrast(pixels: Pixels, severity: int, key: int) -> Pixels:
    """Every channel is drawn towards its mean."""
    stays = _CONTRAST[severity - 1]
    count = pixels.shape[0] * pixels.shape[1]
    out = np.empty_like(pixels)
    for channel in range(3):
        mean = (2 * int(pixels[:, :, channel].sum(dtype=np.int64)) + count) // (2 * count)
        out[:, :, channel] = ((_LEVELS * stays + mean * (100 - stays) + 50) // 100).astype(np.uint8)[
            pixels[:, :, channel]
        ]
    return out


def grey(pixels: Pixels, severity: int, key: int) -> Pixels:
    out = np.empty_like(pixels)
    kernels.fade(pixels, _GREY[severity - 1], out)
    return out


# --- sharpness --------------------------------------------------------------------------------------------------------


_BLUR = (2, 4, 6, 9, 13)  # permille of the shorter side, radius of three means in a row
_SIGMA = (8, 16, 26, 38, 52)  # grey levels
_FOG = (70, 100, 130, 160, 190)  # mean density of 255
_JPEG = (25, 18, 15, 10, 7)  # qualities, as in ImageNet-C
_WEBP = (50, 30, 15, 7, 1)


def blur(pixels: Pixels, severity: int, key: int) -> Pixels:
    """Three means over a square, close to a Gaussian."""
    height, width = pixels.shape[:2]
    # In 64ths of a pixel: on a small image, too, every severity blurs more than the one before it.
    reach = max(16 * severity, (64 * min(height, width) * _BLUR[severity - 1] + 500) // 1000)
    out, other = pixels.copy(), np.empty_like(pixels)
    for _ in range(3):
        kernels.smooth(out, reach, other)
        kernels.smooth(other.reshape(1, height, width * 3), reach, out.reshape(1, height, width * 3))
    return out


def noise(pixels: Pixels, severity: int, key: int) -> Pixels:
    out = np.empty_like(pixels)
    kernels.add_noise(pixels.reshape(-1), np.uint64(key), _SIGMA[severity - 1], out.reshape(-1))
    return out


def fog(pixels: Pixels, severity: int, key: int) -> Pixels:
    """Clouds of three sizes over the image."""
    height, width = pixels.shape[:2]
    total = np.zeros((height, width, 1), np.uint16)
    layer = np.empty((height, width, 1), np.uint8)
    for octave, weight in ((3, 4), (6, 2), (12, 1)):
        lattice = np.empty(octave * octave, np.uint8)
        kernels.draw(np.uint64((key + octave) % 2**64), lattice)
        kernels.enlarge(lattice.reshape(octave, octave, 1), layer)
        total += layer * np.uint16(weight)
    mean = _FOG[severity - 1]
    # the sum of the weights is 7, so that the clouds lie between 0 and 7 * 255; a third of the density is cloud
    levels = (mean * 5 // 6 + np.arange(7 * 255 + 1) * mean // (3 * 7 * 255)).clip(0, 255).astype(np.uint8)
    out = np.empty_like(pixels)
    kernels.veil(pixels, levels[total], 235, out)
    return out


def jpeg(pixels: Pixels, severity: int, key: int) -> Pixels:
    """Baseline JPEG with 4:2:0 colour: what the format loses, computed here, since codecs differ in their rounding."""
    return jpeg_at(pixels, _JPEG[severity - 1])


def jpeg_at(pixels: Pixels, quality: int) -> Pixels:
    height, width = pixels.shape[:2]
    tall, wide = (-(-side // 16) * 16 for side in (height, width))
    luma, chroma = np.empty((tall, wide, 1), np.uint8), np.empty((tall, wide, 2), np.uint8)
    small = np.empty((tall // 2, wide // 2, 2), np.uint8)
    kernels.split_colors(pixels, luma, chroma)
    kernels.shrink(chroma, small)
    kernels.quantize(luma, _steps(_LUMA_STEPS, quality), _cosines())
    kernels.quantize(small, _steps(_CHROMA_STEPS, quality), _cosines())
    kernels.enlarge(small, chroma)
    out = np.empty_like(pixels)
    kernels.join_colors(luma, chroma, out)
    return out


# The tables of Annex K of ITU-T T.81.
_LUMA_STEPS = (
    (16, 11, 10, 16, 24, 40, 51, 61), (12, 12, 14, 19, 26, 58, 60, 55), (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62), (18, 22, 37, 56, 68, 109, 103, 77), (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101), (72, 92, 95, 98, 112, 100, 103, 99),
)  # fmt: skip
_CHROMA_STEPS = (
    (17, 18, 24, 47, 99, 99, 99, 99), (18, 21, 26, 66, 99, 99, 99, 99), (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99), *((99,) * 8,) * 4,
)  # fmt: skip


@cache
def _steps(table: tuple[tuple[int, ...], ...], quality: int) -> npt.NDArray[np.int64]:
    """The table at a quality of 1 to 100, scaled as the Independent JPEG Group does."""
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    return np.clip((np.array(table, np.int64) * scale + 50) // 100, 1, 255)


@cache
def _cosines() -> npt.NDArray[np.int64]:
    """The cosine transform of eight values in units of 1/8,192."""
    rows = [[math.cos((2 * i + 1) * u * math.pi / 16) / 2 for i in range(8)] for u in range(8)]
    rows[0] = [math.sqrt(0.125)] * 8
    return np.array([[round(8192 * value) for value in row] for row in rows], np.int64)


def webp(pixels: Pixels, severity: int, key: int) -> Pixels:
    """By Pillow's codec, which is why its version is a part of the digest."""
    import PIL.Image

    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, "WEBP", quality=_WEBP[severity - 1], method=0)
    return np.array(PIL.Image.open(buffer).convert("RGB"))


def _webp_version() -> str:
    import PIL.features

    return str(PIL.features.version("webp"))


# --- by name ----------------------------------------------------------------------------------------------------------


_SHAPES = frozenset({SHARPNESS, TEXT})
SHIFT = Operation("shifted by 0.5 to 5% of the side", shift, frozenset({COUNT, EDGE}), _shift_band)
CROP = Operation("1 to 6% cut off at every border", crop, frozenset({COUNT, EDGE}), _crop_band)
PAD = Operation("a grey margin of 1 to 20% at every border", pad, frozenset({EDGE}))
RESCALE = Operation("shrunk to 75 to 18% and enlarged again", rescale, _SHAPES)
ROTATE = Operation(
    "rotated by 1 to 8 degrees", rotate, frozenset({DIRECTION, TEXT, CLOCK, ANGLE, COUNT, EDGE}), _turn_band
)
GAMMA = Operation("gamma of 1.25 to 3.3, or its inverse", gamma, frozenset({LIGHT}))
BRIGHTNESS = Operation("10 to 50% brighter or darker", brightness, frozenset({LIGHT}))
CONTRAST = Operation("75 to 18% of the contrast", contrast, frozenset({LIGHT}))
GREY = Operation("20 to 100% of the colour taken out", grey, frozenset({COLOR, LIGHT}))
BLUR = Operation("blurred over 0.4 to 2.6% of the side", blur, _SHAPES)
NOISE = Operation("noise of 8 to 52 grey levels", noise, _SHAPES)
FOG = Operation("fog of 27 to 75%", fog, frozenset({LIGHT, *_SHAPES}))
JPEG = Operation("JPEG of quality 25 to 7", jpeg, _SHAPES)
WEBP = Operation("WebP of quality 50 to 1", webp, _SHAPES, version=_webp_version)
