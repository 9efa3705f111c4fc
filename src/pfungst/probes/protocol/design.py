"""Which harnesses are tried: an orthogonal array over the factors, not all combinations of their levels.

In an orthogonal array of strength 2 any two factors meet in all pairs of levels equally often, so that what one factor
does is not mixed up with what another does (Rao, Factorial Experiments Derivable from Combinatorial Arrangements of
Arrays). Sixteen rows hold up to five factors of four levels, eight rows one of four levels and four of two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_PRODUCTS = ((0, 0, 0, 0), (0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2))
"""Multiplication in the field of four elements; addition is XOR."""
MOST_LEVELS = 4
MOST_FACTORS = 5


@dataclass(frozen=True)
class Factor:
    """Something that harnesses do in different ways."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class Design:
    """The harnesses that are tried: a level of each factor in each row."""

    factors: tuple[Factor, ...]
    rows: tuple[tuple[str, ...], ...]

    def row(self, at: int) -> Mapping[str, str]:
        """Factor to level."""
        return {factor.name: level for factor, level in zip(self.factors, self.rows[at], strict=True)}


def crossed(factors: Sequence[Factor]) -> Design:
    """An orthogonal array over these factors: up to five, of up to four levels each.

    A factor with fewer levels than its column repeats the first of them; any two factors still meet in proportion.
    """
    wide = [factor for factor in factors if len(factor.levels) > 2]
    if len(factors) > MOST_FACTORS or any(not 1 <= len(factor.levels) <= MOST_LEVELS for factor in factors):
        raise ValueError("an array holds at most five factors of at most four levels")
    small = len(wide) <= 1 and len(factors) - len(wide) <= 4
    array = _eight(factors) if small else _sixteen(len(factors))
    rows = [
        tuple(factor.levels[symbol % len(factor.levels)] for factor, symbol in zip(factors, row, strict=True))
        for row in array
    ]
    return Design(tuple(factors), tuple(dict.fromkeys(rows)))


def _sixteen(count: int) -> list[tuple[int, ...]]:
    """The columns a, b, a + b, a + 2b, a + 3b over the field of four elements."""
    return [(a, b, a ^ b, a ^ _PRODUCTS[2][b], a ^ _PRODUCTS[3][b])[:count] for a in range(4) for b in range(4)]


def _eight(factors: Sequence[Factor]) -> list[tuple[int, ...]]:
    """A column a of four levels, and b, b + a's low bit, b + its high bit, b + both, of two."""
    rows = []
    for a in range(4):
        for b in range(2):
            two = iter((b, b ^ (a & 1) ^ (a >> 1), b ^ (a & 1), b ^ (a >> 1)))
            rows.append(tuple(a if len(factor.levels) > 2 else next(two) for factor in factors))
    return rows
