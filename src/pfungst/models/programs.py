"""Programs as tokens: what the program generator writes and the module networks run.

A token is a function with its word (`filter_color[red]`); a program is its tree in prefix order, the last function
first. Prefix order needs no brackets, because every function takes a known number of inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError
from pfungst.models._batch import END, PAD
from pfungst.world.constants import ATTRIBUTES, RELATIONS
from pfungst.world.programs import FUNCTIONS, Node, Program, Signature

MAX_PROGRAM = 30
"""Tokens of the longest program that is read or written."""
ANSWERS = frozenset({"bool", "integer", *ATTRIBUTES})
"""What a whole program may give."""
_WORDS: Mapping[str, tuple[str, ...]] = {**ATTRIBUTES, "relation": RELATIONS}


@dataclass(frozen=True, slots=True)
class Token:
    """A function with its word."""

    function: str
    word: str = ""

    @property
    def name(self) -> str:
        return f"{self.function}[{self.word}]" if self.word else self.function

    @property
    def signature(self) -> Signature:
        return FUNCTIONS[self.function]


@cache
def tokens() -> tuple[Token | None, ...]:
    """Every token by its number; the first four numbers are no functions (padding, unknown, start, end)."""
    listed: list[Token | None] = [None] * 4
    for function, signature in FUNCTIONS.items():
        words = _WORDS[signature.values[0]] if signature.values else ("",)
        listed += [Token(function, word) for word in words]
    return tuple(listed)


@cache
def _numbers() -> dict[Token, int]:
    return {token: i for i, token in enumerate(tokens()) if token is not None}


@cache
def least_lengths() -> dict[str, int]:
    """Tokens of the shortest program that gives each kind: what must still fit when a program is written."""
    shortest: dict[str, int] = {}
    changed = True
    while changed:
        changed = False
        for signature in FUNCTIONS.values():
            if all(kind in shortest for kind in signature.inputs):
                length = 1 + sum(shortest[kind] for kind in signature.inputs)
                if length < shortest.get(signature.output, length + 1):
                    shortest[signature.output] = length
                    changed = True
    return shortest


def encode_program(
    program: Program | Sequence[Mapping[str, Any]], length: int = MAX_PROGRAM, where: str = "The program"
) -> NDArray[np.uint8]:
    """Token numbers (length,) in prefix order, then END, then PAD."""
    checked = program if isinstance(program, Program) else Program.from_json(program, where)
    numbers: list[int] = []

    def write(index: int) -> None:
        node = checked.nodes[index]
        numbers.append(_numbers()[Token(node.function, node.values[0] if node.values else "")])
        for one in node.inputs:
            write(one)

    write(len(checked.nodes) - 1)
    if len(numbers) >= length:
        raise DataError(f"{where}: it has {len(numbers)} steps; programs of at most {length - 1} can be learnt.")
    row = np.zeros(length, np.uint8)
    row[: len(numbers)] = numbers
    row[len(numbers)] = END
    return row


def decode_program(row: Sequence[int]) -> Program:
    """The program that token numbers write; DataError where they write none."""
    nodes: list[Node] = []
    rest = [int(number) for number in row if number not in (PAD, END)]
    place = 0

    def read(kind: str | None) -> int:
        nonlocal place
        token = tokens()[rest[place]] if place < len(rest) and rest[place] < len(tokens()) else None
        if token is None or (kind is not None and token.signature.output != kind):
            raise DataError(f"The tokens {rest} write no program: token {place} does not fit.")
        place += 1
        inputs = tuple(read(one) for one in token.signature.inputs)
        nodes.append(Node(token.function, inputs, (token.word,) if token.word else ()))
        return len(nodes) - 1

    read(None)
    if place != len(rest):
        raise DataError(f"The tokens {rest} write no program: {len(rest) - place} are left over.")
    return Program(tuple(nodes))


@dataclass(slots=True)
class Step:
    """One function, applied at once wherever a batch needs it by now."""

    token: Token
    nodes: list[int] = field(default_factory=list)
    """Where the results go."""
    examples: list[int] = field(default_factory=list)
    """The question each result belongs to."""
    inputs: list[list[int]] = field(default_factory=list)
    """One list an input: where it comes from."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run the programs of a batch: steps in order, and the node that holds each question's result."""

    steps: list[Step]
    roots: list[int]
    nodes: int


def plan(programs: Sequence[Sequence[int]], skip: frozenset[str] = frozenset()) -> Plan:
    """Group the steps of many programs: few calls of a module, each for many questions.

    What a question needs twice runs once. Of the functions whose inputs are known, the one with the greatest share of
    its remaining uses ready runs next, for all of them: far fewer calls than level by level.

    `skip` names functions that pass their only input on.
    """
    known: dict[tuple[int, ...], int] = {}
    nodes: list[tuple[int, ...]] = []
    arity, passes = _shape(skip)
    roots = []
    for example, row in enumerate(programs):
        # Prefix order read backwards: inputs are on the stack before the function that takes them, the first on top.
        stack: list[int] = []
        for number in reversed(row):
            if number in (PAD, END):
                continue
            takes = arity[number] if number < len(arity) else -1
            if takes < 0 or len(stack) < takes:
                raise DataError(f"The tokens {list(row)} write no program: token {number} does not fit.")
            if passes[number]:
                continue
            key = (example, number, *[stack.pop() for _ in range(takes)])
            node = known.setdefault(key, len(nodes))
            if node == len(nodes):
                nodes.append(key)
            stack.append(node)
        if len(stack) != 1:
            raise DataError(f"The tokens {list(row)} write no program: {len(stack)} results are left.")
        roots.append(stack[0])
    return Plan(_schedule(nodes), roots, len(nodes))


def _schedule(nodes: Sequence[tuple[int, ...]]) -> list[Step]:
    """Steps in an order that can be run; nodes are (example, token, inputs...)."""
    ready: dict[int, list[int]] = {}
    users: list[list[int]] = [[] for _ in nodes]
    missing = [0] * len(nodes)
    left = Counter(number for _, number, *_ in nodes)
    for node, (_, number, *sources) in enumerate(nodes):
        for one in set(sources):
            users[one].append(node)
            missing[node] += 1
        if not sources:
            ready.setdefault(number, []).append(node)
    steps = []
    while ready:
        number = max(ready, key=lambda one: (len(ready[one]) / left[one], len(ready[one]), -one))
        chosen = ready.pop(number)
        left[number] -= len(chosen)
        rows = [nodes[node] for node in chosen]
        inputs = [list(column) for column in zip(*(row[2:] for row in rows), strict=True)]
        steps.append(Step(_token(number), chosen, [row[0] for row in rows], inputs))
        for node in chosen:
            for user in users[node]:
                missing[user] -= 1
                if not missing[user]:
                    ready.setdefault(nodes[user][1], []).append(user)
    return steps


def _token(number: int) -> Token:
    token = tokens()[number]
    if token is None:
        raise DataError(f"Token {number} is no function.")
    return token


@cache
def _shape(skip: frozenset[str]) -> tuple[list[int], list[bool]]:
    """Inputs of every token (-1: it is no function), and which pass their only input on."""
    arity = [-1 if token is None else len(token.signature.inputs) for token in tokens()]
    return arity, [token is not None and token.function in skip for token in tokens()]
