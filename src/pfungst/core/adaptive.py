"""Asking no more than needed: a probe is asked about images in random order until its drop is known well enough.

The random order is that of the seed and the same for all probes, so that they share their clean questions. After every
round the probe with the widest interval is asked next. The intervals are confidence sequences (`core.anytime`), which
hold at any stopping time. Without a precision to reach, a budget of queries or of money is shared in the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pfungst.core.anytime import ConfidenceSequence
from pfungst.core.errors import BudgetSpent, UsageError
from pfungst.core.stats import Interval
from pfungst.core.types import AnsweredTrial, Example, Finding, Findings, Probe, Trial

FIRST_ROUND = 32
"""Images of the first round; every later one asks about an eighth of those before it, and at least as many."""
FIRST_OF_A_BUDGET = 8
"""The same where a budget is shared: it may be small."""
GROWTH = 8

_MONEY = re.compile(
    r"(?:[$\u20ac\u00a3\u00a5]|[A-Za-z]{3})?\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:[$\u20ac\u00a3\u00a5]|[A-Za-z]{3})?"
)

Answering = Callable[[str, Sequence[Trial]], Sequence[AnsweredTrial]]
"""Has trials of a probe answered and scored; those that lack an answer are left out."""


@dataclass(frozen=True)
class Stop:
    """Where a probe stopped asking, and what its drop is. Written to findings.json."""

    precision: float | None
    """The half-width that was asked for, None where a budget was shared."""
    images: int
    """Asked about."""
    of: int
    """Images that the probe could have asked about."""
    drop: Interval | None
    """None where the drop is no mean of paired differences: then everything was asked."""
    p: float = math.nan

    @property
    def half_width(self) -> float:
        return math.nan if self.drop is None else (self.drop.high - self.drop.low) / 2

    def sentence(self, probe: str) -> str:
        """For the user at the end of the run."""
        if self.drop is None:
            return f"{probe}: asked in full: only a drop that is a mean over questions can be tracked during the run."
        many = f"{self.images:,} of {self.of:,} images"
        if self.precision is None:
            return (
                f"{probe}: asked about {many} for the budget, the drop is known to ±{100 * self.half_width:.1f} points."
            )
        if self.half_width <= self.precision:
            return f"{probe}: stopped after {many}, the drop is known to ±{100 * self.half_width:.1f} points."
        why = "everything was asked" if self.images == self.of else "the budget is spent"
        return (
            f"{probe}: the drop is known to ±{100 * self.half_width:.1f} points only, not ±{100 * self.precision:.1f}: "
            f"{why} ({many})."
        )


def check_precision(precision: float) -> None:
    if not 0 < precision < 1:
        raise UsageError(f"The precision must be between 0 and 1, such as 0.02 for ±2 points, but is {precision:g}.")


def money(text: str) -> float:
    """An amount of money from a text such as `5$`, `$5` or `2.50 EUR`: the number, in whatever currency prices are."""
    found = _MONEY.fullmatch(text.strip())
    amount = float(found[1]) if found else 0.0
    if not 0 < amount < math.inf:
        raise UsageError(f"The budget must be an amount of money such as 5$ or 2.50, not {text!r}.")
    return amount


def ask_in_rounds(
    probes: Sequence[Probe],
    trials: Mapping[str, Sequence[Trial]],
    examples: Mapping[str, Example],
    answer: Answering,
    *,
    precision: float | None,
    seed: int,
    images: Mapping[str, int] | None = None,
) -> tuple[dict[str, list[Trial]], dict[str, Stop]]:
    """The trials that were asked, in their order, and where each probe stopped.

    precision: the half-width at which a probe stops; None: only the end of the budget, or of the images, stops it.
    images: how many images each probe asks about, where an earlier reading of the same answers decided it.
    """
    order = _order(examples.values(), seed)
    courses = [_Course(probe, trials[probe.name], examples, order, precision, seed) for probe in probes]
    fixed = images or {}
    # What cannot stop early is asked first, so that a budget is left to what can.
    for course in courses:
        if course.name in fixed:
            course.ask(answer, min(fixed[course.name], course.of))
        elif not course.follows:
            course.ask(answer, course.of)
    running = [course for course in courses if not course.asked]
    while running:
        widest = max(running, key=lambda course: course.half_width)
        try:
            widest.ask(answer, widest.next_round)
        except BudgetSpent as error:
            if late := [course.name for course in courses if not course.asked]:
                raise BudgetSpent(
                    f"{error} It did not reach the first images of every probe ({', '.join(late)}): allow more, or "
                    "leave a probe out."
                ) from error
            break
        running = [course for course in running if not course.done()]
    return {one.name: one.trials() for one in courses}, {one.name: one.stop() for one in courses}


def stopped(found: Findings, stop: Stop) -> Findings:
    """The findings of a probe that was stopped: its drop has the interval and the p-value that hold nevertheless."""
    drop, interval = found.drop, stop.drop
    if drop is None or interval is None:
        return found
    held = replace(
        drop, low=interval.low, high=interval.high, at_least=interval.at_least, at_most=interval.at_most,
        p=stop.p, p_holm=None, how=f"{interval.how}; p-value by the same bets, for this drop only",
    )  # fmt: skip

    def hold(cell: Any) -> Any:
        same = isinstance(cell, Finding) and replace(cell, name=drop.name) == drop
        return replace(held, name=cell.name) if same else cell

    tables = (replace(table, rows=tuple(tuple(map(hold, row)) for row in table.rows)) for table in found.tables)
    why = (
        "as many as the budget allowed"
        if stop.precision is None
        else f"for a drop within {100 * stop.precision:g} points"
    )
    told = (
        f"Asked about {stop.images:,} of {stop.of:,} images, {why}: it is "
        f"{100 * drop.value:.1f}% [{100 * held.low:.1f}, {100 * held.high:.1f}], an interval that allows for stopping "
        "early; other intervals do not."
    )
    return replace(
        found, rows=tuple(map(hold, found.rows)), drop=held, tables=tuple(tables), verdict=f"{found.verdict} {told}"
    )


class _Course:
    """One probe on its way: its images in random order, and those asked about so far."""

    def __init__(
        self,
        probe: Probe,
        trials: Sequence[Trial],
        examples: Mapping[str, Example],
        order: Mapping[str, int],
        precision: float | None,
        seed: int,
    ) -> None:
        self._places: dict[str, list[int]] = {}
        for at, trial in enumerate(trials):
            self._places.setdefault(_image(examples[trial.example_id]), []).append(at)
        self._images = sorted(self._places, key=lambda image: order[image])
        self._probe, self._trials, self._precision, self._seed = probe, trials, precision, seed
        self._answered: dict[str, list[AnsweredTrial]] = {}
        self._headline: tuple[str, str] | None = None
        self._sums: list[float] = []
        self._sizes: list[float] = []
        self._so_far: Stop | None = None
        self.name = probe.name
        self.of = len(self._images)
        self.asked = 0
        self.follows = not probe.searches
        """Whether the drop can be followed while the probe asks."""

    @property
    def next_round(self) -> int:
        least = FIRST_OF_A_BUDGET if self._precision is None else FIRST_ROUND
        return min(self.of, self.asked + max(least, self.asked // GROWTH)) if self.follows else self.of

    @property
    def half_width(self) -> float:
        return self._so_far.half_width if self.follows and self._so_far is not None else math.inf

    def ask(self, answer: Answering, images: int) -> None:
        """Ask about the first so many images."""
        block = self._images[self.asked : images]
        for one in answer(self.name, [self._trials[at] for image in block for at in self._places[image]]):
            self._answered.setdefault(_image(one.example), []).append(one)
        self.asked = images
        if self.follows and self._headline is None:
            self._headline = _headline(self._findings())
            self.follows = self._headline is not None
        if self.follows:
            self._follow(block)

    def done(self) -> bool:
        """Whether nothing more need be asked."""
        enough = self._precision is not None and self.half_width <= self._precision
        return self.asked == self.of or (enough and self.stop().drop is not None)

    def trials(self) -> list[Trial]:
        """What was asked, in the order of the data."""
        places = sorted(at for image in self._images[: self.asked] for at in self._places[image])
        return [self._trials[at] for at in places]

    def stop(self) -> Stop:
        """Where it is. A probe whose own drop is not the mean that was followed is followed no longer."""
        found = self._so_far
        if self.follows and found is not None:
            drop = self._findings().drop
            self.follows = drop is not None and found.drop is not None and abs(drop.value - found.drop.value) < 1e-9
            if self.follows:
                return found
        return Stop(self._precision, self.asked, self.of, None)

    def _findings(self) -> Findings:
        return self._probe.findings([one for some in self._answered.values() for one in some], self._seed)

    def _follow(self, block: Sequence[str]) -> None:
        """Add the differences of these images to the drop so far."""
        for image in block:
            known = [one for one in map(self._difference, self._answered.get(image, ())) if not math.isnan(one)]
            self._sums.append(sum(known))
            self._sizes.append(len(known))
        largest = max(len(places) for places in self._places.values())
        sequence = ConfidenceSequence.of(self._sums, self._sizes, largest=largest, aim=self._precision)
        self._so_far = Stop(self._precision, self.asked, self.of, sequence.interval(), sequence.p())

    def _difference(self, trial: AnsweredTrial) -> float:
        """Clean minus disturbed score of an example, NaN where one of them is unknown or was not asked."""
        if self._probe.has("lost"):
            return self._probe.lost(trial)
        assert self._headline is not None
        clean, disturbed = self._headline
        names = [variant.name for variant in trial.trial.variants]
        before = [score for name, score in zip(names, trial.scores, strict=True) if name == clean]
        after = [score for name, score in zip(names, trial.scores, strict=True) if name == disturbed]
        if not after and disturbed not in self._variants:
            after = [score for name, score in zip(names, trial.scores, strict=True) if name != clean]
        return before[0] - sum(after) / len(after) if before and after else math.nan

    @cached_property
    def _variants(self) -> frozenset[str]:
        return frozenset(variant.name for trial in self._trials for variant in trial.variants)


def _headline(found: Findings) -> tuple[str, str] | None:
    """The conditions that a probe's drop is between; the second is no variant where it is the mean of several."""
    if found.drop is None or found.clean is None or found.disturbed is None:
        return None
    return found.clean.condition, found.disturbed.condition


def _image(example: Example) -> str:
    return example.cluster


def _order(examples: Iterable[Example], seed: int) -> dict[str, int]:
    """The place of every image in a random order."""
    images = list(dict.fromkeys(map(_image, examples)))
    places = np.random.default_rng(seed).permutation(len(images))
    return {image: int(place) for image, place in zip(images, places, strict=True)}
