"""Changes that only a scene allows: it is drawn anew, or covered where nothing stands. Each is proved.

Proved means: the question's program gives the same answer on the changed scene, and every object still shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import Example, Query
from pfungst.core.images import as_rgb
from pfungst.probes import measure
from pfungst.probes.picture import kernels
from pfungst.probes.picture.kernels import Pixels
from pfungst.probes.picture.operations import CLOCK, DIRECTION, TEXT, Band, Operation, made_later
from pfungst.scores import same_answer
from pfungst.world import RenderedImage, Scene, SceneImage, answer, answer_text, visible_pixels
from pfungst.world.constants import CAMERA, COLOR_RGB, LAMPS, MIN_VISIBLE_PIXELS
from pfungst.world.renderers.look import GROUND_ALBEDO
from pfungst.world.scene import camera_basis, camera_directions

TRIES = 20
"""Draws before a change is given up."""
_CAMERA = (10, 20, 30, 40, 50)  # hundredths of a scene unit; the published generator's jitter is 0.5
_LAMPS = (40, 80, 120, 160, 200)  # its jitter is 1.0
_LOWEST = 1.0  # of a lamp
_BACKDROP = (6, 12, 20, 30, 42)  # hundredths of the light that the ground sends back; published: 0.8
_APART = 0.15  # of full scale, in one colour at least, between the ground and every object
_ROUGHNESS = (115, 130, 150, 175, 200)  # percent of the published one, or its inverse
_PATCHES = (1, 2, 4, 6, 9)
_PATCH = 10  # percent of the shorter side
_CLEAR = 2  # percent of the shorter side between a patch and an object


@dataclass(frozen=True)
class Stage:
    """An example whose image can be drawn anew, and whose program tells the right answer."""

    example: Example
    image: RenderedImage
    record: Mapping[str, Any]
    program: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, example: Example) -> Stage | None:
        if example.scene is None or example.program is None or not isinstance(example.image, RenderedImage):
            return None
        return cls(example, example.image, example.scene, example.program)

    @cached_property
    def scene(self) -> Scene:
        return Scene.of(self.record)

    @cached_property
    def least(self) -> int:
        """Pixels that every object must go on showing: the published 200, or what the least visible one shows."""
        return min(MIN_VISIBLE_PIXELS, int(visible_pixels(self.scene).min()))

    @cached_property
    def objects(self) -> npt.NDArray[np.bool_]:
        """Where the image shows an object, bool (height, width)."""
        from pfungst.world.renderers.geometry import id_buffer
        from pfungst.world.renderers.world import lay_out

        width, height = self.image.size
        packed = self.image.packed()
        ids, depth = np.full(height * width, -1, dtype=np.int16), np.empty(height * width)
        counts = np.empty(len(packed.kinds), dtype=np.int64)
        id_buffer(lay_out(packed, lit=False)[0], width, height, 0.0, ids, depth, counts)
        return (ids >= 0).reshape(height, width)

    def inside(self, band: Band, severity: int) -> bool:
        """Whether no object reaches into the rows and columns at the border that may get lost."""
        height, width = self.objects.shape
        rows, columns = band(height, width, severity)
        inner = self.objects[rows : max(rows, height - rows), columns : max(columns, width - columns)]
        return int(inner.sum()) == int(self.objects.sum())

    def keeps(self, scene: Scene) -> bool:
        """The proof: the program's answer stays, and every object shows."""
        value = answer(self.program, scene.to_json())
        if value is None or self.example.target is None or not same_answer(answer_text(value), self.example.target):
            return False
        return int(visible_pixels(scene).min()) >= self.least

    def drawn(self, scene: Scene, otherwise: str = "the program does not give the right answer") -> Query | str:
        """The question about another scene, or what to say where that does not keep the answer."""
        if not self.keeps(scene):
            return otherwise
        record = scene.to_json()
        return replace(measure.clean_query(self.example), image=SceneImage(record, *self.image.size), scene=record)


def camera(stage: Stage, severity: int, key: int) -> Query | str:
    before = stage.scene.camera or CAMERA
    made: Query | str = ""
    for at in range(TRIES):
        place = _moved(before, _CAMERA[severity - 1], key + at)
        seen = replace(_with(stage.scene, "camera", list(place)), directions=camera_directions(place))
        seen = seen.moved(seen.positions)  # relations and pixel coordinates as this camera sees them
        made = stage.drawn(seen, "no camera nearby keeps the answer and every object in sight")
        if isinstance(made, Query):
            break
    return made


def light(stage: Stage, severity: int, key: int) -> Query | str:
    given = stage.scene.extra.get("lamps") or {name: lamp.position for name, lamp in LAMPS.items()}
    lamps = {}
    for at, (name, place) in enumerate(given.items()):
        x, y, z = _moved(place, _LAMPS[severity - 1], key + at)
        lamps[name] = [x, y, max(z, _LOWEST)]
    return stage.drawn(_with(stage.scene, "lamps", lamps))


def backdrop(stage: Stage, severity: int, key: int) -> Query | str:
    """Ground and wall in another colour, which also falls on the objects and is seen in their metal."""
    reach = _BACKDROP[severity - 1]
    colors = np.array([COLOR_RGB[one.color] for one in stage.scene.objects]) / 255
    for at in range(TRIES):
        # The published ground is a light grey, so that it can only get darker, in one of its colours at least.
        color = _moved((GROUND_ALBEDO,) * 3, reach, key + at)
        ground = [round(min(value, 2 * GROUND_ALBEDO - value), 9) for value in color]
        if np.abs(colors - ground).max(1).min() >= _APART:
            return stage.drawn(_with(stage.scene, "backdrop", ground))
    return "an object would be of the colour of the ground"


def gloss(stage: Stage, severity: int, key: int) -> Query | str:
    """Surfaces smoother or rougher than published; metal stays metal, and rubber rubber."""
    times = _ROUGHNESS[severity - 1]
    return stage.drawn(_with(stage.scene, "roughness", times / 100 if key % 2 else round(100 / times, 9)))


def mirror(stage: Stage, severity: int, key: int) -> Query | str:
    """Left and right exchanged. The scene in the mirror has its own relations, which the program is asked about."""
    scene = stage.scene
    side = camera_basis(scene.camera or CAMERA).right[:2]
    places = scene.positions - 2 * np.outer(scene.positions @ side, side)
    turn = 2 * math.atan2(side[1], side[0]) + math.pi
    turned = tuple(
        one if one.rotation is None else replace(one, rotation=round((turn - one.rotation) % (2 * math.pi), 9))
        for one in scene.objects
    )
    seen = replace(scene, objects=turned).moved(places)
    if not stage.keeps(seen):
        return "the program gives another answer in the mirror"
    made = made_later(["mirror", stage.image.digest], partial(flip, stage.image), stage.image.size)
    return replace(measure.clean_query(stage.example), image=made, scene=seen.to_json())


def flip(image: RenderedImage) -> Pixels:
    return flipped(np.array(as_rgb(image)), 1, 0)


def flipped(pixels: Pixels, severity: int, key: int) -> Pixels:
    return np.ascontiguousarray(pixels[:, ::-1])


def _with(scene: Scene, name: str, value: object) -> Scene:
    """The scene with something more said of it."""
    keys = scene.keys if name in scene.keys else (*scene.keys, name)
    return replace(scene, extra={**scene.extra, name: value}, keys=keys)


def occlusion(stage: Stage, severity: int, key: int) -> Query | str:
    """Grey squares where no object is."""
    height, width = stage.objects.shape
    side = max(1, min(height, width) * _PATCH // 100)
    clear = max(1, min(height, width) * _CLEAR // 100)
    taken = np.zeros((height + 1, width + 1), np.int64)
    taken[1:, 1:] = stage.objects.cumsum(0).cumsum(1)  # objects above and to the left of every corner
    drawn = np.empty(16 * TRIES * _PATCHES[severity - 1], np.uint8)
    kernels.draw(np.uint64(key), drawn)
    patches: list[tuple[int, int]] = []
    for down, across in drawn.view("<u8").reshape(-1, 2).tolist():
        top, left = down % (height - side + 1), across % (width - side + 1)
        y0, x0, y1, x1 = (
            max(top - clear, 0), max(left - clear, 0), min(top + side + clear, height), min(left + side + clear, width),
        )  # fmt: skip
        free = taken[y1, x1] - taken[y0, x1] - taken[y1, x0] + taken[y0, x0] == 0
        if free and all(abs(top - y) >= side or abs(left - x) >= side for y, x in patches):
            patches.append((top, left))
            if len(patches) == _PATCHES[severity - 1]:
                named = ["occlusion", side, patches, stage.image.digest]
                made = made_later(named, partial(cover, stage.image, side, tuple(patches)), stage.image.size)
                return replace(measure.clean_query(stage.example), image=made)
    return "no room between the objects"


def cover(image: RenderedImage, side: int, patches: Sequence[tuple[int, int]]) -> Pixels:
    """The image with grey squares at these rows and columns."""
    pixels = np.array(as_rgb(image))
    for top, left in patches:
        pixels[top : top + side, left : left + side] = 127
    return pixels


def _moved(place: Sequence[float], reach: int, key: int) -> tuple[float, float, float]:
    """A place up to `reach` hundredths away on every axis, at least half of it on one."""
    drawn = np.empty(8 * 4, np.uint8)
    kernels.draw(np.uint64(key % 2**64), drawn)
    *steps, axis = drawn.view("<u8").tolist()
    shifts = [step % (2 * reach + 1) - reach for step in steps]
    far = axis % 3
    shifts[far] = (reach + abs(shifts[far]) + 1) // 2 * (1 if shifts[far] >= 0 else -1)
    x, y, z = (round(value + step / 100, 9) for value, step in zip(place, shifts, strict=True))
    return x, y, z


CAMERA_MOVED = Operation("the camera moved by up to 0.1 to 0.5 on every axis, redrawn", None, proved=camera)
BACKDROP = Operation("the ground and the wall in another colour, redrawn", None, proved=backdrop)
GLOSS = Operation("all surfaces 1.15 to 2 times as rough or as smooth, redrawn", None, proved=gloss)
LIGHT_MOVED = Operation("the lamps moved by up to 0.4 to 2 on every axis, redrawn", None, proved=light)
MIRROR = Operation(
    "left and right exchanged", flipped, frozenset({DIRECTION, TEXT, CLOCK}), graded=False, proved=mirror
)
OCCLUSION = Operation("1 to 9 grey squares where no object is", None, proved=occlusion)
