"""The hardening matrix: does training against one disturbance help, or hurt, against the others?

Every model is trained further, with as many steps, in six ways: on plain questions, with basic questions appended, with
rephrasings, with words hidden, for cycle consistency, and on scenes that fooled it. What comes out is examined by all
probes, and compared with plain further training on the same questions and with the same seeds.

OUT/cells holds a file for every finished training, OUT/exams its run folder, OUT/weights what it learnt.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pfungst.core import PfungstError, UsageError
from pfungst.core.files import read_json
from pfungst.core.types import Progress
from pfungst.experiments.base import argument, check_known, claim, lifted, option, run_cells
from pfungst.training.config import FitConfig
from pfungst.training.cycle.config import CycleConfig

BEFORE, NONE = "before", "none"
WAYS = {
    NONE: "trained further",
    "noise": "basic questions appended",
    "rephrase": "rephrasings added",
    "hidden": "words hidden",
    "cycle": "cycle consistency",
    "scenes": "adversarial scenes",
}
"""Ways of hardening. The first changes nothing: what more training alone does is no gain of a way."""
AGAINST = {"noise": "noise", "rephrase": "rephrase", "hidden": "", "cycle": "rephrase", "scenes": "game"}
"""The probe whose disturbance a way trains against."""
BLOCKS_FILE = "blocks.json"
"""In a kit, written last: how many questions each part of its arrays has."""
PHOTOGRAPHS = "-vqa2"
"""Ending of the names of models that were trained on photographs."""


@dataclass(frozen=True)
class MatrixConfig:
    """Harden models in six ways and examine all with all probes: does one way help, or hurt, against the others?

    A matrix that was stopped continues when the same command is run again; more models, ways or seeds can be added.
    """

    models: tuple[str, ...] = argument(("rn-state", "film", "butd-vqa2"), free=True)
    """Models of the zoo. Those that end in -vqa2 learn from --photographs, all others from --data."""
    ways: tuple[str, ...] = option(tuple(WAYS), free=True)
    """Ways of hardening: none, noise, rephrase, hidden, cycle, scenes."""
    seeds: int = option(3, free=True)
    """Trainings of each model in each way."""
    data: str = option("world?split=train&scenes=800&seed=3&rephrasings=0", "--data", "-d")
    """Questions to learn from."""
    test: str = "world?scenes=120&seed=11&rephrasings=0"
    """Questions about other images, to examine with."""
    photographs: str = option("", free=True)
    """Folder of VQA v2 with its images: train is learnt from, val is examined with."""
    questions: int = 1200
    """Maximum number of questions to learn from."""
    limit: int = 240
    """Maximum number of questions to examine with."""
    pictures: int = 40
    """Maximum number of questions of the probe picture."""
    games: int = 8
    """Mini-games of 10 questions in the examination, against random legal scenes."""
    budget: int = 20
    """Moved scenes to ask about in the examination, for each question."""
    train_games: int = 40
    """Mini-games of 10 training questions that are searched for adversarial scenes."""
    train_budget: int = 50
    """Moved scenes to ask about there, for each question."""
    share: float = 0.5
    """Part of the training questions that a way puts in: noisy, rephrased, adversarial."""
    hidden: float = 0.15
    """Share of the words that are hidden."""
    fit: FitConfig = lifted(FitConfig(steps=300, batch=64, rate=2e-4), "steps", "batch", "rate")
    """A setting of the training: clip=1 ..."""
    cycle: CycleConfig = lifted(CycleConfig(start=0.4), names=("--cycle-set",))
    """A setting of the cycle: feedback=sample ... Below 1, `start` is a share of the steps."""
    seed: int = 0
    """Seed of the examination, and the first seed of the trainings."""
    device: str = option("cpu", free=True)
    """cpu, cuda, cuda:1, mps."""
    jobs: int = option(1, free=True)
    """Trainings at the same time, each in its own process."""
    prepare_only: bool = option(False, "--prepare-only", free=True)
    """Write what the trainings need and train nothing."""
    read: bool = option(False, "--read", free=True)
    """Train nothing: show the tables of what is finished."""

    def __post_init__(self) -> None:
        check_known(self.ways, WAYS, "There is no way of hardening {0!r}. There are: {1}.")
        if not self.models or min(self.seeds, self.jobs, self.games, self.train_games) < 1:
            raise UsageError("Name at least one model; seeds, jobs, games and train-games must be at least 1.")
        if not 0 < self.share < 1 or not 0 <= self.hidden < 1:
            raise UsageError("The share of disturbed questions must lie between 0 and 1, that of hidden words too.")
        if any(name.endswith(PHOTOGRAPHS) for name in self.models) and not self.photographs and not self.read:
            named = " and ".join(name for name in self.models if name.endswith(PHOTOGRAPHS))
            raise UsageError(f"Say where the photographs are that {named} is to learn from: --photographs FOLDER.")

    def sources(self, model: str) -> tuple[str, str]:
        """Data to learn from and to examine with."""
        if model.endswith(PHOTOGRAPHS):
            return f"vqa:{self.photographs}#train", f"vqa:{self.photographs}#val"
        return self.data, self.test

    def cells(self) -> dict[str, dict[str, Any]]:
        """File name -> training; seed by seed, so that a matrix cut short is still paired."""
        first = [{"model": model, "way": BEFORE, "seed": self.seed} for model in self.models]
        every = [
            {"model": model, "way": way, "seed": self.seed + number}
            for number in range(self.seeds)
            for model in self.models
            for way in self.ways
        ]
        return {f"{one['model']}-{one['way']}-{one['seed']}.json": one for one in [*first, *every]}


def run(config: MatrixConfig, out: Path, *, progress: Progress) -> dict[str, Any]:
    """Train and examine what is missing, and compare."""
    from pfungst.experiments.matrix_table import summarise

    if not config.read:
        from pfungst.experiments.matrix_training import make_kit, work

        claim(out, config)
        missing = {cell["model"] for name, cell in config.cells().items() if not (out / "cells" / name).exists()}
        for model in (name for name in config.models if name in missing):
            make_kit(model, config, out, progress)
        if config.prepare_only:
            return {"rows": [], "missing": 0, "prepared": sorted(missing)}
    cells = {name: cell for name, cell in config.cells().items() if exists(cell["way"], cell["model"], out)}
    if not config.read:
        run_cells(partial(work, config=config, out=out), cells, out / "cells", jobs=config.jobs, progress=progress)
    finished = [read_json(out / "cells" / name) for name in cells if (out / "cells" / name).exists()]
    if not finished:
        raise PfungstError(f"{out}: no training of the matrix has finished yet.")
    return {**summarise(finished), "missing": len(cells) - len(finished)}


def kit(model: str, out: Path) -> Path:
    """Folder of what the trainings of a model share."""
    return out / "kits" / model.replace("/", "-").replace(":", "-")


def exists(way: str, model: str, out: Path) -> bool:
    """Whether a model can be hardened in this way: a model on photographs has no scenes to move."""
    path = kit(model, out) / BLOCKS_FILE
    return not path.exists() or bool(read_json(path).get(way, True))
