"""How much of a score is the harness: the variance of accuracy over harnesses, split by factor.

Accuracy under harness h is a_h, the mean over questions. Over the C harnesses of an orthogonal array its variance is
exactly the sum of what the factors do and a rest, what they do only together:

    1/C sum_h (a_h - a)^2  =  sum_f sum_l n_l/C (a_fl - a)^2  +  rest      a_fl: mean over the n_l harnesses of level l

A mean over n questions is off by chance, and squares of chance add up. So from each term its expected square under
resampled images is taken off, which makes the estimate unbiased; its root, in points of accuracy, is what is told.

The interval inverts the test: with g the measured contrasts, e_b their errors in resample b and u = g / |g|, the true
length t is ruled out where |t u + e_b| exceeds |g|, or falls short of it, in fewer than 2.5% of the resamples. It
allows for a true length of zero, where plain percentiles do not. Its upper end is never below what chance alone reaches
in 95% of the resamples: effects as small as that cannot be ruled out, however well gains and losses happen to cancel.

Which harnesses are tried is an orthogonal array of strength 2 over the factors, not all combinations of their levels:
any two factors meet in all pairs of levels equally often, so that what one factor does is not mixed up with what
another does (Rao, Factorial Experiments Derivable from Combinatorial Arrangements of Arrays). Sixteen rows hold up to
five factors of four levels, eight rows one of four levels and four of two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pfungst.core.stats import Floats, Interval, interval_of, percentiles

_PRODUCTS = ((0, 0, 0, 0), (0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2))
"""Multiplication in the field of four elements; addition is XOR."""
MOST_LEVELS = 4
MOST_FACTORS = 5
TOTAL, REST = "all", "together"
DRAWS = 2000
_STEPS = 40  # of the bisection
_CHUNK = 4_000_000  # random integers held at once


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


# --- the variance by factor -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """What one factor does to accuracy."""

    name: str
    spread: float
    """Standard deviation of accuracy over its levels, corrected for chance."""
    low: float
    high: float
    share: float
    """Of the variance of all parts together."""
    share_low: float
    share_high: float
    p: float
    """Of no effect at all: share of resamples whose errors alone are as large."""


@dataclass(frozen=True)
class Split:
    """The parts: the factors, then `together`; and the whole."""

    parts: tuple[Part, ...]
    total: Part
    accuracy: tuple[Interval, ...]
    """Of each harness."""
    n: int
    clusters: int


def split(
    scores: Floats | Sequence[Sequence[float]],
    clusters: Sequence[Any],
    levels: Mapping[str, Sequence[str]],
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> Split:
    """The variance of accuracy over harnesses by factor.

    scores: (harnesses, questions). clusters: the image of each question. levels: of each factor, its level in each
        harness; the harnesses must be an orthogonal array in them.
    """
    values = np.asarray(scores, np.float64)
    known = np.flatnonzero(~np.isnan(values).any(axis=0)).tolist()
    labels = [clusters[at] for at in known]
    values, groups = values[:, known], len(set(labels))
    if not labels:
        empty = [Part(name, *[math.nan] * 7) for name in (*levels, REST, TOTAL)]
        return Split(tuple(empty[:-1]), empty[-1], (interval_of([], []),) * len(values), 0, 0)
    means = values.mean(1)
    resampled = _resampled(values, labels, seed, draws)
    errors = resampled - means
    # Where all images agree the bootstrap collapses: a share of images up to this may be otherwise, see `core.stats`.
    alike = 1.0 - 0.025 ** (1.0 / groups)
    contrasts = {name: _between(list(of)) for name, of in levels.items()}
    whole = np.eye(len(means)) - 1.0 / len(means)
    rest = whole - sum(contrasts.values(), np.zeros_like(whole))
    found = {name: _Measured.of(matrix, means, errors) for name, matrix in {**contrasts, REST: rest}.items()}
    freedom = len(means) - 1 - sum(len(set(of)) - 1 for of in levels.values())
    if freedom < 1:
        del found[REST]
    drawn = np.array([one.drawn for one in found.values()]).reshape(len(found), -1)
    variances = np.array([one.variance for one in found.values()])
    shares = _shares(variances[:, None])[:, 0]
    varying = _shares(drawn)
    varying = varying[:, ~np.isnan(varying).any(0)]
    enough = varying.shape[1] > 0
    ranges = percentiles(varying.T)[:2] if enough else np.full((2, len(found)), np.nan)
    parts = [
        one.part(name, float(share), (float(low), float(high)), alike)
        for (name, one), share, low, high in zip(found.items(), shares, *ranges, strict=True)
    ]
    total = _Measured.of(whole, means, errors).part(TOTAL, 1.0, (1.0, 1.0), alike)
    accuracy = tuple(interval_of(row, labels) for row in values)
    return Split(tuple(parts), total, accuracy, len(labels), groups)


def _resampled(values: Floats, labels: Sequence[Any], seed: int, draws: int) -> Floats:
    """Means of every harness over resampled images, (draws, harnesses); NaN with fewer than two images."""
    numbers: dict[Any, int] = {}
    codes = np.array([numbers.setdefault(label, len(numbers)) for label in labels])
    groups = len(numbers)
    if groups < 2:
        return np.full((draws, len(values)), np.nan)
    sums = np.stack([np.bincount(codes, weights=row, minlength=groups) for row in values])
    counts = np.bincount(codes, minlength=groups).astype(np.float64)
    rng, step = np.random.default_rng(seed), max(1, _CHUNK // groups)
    means = []
    for start in range(0, draws, step):
        times = rng.multinomial(groups, np.full(groups, 1.0 / groups), min(step, draws - start)).astype(np.float64)
        means.append(times @ sums.T / (times @ counts)[:, None])
    return np.concatenate(means)


def _between(levels: Sequence[str]) -> Floats:
    """The projection from harnesses to the means of their levels, less the overall mean."""
    codes = np.unique(np.asarray(levels), return_inverse=True)[1]
    same: Floats = (codes[:, None] == codes[None, :]).astype(np.float64)
    matrix: Floats = same / same.sum(1, keepdims=True) - 1.0 / len(levels)
    return matrix


def _shares(variances: Floats) -> Floats:
    """(parts, draws) to shares of each column's sum; NaN where nothing varies."""
    kept = np.maximum(variances, 0.0)
    total = kept.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Floats = np.where(total > 0, kept / total, np.nan)
    return shares


@dataclass(frozen=True)
class _Measured:
    """One term of the split, before it is told."""

    length: float
    """|g|: root mean square of the contrasts as measured."""
    along: Floats
    """e_b along g, (draws,)."""
    errors: Floats
    """|e_b|^2, (draws,)."""
    drawn: Floats
    """The corrected variance in each resample, (draws,)."""

    @classmethod
    def of(cls, matrix: Floats, means: Floats, errors: Floats) -> _Measured:
        count = math.sqrt(len(means))
        contrast, off = matrix @ means / count, errors @ matrix.T / count
        length = float(np.linalg.norm(contrast))
        square = (off**2).sum(1)
        along = off @ (contrast / max(length, 1e-12))
        # In a resample chance counts twice: that of the questions at hand, and that of drawing them again.
        drawn = ((contrast + off) ** 2).sum(1) - 2 * square.mean()
        return cls(length, along, square, drawn)

    @property
    def variance(self) -> float:
        """Corrected for chance; it may fall below zero."""
        return self.length**2 - float(self.errors.mean()) if not np.isnan(self.errors).any() else self.length**2

    def part(self, name: str, share: float, shares: tuple[float, float], alike: float) -> Part:
        spread = math.sqrt(max(0.0, self.variance))
        if np.isnan(self.errors).any():
            return Part(name, spread, math.nan, math.nan, share, math.nan, math.nan, math.nan)
        if float(self.errors.max()) < 1e-20:
            # Scores between 0 and 1 have a standard deviation of a half at most.
            rest, less = 0.5 * alike, (1.0 - alike) * spread
            p = 1.0 if spread < 1e-12 else 0.0
            return Part(name, spread, max(0.0, less - rest), max(spread, less + rest), share, *shares, p)
        reached = (self.errors >= self.length**2 - 1e-15).sum()
        p = (int(reached) + 1) / (len(self.errors) + 1)
        low, high = self._ends()
        return Part(name, spread, min(low, spread), max(high, spread), share, *shares, p)

    def _ends(self) -> tuple[float, float]:
        """The least and the largest true length that the measured one does not rule out."""
        least, most = 0.0, self.length + math.sqrt(float(self.errors.max())) + 1e-12
        low = _root(lambda true: self._beyond(true) - 0.025, least, most) if self._beyond(0.0) < 0.025 else 0.0
        high = _root(lambda true: 0.025 - self._within(true), least, most)
        return low, max(high, math.sqrt(float(percentiles(self.errors)[-1])))

    def _beyond(self, true: float) -> float:
        """Share of resamples in which a true length would be measured at least as long as it was."""
        return float((self._measured(true) >= self.length**2 - 1e-15).mean())

    def _within(self, true: float) -> float:
        """Share of resamples in which it would be measured at most as long."""
        return float((self._measured(true) <= self.length**2 + 1e-15).mean())

    def _measured(self, true: float) -> Floats:
        squares: Floats = true**2 + 2 * true * self.along + self.errors
        return squares


def _root(function: Any, low: float, high: float) -> float:
    """Where a function that rises passes zero, by bisection."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if function(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
