"""The figures of findings as SVG without script, font or file beside it: bars and lines with their intervals.

Colours are classes, so that one drawing fits a light and a dark page; `alone` gives a drawing the colours it needs as a
file of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from pfungst.core import Figure
from pfungst.core.files import jsonable
from pfungst.core.types import FRACTIONS, POINTS
from pfungst.report.card import SUMMARY_TITLE, Row, format_finding, number

_LIGHT = (
    "text{font:13px sans-serif;fill:#525e6d}.strong{fill:#17202b;font-weight:600}.value{fill:#17202b;font-size:12px}"
    ".grid{stroke:#d5dbe3}.axis{stroke:#525e6d}.whisker{stroke:#17202b;fill:none;stroke-width:1.5}.band{fill:#dfe5ec}"
    ".join{stroke:#525e6d;stroke-width:2;fill:none}.clean{fill:#fff;stroke:#17202b;stroke-width:2}"
)
COLOURS = ("#1f6fb4", "#c2402a", "#2b7f50", "#8254ab", "#9a6400", "#0f7781", "#6b6257", "#ab3574", "#5f6b00")
"""Of the series, on white, before one comes again; style.css has the same ones and their twins for dark pages."""
_SERIES = "".join(f".f{n}{{fill:{c}}}.l{n}{{fill:none;stroke:{c};stroke-width:2.2}}" for n, c in enumerate(COLOURS))
LETTER = 7.0
"""Width of an average letter, pixels."""


def svg(width: float, height: float, title: str, parts: Iterable[str], kind: str = "") -> str:
    """A drawing for a page. `kind`: further classes of it."""
    name = f"plot {kind}".strip()
    return (
        f'<svg class="{name}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(title, quote=True)}" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def alone(drawing: str) -> str:
    """The drawing as a file of its own: with its colours, on white."""
    head, _, rest = drawing.partition(">")
    return f'{head}><style>{_LIGHT}{_SERIES}</style><rect width="100%" height="100%" fill="#fff"/>{rest}'


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def rect(x: float, y: float, width: float, height: float, kind: str, hint: str = "") -> str:
    inside = f"<title>{escape(hint)}</title>" if hint else ""
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{max(height, 0.5):.1f}">'
        f"{inside}</rect>"
    )


def dot(x: float, y: float, radius: float, kind: str, hint: str = "") -> str:
    inside = f"<title>{escape(hint)}</title>" if hint else ""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}">{inside}</circle>'


def whisker(low: tuple[float, float], high: tuple[float, float]) -> str:
    """An interval from one point to another, upright or lying."""
    (x1, y1), (x2, y2) = low, high
    if x1 == x2:
        caps = f"M{x1 - 4:.1f} {y1:.1f}h8M{x1 - 4:.1f} {y2:.1f}h8"
    else:
        caps = f"M{x1:.1f} {y1 - 4:.1f}v8M{x2:.1f} {y1 - 4:.1f}v8"
    return f'<path class="whisker" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}{caps}"/>'


def short(words: str, room: float) -> str:
    """The words, cut where they are wider than so many pixels."""
    fits = max(3, int(room / LETTER))
    return words if len(words) <= fits else words[: fits - 1] + "…"


def ticks(low: float, high: float, count: int = 5) -> tuple[float, float, float]:
    """Round limits around the values, zero included, and the distance of the grid lines."""
    low, high = min(low, 0.0), max(high, 0.0)
    if high - low < 1e-12:
        high = 1.0
    raw = (high - low) / count
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw * (1 - 1e-9))
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step


def steps(low: float, high: float, step: float) -> list[float]:
    """The places of the grid lines."""
    values = [low + index * step for index in range(round((high - low) / step) + 1)]
    return [0.0 if abs(value) < step / 1e6 else value for value in values]


def tick(value: float, step: float, unit: str) -> str:
    """A number on an axis: with as many places as its neighbours need."""
    if unit in FRACTIONS:
        places = 0 if step >= 0.0099 else 1 if step >= 0.00099 else 2
        return f"{100 * value:.{places}f}{'%' if unit == '%' else ''}"
    return f"{value:.4g}"


class Scale:
    """Numbers to pixels."""

    def __init__(self, limits: Sequence[float], pixels: Sequence[float]) -> None:
        self.low, self.high = limits[0], limits[1]
        self.first, self.last = pixels[0], pixels[1]

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.first + share * (self.last - self.first)


WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, BOTTOM = 62, 14, 46
MOST_LABELLED = 10
"""Bars that carry their value in figures."""
EMPTY = '<p class="note">Nothing to draw: no known values.</p>'


def draw(figure: Mapping[str, Any]) -> str:
    """SVG of a figure as it stands in findings.json (kind `bar` or `line`), for a page with our style."""
    series = [one for one in figure["series"] if one["x"]]
    values = [
        value
        for one in series
        for name in ("y", "low", "high")
        for value in one.get(name) or ()
        if value is not None and math.isfinite(value)
    ]
    if not values:
        return EMPTY
    labels = list(dict.fromkeys(_label(x) for one in series for x in one["x"]))
    limits = ticks(min(values), max(values))
    slot = (WIDTH - LEFT - RIGHT) / len(labels)
    if figure["kind"] == "bar" and max(map(len, labels)) * LETTER > slot - 4:
        return _lying(figure, series, labels, limits)
    return _upright(figure, series, labels, limits)


def draw_alone(figure: Figure) -> str:
    """SVG of a figure as a file of its own."""
    return alone(draw(jsonable(figure)))


def figure_rows(figure: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """The numbers that a figure draws, as the columns and rows of a table."""
    columns = ["series", _x_label(figure) or "x", figure.get("y_label") or "y", "low", "high"]
    rows = [[one["name"], *point] for one in figure["series"] for point in _points(one)]
    return columns, rows


def _upright(
    figure: Mapping[str, Any], series: Sequence[Mapping[str, Any]], labels: Sequence[str], limits: Sequence[float]
) -> str:
    low, high, step = limits
    unit = figure.get("unit", "%")
    legend, above = _legend(series, LEFT)
    top = above + (26 if figure.get("y_label") else 14)
    bottom = HEIGHT + above - BOTTOM
    scale, slot = Scale((low, high), (bottom, top)), (WIDTH - LEFT - RIGHT) / len(labels)
    parts = [*legend]
    for value in steps(low, high, step):
        y = scale(value)
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, "grid" if value else "axis"))
        parts.append(text(LEFT - 7, y + 4, tick(value, step, unit), "end"))
    every = max(1, math.ceil(len(labels) * LETTER * (1 + max(map(len, labels))) / (WIDTH - LEFT - RIGHT)))
    if len(labels) <= 8:
        every = 1
    for at, label in enumerate(labels):
        if at % every == 0:
            x = LEFT + (at + 0.5) * slot
            parts.append(text(x, bottom + 19, short(label, slot * every - 4), "middle"))
    places = {label: LEFT + (at + 0.5) * slot for at, label in enumerate(labels)}
    painter = _bars if figure["kind"] == "bar" else _lines
    parts += painter(series, places, slot, scale, unit)
    if figure.get("y_label"):
        parts.append(text(4, top - 13, figure["y_label"], kind="axis-name"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, bottom + 39, _x_label(figure), "middle"))
    return svg(WIDTH, HEIGHT + above, figure["title"], parts)


def _bars(
    series: Sequence[Mapping[str, Any]], places: Mapping[str, float], slot: float, scale: Scale, unit: str
) -> list[str]:
    width = min(76.0, slot * 0.8 / len(series))
    told = len(places) * len(series) <= MOST_LABELLED
    parts = []
    for at, one in enumerate(series):
        for x, y, low, high in _points(one):
            if y is None:
                continue
            left = places[_label(x)] + (at - len(series) / 2) * width
            upper, lower = sorted((scale(y), scale(0)))
            hint = _hint(one["name"], x, y, low, high, unit)
            parts.append(rect(left, upper, width - min(3.0, width / 4), lower - upper, f"f{at % len(COLOURS)}", hint))
            middle = left + width / 2 - 1.5
            if low is not None and high is not None:
                parts.append(whisker((middle, scale(low)), (middle, scale(high))))
            if told:
                # Beside the whisker, inside the bar's width; above where there is none.
                ends = scale(max(y, high if high is not None else y, 0.0))
                parts.append(text(middle, ends - 6, _value(y, unit), "middle", "value"))
    return parts


def _lines(
    series: Sequence[Mapping[str, Any]], places: Mapping[str, float], slot: float, scale: Scale, unit: str
) -> list[str]:
    parts = []
    for at, one in enumerate(series):
        shift = (at - (len(series) - 1) / 2) * min(4.0, slot / 12)
        points = [(places[_label(x)] + shift, x, y, low, high) for x, y, low, high in _points(one) if y is not None]
        path = " ".join(f"{x:.1f},{scale(y):.1f}" for x, _, y, _, _ in points)
        parts.append(f'<polyline class="l{at % len(COLOURS)}" points="{path}"/>')
        for place, x, y, low, high in points:
            if low is not None and high is not None:
                parts.append(whisker((place, scale(low)), (place, scale(high))))
            hint = _hint(one["name"], x, y, low, high, unit)
            parts.append(dot(place, scale(y), 4, f"f{at % len(COLOURS)}", hint))
    return parts


def _lying(
    figure: Mapping[str, Any], series: Sequence[Mapping[str, Any]], labels: Sequence[str], limits: Sequence[float]
) -> str:
    """Bars from left to right, where their names are too long to stand side by side."""
    low, high, step = limits
    unit = figure.get("unit", "%")
    left = min(250.0, max(map(len, labels)) * LETTER + 14)
    legend, above = _legend(series, left)
    bar = 19.0 if len(series) == 1 else 14.0
    row = bar * len(series) + 9
    top, right = above + 10.0, WIDTH - 62.0
    bottom = top + row * len(labels)
    scale = Scale((low, high), (left, right))
    parts = [*legend]
    for value in steps(low, high, step):
        parts.append(line(scale(value), top - 4, scale(value), bottom, "grid" if value else "axis"))
        parts.append(text(scale(value), bottom + 17, tick(value, step, unit), "middle"))
    for at, label in enumerate(labels):
        parts.append(text(left - 8, top + (at + 0.5) * row, short(label, left - 10), "end"))
    rows = {label: top + at * row for at, label in enumerate(labels)}
    for at, one in enumerate(series):
        for x, y, least, most in _points(one):
            if y is None:
                continue
            upper = rows[_label(x)] + at * bar
            start, end = sorted((scale(0), scale(y)))
            hint = _hint(one["name"], x, y, least, most, unit)
            parts.append(rect(start, upper, end - start, bar - 2, f"f{at % len(COLOURS)}", hint))
            middle = upper + bar / 2 - 1
            if least is not None and most is not None:
                parts.append(whisker((scale(least), middle), (scale(most), middle)))
                end = max(end, scale(most))
            parts.append(text(end + 7, middle + 4, _value(y, unit), kind="value"))
    parts.append(text((left + right) / 2, bottom + 37, figure.get("y_label", ""), "middle"))
    parts.append(text(left - 8, bottom + 37, short(_x_label(figure), left - 10), "end"))
    return svg(WIDTH, bottom + 46, figure["title"], parts)


def _x_label(figure: Mapping[str, Any]) -> str:
    """What stands side by side; bars without a name for it are conditions."""
    return figure.get("x_label") or ("condition" if figure["kind"] == "bar" else "")


def _label(x: Any) -> str:
    """A place on the x axis: 10 and not 10.0."""
    return f"{x:g}" if isinstance(x, float) else str(x)


def _value(y: float, unit: str) -> str:
    """What stands at the end of a bar; the axis names the points."""
    return number(y, unit).removesuffix(f" {POINTS}")


def _hint(series: str, x: Any, y: float, low: float | None, high: float | None, unit: str) -> str:
    """What a point says when it is pointed at."""
    return f"{series}, {_label(x)}: {format_finding({'value': y, 'low': low, 'high': high, 'unit': unit})}"


def _points(one: Mapping[str, Any]) -> list[tuple[Any, float | None, float | None, float | None]]:
    count = len(one["x"])
    low = one.get("low") or [None] * count
    high = one.get("high") or [None] * count
    return list(zip(one["x"], one["y"], low, high, strict=True))


def _legend(series: Sequence[Mapping[str, Any]], left: float) -> tuple[list[str], float]:
    """The names of several series, in lines above the plot, and how high they stand."""
    if len(series) < 2:
        return [], 0.0
    parts, x, y = [], left, 14.0
    for at, one in enumerate(series):
        width = 32 + LETTER * len(one["name"])
        if x + width > WIDTH and x > left:
            x, y = left, y + 20
        parts.append(rect(x, y - 10, 12, 12, f"f{at % len(COLOURS)}"))
        parts.append(text(x + 17, y, short(one["name"], WIDTH - x - 20)))
        x += width
    return parts, y + 10


# --- the summary: all probes in one figure ----------------------------------------------------------------------------


def draw_wide(rows: Sequence[Row]) -> str:
    """Two panels: accuracy from clean to disturbed, and the drop with its interval."""
    left = min(240.0, max(124.0, 8.6 * max(len(row.probe) for row in rows) + 12))
    middle, from_, to, width = 540.0, 604.0, 860.0, 1040.0
    high = 34.0
    places, bottom = _places(rows, 64.0, high)
    accuracy = Scale((0.0, 1.0), (left, middle))
    ends = [
        value for row in rows if row.drop for value in (row.drop.get("low"), row.drop.get("high"), row.drop["value"])
    ]
    low, most, step = ticks(*_limits(ends))
    drop = Scale((low, most), (from_, to))
    parts = [text(left, 18, "accuracy: ○ clean, ● disturbed, 95% interval", kind="strong"),
             text(from_, 18, "drop in points, 95% interval", kind="strong")]  # fmt: skip
    for value in steps(0.0, 1.0, 0.2):
        parts.append(line(accuracy(value), 34, accuracy(value), bottom, "grid" if value else "axis"))
        parts.append(text(accuracy(value), bottom + 18, tick(value, 0.2, "%"), "middle"))
    for value in steps(low, most, step):
        parts.append(line(drop(value), 34, drop(value), bottom, "grid" if value else "axis"))
        parts.append(text(drop(value), bottom + 18, tick(value, step, POINTS), "middle"))
    parts += _headings(rows, places, 0.0)
    for row, y in zip(rows, places, strict=True):
        parts.append(text(0, y + 4, short(row.probe, 0.82 * (left - 12)), kind="strong"))  # bold is wider
        parts += _dumbbell(row, y, accuracy)
        parts += _drop(row, y, drop)
        if row.drop is not None:
            parts.append(text(width, y + 4, _drop_text(row.drop), "end", "value"))
    return svg(width, bottom + 28, _spoken(rows), parts, "wide")


def draw_narrow(rows: Sequence[Row]) -> str:
    """The same for a phone: one panel, the drop in figures."""
    width, high = 380.0, 54.0
    places, bottom = _places(rows, 58.0, high)
    accuracy = Scale((0.0, 1.0), (8.0, width - 14))
    parts = [text(0, 16, "accuracy: ○ clean, ● disturbed", kind="strong")]
    for value in steps(0.0, 1.0, 0.25):
        parts.append(line(accuracy(value), 28, accuracy(value), bottom, "grid" if value else "axis"))
        anchor = "start" if value == 0 else "end" if value == 1 else "middle"
        parts.append(text(accuracy(value) + (-8 if value == 0 else 14 if value == 1 else 0), bottom + 18,
                          tick(value, 0.25, "%"), anchor))  # fmt: skip
    parts += _headings(rows, places, 22.0, 14.0)
    for row, y in zip(rows, places, strict=True):
        parts.append(text(14, y - 14, short(row.probe, 170), kind="strong"))
        if row.drop is not None:
            parts.append(text(width, y - 14, f"drop {_drop_text(row.drop)}", "end", "value"))
        parts += _dumbbell(row, y + 4, accuracy)
    return svg(width, bottom + 26, _spoken(rows), parts, "narrow")


def _drop_text(drop: Mapping[str, Any]) -> str:
    """A drop where there is little room."""
    return f"0 of {drop['n']:,} scores changed" if drop.get("changed") == 0 else format_finding(drop)


def _places(rows: Sequence[Row], top: float, high: float) -> tuple[list[float], float]:
    """The height of every row; those that take evidence away stand apart, under a heading."""
    places, y = [], top
    for at, row in enumerate(rows):
        y += 26 if row.removes and at and not rows[at - 1].removes else 0
        places.append(y)
        y += high
    return places, y - high / 2 + 4


def _headings(rows: Sequence[Row], places: Sequence[float], lift: float, left: float = 0.0) -> list[str]:
    for at, row in enumerate(rows):
        if row.removes and at and not rows[at - 1].removes:
            return [text(left, places[at] - 22 - lift, "without evidence")]
    return []


def _dumbbell(row: Row, y: float, scale: Scale) -> list[str]:
    clean, parts = scale(row.clean["value"]), []
    if row.disturbed is None or row.disturbed["value"] is None:
        return [*_interval(row.clean, y, scale), dot(clean, y, 7, "clean", f"clean {format_finding(row.clean)}")]
    place = scale(row.disturbed["value"])
    parts.append(line(clean, y, place, y, "join"))
    parts += _interval(row.disturbed, y, scale)
    parts.append(dot(clean, y, 7, "clean", f"clean {format_finding(row.clean)}"))
    parts.append(dot(place, y, 5, _colour(row), f"disturbed {format_finding(row.disturbed)}"))
    return parts


def _drop(row: Row, y: float, scale: Scale) -> list[str]:
    if row.drop is None or row.drop["value"] is None:
        return []
    return [
        *_interval(row.drop, y, scale),
        dot(scale(row.drop["value"]), y, 5, _colour(row), f"drop {format_finding(row.drop)}"),
    ]


def _interval(one: Mapping[str, Any], y: float, scale: Scale) -> list[str]:
    if one.get("low") is None or one.get("high") is None:
        return []
    return [whisker((scale(one["low"]), y), (scale(one["high"]), y))]


def _colour(row: Row) -> str:
    """Red where a disturbance costs accuracy beyond chance, grey for the control, blue otherwise."""
    return "f6" if row.is_control else "f1" if row.lost else "f0"


def _limits(values: Sequence[float | None]) -> tuple[float, float]:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return (min(known), max(known)) if known else (0.0, 1.0)


def _spoken(rows: Sequence[Row]) -> str:
    """What the figure shows, for those who cannot see it."""
    told = [
        f"{row.probe}: {number(row.clean['value'])} clean"
        + ("" if row.disturbed is None else f", {number(row.disturbed['value'])} disturbed")
        for row in rows
    ]
    return f"{SUMMARY_TITLE}. {'; '.join(told)}."
