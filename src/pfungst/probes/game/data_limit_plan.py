"""What the data-limit experiment runs, what it found, and the figure over it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import Figure, PfungstError, Series, Table
from pfungst.core.files import write_json
from pfungst.core.stats import bootstrap
from pfungst.probes.game.data_limit import HOPS
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
PERCENTS = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 75.0)


@dataclass(frozen=True)
class LimitPlan:
    """What is run."""

    objects: tuple[int, ...] = (2, 3, 4)
    hops: tuple[str, ...] = HOPS
    percents: tuple[float, ...] = PERCENTS
    """X: share of the layouts that are seen in training."""
    models: tuple[str, ...] = tuple(MODELS)
    trials: int = 10
    steps: int = 2000
    batch: int = 256
    rate: float = 1e-3
    width: int = 96
    height: int = 72
    sees: str = "pixels"
    """`pixels`: each model learns to see as well. `world`: all look at features of the world's own CNN, which comes
    with the package, fixed (pictures then have its size), as the paper's FiLM and TbD look at those of a ResNet;
    `world:FOLDER` takes another one."""
    begin: float = 1.0
    """Training begins with this percentage of all layouts and takes in more of its share until half of the steps are
    done. 0: all at once, which leaves RN at the most frequent answer where the share is large (docs/game.md)."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sees != "pixels" and self.sees.partition(":")[0] != "world":
            raise PfungstError(f"The models of the data-limit experiment see pixels or world, not {self.sees!r}.")
        for name in self.models:
            if name not in MODELS:
                raise PfungstError(f"The data-limit experiment has the models {', '.join(MODELS)}, not {name!r}.")
        if not self.percents or not all(0 < one < 100 for one in self.percents):
            raise PfungstError("The shares of layouts seen lie between 0 and 100%, both excluded.")
        if not 0 <= self.begin <= 100:
            raise PfungstError(f"Training begins with 0 to 100% of the layouts, not {self.begin:g}%.")
        for name in ("trials", "steps", "batch"):
            if getattr(self, name) < 1:
                raise PfungstError(f"The data-limit experiment needs at least 1 {name.rstrip('s')}.")

    def cells(self) -> Iterator[Cell]:
        """Every run, those of one world together; first trials of all come first."""
        for count in self.objects:
            for trial in range(self.trials):
                for hops in self.hops:
                    for percent in self.percents:
                        for model in self.models:
                            yield Cell(count, hops, percent, model, trial)


@dataclass(frozen=True)
class Cell:
    """One training run."""

    objects: int
    hops: str
    percent: float
    model: str
    trial: int

    @property
    def name(self) -> str:
        return f"{self.objects}-{self.hops}-{self.percent:g}-{self.model}-{self.trial}"


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


def claim(out: Path, plan: LimitPlan) -> None:
    """Note how cells are trained, or refuse to mix them with others. What is run may grow."""
    names = ("steps", "batch", "rate", "width", "height", "sees", "begin", "seed")
    known = {name: getattr(plan, name) for name in names}
    path = out / "plan.json"
    if path.exists():
        before = json.loads(path.read_text("utf-8"))
        for name, value in known.items():
            if before.get(name) != value:
                raise PfungstError(
                    f"{out} was begun with {name} = {before.get(name)!r}, now it is {value!r}. Choose another folder."
                )
    write_json(path, known)


def read_cells(plan: LimitPlan, out: str | Path) -> list[CellResult]:
    """The finished cells of a plan."""
    found = []
    for cell in plan.cells():
        path = Path(out) / "cells" / f"{cell.name}.json"
        if path.exists():
            record = json.loads(path.read_text("utf-8"))
            found.append(CellResult(**{**record, "cell": Cell(**record["cell"])}))
    return found


@dataclass(frozen=True)
class LimitResult:
    """Figure 2 as numbers."""

    results: tuple[CellResult, ...]
    models: tuple[str, ...] = field(default=tuple(MODELS))

    def groups(self) -> dict[tuple[int, str, float], list[CellResult]]:
        """(objects, hops, percent) -> all models and trials: the paper reports their joint average."""
        found: dict[tuple[int, str, float], list[CellResult]] = {}
        for one in self.results:
            found.setdefault((one.cell.objects, one.cell.hops, one.cell.percent), []).append(one)
        return dict(sorted(found.items(), key=lambda item: (item[0][0], HOPS.index(item[0][1]), item[0][2])))

    def figure(self) -> Figure:
        """Accuracy on unseen layouts over the share of layouts seen, one line for objects and kind of question."""
        lines: dict[str, list[tuple[float, float, float, float]]] = {}
        for (objects, hops, percent), some in self.groups().items():
            span = bootstrap([one.unseen for one in some], [one.cell.trial for one in some], draws=1000)
            lines.setdefault(f"{objects} objects, {hops}", []).append((percent, span.value, span.low, span.high))
        series = tuple(
            Series(name, *(tuple(column) for column in zip(*points, strict=True))) for name, points in lines.items()
        )
        return Figure(
            "Limits of data-driven reasoning (Figure 2)", "line", series, "% of all layouts seen in training",
            "accuracy on unseen layouts",
        )  # fmt: skip

    def table(self) -> Table:
        rows = []
        for (objects, hops, percent), some in self.groups().items():
            joint = finding("unseen", bootstrap([one.unseen for one in some], [one.cell.trial for one in some]))
            each = []
            for model in self.models:
                mine = [one.unseen for one in some if one.cell.model == model]
                each.append(float(np.mean(mine)) if mine else math.nan)
            seen = float(np.mean([one.seen for one in some]))
            shown = ["" if math.isnan(one) else f"{100 * one:.1f}%" for one in each]
            majority = float(np.mean([one.majority for one in some]))
            rows.append((objects, hops, f"{percent:g}%", joint, *shown, f"{100 * seen:.1f}%", f"{100 * majority:.1f}%"))
        columns = ("objects", "questions", "seen", "unseen, all models", *self.models, "on seen layouts", "majority")
        return Table("Accuracy on unseen layouts", columns, tuple(rows), "Intervals over trials.")


def summarise(plan: LimitPlan, results: Sequence[CellResult]) -> LimitResult:
    """The figure and table of finished cells; PfungstError where there is none."""
    if not results:
        raise PfungstError("No training run is finished yet.")
    return LimitResult(tuple(results), plan.models)
