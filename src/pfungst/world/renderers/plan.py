"""Plans of scenes from above, and strips that show a change.

A plan is turned as the image is: the camera stands below, `right` is right and `behind` is up, so that "left of" and
"behind" can be read off it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError
from pfungst.world.constants import BOUND, COLOR_RGB, RADIUS
from pfungst.world.renderers.pack import check_size
from pfungst.world.renderers.raycast import render
from pfungst.world.scene import Scene, SceneObject

AnyScene = Scene | Mapping[str, Any]
Picture = npt.NDArray[np.uint8]

_HALF = 5.2
"""Half edge of a plan in scene units: the square that objects stand in, on its corner, with an object there."""
_PAPER, _INK, _FAINT, _ARROW = (250, 250, 247), (40, 40, 40), (205, 205, 198), (200, 30, 30)
_STILL = 1e-3
"""An object that moved less is not marked."""


def plan_view(scene: AnyScene, size: int = 240, moved_from: AnyScene | None = None) -> str:
    """The plan as SVG, `size` pixels wide and high; arrows lead from where objects stood in `moved_from`.

    Objects carry their number; a sphere is a disc, a cylinder a disc with a ring, a cube a turned square; metal has a
    bright edge.
    """
    size, _ = check_size(size, size)
    scene = Scene.of(scene)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" '
        f'viewBox="0 0 {size} {size}" role="img" aria-label="plan of a scene with {len(scene)} objects">',
        f'<rect width="{size}" height="{size}" fill="{_hex(_PAPER)}"/>',
        _polygon(_floor(scene, size), fill="none", stroke=_hex(_FAINT), width=1.0),
        _polygon(_camera_mark(size), fill=_hex(_FAINT), stroke="none", width=0.0),
    ]
    for number, one in enumerate(scene.objects):
        parts.append(_svg_object(scene, one, number, size))
    for start, end in _moves(moved_from, scene, size):
        parts.append(_svg_arrow(start, end))
    return "\n".join([*parts, "</svg>"])


def plan_picture(scene: AnyScene, size: int = 240, moved_from: AnyScene | None = None) -> Picture:
    """The same plan as pixels: uint8 (size, size, 3)."""
    import PIL.Image
    import PIL.ImageDraw

    size, _ = check_size(size, size)
    scene = Scene.of(scene)
    fine = 4  # drawn larger and shrunk: smooth edges
    large = size * fine
    image = PIL.Image.new("RGB", (large, large), _PAPER)
    pen = PIL.ImageDraw.Draw(image)
    pen.polygon(_floor(scene, large), outline=_FAINT, width=fine)
    pen.polygon(_camera_mark(large), fill=_FAINT)
    for number, one in enumerate(scene.objects):
        _draw_object(pen, scene, one, number, large)
    for start, end in _moves(moved_from, scene, large):
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


def _place(scene: Scene, x: float, y: float, size: int) -> tuple[float, float]:
    """Where a point of the ground lies on the plan, in pixels from above left."""
    right, behind = scene.directions["right"], scene.directions["behind"]
    scale = size / (2 * _HALF)
    return (
        size / 2 + scale * (x * right[0] + y * right[1]),
        size / 2 - scale * (x * behind[0] + y * behind[1]),
    )


def _floor(scene: Scene, size: int) -> list[tuple[float, float]]:
    return [_place(scene, x * BOUND, y * BOUND, size) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]


def _camera_mark(size: int) -> list[tuple[float, float]]:
    return [(size * x, size * y) for x, y in ((0.5, 0.94), (0.47, 0.99), (0.53, 0.99))]


def _moves(before: AnyScene | None, after: Scene, size: int) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    if before is None:
        return []
    before = Scene.of(before)
    _check_same(before, after)
    moves = []
    for old, new in zip(before.positions.tolist(), after.positions.tolist(), strict=True):
        if math.dist(old, new) > _STILL:
            moves.append((_place(after, old[0], old[1], size), _place(after, new[0], new[1], size)))
    return moves


def _outline(scene: Scene, one: SceneObject, size: int) -> list[tuple[float, float]]:
    """Corners of a cube on the plan."""
    radius, turn = RADIUS[one.size], one.rotation or 0.0
    cos, sin = radius * math.cos(turn), radius * math.sin(turn)
    corners = ((cos - sin, sin + cos), (-cos - sin, -sin + cos), (-cos + sin, -sin - cos), (cos + sin, sin - cos))
    return [_place(scene, one.coords[0] + x, one.coords[1] + y, size) for x, y in corners]


def _arrow(start: tuple[float, float], end: tuple[float, float], width: float) -> tuple[Any, list[tuple[float, float]]]:
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


def _draw_object(pen: Any, scene: Scene, one: SceneObject, number: int, size: int) -> None:
    fill, edge, text = _shades(one)
    x, y = _place(scene, one.coords[0], one.coords[1], size)
    radius = RADIUS[one.size] * size / (2 * _HALF)
    width = max(1, round(size / 120))
    if one.shape == "cube":
        pen.polygon(_outline(scene, one, size), fill=fill, outline=edge, width=width)
    else:
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill, outline=edge, width=width)
        if one.shape == "cylinder":
            inner = 0.72 * radius
            pen.ellipse((x - inner, y - inner, x + inner, y + inner), outline=edge, width=max(1, width // 2))
    pen.text((x, y), str(number), fill=text, anchor="mm", font_size=size / 26)


def _svg_object(scene: Scene, one: SceneObject, number: int, size: int) -> str:
    fill, edge, text = _shades(one)
    x, y = _place(scene, one.coords[0], one.coords[1], size)
    radius, width = RADIUS[one.size] * size / (2 * _HALF), size / 120
    if one.shape == "cube":
        shape = _polygon(_outline(scene, one, size), _hex(fill), _hex(edge), width)
    else:
        rings = [(radius, _hex(fill))] + ([(0.72 * radius, "none")] if one.shape == "cylinder" else [])
        shape = "".join(
            f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{r:.2f}" fill="{inside}" stroke="{_hex(edge)}" '
            f'stroke-width="{width:.2f}"/>'
            for r, inside in rings
        )
    title = f"{number}: {one.size} {one.color} {one.material} {one.shape}"
    label = (
        f'<text x="{x:.2f}" y="{y:.2f}" fill="{_hex(text)}" font-size="{size / 26:.1f}" font-family="sans-serif" '
        f'text-anchor="middle" dominant-baseline="central">{number}</text>'
    )
    return f"<g><title>{title}</title>{shape}{label}</g>"


def _svg_arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    shaft, head = _arrow(start, end, 2.0)
    line = (
        f'<line x1="{start[0]:.2f}" y1="{start[1]:.2f}" x2="{shaft[0]:.2f}" y2="{shaft[1]:.2f}" '
        f'stroke="{_hex(_ARROW)}" stroke-width="2"/>'
    )
    return line + _polygon(head, _hex(_ARROW), "none", 0.0)


def _polygon(points: Sequence[tuple[float, float]], fill: str, stroke: str, width: float) -> str:
    corners = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
    return f'<polygon points="{corners}" fill="{fill}" stroke="{stroke}" stroke-width="{width:.2f}"/>'


def _hex(rgb: Sequence[int]) -> str:
    return "#" + "".join(f"{value:02x}" for value in rgb)
