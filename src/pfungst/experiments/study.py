"""What studies have in common: trainings of models, in several ways and with several seeds, and what they score.

Every training is kept in a file of its own. All answer the same questions about the same images; so what a way gains is
a difference question by question and seed by seed, and its interval is over both, seeds and images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError, PfungstError, Series
from pfungst.core.stats import Interval, over_runs
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.base import run_cells

Floats = NDArray[np.float64]
ENDS = ("value", "low", "high")
"""What a number with its interval is called, in objects and in JSON."""


def finished(
    work: Callable[[Any], bytes] | Callable[[Any, Path], None] | None,
    cells: Mapping[str, Any],
    folder: Path,
    *,
    jobs: int = 1,
    what: str = "run",
    progress: Progress = no_progress,
) -> tuple[list[Path], int]:
    """Do the trainings that FOLDER does not hold yet; the files of those that are finished, and how many are not.

    work, cells : as for `run_cells`; without work nothing is trained, and what is there is taken
    what : a training is called in a sentence
    """
    if work is not None:
        run_cells(work, cells, folder, jobs=jobs, progress=progress)
    files = [folder / name for name in cells if (folder / name).exists()]
    if not files:
        raise PfungstError(f"{folder}: no {what} has finished yet.")
    return files, len(cells) - len(files)


def missing_note(count: int, what: str = "run") -> str:
    """What a table says where trainings are missing."""
    return f" {count} {what}s are missing: run the same command again." if count else ""


def by_seed(runs: Sequence[Mapping[str, Any]], **about: Any) -> dict[int, Mapping[str, Any]]:
    """Seed -> run, of those about which this holds."""
    return {run["seed"]: run for run in runs if about.items() <= run.items()}


@dataclass(frozen=True)
class Scores:
    """What several runs score on the same questions."""

    values: Floats
    """(runs, questions); NaN where a score is unknown."""
    images: Any
    """(questions,) the image of each."""
    bounds: tuple[float, float] = (0.0, 1.0)

    def __sub__(self, other: Scores) -> Scores:
        """What these runs gain over other ones, question by question."""
        if self.values.shape != other.values.shape:
            raise DataError("Runs that were asked different questions cannot be compared.")
        return Scores(self.values - other.values, self.images, (-1.0, 1.0))

    def mean(self) -> Interval:
        """Mean and 95% interval, over seeds and images, as both were drawn."""
        return over_runs(self.values, self.images, bounds=self.bounds)

    def interval(self) -> dict[str, float]:
        """The same as results hold it."""
        return span(self.mean())

    def by_seed(self) -> list[float]:
        """The mean of every run; NaN where no score is known."""
        return [float(np.nanmean(row)) if np.isfinite(row).any() else math.nan for row in self.values]

    def summary(self) -> dict[str, Any]:
        """The interval, and the mean of every run."""
        return {**self.interval(), "by_seed": self.by_seed()}


def over_seeds(values: Sequence[float]) -> dict[str, float]:
    """Mean and 95% interval of a value per seed, by Student's t; one seed has none."""
    from scipy.stats import t

    count, mean = len(values), float(np.mean(values))
    if count < 2:
        return {"value": mean, "low": math.nan, "high": math.nan}
    half = float(t.ppf(0.975, count - 1) * np.std(values, ddof=1) / math.sqrt(count))
    return {"value": mean, "low": mean - half, "high": mean + half}


def span(interval: Interval) -> dict[str, float]:
    """An interval as results hold it."""
    return {end: getattr(interval, end) for end in ENDS}


def cell(number: Any, digits: int = 1, sign: str = "", scale: float = 100, ends: bool = True) -> str:
    """A number with its interval in a table, in percent: `36.6 [35.1, 38.0]`; a dash for None, text as it is.

    number : a mapping or an object with value, low and high
    sign : `+` for a difference
    ends : whether the interval is shown, where there is one
    """
    if number is None or isinstance(number, str | int | float):
        return "–" if number is None else str(number)
    value, low, high = (scale * (number[end] if isinstance(number, Mapping) else getattr(number, end)) for end in ENDS)
    text = f"{value:{sign}.{digits}f}"
    return text if math.isnan(low) or not ends else f"{text} [{low:.{digits}f}, {high:.{digits}f}]"


def side(number: Mapping[str, float]) -> int:
    """Where an interval lies: 1 above 0, -1 below it, 0 where it holds 0."""
    return 1 if number["low"] > 0 else -1 if number["high"] < 0 else 0


def line(name: str, places: Sequence[Any], numbers: Sequence[Any]) -> Series:
    """Numbers with their intervals as one line of a figure."""
    rows = [[one[end] if isinstance(one, Mapping) else getattr(one, end) for one in numbers] for end in ENDS]
    return Series(name, tuple(places), *map(tuple, rows))
