"""Programs as tokens: what the program generator writes and the module networks run.

A token is a function with its word (`filter_color[red]`); a program is its tree in prefix order, the last function
first. Prefix order needs no brackets, because every function takes a known number of inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError
from pfungst.models.base import END, PAD
from pfungst.world.constants import ATTRIBUTES
from pfungst.world.programs import FUNCTIONS, WORDS, Node, Program, Signature

MAX_PROGRAM = 30
"""Tokens of the longest program that is read or written."""
ANSWERS = frozenset({"bool", "integer", *ATTRIBUTES})
"""What a whole program may give."""
Integers: TypeAlias = NDArray[np.int64]


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
        words = WORDS[signature.values[0]] if signature.values else ("",)
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


def encode_program(program: Program | Sequence[Mapping[str, Any]], where: str = "The program") -> NDArray[np.uint8]:
    """Token numbers (MAX_PROGRAM,) in prefix order, then END, then PAD."""
    checked = program if isinstance(program, Program) else Program.from_json(program, where)
    numbers: list[int] = []

    def write(index: int) -> None:
        node = checked.nodes[index]
        numbers.append(_numbers()[Token(node.function, node.values[0] if node.values else "")])
        for one in node.inputs:
            write(one)

    write(len(checked.nodes) - 1)
    if len(numbers) >= MAX_PROGRAM:
        raise DataError(f"{where}: it has {len(numbers)} steps; programs of at most {MAX_PROGRAM - 1} can be learnt.")
    row = np.zeros(MAX_PROGRAM, np.uint8)
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
            raise DataError(f"The tokens {rest} do not form a program: token {place} does not fit.")
        place += 1
        inputs = tuple(read(one) for one in token.signature.inputs)
        nodes.append(Node(token.function, inputs, (token.word,) if token.word else ()))
        return len(nodes) - 1

    read(None)
    if place != len(rest):
        raise DataError(f"The tokens {rest} do not form a program: {len(rest) - place} are left over.")
    return Program(tuple(nodes))


@dataclass(frozen=True, slots=True)
class Group:
    """n nodes that run at once: modules of one kind, whose inputs are all known by then. Sorted by token."""

    kind: str
    start: int
    """The nodes are start ... start + n - 1."""
    numbers: Integers
    """(n,) token numbers."""
    which: Integers
    """(n,) the same counted within the kind: place in `kinds(...)[kind]`."""
    examples: Integers
    """(n,) the questions they belong to."""
    inputs: Integers
    """(n, inputs of the kind) the nodes they read, all below start."""

    @property
    def stop(self) -> int:
        return self.start + len(self.numbers)


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run the programs of a batch. Node b is the scene of question b: every program begins there."""

    groups: tuple[Group, ...]
    """In an order that can be run."""
    at: Integers
    """(B, P) the node of every token, -1 where there is none. A skipped token has the node that it passes on."""
    roots: Integers
    """(B,) the node that holds each question's result."""

    @property
    def nodes(self) -> int:
        return self.groups[-1].stop


Kind: TypeAlias = Callable[[Token], str]
"""Which kind of module runs a token; all tokens of a kind take the same number of inputs."""


def by_inputs(token: Token) -> str:
    """One kind of module for every number of inputs, as in IEP."""
    return ("scene", "unary", "binary")[len(token.signature.inputs)]


@cache
def kinds(kind: Kind, skip: frozenset[str] = frozenset()) -> dict[str, tuple[int, ...]]:
    """The token numbers of every kind of module, ascending."""
    members: dict[str, list[int]] = {}
    for number, token in enumerate(tokens()):
        if token is not None and token.function not in skip:
            members.setdefault(kind(token), []).append(number)
    return {name: tuple(numbers) for name, numbers in members.items()}


def plan(programs: NDArray[Any], kind: Kind = by_inputs, skip: frozenset[str] = frozenset()) -> Plan:
    """Group the steps of many programs (B, P): few calls of a module, each for many questions.

    What a question needs twice runs once. A kind runs when all its remaining nodes are ready; while there is none, the
    kind runs whose ready nodes have the longest way to go to a root. That makes fewer groups than level by level.

    `skip` names functions that pass their only input on.
    """
    programs = np.asarray(programs, np.int64)
    first, inputs, at, roots = _read(programs, skip)
    examples, places = np.nonzero(first)
    count = len(examples)
    ids = np.full((len(programs), programs.shape[1] + 1), -1)
    ids[examples, places] = np.arange(count)
    numbers = programs[examples, places]
    # Place -1 means no input, and the last column of ids holds -1 for it.
    sources = ids[examples[:, None], inputs[examples, places]]
    members = kinds(kind, skip)
    kind_of, which = np.zeros((2, len(tokens())), np.int64)
    for i, one in enumerate(members.values()):
        kind_of[list(one)], which[list(one)] = i, np.arange(len(one))
    rounds = _schedule(kind_of[numbers], sources, _heights(inputs)[examples, places])
    order = np.lexsort((examples, numbers, rounds))
    renumbered = np.full(count + 1, -1)
    renumbered[order] = np.arange(count)
    numbers, examples, sources = numbers[order], examples[order], renumbered[sources[order]]
    starts = np.flatnonzero(np.diff(rounds[order], prepend=-1)).tolist()
    groups = []
    for start, stop in zip(starts, [*starts[1:], count], strict=True):
        name = list(members)[kind_of[numbers[start]]]
        takes = int((sources[start] >= 0).sum())
        mine = numbers[start:stop]
        groups.append(Group(name, start, mine, which[mine], examples[start:stop], sources[start:stop, :takes]))
    rows = np.arange(len(programs))
    return Plan(tuple(groups), renumbered[ids[rows[:, None], at]], renumbered[ids[rows, roots]])


def _read(programs: Integers, skip: frozenset[str]) -> tuple[NDArray[np.bool_], Integers, Integers, Integers]:
    """Where the nodes of all programs (B, P) are: a node is named by its place, the last of equal ones.

    Gives which places are nodes (B, P), the places of their inputs (B, P, 2) and the node of every place (B, P), both
    -1 for none, and the roots (B,).
    """
    count, length = programs.shape
    takes, passes = _shape(skip)
    known = np.where((programs >= 0) & (programs < len(takes)), programs, PAD)
    written = (programs != PAD) & (programs != END)
    keys, at = np.full((2, count, length), -1)
    inputs = np.full((count, length, 2), -1)
    stack = np.full((count, length + 2), -1)
    depth = np.zeros(count, np.int64)
    unfit = np.full(count, -1)
    rows = np.arange(count)
    # Prefix order read backwards: inputs are on the stack before the function that takes them, the first on top.
    for place in reversed(range(length)):
        number = known[:, place]
        arity = takes[number]
        live = written[:, place] & (unfit < 0)
        wrong = live & ((arity < 0) | (depth < arity))
        unfit[wrong] = place
        live &= ~wrong
        # Reading below the stack wraps around to its last column, which is never written: -1.
        one = np.where(arity > 0, stack[rows, depth - 1], -1)
        two = np.where(arity > 1, stack[rows, depth - 2], -1)
        key = (number * (length + 1) + one + 1) * (length + 1) + two + 1
        equal = keys == key[:, None]
        again = equal.any(1)
        node = np.where(passes[number], one, np.where(again, equal.argmax(1), place))
        new = live & ~again & ~passes[number]
        keys[new, place] = key[new]
        inputs[new, place] = np.stack([one, two], 1)[new]
        at[live, place] = node[live]
        depth = np.where(live, depth - arity, depth)
        stack[rows[live], depth[live]] = node[live]
        depth = depth + live
    for bad in np.flatnonzero((unfit >= 0) | (depth != 1))[:1]:
        row = programs[bad].tolist()
        why = f"token {row[unfit[bad]]} does not fit" if unfit[bad] >= 0 else f"{depth[bad]} results are left"
        raise DataError(f"The tokens {row} do not form a program: {why}.")
    return keys >= 0, inputs, at, stack[:, 0]


def _heights(inputs: Integers) -> Integers:
    """(B, P): steps from a node to its root, by the longest way."""
    count, length, _ = inputs.shape
    rows = np.arange(count)
    # The last column takes what goes to place -1.
    heights = np.zeros((count, length + 1), np.int64)
    for place in range(length):
        for source in inputs[:, place].T:
            heights[rows, source] = np.maximum(heights[rows, source], heights[:, place] + 1)
    return heights[:, :-1]


def _schedule(kind: Integers, sources: Integers, heights: Integers) -> Integers:
    """The round (n,) in which every node runs; sources (n, 2) are nodes, -1 for none."""
    rounds = np.full(len(kind), -1)
    done = np.zeros(len(kind) + 1, np.bool_)
    done[-1] = True
    waiting = np.arange(len(kind))
    now = 0
    while len(waiting):
        ready = done[sources[waiting]].all(1)
        mine = kind[waiting]
        share = np.bincount(mine, ready) / np.maximum(np.bincount(mine), 1)
        height = np.full(len(share), -1)
        np.maximum.at(height, mine[ready], heights[waiting[ready]])
        best = np.lexsort((share, height, share == 1))[-1]
        chosen = ready & (mine == best)
        rounds[waiting[chosen]] = now
        done[waiting[chosen]] = True
        waiting = waiting[~chosen]
        now += 1
    return rounds


@cache
def _shape(skip: frozenset[str]) -> tuple[Integers, NDArray[np.bool_]]:
    """Inputs of every token (-1: it is no function), and which pass their only input on."""
    takes = [-1 if token is None else len(token.signature.inputs) for token in tokens()]
    return np.array(takes), np.array([token is not None and token.function in skip for token in tokens()])
