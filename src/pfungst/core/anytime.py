"""An interval that stays valid however often one looks: a confidence sequence for a mean of differences.

A 95% interval is made for a number of questions fixed beforehand. Whoever looks after every hundred and stops at the
first interval that pleases is wrong more often than that. A confidence sequence is right at all times at once with
probability 95%, so one may stop whenever one likes, for whatever reason.

The one here is by betting ("Estimating means of bounded random variables by betting", Waudby-Smith and Ramdas). Images
come in random order, image t with m_t questions whose differences sum to S_t. If theta is the mean difference of a
question, S_t - theta m_t is zero on average, and nobody gets rich by betting that it is positive:

    K_t(theta) = prod_i ( 1 + min(b_i, c / (M (1 + theta))) (S_i - theta m_i) )      M: questions of the largest image

is a martingale, and by Ville's inequality passes 2 / alpha at any time with probability alpha / 2 at most. What theta
made the bet pay off as much is excluded from below; the same bets on the negative differences exclude from above. K_t
falls in theta, so what is left is an interval. Questions of one image may depend on each other in any way.

The bets b_i may depend on all images before i. To reach a half-width e as soon as possible they are e * mean(m) / V, V
the variance of S - theta m so far: constant bets of this size give a half-width of e after n images, n least. Where
no half-width is aimed at they shrink as the paper's predictable plug-in does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pfungst.core.stats import Floats, Interval

MOST_LOST = 0.9
"""c: most of the capital that one image may cost. Any number below 1 is valid."""
PRIOR_IMAGES = 8
"""As if so many images of the largest size, whose questions differ by a half, had come before the first: else a few
images without a difference make the bets too large. Fewer make noisy drops take longer, more do so to quiet ones."""
_STEPS = 30  # of the bisection: to 2e-9


@dataclass(frozen=True)
class ConfidenceSequence:
    """Differences between -1 and 1, image by image in random order, bet on.

    sums, sizes: of each image, the sum of its differences and how many they are.
    largest: questions of the largest image that could come.
    aim: the half-width that the bets are made for. It changes how soon the interval is narrow, never its validity.
        None: no width in particular, as narrow as can be after however many images.
    """

    sums: Floats
    sizes: Floats
    largest: float
    aim: float | None
    level: float = 0.95

    @classmethod
    def of(
        cls, sums: Sequence[float], sizes: Sequence[float], *, largest: float, aim: float | None
    ) -> ConfidenceSequence:
        return cls(np.asarray(sums, np.float64), np.asarray(sizes, np.float64), float(largest), aim)

    def interval(self) -> Interval:
        """Mean, interval and one-sided bounds after the last image. Whole range where nothing is known."""
        questions = float(self.sizes.sum())
        mean = float(self.sums.sum()) / questions if questions else math.nan
        alpha = 1.0 - self.level
        low, at_least = (self._lower(1.0, share) for share in (alpha / 2, alpha))
        high, at_most = (0.0 - self._lower(-1.0, share) for share in (alpha / 2, alpha))
        how = "confidence sequence by betting, valid at any stopping time"
        return Interval(mean, low, high, round(questions), len(self.sizes), how, at_least, at_most)

    def p(self) -> float:
        """p-value, valid at any stopping time, of a mean of zero: two-sided, from the largest capital so far."""
        most = max(float(self.log_capital(0.0, sign).max(initial=0.0)) for sign in (1.0, -1.0))
        return min(1.0, 2.0 * math.exp(-most))

    def log_capital(self, theta: float, sign: float = 1.0) -> Floats:
        """log K_t after each image, (images,): of bets that the mean is above theta, or below it where sign is -1."""
        capital: Floats = np.cumsum(self._gains(theta, sign))
        return capital

    def _lower(self, sign: float, share: float) -> float:
        """The mean (of the negative differences where sign is -1) is larger than this."""
        bar = -math.log(share)
        low, high = -1.0, 1.0
        if not len(self.sums) or self._last(low, sign) < bar:
            return low
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._last(middle, sign) >= bar else (low, middle)
        return low

    def _last(self, towards: float, sign: float) -> float:
        return float(self._gains(sign * towards, sign).sum())

    def _gains(self, theta: float, sign: float) -> Floats:
        """What each image adds to log K."""
        towards = sign * theta
        room = self.largest * (1.0 + towards)
        bets = self._bets if room <= 0 else np.minimum(self._bets, MOST_LOST / room)
        gains: Floats = np.log1p(bets * (sign * self.sums - towards * self.sizes))
        return gains

    @cached_property
    def _bets(self) -> Floats:
        """b_i, each from the images before it and those of the prior."""
        sums, sizes, largest = self.sums, self.sizes, self.largest
        count = PRIOR_IMAGES + np.arange(float(len(sums)))
        total = _before(sizes) + PRIOR_IMAGES * largest
        mean = _before(sums) / total
        spread = _before(sums**2) - 2 * mean * _before(sums * sizes) + mean**2 * _before(sizes**2)
        variance = (np.maximum(spread, 0.0) + PRIOR_IMAGES * largest**2 / 4) / count
        if self.aim is None:
            # The predictable plug-in of the paper (its Eq. 26): sqrt(2 log(2 / alpha) / (V t log(1 + t))).
            widths: Floats = np.sqrt(2 * math.log(2 / (1 - self.level)) / (variance * count * np.log1p(count)))
            return widths
        bets: Floats = self.aim * (total / count) / variance
        return bets


def _before(values: Floats) -> Floats:
    """Sums of all values before each."""
    return np.concatenate([[0.0], np.cumsum(values)[:-1]])
