"""One question of the game on its scene, made ready for many layouts."""

from __future__ import annotations

import hashlib
import json
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError, Example, Query
from pfungst.probes.game.rules import GameRules
from pfungst.probes.game.sight import Sight
from pfungst.world.constants import (
    ATTRIBUTES,
    BOUND,
    CAMERA,
    DEFAULT_HEIGHT,
    DEFAULT_WIDTH,
    MAX_OBJECTS,
    RELATION_THRESHOLD,
    RELATIONS,
)
from pfungst.world.legal import grid_places, step_places
from pfungst.world.programs import MovedProgram, Program, Value, answer_text
from pfungst.world.renderers.raycast import Packed, RenderedImage, pack
from pfungst.world.scene import Basis, Scene, camera_basis, camera_directions, estimate_camera, project, relationships

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

MOST_ASTRAY = 15.0
"""Degrees between a direction of a scene and what its camera sees; the generator's jitter comes to 5."""
OBJECT_FEATURES = 3 + sum(len(words) for words in ATTRIBUTES.values())
"""Presence, x / 3, y / 3, and one-hot colour, shape, size, material: 18 numbers."""

TOKENS = 4093
"""Words are numbered 1..4093 by a checksum: any wording has a number, and no list of words must travel with a network.
The few hundred words of CLEVR's templates rarely share one."""
QUESTION_LENGTH = 50
"""Words of a question that are seen (appendix A.3)."""
_SPLIT = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class LayoutImage(RenderedImage):
    """The image of a layout of a board."""

    board: Board
    positions: bytes
    """float64 (objects, 2)."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.board.image_key + self.positions).hexdigest()

    @property
    def size(self) -> tuple[int, int]:
        return self.board.size

    def packed(self) -> Packed:
        positions = np.frombuffer(self.positions).reshape(-1, 2)
        if self.board.rules.ood:  # the camera moves as well
            return pack(self.board.scene_at(positions))
        return self.board.packed.moved(positions)


@dataclass(frozen=True, eq=False)
class Board:
    """A question, its scene, and the places its objects can be moved to.

    `Board.of(example, rules)` reads an example; it raises DataError where the example lacks a scene or a program, or
    where the program has no answer on the scene as it stands.
    """

    example: Example
    rules: GameRules
    scene: Scene
    program: Program
    truth: Value
    """The program's answer on the scene as it stands: what every moved scene must keep."""

    @classmethod
    def of(cls, example: Example, rules: GameRules) -> Board:
        if example.scene is None or example.program is None:
            lacks = "a scene" if example.scene is None else "a program"
            raise DataError(f"The question {example.id} has no {lacks[2:]}; the game needs {lacks} to move objects.")
        scene = _with_camera(Scene.of(example.scene))
        _check_directions(scene)
        program = Program.from_json(example.program, f"The program of the question {example.id}")
        # Computed from the coordinates, as for every moved layout, so that before and after are judged alike.
        truth = MovedProgram(program, scene).answers(scene.positions[None])[0]
        if truth is None:
            raise DataError(f"The program of the question {example.id} has no answer on its own scene.")
        return cls(example, rules, scene, program, truth)

    def __len__(self) -> int:
        return len(self.scene)

    @property
    def truth_text(self) -> str:
        """yes, no, 3, rubber ..."""
        return answer_text(self.truth)

    def sight(self, width: int, height: int) -> Sight:
        """What shows of the objects in images of this size; remembered."""
        return self._sights.setdefault((width, height), Sight(self, width, height))

    @cached_property
    def _sights(self) -> dict[tuple[int, int], Sight]:
        return {}

    @cached_property
    def drawn(self) -> dict[str, Iterator[Floats]]:
        """Layouts that an adversary drew at random, for the next player on this board."""
        return {}

    @cached_property
    def moved(self) -> MovedProgram:
        return MovedProgram(self.program, self.scene)

    @cached_property
    def places(self) -> Floats:
        """(objects, bins * bins, 2): where each object stands for each cell, cell = bins * (x bin) + (y bin)."""
        rules = self.rules
        reach = rules.stretch if rules.ood else 1.0
        if rules.moves == "grid":
            return np.repeat(grid_places(rules.bins, BOUND * reach)[None], len(self), axis=0)
        if rules.moves == "displacement":
            return np.asarray(self.start[:, None, :] + grid_places(rules.bins, BOUND * reach))
        if not rules.ood:
            return step_places(self.scene, rules.step, rules.bins)
        offsets = (np.arange(rules.bins) - rules.bins // 2) * rules.step * reach
        steps = np.stack(np.meshgrid(offsets, offsets, indexing="ij"), axis=-1).reshape(-1, 2)
        return np.asarray(self.scene.positions[:, None, :] + steps)

    @property
    def cells(self) -> int:
        return self.rules.bins**2

    def positions(self, cells: npt.ArrayLike) -> Floats:
        """Cell indices (layouts, objects) to places (layouts, objects, 2)."""
        placed: Floats = self.places[np.arange(len(self)), np.asarray(cells)]
        return placed

    @property
    def start(self) -> Floats:
        """Where the objects stand before the game, (objects, 2)."""
        return self.scene.positions

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height of the images."""
        if self.rules.width is not None and self.rules.height is not None:
            return self.rules.width, self.rules.height
        width, height = self.scene.extra.get("image_size") or (DEFAULT_WIDTH, DEFAULT_HEIGHT)
        return int(width), int(height)

    @cached_property
    def packed(self) -> Packed:
        """The scene as it stands before the game, for the renderer."""
        return pack(self.scene_at(self.start))

    @cached_property
    def image_key(self) -> bytes:
        """Everything an image depends on besides the positions."""
        from pfungst.world.renderers.raycast import renderer_version

        known = [renderer_version(), self.size, self.rules.ood, self._plain]
        return json.dumps(known, sort_keys=True, default=list).encode()

    def image(self, positions: Floats) -> LayoutImage:
        return LayoutImage(self, np.ascontiguousarray(positions, dtype=np.float64).tobytes())

    def query(self, positions: Floats, scene: bool = False, take: int = 0) -> Query:
        """What the player is asked about a layout (objects, 2); the scene goes to those that read scenes only."""
        return self.queries(positions[None], scene, take)[0]

    def queries(self, positions: Floats, scene: bool = False, take: int = 0) -> list[Query]:
        """`query` of many layouts (layouts, objects, 2)."""
        seen: Sequence[dict[str, Any] | None] = self.records(positions) if scene else [None] * len(positions)
        asked, choices = self.example.question, self.example.choices
        return [
            Query(asked, self.image(one), choices, record, take) for one, record in zip(positions, seen, strict=True)
        ]

    def scene_at(self, positions: npt.ArrayLike) -> Scene:
        """The scene with its objects moved; in the out-of-distribution game the camera steps back as well."""
        return Scene.from_json(self.record(np.asarray(positions, dtype=np.float64)))

    def camera_at(self, positions: Floats) -> tuple[float, float, float]:
        camera = self.scene.camera or CAMERA
        if not self.rules.ood:
            return camera
        away = max(1.0, float(np.abs(positions).max()) / BOUND)
        return (camera[0] * away, camera[1] * away, camera[2] * away)

    def record(self, positions: Floats) -> dict[str, Any]:
        """The published dictionary of a layout (objects, 2), relationships and pixel coordinates computed anew."""
        return self.records(positions[None])[0]

    def records(self, positions: Floats) -> list[dict[str, Any]]:
        """`record` of many layouts (layouts, objects, 2) at once."""
        heights = np.broadcast_to(self.scene.coords[:, 2:], (*positions.shape[:2], 1))
        coords = np.concatenate([positions, heights], axis=2)
        delta = coords[:, None, :, :] - coords[:, :, None, :]
        # The sums in the published order: released scenes come within 2e-6 of the threshold.
        sides = {
            name: ((delta[..., 0] * x + delta[..., 1] * y) + delta[..., 2] * z > RELATION_THRESHOLD).tolist()
            for name, (x, y, z) in ((name, self.scene.directions[name]) for name in RELATIONS)
        }
        cameras = [self.camera_at(one) for one in positions]
        pixels = self._pixels(coords, np.array(cameras))
        made = []
        for at, places in enumerate(coords.tolist()):
            objects = [
                {**plain, "3d_coords": place, "pixel_coords": pixel}
                for plain, place, pixel in zip(self._plain["objects"], places, pixels[at], strict=True)
            ]
            relations = {
                name: [[j for j, yes in enumerate(row) if yes] for row in rows[at]] for name, rows in sides.items()
            }
            # Nothing of `_plain` is handed out that a player could change.
            made.append(
                {
                    **self._plain,
                    "objects": objects,
                    "relationships": relations,
                    "directions": {name: list(way) for name, way in self.scene.directions.items()},
                    "camera": list(cameras[at]),
                    "image_size": list(self.size),
                }
            )
        return made

    def _pixels(self, coords: Floats, cameras: Floats) -> list[list[list[float]]]:
        """Column, row and depth of every object, as in the published scenes: coords (layouts, objects, 3)."""
        # A camera that steps straight back looks the same way.
        columns, rows, depth = project(coords - cameras[:, None, :], self.basis, *self.size)
        parts = (np.rint(columns).astype(int).tolist(), np.rint(rows).astype(int).tolist(), depth.tolist())
        return [[list(one) for one in zip(*layout, strict=True)] for layout in zip(*parts, strict=True)]

    @cached_property
    def basis(self) -> Basis:
        """Right, up and forward of the camera."""
        return camera_basis(self.scene.camera or CAMERA)

    @cached_property
    def _plain(self) -> dict[str, Any]:
        return self.scene.to_json()


def _with_camera(scene: Scene) -> Scene:
    """Released scenes do not say where the camera stood: find out, so that the moved scene is seen from there."""
    if scene.relationships is None:
        scene = replace(scene, relationships=relationships(scene))
    if scene.camera is not None:
        return scene
    try:
        fit = estimate_camera(scene)
    except DataError:
        return scene
    if fit.error > 1.0:  # pixel coordinates of another camera model: the base camera is the better guess
        return scene
    extra = {**scene.extra, "camera": list(fit.position), "image_size": [fit.width, fit.height]}
    return replace(scene, extra=extra, keys=(*scene.keys, "camera", "image_size"))


def _check_directions(scene: Scene) -> None:
    """Left in the relations must be left in the image, or the answer that is right in one is wrong in the other."""
    camera = scene.camera or CAMERA
    for name, seen in camera_directions(camera).items():
        x, y, _ = scene.directions.get(name, seen)
        across, along = x * seen[1] - y * seen[0], x * seen[0] + y * seen[1]
        off = abs(math.degrees(math.atan2(across, along)))
        if name in RELATIONS and off > MOST_ASTRAY:
            where = "its camera" if scene.camera else "CLEVR's camera, and it names no other"
            raise DataError(
                f"The direction {name} of the scene {scene.extra.get('image_filename', '')} is {off:.0f} degrees away "
                f'from {name} as seen by {where}. Give the scene the place of its "camera" as [x, y, z].'
            )


def boards_of(examples: Sequence[Example], rules: GameRules) -> tuple[list[Board], list[tuple[str, str]]]:
    """The boards of all examples that can be played, and (id, why not) of the others."""
    boards, unfit = [], []
    for example in examples:
        try:
            boards.append(Board.of(example, rules))
        except DataError as error:
            unfit.append((example.id, str(error)))
    return boards, unfit


# --- a scene and a question as numbers, for adversaries that learn --------------------------------------------------


def question_tokens(question: str, length: int) -> npt.NDArray[np.int64]:
    """Word numbers (length,), 0 behind the end; the first `length` words count."""
    tokens = np.zeros(length, dtype=np.int64)
    for place, word in enumerate(_SPLIT.findall(question.lower())[:length]):
        tokens[place] = 1 + zlib.crc32(word.encode()) % TOKENS
    return tokens


def object_features(scene: Scene, positions: npt.ArrayLike | None = None) -> npt.NDArray[np.float32]:
    """(10, 18): one row an object, zeros for absent ones. Scenes of more than ten objects are cut."""
    places = scene.positions if positions is None else np.asarray(positions)
    rows = np.zeros((MAX_OBJECTS, OBJECT_FEATURES), dtype=np.float32)
    for row, one, (x, y) in zip(rows, scene.objects, places.tolist(), strict=False):
        row[:3] = 1.0, np.clip(x / BOUND, -4, 4), np.clip(y / BOUND, -4, 4)
        at = 3
        for attribute, words in ATTRIBUTES.items():
            row[at + words.index(getattr(one, attribute))] = 1.0
            at += len(words)
    return rows
