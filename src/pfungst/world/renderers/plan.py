"""Plans of scenes from above, and strips that show a change.

A plan is turned as the image is: the camera stands below, `right` is right and `behind` is up, so that "left of" and
"behind" can be read off it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError
from pfungst.world.constants import BOUND, COLOR_RGB, RADIUS
from pfungst.world.renderers.raycast import check_size, render
from pfungst.world.scene import Scene, SceneObject

AnyScene = Scene | Mapping[str, Any]
Picture = npt.NDArray[np.uint8]

Point = tuple[float, float]

_HALF = 5.2
"""Half edge of a plan in scene units: the square that objects stand in, on its corner, with an object there. Plans of
scenes that reach further are larger."""
_PAPER, _INK, _FAINT, _ARROW = (250, 250, 247), (40, 40, 40), (205, 205, 198), (200, 30, 30)
_GHOST = 0.28
"""Opacity of an object where it stood."""
STILL = 1e-3
"""An object that moved less is not marked."""


@dataclass(frozen=True)
class _Sheet:
    """A plan, `size` pixels wide and high; `before`: where objects stood, if they were moved."""

    scene: Scene
    size: int
    before: Scene | None

    @classmethod
    def of(cls, scene: AnyScene, size: int, before: AnyScene | None) -> _Sheet:
        sheet = cls(Scene.of(scene), size, None if before is None else Scene.of(before))
        if sheet.before is not None:
            _check_same(sheet.before, sheet.scene)
        return sheet

    @cached_property
    def scale(self) -> float:
        """Pixels of a scene unit."""
        scenes = [self.scene] if self.before is None else [self.scene, self.before]
        places = np.concatenate([scene.positions for scene in scenes])
        furthest = float(np.hypot(places[:, 0], places[:, 1]).max()) if len(places) else 0.0
        return self.size / (2 * max(_HALF, furthest + RADIUS["large"]))

    @cached_property
    def moves(self) -> list[tuple[int, Point, Point]]:
        """Number of each moved object, from where to where."""
        if self.before is None:
            return []
        pairs = zip(self.before.positions.tolist(), self.scene.positions.tolist(), strict=True)
        return [(n, self.at(*old), self.at(*new)) for n, (old, new) in enumerate(pairs) if math.dist(old, new) > STILL]

    @property
    def ghosts(self) -> list[SceneObject]:
        return [self.before.objects[number] for number, _, _ in self.moves] if self.before is not None else []

    @property
    def floor(self) -> list[Point]:
        return [self.at(x * BOUND, y * BOUND) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]

    @property
    def camera_mark(self) -> list[Point]:
        return [(self.size * x, self.size * y) for x, y in ((0.5, 0.94), (0.47, 0.99), (0.53, 0.99))]

    def at(self, x: float, y: float) -> Point:
        """Where a point of the ground lies on the plan, in pixels from above left."""
        right, behind = self.scene.directions["right"], self.scene.directions["behind"]
        return (
            self.size / 2 + self.scale * (x * right[0] + y * right[1]),
            self.size / 2 - self.scale * (x * behind[0] + y * behind[1]),
        )

    def outline(self, one: SceneObject) -> list[Point]:
        """Corners of a cube on the plan."""
        radius, turn = RADIUS[one.size], one.rotation or 0.0
        cos, sin = radius * math.cos(turn), radius * math.sin(turn)
        corners = ((cos - sin, sin + cos), (-cos - sin, -sin + cos), (-cos + sin, -sin - cos), (cos + sin, sin - cos))
        return [self.at(one.coords[0] + x, one.coords[1] + y) for x, y in corners]


def plan_view(scene: AnyScene, size: int = 240, moved_from: AnyScene | None = None) -> str:
    """The plan as SVG, `size` pixels wide and high. Arrows lead from where objects stood in `moved_from`, where they
    are drawn faintly.

    Objects carry their number; a sphere is a disc, a cylinder a disc with a ring, a cube a turned square; metal has a
    bright edge.
    """
    size, _ = check_size(size, size)
    sheet = _Sheet.of(scene, size, moved_from)
    moved = "" if sheet.before is None else f", {len(sheet.moves)} moved"
    parts = [
        f'<svg class="plan" xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" '
        f'viewBox="0 0 {size} {size}" role="img" aria-label="plan of a scene with {len(sheet.scene)} objects{moved}">',
        f'<rect width="{size}" height="{size}" fill="{_hex(_PAPER)}"/>',
        _polygon(sheet.floor, fill="none", stroke=_hex(_FAINT), width=1.0),
        _polygon(sheet.camera_mark, fill=_hex(_FAINT), stroke="none", width=0.0),
        *(f'<g opacity="{_GHOST}">{_svg_shape(sheet, one)}</g>' for one in sheet.ghosts),
        *(_svg_object(sheet, one, number) for number, one in enumerate(sheet.scene.objects)),
        *(_svg_arrow(start, end) for _, start, end in sheet.moves),
    ]
    return "\n".join([*parts, "</svg>"])


def plan_picture(scene: AnyScene, size: int = 240, moved_from: AnyScene | None = None) -> Picture:
    """The same plan as pixels: uint8 (size, size, 3)."""
    import PIL.Image
    import PIL.ImageDraw

    size, _ = check_size(size, size)
    fine = 4  # drawn larger and shrunk: smooth edges
    sheet = _Sheet.of(scene, size * fine, moved_from)
    image = PIL.Image.new("RGB", (sheet.size, sheet.size), _PAPER)
    pen = PIL.ImageDraw.Draw(image)
    pen.polygon(sheet.floor, outline=_FAINT, width=fine)
    pen.polygon(sheet.camera_mark, fill=_FAINT)
    for one in sheet.ghosts:
        _draw_shape(pen, sheet, one, _GHOST)
    for number, one in enumerate(sheet.scene.objects):
        _draw_shape(pen, sheet, one)
        pen.text(sheet.at(*one.coords[:2]), str(number), fill=_shades(one)[2], anchor="mm", font_size=sheet.size / 26)
    for _, start, end in sheet.moves:
        shaft, head = _arrow(start, end, 2.0 * fine)
        pen.line([start, shaft], fill=_ARROW, width=2 * fine)
        pen.polygon(head, fill=_ARROW)
    return np.asarray(image.resize((size, size), PIL.Image.Resampling.LANCZOS))


def before_after(
    before: AnyScene,
    after: AnyScene,
    width: int = 320,
    height: int = 240,
    camera: Sequence[float] | None = None,
) -> Picture:
    """A strip of four: image and plan before, image and plan after with arrows.

    uint8 (height, 2 width + 2 height, 3).
    Both scenes must have the same number of objects, in the same order; both are drawn from one camera: the given one,
    else that of `before`.
    """
    before, after = Scene.of(before), Scene.of(after)
    _check_same(before, after)
    width, height = check_size(width, height)
    camera = camera if camera is not None else before.camera
    pictures = [render(one, width, height, camera) for one in (before, after)]
    plans = [plan_picture(before, height), plan_picture(after, height, moved_from=before)]
    return np.concatenate([pictures[0], plans[0], pictures[1], plans[1]], axis=1)


def _check_same(before: Scene, after: Scene) -> None:
    if len(before) != len(after):
        raise DataError(f"A strip needs the same objects twice; there are {len(before)} before and {len(after)} after.")


def _arrow(start: Point, end: Point, width: float) -> tuple[Point, list[Point]]:
    """End of the shaft and corners of the head."""
    length = max(math.dist(start, end), 1e-9)
    x, y = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    head = min(4.0 * width, length)
    base = (end[0] - head * x, end[1] - head * y)
    side = 0.5 * head
    return base, [end, (base[0] - side * y, base[1] + side * x), (base[0] + side * y, base[1] - side * x)]


def _shades(one: SceneObject) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Fill, edge, and a colour for the number that can be read on the fill."""
    fill = COLOR_RGB[one.color]
    edge = tuple((value + 2 * 255) // 3 for value in fill) if one.material == "metal" else tuple(v // 2 for v in fill)
    bright = 0.3 * fill[0] + 0.59 * fill[1] + 0.11 * fill[2] > 140
    return fill, edge, (_INK if bright else (255, 255, 255))


def _draw_shape(pen: Any, sheet: _Sheet, one: SceneObject, opacity: float = 1.0) -> None:
    fill, edge = (
        tuple(round(opacity * value + (1 - opacity) * paper) for value, paper in zip(shade, _PAPER, strict=True))
        for shade in _shades(one)[:2]
    )
    (x, y), radius = sheet.at(*one.coords[:2]), RADIUS[one.size] * sheet.scale
    width = max(1, round(sheet.size / 120))
    if one.shape == "cube":
        pen.polygon(sheet.outline(one), fill=fill, outline=edge, width=width)
    else:
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill, outline=edge, width=width)
        if one.shape == "cylinder":
            inner = 0.72 * radius
            pen.ellipse((x - inner, y - inner, x + inner, y + inner), outline=edge, width=max(1, width // 2))


def _svg_shape(sheet: _Sheet, one: SceneObject) -> str:
    fill, edge, _ = _shades(one)
    (x, y), radius, width = sheet.at(*one.coords[:2]), RADIUS[one.size] * sheet.scale, sheet.size / 120
    if one.shape == "cube":
        return _polygon(sheet.outline(one), _hex(fill), _hex(edge), width)
    rings = [(radius, _hex(fill))] + ([(0.72 * radius, "none")] if one.shape == "cylinder" else [])
    return "".join(
        f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{r:.2f}" fill="{inside}" stroke="{_hex(edge)}" '
        f'stroke-width="{width:.2f}"/>'
        for r, inside in rings
    )


def _svg_object(sheet: _Sheet, one: SceneObject, number: int) -> str:
    x, y = sheet.at(*one.coords[:2])
    title = f"{number}: {one.size} {one.color} {one.material} {one.shape}"
    label = (
        f'<text x="{x:.2f}" y="{y:.2f}" fill="{_hex(_shades(one)[2])}" font-size="{sheet.size / 26:.1f}" '
        f'font-family="sans-serif" text-anchor="middle" dominant-baseline="central">{number}</text>'
    )
    return f"<g><title>{title}</title>{_svg_shape(sheet, one)}{label}</g>"


def _svg_arrow(start: Point, end: Point) -> str:
    shaft, head = _arrow(start, end, 2.0)
    line = (
        f'<line class="arrow" x1="{start[0]:.2f}" y1="{start[1]:.2f}" x2="{shaft[0]:.2f}" y2="{shaft[1]:.2f}" '
        f'stroke="{_hex(_ARROW)}" stroke-width="2"/>'
    )
    return line + _polygon(head, _hex(_ARROW), "none", 0.0)


def _polygon(points: Sequence[Point], fill: str, stroke: str, width: float) -> str:
    corners = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
    return f'<polygon points="{corners}" fill="{fill}" stroke="{stroke}" stroke-width="{width:.2f}"/>'


def _hex(rgb: Sequence[int]) -> str:
    return "#" + "".join(f"{value:02x}" for value in rgb)
