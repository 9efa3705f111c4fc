"""Colours that can be read: WCAG AA, in light and dark, of every pair that meets on our pages."""

import re
from itertools import product

import pytest

from pfungst.report.page import static
from pfungst.report.plots import COLOURS

PAIRS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", static("style.css")
    )
}
GROUNDS = ("paper", "panel", "raised")


def luminance(colour: str) -> float:
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_wcag_does():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(mode):
    for name, ground in product(("ink", "soft", "accent", "good", "bad"), GROUNDS):
        assert contrast(PAIRS[name][mode], PAIRS[ground][mode]) >= 4.5, (name, ground)
    for name in ("ink", "soft"):
        assert contrast(PAIRS[name][mode], PAIRS["mark"][mode]) >= 4.5, name
    assert contrast(PAIRS["accent-ink"][mode], PAIRS["accent"][mode]) >= 4.5


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_the_series_of_a_figure_stand_out_from_its_ground(mode):
    for number, ground in product(range(len(COLOURS)), GROUNDS):
        assert contrast(PAIRS[f"s{number}"][mode], PAIRS[ground][mode]) >= 3, (number, ground)


def test_a_figure_that_was_saved_has_the_colours_of_the_light_page():
    assert [pair[0] for name, pair in PAIRS.items() if re.fullmatch(r"s\d", name)] == list(COLOURS)
