"""The hardening matrix: does training against one disturbance help, or hurt, against the others?

Every model is trained further, with as many steps, in six ways: on plain questions, with basic questions appended, with
rephrasings, with words hidden, for cycle consistency, and on scenes that fooled it. What comes out is examined by all
probes, and compared with plain further training on the same questions and with the same seeds.

OUT/cells holds a file for every finished training, OUT/exams its run folder, OUT/weights what it learnt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import DataError, Figure, Run, Table, UsageError
from pfungst.core.files import read_json
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, argument, check_known, claim, lifted, option
from pfungst.experiments.study import Scores, by_seed, cell, finished, line, missing_note, side
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
    work = None
    if not config.read:
        from pfungst.experiments.matrix_training import make_kit, train_and_examine

        claim(out, config)
        missing = {one["model"] for name, one in config.cells().items() if not (out / "cells" / name).exists()}
        for model in (name for name in config.models if name in missing):
            make_kit(model, config, out, progress)
        if config.prepare_only:
            return {"rows": [], "missing": 0, "prepared": sorted(missing)}
        work = partial(train_and_examine, config=config, out=out)
    cells = {name: one for name, one in config.cells().items() if exists(one["way"], one["model"], out)}
    files, left = finished(
        work, cells, out / "cells", jobs=config.jobs, what="training of the matrix", progress=progress
    )
    return {**summarise([read_json(path) for path in files]), "missing": left}


def kit(model: str, out: Path) -> Path:
    """Folder of what the trainings of a model share."""
    return out / "kits" / model.replace("/", "-").replace(":", "-")


def exists(way: str, model: str, out: Path) -> bool:
    """Whether a model can be hardened in this way: a model on photographs has no scenes to move."""
    path = kit(model, out) / BLOCKS_FILE
    return not path.exists() or bool(read_json(path).get(way, True))


LEAST = 10
"""Questions below which a probe says nothing about a model."""
Row = Mapping[str, Any]


def _disturbed(rows: Sequence[Row]) -> float:
    """The mean over all disturbed variants; the first is the clean one."""
    return float(np.mean([row["score"] for row in rows[1:]])) if len(rows) > 1 else math.nan


def _of(*names: str) -> Callable[[Sequence[Row]], float]:
    """The score of the first of these variants that there is."""

    def read(rows: Sequence[Row]) -> float:
        found = {row["variant"]: float(row["score"]) for row in rows}
        return next((found[name] for name in names if name in found), math.nan)

    return read


@dataclass(frozen=True)
class Measure:
    """A column of the matrix."""

    probe: str
    read: Callable[[Sequence[Row]], float]
    """The score of one question, from the rows of its trial."""
    about: str
    keeps: bool = True
    """Whether a higher score is better; without the image it is not: it says how much is guessed."""


MEASURES = {
    "clean": Measure("control", _of("clean"), "unchanged questions"),
    "noise": Measure("noise", _disturbed, "basic questions appended, mean of seven levels"),
    "rephrase": Measure("rephrase", _disturbed, "in other words"),
    "surface": Measure("surface", _disturbed, "typed differently, mean of all edits"),
    "decoys": Measure("decoys", _of("QoU+IoU"), "among decoys of QoU and IoU"),
    "picture": Measure("picture", _disturbed, "images disturbed at severity 3, mean of all operations"),
    "game": Measure("game", _of("moved"), "after random legal scenes were tried"),
    "contrast": Measure("contrast", lambda rows: float(min(row["score"] for row in rows)), "all of a contrast group"),
    "blind": Measure(
        "blind", _of("question only"), "without the image, where a higher score means better guessing", False
    ),
}
"""Accuracies, each of the questions of one probe."""


def measured(name: str, folder: Path) -> dict[str, Any] | None:
    """Ids, images and scores of one measure, from a run; None where its probe did not run."""
    measure, read = MEASURES[name], Run(folder)
    if not folder.is_dir() or measure.probe not in read.probes:
        return None
    groups: dict[str, list[Row]] = {}
    columns = ("example_id", "image_id", "variant", "score")
    for row in read.table(measure.probe, columns).to_pylist():
        row["score"] = math.nan if row["score"] is None else row["score"]
        groups.setdefault(row["example_id"], []).append(row)
    scores = {key: measure.read(rows) for key, rows in groups.items()}
    known = [key for key, score in scores.items() if not math.isnan(score)]
    return {
        "ids": known,
        "images": [groups[key][0]["image_id"] for key in known],
        "scores": [round(scores[key], 6) for key in known],
    }


def summarise(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All rows of the matrix: accuracies, and differences to plain further training with the same seeds."""
    rows = []
    for model in dict.fromkeys(run["model"] for run in runs):
        plain = by_seed(runs, model=model, way=NONE)
        for way in (BEFORE, *WAYS):
            mine = by_seed(runs, model=model, way=way)
            if mine:
                rows.append(_row(model, way, mine, plain if way not in (BEFORE, NONE) else {}))
    return {"rows": rows}


def _row(
    model: str, way: str, runs: Mapping[int, Mapping[str, Any]], plain: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    first = next(iter(runs.values()))
    shared = sorted(runs.keys() & plain.keys())
    row: dict[str, Any] = {"model": model, "way": way, "seeds": len(runs), "paired": len(shared)}
    row["accuracy"], row["gain"], row["n"] = {}, {}, {}
    row["gates"] = [run["gate"] for run in runs.values() if "gate" in run]
    for name in first["scores"]:
        scores = _scores([*runs.values()], name)
        count = scores.values.shape[1]
        if count < LEAST:
            continue
        row["accuracy"][name] = scores.summary()
        row["n"][name] = count
        if shared:
            mine, other = (_scores([some[seed] for seed in shared], name) for some in (runs, plain))
            gain = mine - other
            row["gain"][name] = {**gain.summary(), "changed": int(np.count_nonzero(gain.values))}
    return row


def _scores(runs: Sequence[Mapping[str, Any]], name: str) -> Scores:
    parts = [run["scores"][name] for run in runs]
    if any(part["ids"] != parts[0]["ids"] for part in parts):
        raise DataError(f"The trainings of {runs[0]['model']} were asked different questions by the probe {name}.")
    return Scores(np.asarray([part["scores"] for part in parts], np.float64), parts[0]["images"])


def matrix_tables(result: Mapping[str, Any]) -> list[Table]:
    """What each way gains over plain further training, what it has, and whether the gain passes on."""
    rows = result["rows"]
    if not rows:
        return [Table("Prepared", ("model",), tuple((name,) for name in result.get("prepared", ())))]
    names = [name for name in MEASURES if any(name in row["accuracy"] for row in rows)]
    gains, sure, told = [], 0, 0
    for row in rows:
        if row["way"] == NONE:
            cells = [cell(row["accuracy"].get(name), ends=False) for name in names]
            gains.append((row["model"], f"{WAYS[NONE]} (accuracy)", row["seeds"], *cells))
        elif row["gain"]:
            told += len(row["gain"])
            sure += sum(side(one) != 0 for one in row["gain"].values())
            cells = [_points(row["gain"].get(name)) for name in names]
            gains.append((row["model"], WAYS[row["way"]], row["paired"], *cells))
    about = "; ".join(f"{name}: {MEASURES[name].about}" for name in names)
    note = (
        "Points of accuracy gained over plain further training with the same steps, on the same questions and with the "
        f"same seeds; 95% intervals over seeds and images. {sure} of {told} intervals exclude 0; without any "
        f"effect about {0.05 * told:.0f} would. – : the data do not support this probe, or for fewer than {LEAST} "
        f"questions. Columns: {about}.{missing_note(result['missing'], 'training')}"
    )
    absolute = [
        (
            row["model"],
            WAYS.get(row["way"], "as it came"),
            row["seeds"],
            *(cell(row["accuracy"].get(n), ends=False) for n in names),
        )
        for row in rows
    ]
    return [
        Table("What hardening gains", ("model", "way", "seeds", *names), tuple(gains), note),
        _passed_on(rows),
        Table(
            "Accuracies behind it", ("model", "way", "seeds", *names), tuple(absolute), "In percent, means over seeds."
        ),
    ]


def _passed_on(rows: Sequence[Mapping[str, Any]]) -> Table:
    """For each way: the gain against its own disturbance, and against which others it helps or hurts."""
    lines = []
    for row in rows:
        if not row["gain"]:
            continue
        own = AGAINST[row["way"]]
        others = {
            name: side(one) for name, one in row["gain"].items() if name not in ("clean", own) and MEASURES[name].keeps
        }
        lines.append(
            (
                row["model"], WAYS[row["way"]], _points(row["gain"].get(own)) if own else "–",
                _points(row["gain"].get("clean")),
                ", ".join(name for name, sign in others.items() if sign > 0) or "none",
                ", ".join(name for name, sign in others.items() if sign < 0) or "none",
                sum(sign == 0 for sign in others.values()),
            )
        )  # fmt: skip
    columns = ("model", "way", "own probe", "clean", "other probes it helps", "it hurts", "not shown")
    note = "Helps, hurts: the interval of the gain lies above or below 0. Own probe: whose disturbance was trained on."
    return Table("Does it pass on?", columns, tuple(lines), note)


def matrix_figures(result: Mapping[str, Any]) -> list[Figure]:
    """The gains of one model each, by probe and way; without `blind`, where more is not better."""
    found = []
    for model in dict.fromkeys(row["model"] for row in result["rows"]):
        series = []
        for row in result["rows"]:
            gains = row["gain"] if row["model"] == model else {}
            if gains:
                names = [name for name, measure in MEASURES.items() if measure.keeps and name in gains]
                series.append(line(WAYS[row["way"]], names, [gains[name] for name in names]))
        if series:
            title = f"{model}: gain over plain further training"
            found.append(Figure(title, "bar", tuple(series), "probe", "accuracy gained"))
    return found


def _points(number: Mapping[str, float] | None) -> str:
    if number is not None and number["changed"] == 0:
        return "0.0 (all the same)"
    return cell(number, sign="+")


EXPERIMENT = Experiment("matrix", MatrixConfig, run, matrix_tables, matrix_figures)
