"""Enforcers: they refuse scenes that a fair game must not show. Each checks one thing; a game composes them.

The scene-constraint enforcer of the paper (section 4, appendix B.2) is `count`, `bounds`, `gap`, `margin` and `pixels`
together, the question-relevance enforcer is `relevance`. All look at many layouts at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from pfungst.probes.game.board import Board, Bools, Floats, Ints
from pfungst.probes.game.rules import GameRules
from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.legal import Rules, is_legal


class Enforcer(Protocol):
    """One rule. `name` says in a word what a refused scene broke."""

    @property
    def name(self) -> str: ...

    def allows(self, board: Board, positions: Floats) -> Bools:
        """Which layouts (layouts, objects, 2) keep the rule, (layouts,)."""
        ...


@dataclass(frozen=True)
class Count:
    """As many objects as a CLEVR scene has."""

    least: int
    most: int
    name: str = "count"

    def allows(self, board: Board, positions: Floats) -> Bools:
        return np.full(len(positions), self.least <= len(board) <= self.most)


@dataclass(frozen=True)
class Bounds:
    """x and y within [-bound, bound]."""

    bound: float
    name: str = "bounds"

    def allows(self, board: Board, positions: Floats) -> Bools:
        return np.asarray((np.abs(positions) <= self.bound).all(axis=(1, 2)))


@dataclass(frozen=True)
class Legal:
    """What rules of the world ask for, see `gap` and `margin`."""

    name: str
    rules: Rules

    def allows(self, board: Board, positions: Floats) -> Bools:
        return is_legal(board.scene, positions, self.rules)


def gap(rules: Rules) -> Legal:
    """Room between any two objects; `rules` says how their distance is measured."""
    return Legal("gap", replace(rules, margin=0.0, bound=math.inf))


def margin(least: float) -> Legal:
    """No two objects so close along a direction that a relation is hard to see."""
    return Legal("margin", Rules(gap=-math.inf, margin=least, bound=math.inf))


@dataclass(frozen=True)
class Relevance:
    """The question still has its answer: the program is run on the moved scene."""

    name: str = "relevance"

    def allows(self, board: Board, positions: Floats) -> Bools:
        return board.moved.codes(positions).equal(board.truth)


@dataclass(frozen=True)
class Pixels:
    """Every object shows at least `least` pixels in an image of this size."""

    least: int
    width: int = DEFAULT_WIDTH
    height: int = DEFAULT_HEIGHT
    name: str = "pixels"

    def allows(self, board: Board, positions: Floats) -> Bools:
        return board.sight(self.width, self.height).allows(positions, self.least)


@dataclass(frozen=True)
class Enforcers:
    """Enforcers in a row: a layout is refused by the first it offends, and later ones never see it."""

    parts: tuple[Enforcer, ...]

    @classmethod
    def of(cls, rules: GameRules) -> Enforcers:
        """Those of a game, the cheap ones first."""
        count, legality = Count(rules.min_objects, rules.max_objects), rules.in_force
        pixels = Pixels(legality.min_pixels, rules.width or DEFAULT_WIDTH, rules.height or DEFAULT_HEIGHT)
        if rules.ood:
            return cls((count, gap(legality), Relevance(), pixels))
        inside = Bounds(legality.bound)
        return cls((count, inside, gap(legality), margin(legality.margin), Relevance(), pixels))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts)

    def without(self, *names: str) -> Enforcers:
        """The same enforcers but these."""
        return Enforcers(tuple(part for part in self.parts if part.name not in names))

    def judge(self, board: Board, positions: Floats) -> Ints:
        """For each layout the number of the enforcer that refuses it, -1 where all agree."""
        verdict = np.full(len(positions), -1, dtype=np.int64)
        left = np.arange(len(positions))
        for number, part in enumerate(self.parts):
            if not len(left):
                break
            good = part.allows(board, positions[left])
            verdict[left[~good]] = number
            left = left[good]
        return verdict

    def allow(self, board: Board, positions: Floats) -> Bools:
        """Which layouts all enforcers agree to."""
        return np.asarray(self.judge(board, positions) < 0)
