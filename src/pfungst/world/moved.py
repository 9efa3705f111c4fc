"""The same question after the objects have moved, for millions of layouts.

`answer_moved` gives the answers; `answer_codes` gives small integers and a table, which is several times quicker where
the answers are only compared. `MovedProgram` prepares a program for a scene once, for loops that ask again and again.
Layouts on a grid: `pfungst.world.GridMasks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.world.constants import ATTRIBUTES, RELATION_THRESHOLD, RELATIONS
from pfungst.world.lowering import Lowered, lower
from pfungst.world.programs import Program, Value
from pfungst.world.scene import Floats, Scene, check_positions

Codes: TypeAlias = npt.NDArray[np.int8] | npt.NDArray[np.int64]


class AnswerCodes(NamedTuple):
    """Answers as numbers: `table[codes[i]]` is the answer of layout i, -1 marks an invalid one."""

    codes: Codes
    """(layouts,), int8 (int64 where the program ends in an object set)."""
    table: tuple[Value, ...]

    def decode(self) -> npt.NDArray[np.object_]:
        """(layouts,) of bool, int or str, None where invalid."""
        lookup = np.empty(len(self.table) + 1, dtype=object)
        for code, value in enumerate(self.table):
            lookup[code] = value
        # Code -1 reads the last entry, which stays None.
        decoded: npt.NDArray[np.object_] = lookup[self.codes]
        return decoded

    def equal(self, answer: Value | None) -> npt.NDArray[np.bool_]:
        """(layouts,): where the answer is `answer`; None asks for the invalid ones."""
        if answer is None:
            return np.asarray(self.codes == -1)
        same = [i for i, value in enumerate(self.table) if value == answer and type(value) is type(answer)]
        return np.asarray(self.codes == (same[0] if same else -2))


@dataclass(frozen=True)
class MovedProgram:
    """A program made ready for many layouts of one scene."""

    program: Program
    scene: Scene

    @classmethod
    def of(cls, program: Program | Sequence[Mapping[str, Any]], scene: Scene | Mapping[str, Any]) -> MovedProgram:
        return cls(Program.of(program), Scene.of(scene))

    def codes(self, positions: npt.ArrayLike) -> AnswerCodes:
        """As `answer_codes`."""
        places = check_positions(positions, len(self.scene))
        lowered = self.lowered
        if lowered.invalid or not len(lowered.ops):
            return self.constant(len(places))
        from pfungst.world.kernels import answer_positions

        codes, masks = self.buffers(len(places))
        answer_positions(*lowered.program, places, self._ways, self._heights, RELATION_THRESHOLD, codes, masks)
        return self.finish(codes, masks)

    def answers(self, positions: npt.ArrayLike) -> npt.NDArray[np.object_]:
        """As `answer_moved`."""
        return self.codes(positions).decode()

    @cached_property
    def lowered(self) -> Lowered:
        """What the kernels run."""
        return lower(self.program, self.scene)

    @cached_property
    def _ways(self) -> Floats:
        return np.array([self.scene.directions[name] for name in RELATIONS], dtype=np.float64)

    @cached_property
    def _heights(self) -> Floats:
        return np.ascontiguousarray(self.scene.coords[:, 2])

    def buffers(self, layouts: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.uint64]]:
        """Room for the kernels' results."""
        sets = self.lowered.kind == "objects"
        return np.empty(layouts, dtype=np.int8), np.empty(layouts if sets else 0, dtype=np.uint64)

    def constant(self, layouts: int) -> AnswerCodes:
        """The result where positions do not matter."""
        lowered = self.lowered
        codes, masks = self.buffers(layouts)
        codes[:] = -1 if lowered.invalid else 0
        if not lowered.invalid:
            masks[:] = lowered.registers[lowered.result]
            if lowered.kind != "objects":
                codes[:] = lowered.registers[lowered.result]
        return self.finish(codes, masks)

    def finish(self, codes: npt.NDArray[np.int8], masks: npt.NDArray[np.uint64]) -> AnswerCodes:
        """Attach the table of answers."""
        kind = self.lowered.kind
        if kind != "objects":
            return AnswerCodes(codes, _table(kind, len(self.scene)))
        masks[codes < 0] = 0
        distinct, which = np.unique(masks, return_inverse=True)
        members = tuple([j for j in range(len(self.scene)) if mask >> j & 1] for mask in distinct.tolist())
        return AnswerCodes(np.where(codes < 0, -1, which.reshape(-1)), members)


def answer_moved(
    program: Program | Sequence[Mapping[str, Any]],
    scene: Scene | Mapping[str, Any],
    positions: npt.ArrayLike,
) -> npt.NDArray[np.object_]:
    """Answers of one program on many layouts of a scene.

    `positions` (layouts, objects, 2) holds x and y of every object; heights and attributes stay. Relationships are
    computed anew in float64, exactly as by the plain engine on `scene.moved(layout)`. Returns an object array
    (layouts,) of bool, int or str, None where the program is invalid.
    """
    return MovedProgram.of(program, scene).answers(positions)


def answer_codes(
    program: Program | Sequence[Mapping[str, Any]],
    scene: Scene | Mapping[str, Any],
    positions: npt.ArrayLike,
) -> AnswerCodes:
    """As `answer_moved`, but integer codes and the table they point into."""
    return MovedProgram.of(program, scene).codes(positions)


def _table(kind: str, objects: int) -> tuple[Value, ...]:
    if kind == "bool":
        return (False, True)
    if kind == "integer":
        return tuple(range(objects + 1))
    if kind == "object":
        return tuple(range(objects))
    return ATTRIBUTES[kind]
