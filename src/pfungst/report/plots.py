"""Plots as inline SVG: no script, no font, no file beside the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from pfungst.core import Figure
from pfungst.core.files import jsonable

WIDTH, HEIGHT = 640, 280
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 16, 64
COLOURS = ("#2f6db5", "#d1495b", "#3a8f5c", "#8a63b0", "#c98a1b", "#4aa3a8", "#7a6a5b", "#b0487f")


def draw(figure: Mapping[str, Any]) -> str:
    """SVG of a figure as it stands in findings.json (kind `bar` or `line`)."""
    series = [one for one in figure["series"] if one["x"]]
    values = [
        value
        for one in series
        for name in ("y", "low", "high")
        for value in one.get(name) or ()
        if value is not None and math.isfinite(value)
    ]
    if not values:
        return '<p class="note">Nothing to draw: no known values.</p>'
    low, high, step = _range(min(values), max(values))
    scale = _Scale(low, high)
    labels = list(dict.fromkeys(_label(x) for one in series for x in one["x"]))
    parts = [*_grid(scale, low, high, step), *_x_labels(labels)]
    painter = _bars if figure["kind"] == "bar" else _lines
    parts += painter(series, labels, scale)
    parts += _legend(series) if len(series) > 1 else []
    parts.append(_text(WIDTH / 2, HEIGHT - 4, figure.get("x_label", ""), "middle"))
    title = escape(figure["title"], quote=True)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{title}</title>{"".join(parts)}</svg>'
    )


_STYLE = (
    "<style>text{font:12px sans-serif;fill:#5d6878}.grid{stroke:#d9dee6}.axis{stroke:#5d6878}"
    ".whisker{stroke:#1d2430;fill:none;stroke-width:1.5}</style>"
)


def draw_alone(figure: Figure) -> str:
    """SVG of a figure as a file of its own: with its style, a white ground, and what its height means."""
    head, _, rest = draw(jsonable(figure)).partition(">")
    label = _text(62, 11, figure.y_label, "start")
    return f'{head}>{_STYLE}<rect width="100%" height="100%" fill="#fff"/>{label}{rest}'


class _Scale:
    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _range(low: float, high: float) -> tuple[float, float, float]:
    """Round limits around the values, zero included, and the distance of the grid lines."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        high = 1.0
    raw = (high - low) / 5
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw)
    return math.floor(low / step) * step, math.ceil(high / step) * step, step


def _grid(scale: _Scale, low: float, high: float, step: float) -> list[str]:
    parts = []
    for index in range(round((high - low) / step) + 1):
        value = low + index * step
        y = scale.y(value)
        kind = "axis" if abs(value) < step / 1e6 else "grid"
        parts.append(f'<line class="{kind}" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{value:.4g}", "end"))
    return parts


def _label(x: Any) -> str:
    """A place on the x axis: 10 and not 10.0."""
    return f"{x:g}" if isinstance(x, float) else str(x)


def _slot(count: int) -> float:
    return (WIDTH - LEFT - RIGHT) / count


def _x_labels(labels: Sequence[str]) -> list[str]:
    slot = _slot(len(labels))
    every = max(1, math.ceil(len(labels) / 24))
    parts = []
    for index, label in enumerate(labels):
        if index % every:
            continue
        x = LEFT + (index + 0.5) * slot
        fits = max(3, int(slot * every / 6.5))
        parts.append(_text(x, HEIGHT - BOTTOM + 18, label if len(label) <= fits else label[: fits - 1] + "…", "middle"))
    return parts


def _bars(series: Sequence[Mapping[str, Any]], labels: Sequence[str], scale: _Scale) -> list[str]:
    slot = _slot(len(labels))
    width = min(70.0, slot * 0.8 / len(series))
    parts = []
    for number, one in enumerate(series):
        for x, y, low, high in _points(one):
            if y is None:
                continue
            left = LEFT + (labels.index(_label(x)) + 0.5) * slot + (number - len(series) / 2) * width
            top, bottom = sorted((scale.y(y), scale.y(0)))
            parts.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{width - 2:.1f}" height="{max(bottom - top, 0.5):.1f}" '
                f'fill="{COLOURS[number % len(COLOURS)]}"><title>{escape(_label(x))}: {y:.4g}</title></rect>'
            )
            parts.append(_whisker(left + width / 2 - 1, low, high, scale))
    return parts


def _lines(series: Sequence[Mapping[str, Any]], labels: Sequence[str], scale: _Scale) -> list[str]:
    slot = _slot(len(labels))
    parts = []
    for number, one in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        shift = (number - (len(series) - 1) / 2) * min(4.0, slot / 12)
        places = []
        for x, y, low, high in _points(one):
            if y is None:
                continue
            place = LEFT + (labels.index(_label(x)) + 0.5) * slot + shift
            places.append((place, scale.y(y)))
            parts.append(_whisker(place, low, high, scale))
            parts.append(
                f'<circle cx="{place:.1f}" cy="{scale.y(y):.1f}" r="3.5" fill="{colour}">'
                f"<title>{escape(_label(x))}: {y:.4g}</title></circle>"
            )
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return parts


def _points(one: Mapping[str, Any]) -> list[tuple[Any, float | None, float | None, float | None]]:
    count = len(one["x"])
    low = one.get("low") or [None] * count
    high = one.get("high") or [None] * count
    return list(zip(one["x"], one["y"], low, high, strict=True))


def _whisker(x: float, low: float | None, high: float | None, scale: _Scale) -> str:
    if low is None or high is None:
        return ""
    top, bottom = scale.y(high), scale.y(low)
    return (
        f'<path class="whisker" d="M{x:.1f} {top:.1f}V{bottom:.1f}M{x - 4:.1f} {top:.1f}h8'
        f'M{x - 4:.1f} {bottom:.1f}h8"/>'
    )


def _legend(series: Sequence[Mapping[str, Any]]) -> list[str]:
    parts, x, y = [], float(LEFT), HEIGHT - 24
    for number, one in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<rect x="{x:.0f}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(x + 14, y, one["name"], "start"))
        x += 30 + 6.5 * len(one["name"])
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
