"""The plan view of a scene, with an arrow for each object that was moved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from pfungst.world.constants import BOUND, COLOR_RGB, RADIUS

SIDE = 300.0
"""Of the drawing, pixels."""
LEAST = 0.02
"""Moves shorter than this are none."""

Place = tuple[float, float]


def draw_plan(objects: Sequence[Mapping[str, Any]], before: Sequence[Place], after: Sequence[Place]) -> str:
    """SVG of the scene from above. The camera looks from below right, as in the paper's Figure 6.

    objects: of a published scene; before, after: x, y of each. Where an object stood is drawn faintly.
    """
    reach = max(BOUND + 1.0, *(abs(value) + 1.0 for place in (*before, *after) for value in place))
    scale = SIDE / (2 * reach)

    def at(place: Place) -> Place:
        return (reach + place[0]) * scale, (reach - place[1]) * scale

    edge, wide = (reach - BOUND) * scale, 2 * BOUND * scale
    parts = [
        f'<rect x="0" y="0" width="{SIDE:.0f}" height="{SIDE:.0f}" fill="#f3f3f1"/>',
        f'<rect x="{edge:.1f}" y="{edge:.1f}" width="{wide:.1f}" height="{wide:.1f}" fill="none" stroke="#c4c4c0"/>',
        f'<text x="{SIDE - 6:.0f}" y="{SIDE - 8:.0f}" text-anchor="end" font-size="11" fill="#555">camera ↖</text>',
    ]
    moved = [at for at in range(len(objects)) if is_moved(before[at], after[at])]
    parts += [_thing(objects[one], at(before[one]), scale, 0.28) for one in moved]
    parts += [_thing(thing, at(place), scale, 1.0) for thing, place in zip(objects, after, strict=True)]
    for one in moved:
        parts.append(_arrow(at(before[one]), at(after[one])))
    told = f"Plan view: {len(moved)} of {len(objects)} objects moved"
    return (
        f'<svg class="plan" viewBox="0 0 {SIDE:.0f} {SIDE:.0f}" role="img" aria-label="{told}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def is_moved(before: Place, after: Place) -> bool:
    return max(abs(a - b) for a, b in zip(before, after, strict=True)) > LEAST


def _arrow(start: Place, end: Place) -> str:
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1)
    x, y = (x2 - x1) / length, (y2 - y1) / length
    tip = " ".join(f"{x2 - 10 * x + side * 4.5 * y:.1f},{y2 - 10 * y - side * 4.5 * x:.1f}" for side in (1, -1))
    shaft = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2 - 6 * x:.1f}" y2="{y2 - 6 * y:.1f}"'
    return (
        f'<line {shaft} stroke="#fff" stroke-width="4.5" stroke-opacity=".8"/>'
        f'<line class="arrow" {shaft} stroke="#111" stroke-width="1.8"/>'
        f'<polygon points="{x2:.1f},{y2:.1f} {tip}" fill="#111" stroke="#fff" stroke-width=".8"/>'
    )


def _thing(thing: Mapping[str, Any], place: Place, scale: float, opacity: float) -> str:
    (x, y), radius = place, RADIUS[thing["size"]] * scale
    red, green, blue = COLOR_RGB[thing["color"]]
    edge = "#141414" if thing["material"] == "metal" else "#969696"
    paint = f'fill="rgb({red},{green},{blue})" stroke="{edge}" stroke-width="2" opacity="{opacity}"'
    words = escape(" ".join(str(thing[name]) for name in ("size", "color", "material", "shape")))
    hint = f"<title>{words}</title>"
    if thing["shape"] == "cube":
        side = 2 * radius
        box = f'x="{x - radius:.1f}" y="{y - radius:.1f}" width="{side:.1f}" height="{side:.1f}"'
        return f"<rect {box} {paint}>{hint}</rect>"
    disc = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {paint}>{hint}</circle>'
    if thing["shape"] == "cylinder":
        inner = f'r="{0.55 * radius:.1f}" fill="none" stroke="{edge}" opacity="{opacity}"'
        disc += f'<circle cx="{x:.1f}" cy="{y:.1f}" {inner}/>'
    return disc
