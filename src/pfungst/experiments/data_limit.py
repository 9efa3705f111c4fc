"""Figure 2 of Measuring CLEVRness: how much of all layouts must a model see to be right on the rest?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import Figure, Table, UsageError
from pfungst.core.files import jsonable, read_json
from pfungst.core.settings import restored
from pfungst.core.stats import Interval, interval_of
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.base import Experiment, check_known, claim, here, option
from pfungst.experiments.study import finished, line, missing_note
from pfungst.probes.measure import finding

MODELS: dict[str, dict[str, Any]] = {
    "rn": {"word_size": 32, "hidden": 64, "relation": (128, 128, 128), "classifier": (128, 128), "dropout": 0.0,
           "stem": (24, 32, 32, 32)},
    "film": {"word_size": 32, "hidden": 96, "channels": 48, "blocks": 3, "projection": 96, "classifier": 96,
             "stem": (24, 32, 48)},
    "tbd": {"word_size": 32, "hidden": 96, "layers": 1, "channels": 32, "dilations": (1, 2, 4, 1), "projection": 24,
            "classifier": 96, "stem": (24, 32, 32)},
}  # fmt: skip
"""The paper's three players, small: their worlds have two to four objects."""
HOPS = ("onehop", "twohop", "mixhop")
PERCENTS = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 75.0)


@dataclass(frozen=True)
class DataLimitConfig:
    """Figure 2 of Measuring CLEVRness: how much of all layouts must a model see to be right on the rest?

    All ways to place 2, 3 or 4 objects on a 7x7 grid, with questions of one and two reasoning steps. The whole figure
    (`--objects 2,3,4 --trials 10`) takes a GPU: `--device cuda --jobs 6`.
    """

    objects: tuple[int, ...] = option((2,), free=True)
    """Objects on the grid: 2, 3 or 4."""
    hops: tuple[str, ...] = option(HOPS, free=True)
    """Kinds of questions: onehop, twohop, mixhop."""
    percents: tuple[float, ...] = option(PERCENTS, "--percent", free=True)
    """Share of the layouts seen in training, in percent."""
    models: tuple[str, ...] = option(tuple(MODELS), "--model", free=True)
    """Models to train: rn, film, tbd."""
    trials: int = option(1, free=True)
    """Trials, each with other layouts; the paper has 10."""
    steps: int = 2000
    """Training steps of a run."""
    batch: int = 256
    """Questions per step."""
    rate: float = 1e-3
    """Highest learning rate."""
    width: int = 96
    """Width of an image in pixels."""
    height: int = 72
    """Height of an image in pixels."""
    sees: str = "pixels"
    """What the models see: pixels, world or world:FOLDER. With `pixels` each model learns to see as well. With
    `world` all look at the fixed features of the world's own CNN, which comes with the package (images then have its
    size), as the paper's FiLM and TbD look at those of a ResNet; `world:FOLDER` takes another one."""
    begin: float = 1.0
    """Percentage of all layouts that training begins with. It takes in more of its share until half of the steps are
    done. 0: all at once, which leaves RN at the most frequent answer where the share is large
    (docs/explanation/game.md)."""
    seed: int = 0
    """Seed of every random choice."""
    device: str = option("cpu", free=True)
    """Where models are trained, such as cpu, cuda, cuda:1 or mps."""
    jobs: int = option(1, free=True)
    """Training runs at once, each in its own process."""
    read: bool = option(False, "--read", free=True)
    """Train nothing and show what the folder holds."""

    def __post_init__(self) -> None:
        if self.sees != "pixels" and self.sees.partition(":")[0] != "world":
            raise UsageError(f"The models of the data-limit experiment see pixels or world, not {self.sees!r}.")
        check_known(self.models, MODELS, "The data-limit experiment has the models {1}, not {0!r}.")
        check_known(self.hops, HOPS, "There is no kind of question {0!r}; there are {1}.")
        if not self.percents or not all(0 < percent < 100 for percent in self.percents):
            raise UsageError("The shares of layouts seen must lie between 0 and 100%, both excluded.")
        if not 0 <= self.begin <= 100:
            raise UsageError(f"Training begins with 0 to 100% of the layouts, not {self.begin:g}%.")
        for name in ("trials", "steps", "batch", "jobs"):
            if getattr(self, name) < 1:
                raise UsageError(f"The data-limit experiment's {name} must be at least 1, not {getattr(self, name)}.")

    def cells(self) -> Iterator[Cell]:
        """Every training run, those of one world together; the first trials of all come first."""
        parts = product(self.objects, range(self.trials), self.hops, self.percents, self.models)
        return (Cell(count, hops, percent, model, trial) for count, trial, hops, percent, model in parts)


@dataclass(frozen=True)
class Cell:
    """One training run."""

    objects: int
    hops: str
    percent: float
    model: str
    trial: int

    @property
    def file(self) -> str:
        return f"{self.objects}-{self.hops}-{self.percent:g}-{self.model}-{self.trial}.json"


@dataclass(frozen=True)
class CellResult:
    """How it ended."""

    cell: Cell
    seen: float
    """Accuracy on layouts it was trained on."""
    unseen: float
    """Accuracy on all others."""
    majority: float
    """Of always giving the most frequent answer of each question."""
    layouts: int
    seconds: float


@dataclass(frozen=True)
class DataLimitResult:
    """Figure 2 as numbers."""

    results: tuple[CellResult, ...]
    models: tuple[str, ...] = tuple(MODELS)
    missing: int = 0
    """Training runs that are not finished."""

    def groups(self) -> dict[tuple[int, str, float], list[CellResult]]:
        """(objects, hops, percent) -> all models and trials: the paper reports their joint average."""
        groups: dict[tuple[int, str, float], list[CellResult]] = {}
        for result in self.results:
            cell = result.cell
            groups.setdefault((cell.objects, cell.hops, cell.percent), []).append(result)
        return dict(sorted(groups.items(), key=lambda item: (item[0][0], HOPS.index(item[0][1]), item[0][2])))


def run(config: DataLimitConfig, out: Path, *, progress: Progress = no_progress) -> DataLimitResult:
    """Train every model that OUT/cells does not have yet. The images are drawn once, into OUT/images."""
    folder, work = out / "cells", None
    cells = {cell.file: jsonable(cell) for cell in config.cells()}
    by_run = no_progress if here(config.jobs) else progress
    if not config.read:
        from pfungst.experiments.data_limit_training import keep_images

        claim(out, config)
        if any(not (folder / name).exists() for name in cells):
            for count in config.objects:
                keep_images(config, count, out / "images", progress)

        def show(what: str, step: int, steps: int) -> None:
            done = sum((folder / name).exists() for name in cells)
            progress(f"training steps · {what}", done * steps + step, len(cells) * steps)

        work = partial(_work, config, out / "images", progress=show if here(config.jobs) else no_progress)
    files, missing = finished(work, cells, folder, jobs=config.jobs, what="training run", progress=by_run)
    results = tuple(restored(read_json(path), CellResult) for path in files)
    return DataLimitResult(results, config.models, missing)


def _work(config: DataLimitConfig, images: Path, shard: Any, progress: Progress = no_progress) -> bytes:
    """One training run, here or in a process of its own."""
    from pfungst.experiments.data_limit_training import load_data, train_cell

    cell = Cell(**shard.payload)
    result = train_cell(config, cell, load_data(config, cell.objects, images), progress)
    return json.dumps(jsonable(result), indent=1).encode()


def tables(result: DataLimitResult) -> list[Table]:
    """Accuracy on unseen layouts, one row for objects, questions and share seen."""
    rows = []
    for (objects, hops, percent), some in result.groups().items():
        joint = finding("unseen", interval_of([one.unseen for one in some], [one.cell.trial for one in some]))
        each = [_mean([one.unseen for one in some if one.cell.model == model]) for model in result.models]
        seen, majority = _mean([one.seen for one in some]), _mean([one.majority for one in some])
        trials = len({one.cell.trial for one in some})
        rows.append((objects, hops, f"{percent:g}%", trials, joint, *each, seen, majority))
    columns = (
        "objects",
        "questions",
        "seen",
        "trials",
        "unseen, all models",
        *result.models,
        "on seen layouts",
        "majority",
    )
    return [
        Table(
            "Accuracy on unseen layouts",
            columns,
            tuple(rows),
            f"Intervals over trials.{missing_note(result.missing, 'training run')}",
        )
    ]


def _mean(shares: Sequence[float]) -> str:
    return f"{100 * float(np.mean(shares)):.1f}%" if shares else ""


def figures(result: DataLimitResult) -> list[Figure]:
    """Accuracy on unseen layouts over the share of layouts seen, one line for objects and kind of question."""
    lines: dict[str, dict[float, Interval]] = {}
    for (objects, hops, percent), some in result.groups().items():
        interval = interval_of([one.unseen for one in some], [one.cell.trial for one in some])
        lines.setdefault(f"{objects} objects, {hops}", {})[percent] = interval
    series = tuple(line(name, [*points], [*points.values()]) for name, points in lines.items())
    title, label = "Limits of data-driven reasoning (Figure 2)", "% of all layouts seen in training"
    return [Figure(title, "line", series, label, "accuracy on unseen layouts")]


EXPERIMENT = Experiment("data-limit", DataLimitConfig, run, tables, figures)
