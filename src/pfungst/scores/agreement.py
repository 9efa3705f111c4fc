"""How far a judge can be trusted, and what an accuracy is worth that it measured.

A judge says right or wrong; people, or the judge itself asked again, say it too. Agreement beyond chance is Cohen's
kappa (1960). Against people a judge has a sensitivity (right answers that it calls right) and a specificity (wrong
answers that it calls wrong), and from these an accuracy a that it measured is corrected by Rogan and Gladen (1978):

    true accuracy = (a + specificity - 1) / (sensitivity + specificity - 1)
    true drop     = drop / (sensitivity + specificity - 1)        the same judge in both conditions

The interval carries the uncertainty of all three: each is drawn from its posterior under Jeffreys' prior, and the
percentiles of the corrected values are taken. Unlike the closed form of Lang and Reiczigel (2014), with which
benchmarks/judge_interval.py compares it, this serves drops as well. Several questions about one image count as fewer:
counts are divided by the design effect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core.stats import Interval, Labels, design_effect, interval_of, percentiles

DRAWS = 4000
MOST_USELESS = 0.025
"""Largest share of draws in which the judge is no better than a coin: beyond it nothing can be corrected."""

LEAST_POSSIBLE = 0.01
"""Smallest share of corrected draws that are possible, an accuracy from 0 to 1: below it the labels do not fit."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """A judge held against people, on the same answers."""

    right_called_right: int
    right_called_wrong: int
    wrong_called_right: int
    wrong_called_wrong: int
    """Counts: what people say, called what by the judge."""
    share: Interval
    """Answers on which both agree."""
    kappa: Interval
    sensitivity: Interval
    specificity: Interval
    worth_right: float = 1.0
    worth_wrong: float = 1.0
    """What a label of a right and of a wrong answer is worth: less than 1 where several belong to one image."""

    @property
    def n(self) -> int:
        return self.right + self.wrong

    @property
    def right(self) -> int:
        return self.right_called_right + self.right_called_wrong

    @property
    def wrong(self) -> int:
        return self.wrong_called_right + self.wrong_called_wrong

    @property
    def no_correction(self) -> str:
        """Why no accuracy can be corrected with this agreement, in words; empty where it can."""
        if not self.right or not self.wrong:
            missing = "right" if not self.right else "wrong"
            return f"none of the labelled answers is {missing}, so one of the judge's two error rates is unknown"
        if self.sensitivity.value + self.specificity.value <= 1:
            return "sensitivity and specificity add up to 1 or less, so the judge knows no more than a coin"
        useless = float((self.draws(np.random.default_rng(0))[1] <= 0).mean())
        if useless > MOST_USELESS:
            return f"{self.n} labels are too few to tell the judge from a coin"
        return ""

    def draws(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Specificity and sensitivity + specificity - 1, (DRAWS,) each, from their posterior."""
        right, wrong = self.worth_right, self.worth_wrong
        specificity = rng.beta(wrong * self.wrong_called_wrong + 0.5, wrong * self.wrong_called_right + 0.5, DRAWS)
        sensitivity = rng.beta(right * self.right_called_right + 0.5, right * self.right_called_wrong + 0.5, DRAWS)
        return specificity, sensitivity + specificity - 1


def agreement(judge: Sequence[bool], people: Sequence[bool], clusters: Sequence[Any], *, seed: int = 0) -> Agreement:
    """Hold what a judge says against what people say about the same answers."""
    if len(judge) != len(people):
        raise ValueError(f"{len(judge)} judgements but {len(people)} labels")
    hits, misses, false_alarms, rejections = (sum(pair == cell for pair in zip(people, judge)) for cell in _CELLS)
    same = [float(j == h) for j, h in zip(judge, people)]
    worth = []
    for word in (True, False):
        some = [(float(j), image) for j, h, image in zip(judge, people, clusters, strict=True) if bool(h) == word]
        worth.append(_effective([j for j, _ in some], [image for _, image in some]) / len(some) if some else 1.0)
    return Agreement(
        hits, misses, false_alarms, rejections,
        interval_of(same, clusters), cohen_kappa(judge, people, clusters, seed=seed),
        proportion(hits, hits + misses, worth[0]), proportion(rejections, false_alarms + rejections, worth[1]), *worth,
    )  # fmt: skip


_CELLS = ((True, True), (True, False), (False, True), (False, False))


def proportion(hits: int, n: int, worth: float = 1.0, level: float = 0.95) -> Interval:
    """A share with its exact interval (Clopper and Pearson, 1934); NaN of nothing.

    worth: what one of the n counts for, less than 1 where several belong to one image.
    """
    from scipy.stats import beta

    how = "exact (Clopper-Pearson)" + (f", {n} worth {worth * n:.1f}" if worth < 1 else "")
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, 0, how)

    def low(alpha: float) -> float:
        return float(beta.ppf(alpha, worth * hits, worth * (n - hits) + 1)) if hits else 0.0

    def high(alpha: float) -> float:
        return float(beta.ppf(1 - alpha, worth * hits + 1, worth * (n - hits))) if hits < n else 1.0

    two, one = (1 - level) / 2, 1 - level
    return Interval(hits / n, low(two), high(two), n, n, how, low(one), high(one))


def cohen_kappa(first: Sequence[bool], second: Sequence[bool], clusters: Sequence[Any], *, seed: int = 0) -> Interval:
    """Cohen's kappa: agreement beyond chance, 1 at most. NaN where both always say the same one word.

    The interval is that of the posterior under Jeffreys' prior on the four counts.
    """
    how = "posterior of the four counts, Jeffreys' prior"
    counts = np.array([sum(pair == cell for pair in zip(first, second, strict=True)) for cell in _CELLS], np.float64)
    n, groups = int(counts.sum()), len(set(clusters))
    if n in (counts[0], counts[3]):
        return Interval(math.nan, math.nan, math.nan, n, groups, f"{how}: only one word was said, kappa is undefined")
    value = float(_kappa_of(counts[None, :] / n)[0])
    if groups < 2:
        return Interval(value, math.nan, math.nan, n, groups, f"{how}: one cluster, no interval")
    same = [float(a == b) for a, b in zip(first, second)]
    shrunk = counts * _effective(same, clusters) / n
    drawn = np.random.default_rng(seed).dirichlet(shrunk + 0.5, DRAWS)
    return _interval(value, _kappa_of(drawn), n, groups, how)


def _kappa_of(shares: Floats) -> Floats:
    """(N, 4) shares of yes-yes, yes-no, no-yes, no-no -> (N,) kappa."""
    agree = shares[:, 0] + shares[:, 3]
    one, two = shares[:, 0] + shares[:, 1], shares[:, 0] + shares[:, 2]
    chance = one * two + (1 - one) * (1 - two)
    return (agree - chance) / (1 - chance)


def rogan_gladen(accuracy: float, sensitivity: float, specificity: float) -> float:
    """The accuracy corrected for the judge's errors, in [0, 1]; NaN where the judge is no better than a coin.

    >>> round(rogan_gladen(0.70, 0.90, 0.80), 4)
    0.7143
    """
    youden = sensitivity + specificity - 1
    if not youden > 0:
        return math.nan
    return min(1.0, max(0.0, (accuracy + specificity - 1) / youden))


def corrected_accuracy(
    scores: Sequence[float] | Floats, clusters: Labels, judge: Agreement, *, seed: int = 0
) -> Interval:
    """Mean of right/wrong scores, corrected by Rogan and Gladen; NaN where no correction is possible.

    Unknown (NaN) scores are left out.
    """
    values, labels = _known(np.asarray(scores, np.float64), clusters)
    n, groups = len(values), len(set(labels))
    if judge.no_correction or n == 0 or groups < 2:
        return _none(n, groups, judge)
    right = float(values.mean())
    size = _effective(values.tolist(), labels)
    rng = np.random.default_rng(seed)
    measured = rng.beta(size * right + 0.5, size * (1 - right) + 0.5, DRAWS)
    specificity, youden = judge.draws(rng)
    useful = youden > 0
    drawn = (measured + specificity - 1)[useful] / youden[useful]
    value = rogan_gladen(right, judge.sensitivity.value, judge.specificity.value)
    return _corrected(value, drawn, (0.0, 1.0), n, groups)


def corrected_drop(
    clean: Sequence[float] | Floats,
    disturbed: Sequence[float] | Floats,
    clusters: Labels,
    judge: Agreement,
    *,
    seed: int = 0,
) -> Interval:
    """Mean of clean minus disturbed right/wrong scores, corrected; NaN where no correction is possible.

    The judge is taken to have the same error rates in both conditions. Pairs with an unknown (NaN) score are left out.
    """
    pairs = np.stack([np.asarray(clean, np.float64), np.asarray(disturbed, np.float64)])
    differences, labels = _known(pairs[0] - pairs[1], clusters)
    n, groups = len(differences), len(set(labels))
    if judge.no_correction or n == 0 or groups < 2:
        return _none(n, groups, judge)
    shrink = _effective(differences.tolist(), labels) / n
    lost, won = float(np.clip(differences, 0, None).sum()), float(np.clip(-differences, 0, None).sum())
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet([lost * shrink + 0.5, won * shrink + 0.5, (n - lost - won) * shrink + 0.5], DRAWS)
    _, youden = judge.draws(rng)
    useful = youden > 0
    value = float(differences.mean()) / (judge.sensitivity.value + judge.specificity.value - 1)
    corrected = (drawn[:, 0] - drawn[:, 1])[useful] / youden[useful]
    return _corrected(min(1.0, max(-1.0, value)), corrected, (-1.0, 1.0), n, groups)


_HOW = "Rogan-Gladen, posterior of accuracy, sensitivity and specificity, Jeffreys' prior"


def _corrected(value: float, drawn: Floats, bounds: tuple[float, float], n: int, groups: int) -> Interval:
    """The interval of corrected draws, some of which may be beyond what is possible.

    Cut off at the bound they say how far the interval reaches that way; left out, how far it reaches the other way. The
    wider of both is taken.
    """
    possible = drawn[(drawn >= bounds[0]) & (drawn <= bounds[1])]
    if len(possible) < LEAST_POSSIBLE * len(drawn):
        why = (
            "the judge's error rates on the labelled answers do not allow what it said here; label answers of this run"
        )
        return Interval(math.nan, math.nan, math.nan, n, groups, f"no correction: {why}")
    one, two = (_interval(value, some, n, groups, _HOW) for some in (possible, np.clip(drawn, *bounds)))
    return replace(
        one,
        low=min(one.low, two.low),
        high=max(one.high, two.high),
        at_least=min(one.at_least, two.at_least),
        at_most=max(one.at_most, two.at_most),
    )


def _none(n: int, groups: int, judge: Agreement) -> Interval:
    why = judge.no_correction or ("nothing was judged" if n == 0 else "one cluster, no interval")
    return Interval(math.nan, math.nan, math.nan, n, groups, f"no correction: {why}")


def _known(values: Floats, clusters: Labels) -> tuple[Floats, list[Any]]:
    known = ~np.isnan(values)
    return values[known], [label for label, keep in zip(clusters, known, strict=True) if keep]


def _effective(values: Sequence[float], clusters: Sequence[Any]) -> float:
    """How many independent values these are worth: n over the design effect; one a cluster where all are alike."""
    groups = len(set(clusters))
    effect = design_effect(values, clusters) if groups < len(values) else 1.0
    return float(groups) if math.isnan(effect) else len(values) / max(1.0, effect)


def _interval(value: float, drawn: Floats, n: int, groups: int, how: str) -> Interval:
    """Percentiles of the draws. At the edge of what is possible the posterior stays inside: the value counts too."""
    low, high, at_least, at_most = percentiles(drawn).tolist()
    return Interval(value, min(low, value), max(high, value), n, groups, how, min(at_least, value), max(at_most, value))
