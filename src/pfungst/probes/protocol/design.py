"""Which harnesses are tried: an orthogonal array over the factors, not all combinations of their levels.

In an orthogonal array of strength 2 any two factors meet in all pairs of levels equally often, so that what one factor
does is not mixed up with what another does (Rao, Factorial Experiments Derivable from Combinatorial Arrangements of
Arrays). Sixteen rows hold up to five factors of four levels, eight rows one of four levels and four of two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_PRODUCTS = ((0, 0, 0, 0), (0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2))
"""Multiplication in the field of four elements; addition is XOR."""
MOST_LEVELS = 4
MOST_FACTORS = 5


def crossed(factors: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """The harnesses that are tried, a level of each factor in each: an orthogonal array over these factors, up to five,
    of up to four levels each.

    A factor with fewer levels than its column repeats the first of them; any two factors still meet in proportion.
    """
    if len(factors) > MOST_FACTORS or any(not 1 <= len(levels) <= MOST_LEVELS for levels in factors.values()):
        raise ValueError("an array holds at most five factors of at most four levels")
    wide = [len(levels) > 2 for levels in factors.values()]
    array = _eight(wide) if sum(wide) <= 1 and wide.count(False) <= 4 else _sixteen(len(factors))
    rows = (
        tuple(levels[symbol % len(levels)] for levels, symbol in zip(factors.values(), row, strict=True))
        for row in array
    )
    return [dict(zip(factors, row, strict=True)) for row in dict.fromkeys(rows)]


def _sixteen(count: int) -> list[tuple[int, ...]]:
    """The columns a, b, a + b, a + 2b, a + 3b over the field of four elements."""
    return [(a, b, a ^ b, a ^ _PRODUCTS[2][b], a ^ _PRODUCTS[3][b])[:count] for a in range(4) for b in range(4)]


def _eight(wide: Sequence[bool]) -> list[tuple[int, ...]]:
    """A column a of four levels for a wide factor, and b, b + a's low bit, b + its high bit, b + both, of two."""
    rows = []
    for a in range(4):
        for b in range(2):
            two = iter((b, b ^ (a & 1) ^ (a >> 1), b ^ (a & 1), b ^ (a >> 1)))
            rows.append(tuple(a if four else next(two) for four in wide))
    return rows
