"""The same question after the objects have moved, for millions of layouts.

`answer_moved` gives the answers; `answer_codes` gives small integers and a table, which is several times quicker where
the answers are only compared. `MovedProgram` checks program and scene once, for loops that ask again and again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.world.constants import ATTRIBUTES, RELATION_THRESHOLD
from pfungst.world.programs import ON_MASKS, Node, Program, Value
from pfungst.world.scene import Floats, Scene, check_positions

Codes: TypeAlias = npt.NDArray[np.int8] | npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

_AT_ONCE = 8192
"""Layouts answered at once: their arrays stay in the processor's cache."""


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

    def equal(self, answer: Value | None) -> Bools:
        """(layouts,): where the answer is `answer`; None asks for the invalid ones."""
        if answer is None:
            return np.asarray(self.codes == -1)
        same = [i for i, value in enumerate(self.table) if value == answer and type(value) is type(answer)]
        return np.asarray(self.codes == (same[0] if same else -2))


@dataclass(frozen=True)
class MovedProgram:
    """A program and the scene whose layouts it is run on."""

    program: Program
    scene: Scene

    @classmethod
    def of(cls, program: Program | Sequence[Mapping[str, Any]], scene: Scene | Mapping[str, Any]) -> MovedProgram:
        return cls(Program.of(program), Scene.of(scene))

    def codes(self, positions: npt.ArrayLike) -> AnswerCodes:
        """As `answer_codes`."""
        places, count, kind = check_positions(positions, len(self.scene)), len(self.scene), self.program.kind
        codes = np.empty(len(places), dtype=np.int8)
        masks = np.zeros(len(places) if kind == "objects" else 0, dtype=np.uint64)
        for start in range(0, len(places), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            output, valid = self._run(places[part])
            if kind == "objects":
                masks[part] = (output * (np.uint64(1) << np.arange(count, dtype=np.uint64)[:, None])).sum(
                    axis=0
                ) * valid
                output = np.zeros(1, dtype=np.int8)
            codes[part] = np.where(valid, output, np.int8(-1))
        if kind == "objects":
            different, which = np.unique(masks, return_inverse=True)
            sets = tuple([j for j in range(count) if mask >> j & 1] for mask in different.tolist())
            return AnswerCodes(np.where(codes < 0, -1, which), sets)
        tables = {"bool": (False, True), "integer": tuple(range(count + 1)), "object": tuple(range(count))}
        return AnswerCodes(codes, tables[kind] if kind in tables else ATTRIBUTES[kind])

    def answers(self, positions: npt.ArrayLike) -> npt.NDArray[np.object_]:
        """As `answer_moved`."""
        return self.codes(positions).decode()

    @cached_property
    def _words(self) -> dict[str, npt.NDArray[np.int8]]:
        """The attributes of the objects, (objects,) each: a word as its place in `ATTRIBUTES`."""
        columns = self.scene.columns
        return {
            name: np.array([words.index(word) for word in columns[name]], dtype=np.int8)
            for name, words in ATTRIBUTES.items()
        }

    def _run(self, places: Floats) -> tuple[npt.NDArray[Any], Bools]:
        """What the program's last node gives, see `_output`, and which layouts have an answer at all."""
        where = np.ascontiguousarray(places.transpose(2, 1, 0))
        outputs: list[npt.NDArray[Any]] = []
        valid = np.ones(1, dtype=np.bool_)
        for node in self.program.nodes:
            given = [outputs[i] for i in node.inputs]
            if node.function == "relate":
                outputs.append(self._beside(given[0], node.values[0], *where))
            else:
                outputs.append(self._output(node, given))
            if node.function == "unique":
                valid = valid & (given[0].sum(axis=0, dtype=np.int8) == 1)
        return outputs[-1], valid

    def _output(self, node: Node, given: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The output of a node that does not look at positions itself.

        An output has a column per layout, or a single one where it does not depend on positions: a set is a bool array
        (objects, layouts), anything else (layouts,): an object or a count as a number, a word as its place in
        `ATTRIBUTES`.
        """
        verb, _, attribute = node.function.partition("_")
        numbers = np.arange(len(self.scene), dtype=np.int8)[:, None]
        output: npt.NDArray[Any]
        match verb:
            case "scene":
                output = np.ones((len(self.scene), 1), dtype=np.bool_)
            case "filter":
                wanted = self._words[attribute] == ATTRIBUTES[attribute].index(node.values[0])
                output = given[0] & wanted[:, None]
            case "same":
                words = self._words[attribute]
                output = (words[:, None] == words.take(given[0])) & (numbers != given[0])
            case "query":
                output = self._words[attribute].take(given[0])
            case "unique":
                # The member's number; any object's where there is not exactly one.
                output = (given[0] * numbers).max(axis=0).astype(np.intp)
            case "count":
                output = given[0].sum(axis=0, dtype=np.int8)
            case "exist":
                output = np.asarray(given[0].any(axis=0))
            case _:  # union, intersect and the comparisons
                output = ON_MASKS[node.function](*given)
        return output

    def _beside(self, mine: npt.NDArray[np.intp], relation: str, x: Floats, y: Floats) -> Bools:
        """(objects, layouts): who is on that side of the objects `mine`; x and y are (objects, layouts)."""
        way_x, way_y, way_z = self.scene.directions[relation]
        if len(mine) == 1:  # the same object in every layout
            own_x, own_y = x[mine[0]], y[mine[0]]
        else:
            own = mine * x.shape[1] + np.arange(x.shape[1])
            own_x, own_y = x.take(own), y.take(own)
        # The sum in the published order, as in `scene.relationships`: a matrix product may fuse or reorder the terms.
        dots = (x - own_x) * way_x
        dots += (y - own_y) * way_y
        if way_z:
            heights = self.scene.coords[:, 2]
            dots += (heights[:, None] - heights.take(mine)) * way_z
        return np.asarray(dots > RELATION_THRESHOLD)


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
