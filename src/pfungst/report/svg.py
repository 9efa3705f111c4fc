"""What every drawing of ours is made of: SVG without script, font or file beside it.

Colours are classes, so that one drawing fits a light and a dark page; `alone` gives a drawing the colours it needs as a
file of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from pfungst.core.types import FRACTIONS

_LIGHT = (
    "text{font:13px sans-serif;fill:#525e6d}.strong{fill:#17202b;font-weight:600}.value{fill:#17202b;font-size:12px}"
    ".grid{stroke:#d5dbe3}.axis{stroke:#525e6d}.whisker{stroke:#17202b;fill:none;stroke-width:1.5}.band{fill:#dfe5ec}"
    ".join{stroke:#525e6d;stroke-width:2;fill:none}.clean{fill:#fff;stroke:#17202b;stroke-width:2}"
)
COLOURS = ("#1f6fb4", "#c2402a", "#2b7f50", "#8254ab", "#9a6400", "#0f7781", "#6b6257", "#ab3574")
"""Of the series, on white; style.css has the same ones and their twins for dark pages."""
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
