"""The world of the data-limit experiment (Figure 2 of Measuring CLEVRness).

Two, three or four objects stand on the 7x7 grid, in every possible way (of four, one stays where it is, as in the
paper). Questions take one reasoning step (*Onehop*: a relation), two (*Twohop*: two relations at once) or are a mixture
(*Mixhop*). A model learns on X% of the layouts and is asked about the others.

The paper does not say what its objects and questions were. Here the objects are small (neighbouring cells leave room),
all different, and never share a cell; a question is one of

    Onehop   Is the red cube left of the blue sphere?            How many things are left of the blue sphere?
    Twohop   Is there a thing left of the blue sphere and behind the green cylinder?    How many things are ...?

with the engine's meaning of a relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations, product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError
from pfungst.core.types import Progress, no_progress
from pfungst.world.constants import DIRECTIONS, RADIUS, RELATION_THRESHOLD, RELATIONS
from pfungst.world.grid import grid_places

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

HOPS = ("onehop", "twohop", "mixhop")
OBJECTS = (
    {"color": "red", "shape": "cube", "material": "rubber"},
    {"color": "blue", "shape": "sphere", "material": "metal"},
    {"color": "green", "shape": "cylinder", "material": "rubber"},
    {"color": "yellow", "shape": "cube", "material": "metal"},
)
"""All small."""
STILL = 24
"""The cell of a fourth object: the middle."""
ANSWERS = ("no", "yes", "0", "1", "2", "3")
_PHRASES = {"left": "left of", "right": "right of", "behind": "behind", "front": "in front of"}
_ACROSS = (("left", "behind"), ("left", "front"), ("right", "behind"), ("right", "front"))


@dataclass(frozen=True)
class LimitQuestion:
    """A question that has an answer on every layout."""

    text: str
    hops: int
    counts: bool
    """Whether it asks how many; otherwise whether there is one."""
    relations: tuple[tuple[str, int], ...]
    """(relation, object): all must hold of what is sought."""
    sought: int | None = None
    """The object sought; None for anything."""

    def program(self) -> list[dict[str, Any]]:
        """The published program."""
        nodes: list[dict[str, Any]] = []

        def add(function: str, inputs: Sequence[int], *values: str) -> int:
            nodes.append({"function": function, "inputs": list(inputs), "value_inputs": list(values)})
            return len(nodes) - 1

        parts = []
        for relation, number in self.relations:
            one = OBJECTS[number]
            at = add("filter_color", [add("scene", [])], one["color"])
            at = add("unique", [add("filter_shape", [at], one["shape"])])
            parts.append(add("relate", [at], relation))
        at = parts[0] if len(parts) == 1 else add("intersect", parts)
        if self.sought is not None:
            one = OBJECTS[self.sought]
            at = add("filter_shape", [add("filter_color", [at], one["color"])], one["shape"])
        add("count" if self.counts else "exist", [at])
        return nodes


@dataclass(frozen=True)
class LimitWorld:
    """All layouts of a few objects, with their questions and answers.

    >>> world = LimitWorld(2)
    >>> world.cells.shape, world.answers("onehop").shape
    ((2352, 2), (2352, 16))
    """

    objects: int
    bins: int = 7

    def __post_init__(self) -> None:
        if not 2 <= self.objects <= len(OBJECTS):
            raise PfungstError(f"The data-limit experiment has 2 to {len(OBJECTS)} objects, not {self.objects}.")

    @property
    def moving(self) -> int:
        """Objects that move: at most three."""
        return min(self.objects, 3)

    @cached_property
    def cells(self) -> Ints:
        """(layouts, objects): every way to give the objects cells of their own."""
        places = self.bins**2
        grid = np.indices((places,) * self.moving).reshape(self.moving, -1).T
        if self.objects > self.moving:
            grid = np.concatenate([grid, np.full((len(grid), 1), STILL)], axis=1)
        apart = [grid[:, i] != grid[:, j] for i, j in combinations(range(self.objects), 2)]
        return np.ascontiguousarray(grid[np.all(apart, axis=0)])

    def scene(self, layout: int) -> dict[str, Any]:
        """One layout as a published scene dictionary."""
        places = grid_places(self.bins)
        radius = RADIUS["small"]
        objects = [
            {**one, "size": "small", "rotation": 0.0, "3d_coords": [*places[cell].tolist(), radius]}
            for one, cell in zip(OBJECTS, self.cells[layout], strict=False)
        ]
        return {"objects": objects, "directions": {name: list(way) for name, way in DIRECTIONS.items()}}

    def questions(self, hops: str) -> tuple[LimitQuestion, ...]:
        """Those of a kind: `onehop`, `twohop` or `mixhop`."""
        if hops not in HOPS:
            raise PfungstError(f"There is no kind of question {hops!r}; there are {', '.join(HOPS)}.")
        return {"onehop": self._one, "twohop": self._two, "mixhop": self._one + self._two}[hops]

    @cached_property
    def _one(self) -> tuple[LimitQuestion, ...]:
        found = [
            LimitQuestion(f"Is the {_name(i)} {_PHRASES[r]} the {_name(j)}?", 1, False, ((r, j),), i)
            for i, j in permutations(range(self.objects), 2)
            for r in RELATIONS
        ]
        found += [
            LimitQuestion(f"How many things are {_PHRASES[r]} the {_name(j)}?", 1, True, ((r, j),))
            for j in range(self.objects)
            for r in RELATIONS
        ]
        return tuple(found)

    @cached_property
    def _two(self) -> tuple[LimitQuestion, ...]:
        found = []
        pairs = [((a, i), (b, i)) for i in range(self.objects) for a, b in _ACROSS]
        if self.objects > 2:  # of two objects, none can stand in relation to both
            apart = combinations(range(self.objects), 2)
            pairs += [((a, i), (b, j)) for i, j in apart for a, b in product(RELATIONS, RELATIONS)]
        for (a, i), (b, j) in pairs:
            where = f"{_PHRASES[a]} the {_name(i)} and {_PHRASES[b]} the {_name(j)}"
            found.append(LimitQuestion(f"Is there a thing {where}?", 2, False, ((a, i), (b, j))))
            found.append(LimitQuestion(f"How many things are {where}?", 2, True, ((a, i), (b, j))))
        return tuple(found)

    @cached_property
    def _holds(self) -> dict[str, Bools]:
        """Relation -> (layouts, objects, objects): whether j stands in it to i."""
        where = grid_places(self.bins)[self.cells]
        delta = where[:, None, :, :] - where[:, :, None, :]
        return {
            name: delta[..., 0] * DIRECTIONS[name][0] + delta[..., 1] * DIRECTIONS[name][1] > RELATION_THRESHOLD
            for name in RELATIONS
        }

    def answers(self, hops: str) -> npt.NDArray[np.uint8]:
        """(layouts, questions): number of the right answer in ANSWERS."""
        columns = []
        for question in self.questions(hops):
            sought = np.ones(self.cells.shape, dtype=np.bool_)
            for relation, number in question.relations:
                sought &= self._holds[relation][:, number]
            if question.sought is not None:
                sought = sought[:, question.sought : question.sought + 1]
            count = sought.sum(axis=1)
            columns.append(2 + count if question.counts else count > 0)
        return np.stack(columns, axis=1).astype(np.uint8)


def _name(number: int) -> str:
    return f"{OBJECTS[number]['color']} {OBJECTS[number]['shape']}"


def draw_layouts(
    world: LimitWorld, width: int, height: int, device: str = "cpu", progress: Progress = no_progress
) -> npt.NDArray[np.uint8]:
    """The images of all layouts, uint8 (layouts, 3, height, width)."""
    from pfungst.world import render_batch

    images = np.empty((len(world.cells), 3, height, width), np.uint8)
    chunk = 2048 if device.startswith("cuda") else 128
    for start in range(0, len(images), chunk):
        scenes = [world.scene(i) for i in range(start, min(start + chunk, len(images)))]
        drawn = render_batch(scenes, width, height, device=device if device.startswith("cuda") else None)
        images[start : start + len(scenes)] = drawn.transpose(0, 3, 1, 2)
        progress(f"drawing layouts of {world.objects} objects", start + len(scenes), len(images))
    return images
