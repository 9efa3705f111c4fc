"""Turns a program and a scene into a short list of operations for many layouts at once.

Object sets become bit masks and objects, counts and attributes small integers. Whatever does not depend on positions
(all that no `relate` feeds) is computed here, once. What is left are a few operations on registers; a `relate` is told
which objects anybody will ask about, so that it compares only those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.world.constants import ATTRIBUTES, RELATIONS
from pfungst.world.programs import FUNCTIONS, ON_MASKS, Node, Program
from pfungst.world.scene import Scene

AND, OR, RELATE, UNIQUE, LOOKUP, COUNT, EXIST, EQUAL, LESS = range(9)
"""Operation codes; the kernels switch on them. Compiled kernels are cached with these numbers inside: append only."""

Ints: TypeAlias = npt.NDArray[np.int64]
Masks: TypeAlias = npt.NDArray[np.uint64]

_CODES = {
    "unique": UNIQUE,
    "count": COUNT,
    "exist": EXIST,
    "union": OR,
    "intersect": AND,
    "less_than": LESS,
    **{f"equal_{kind}": EQUAL for kind in ("integer", "object", *ATTRIBUTES)},
}


@dataclass(frozen=True)
class Lowered:
    """A program ready for the kernels."""

    kind: str
    """Kind of the answer, as `Program.kind`."""
    invalid: bool
    """No layout has an answer: a `unique` that no position can help fails."""
    ops: Ints
    """(operations, 7): code, first and second register, target, argument, range of `needs`."""
    needs: Ints
    """Objects a `relate` must compare, all operations' ranges one after another."""
    used: Ints
    """Objects whose positions matter at all."""
    registers: Masks
    """Values the registers start with: the constants."""
    tables: Masks
    """(tables, objects): what LOOKUP reads, by object."""
    result: int
    """Register of the answer."""

    @property
    def program(self) -> tuple[Ints, Ints, Ints, Masks, Masks, int]:
        """The first arguments of every kernel."""
        return self.ops, self.needs, self.used, self.registers, self.tables, self.result


@dataclass(frozen=True, slots=True)
class _Op:
    code: int
    first: int
    second: int
    target: int
    argument: int = 0


class _Invalid(Exception):
    """A `unique` fails whatever the positions."""


def lower(program: Program, scene: Scene) -> Lowered:
    """Fold constants, lay out registers, and drop what nobody asks for."""
    builder, invalid = _Builder(scene), False
    try:
        for node in program.nodes:
            builder.add(node)
    except _Invalid:
        builder.ops, invalid = [], True
    return builder.finish(program.kind, invalid)


class _Builder:
    def __init__(self, scene: Scene) -> None:
        self.count = len(scene)
        self.everything = (1 << self.count) - 1
        self.attributes = {
            name: [values.index(getattr(one, name)) for one in scene.objects] for name, values in ATTRIBUTES.items()
        }
        self.values: list[int | None] = []
        """One a register: its constant, or None if it depends on positions."""
        self.homes: list[int] = []
        """One a node: its register."""
        self.ops: list[_Op] = []
        self.tables: list[list[int]] = []

    def add(self, node: Node) -> None:
        inputs = [self.homes[i] for i in node.inputs]
        known = [self.values[i] for i in inputs]
        constants = [value for value in known if value is not None]
        if node.function != "relate" and len(constants) == len(known):
            self.homes.append(self._register(self._fold(node, constants)))
            return
        self._emit(node, inputs)

    def _register(self, value: int | None) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _mask(self, attribute: str, value: int) -> int:
        return sum(1 << i for i, own in enumerate(self.attributes[attribute]) if own == value)

    def _same(self, attribute: str) -> list[int]:
        own = self.attributes[attribute]
        return [self._mask(attribute, own[i]) & ~(1 << i) for i in range(self.count)]

    def _fold(self, node: Node, inputs: list[int]) -> int:
        verb, _, attribute = node.function.partition("_")
        match verb:
            case "scene":
                return self.everything
            case "filter":
                return inputs[0] & self._mask(attribute, ATTRIBUTES[attribute].index(node.values[0]))
            case "same":
                return self._same(attribute)[inputs[0]]
            case "query":
                return self.attributes[attribute][inputs[0]]
        value = ON_MASKS[node.function](*inputs)
        if value is None:
            raise _Invalid
        return int(value)

    def _emit(self, node: Node, inputs: list[int]) -> None:
        verb, _, attribute = node.function.partition("_")
        first, second, argument = inputs[0], inputs[-1], 0
        if verb == "greater":
            code, first, second = LESS, inputs[1], inputs[0]
        elif verb == "filter":
            value = ATTRIBUTES[attribute].index(node.values[0])
            code, second = AND, self._register(self._mask(attribute, value))
        elif verb in ("same", "query"):
            code, argument = LOOKUP, len(self.tables)
            self.tables.append(self._same(attribute) if verb == "same" else self.attributes[attribute])
        elif verb == "relate":
            code, argument = RELATE, RELATIONS.index(node.values[0])
        else:
            code = _CODES[node.function]
        target = self._register(None)
        self.homes.append(target)
        self.ops.append(_Op(code, first, second, target, argument))

    def finish(self, kind: str, invalid: bool) -> Lowered:
        kept: list[list[int]] = []
        needs: list[int] = []
        used = 0
        wanted = [0] * len(self.values)
        result = self.homes[-1]
        wanted[result] = self.everything
        for op in reversed(self.ops):
            # A `unique` is always wanted: its failure makes the program invalid even where nobody uses its output.
            if not wanted[op.target] and op.code != UNIQUE:
                continue
            start = len(needs)
            self._ask(op, wanted)
            if op.code == RELATE:
                own = self.values[op.first]
                # Nothing is beside itself, so a known object need not be compared with itself.
                asked = wanted[op.target] & ~(0 if own is None else 1 << own)
                needs += [j for j in range(self.count) if asked >> j & 1]
                used |= asked | (self.everything if own is None else 1 << own)
            kept.append([op.code, op.first, op.second, op.target, op.argument, start, len(needs)])
        return Lowered(
            kind,
            invalid,
            np.array(kept[::-1], dtype=np.int64).reshape(-1, 7),
            np.array(needs, dtype=np.int64),
            np.array([j for j in range(self.count) if used >> j & 1], dtype=np.int64),
            np.array([value or 0 for value in self.values], dtype=np.uint64),
            np.array(self.tables, dtype=np.uint64).reshape(-1, self.count),
            result,
        )

    def _ask(self, op: _Op, wanted: list[int]) -> None:
        """Pass on which bits of the inputs matter, given those of the output that do."""
        if op.code in (AND, OR):
            for me, other in ((op.first, op.second), (op.second, op.first)):
                mask = self.values[other]
                # Bits that a constant decides alone need not be computed.
                decided = 0 if mask is None else (~mask if op.code == AND else mask)
                wanted[me] |= wanted[op.target] & ~decided
        else:
            wanted[op.first] |= self.everything
            wanted[op.second] |= self.everything


assert all(output in {*ATTRIBUTES, "objects", "object", "integer", "bool"} for _, _, output in FUNCTIONS.values())
