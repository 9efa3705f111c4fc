"""Models on photographs: what they answer, and what the image is worth to them.

The six models of Assessing the Robustness of VQA (LSTM Q+I, HieCoAtt on two backbones, MUTAN without and with
attention, MLB) and the three of Cycle-Consistency for Robust VQA (BUTD, Pythia, BAN), trained on VQA v2 over frozen
grid features; where the papers have regions of a detector, the cells of the grid take their place. Each has a twin of
the same architecture that learns from the questions alone (HieCoAtt has one for both backbones). A share of the
training images is held out: on these, and nowhere else, settings are chosen and each training is stopped. The tables
come from the validation split.

OUT/NAME-vqa2.safetensors (fp16, seed 0) and .json are what the package ships. Needs `pfungst[torch]` and the packages
of the backbones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import Dataset, Table, UsageError
from pfungst.core.files import read_json
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, argument, check_known, claim, lifted, option, run_cells
from pfungst.experiments.study import Scores, cell, side
from pfungst.scores.vqa import vqa_accuracy
from pfungst.training.config import FitConfig


@dataclass(frozen=True)
class Row:
    """One model of the tables."""

    model: str
    large: bool
    """Whether it looks through the larger backbone."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    rate: float = 3e-3
    """Learning rate: the better of those tried on the held-out images. So is the twin's."""
    twin_rate: float = 3e-3
    start: bool = False
    """Whether it begins with words and GRU of the embedded sentence encoder, as its paper's does with skip-thoughts."""


_READER = {"word_size": 128, "hidden": 256}
"""Of the embedded sentence encoder."""
_HIECOATT = {"hidden": 96, "top": 192}
ROWS: dict[str, Row] = {
    "lstm-qi": Row("lstm-qi", False, {"word_size": 64, "hidden": 112, "fusion": 160, "classifier": 160}, 1e-3),
    "hiecoatt": Row("hiecoatt", False, _HIECOATT, twin_rate=1e-3),
    "hiecoatt-large": Row("hiecoatt", True, _HIECOATT, twin_rate=1e-3),
    "mutan": Row(
        "mutan", True,
        {**_READER, "question_core": 128, "picture_core": 128, "output_core": 128},
        1e-3, 1e-3, start=True,
    ),
    "mutan-att": Row(
        "mutan-att", True,
        {**_READER, "attention_core": 48, "attention_output": 80, "question_core": 96, "picture_core": 96,
         "output_core": 112},
        1e-3, 1e-3, start=True,
    ),
    "mlb": Row("mlb", True, {**_READER, "joint": 96}, start=True),
    "butd": Row("butd", True, {"word_size": 64, "hidden": 144}),
    "pythia": Row("pythia", True, {"word_size": 64, "hidden": 112, "joint": 160, "picture_branch": 128}),
    "ban": Row("ban", True, {"word_size": 64, "hidden": 96, "glimpses": 2}),
}  # fmt: skip
"""Small, so that the weights of all nine take 17 MB."""
VERDICTS = {1: "yes", 0: "not shown", -1: "no: it does harm"}
"""Whether the image is worth anything, by the side of 0 on which the interval lies."""
NOISE_PAPERS = ("lstm-qi", "hiecoatt", "hiecoatt-large", "mutan", "mutan-att", "mlb")
"""LQI, HAV, HAR, MU, MUA and MLB there."""
FIT = FitConfig(epochs=22, batch=512, weight_decay=0.01, schedule="constant", average=0.99, patience=6)
SUFFIX = "-vqa2"
TYPES = {"Other": "other", "Num": "number", "Y/N": "yes/no", "All": ""}
"""Columns of the papers' tables, and the answer type behind each."""


@dataclass(frozen=True)
class PhotographsConfig:
    """Train the models of the papers on photographs, each with a twin that sees no image."""

    folder: Path = argument()
    """VQA v2 with its images: the official files of the splits train and val."""
    models: tuple[str, ...] = option(tuple(ROWS), free=True)
    """Rows of the tables."""
    small: str = "efficientnet-lite0"
    """Features of lstm-qi and hiecoatt."""
    large: str = "efficientnet-lite2"
    """Features of all others."""
    rates: tuple[float, ...] = ()
    """Learning rates, of which each model and each twin gets the best for it on the held-out images. Without any, those
    that were found so before."""
    dropout: float = 0.3
    """Dropout in all models and twins."""
    dropouts: tuple[float, ...] = ()
    """Dropouts, of which each model and each twin gets the best for it, with its rate. Without any, the above."""
    seeds: int = option(5, free=True)
    """Runs of each of the six models of the noise papers, and of its twin."""
    other_seeds: int = option(1, free=True)
    """Runs of butd, pythia and ban, and of their twins."""
    held: float = 0.1
    """Share of the training images on which settings are chosen and trainings are stopped."""
    answers: int = 1000
    """Answers that the models can give: the most frequent ones."""
    min_count: int = 2
    """Words of the questions that occur this often are known."""
    fit: FitConfig = lifted(FIT, "epochs", "batch")
    """A setting of the training: patience=3 ... The rate is one of `rates`; every epoch is checked."""
    device: str = option("cpu", free=True)
    """cpu, cuda, cuda:1, mps."""
    jobs: int = option(1, free=True)
    """Trainings at the same time."""

    def __post_init__(self) -> None:
        check_known(self.models, ROWS, "There is no row {0!r} in these tables. There are: {1}.")
        if not self.models or min(self.seeds, self.other_seeds) < 1:
            raise UsageError("Name at least one model and one seed.")
        if not 0 < self.held < 1:
            raise UsageError(f"The share of held-out images must lie between 0 and 1, not be {self.held}.")

    def runs(self, row: str) -> int:
        return self.seeds if row in NOISE_PAPERS else self.other_seeds

    def tries(self, row: str, blind: bool) -> list[tuple[float, float]]:
        """Rates and dropouts that are tried."""
        rate = ROWS[row].twin_rate if blind else ROWS[row].rate
        return list(product(self.rates or (rate,), self.dropouts or (self.dropout,)))

    def cell(self, row: str, blind: bool, rate: float, dropout: float, seed: int) -> dict[str, Any]:
        """One training run, as JSON holds it."""
        backbone = self.large if ROWS[row].large else self.small
        return {"row": row, "blind": blind, "backbone": backbone, "rate": rate, "dropout": dropout, "seed": seed}


def run(config: PhotographsConfig, out: Path, *, progress: Progress) -> dict[str, Any]:
    """Train what is not finished, choose, train the other seeds, and judge."""
    from pfungst.data import load
    from pfungst.experiments.photographs_training import learn, prepare_for, splits, vocabulary_of

    train, test = (load(f"vqa:{config.folder}#{split}") for split in ("train", "val"))
    claim(out, config, data={"train": train.fingerprint, "val": test.fingerprint})
    parts = splits(train, test, config.held)
    vocabulary = vocabulary_of(parts["train"], config.min_count, config.answers)
    work = partial(learn, out=out.resolve(), device=config.device, fit_config=config.fit)

    def results(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not cells:
            return []
        # Those that see the same features follow each other: a process loads them once.
        order = sorted(cells, key=lambda one: (one["blind"], one["backbone"]))
        named = {f"{_name(one)}.json": one for one in order}
        missing = {one["backbone"] for name, one in named.items() if not (out / "cells" / name).exists()}
        for backbone in sorted(missing):
            prepare_for(backbone, parts, out, vocabulary, config.device, progress)
        paths = run_cells(work, named, out / "cells", jobs=config.jobs, progress=progress)
        return [read_json(path) for path in paths.values()]

    kinds = [(row, False) for row in config.models] + [(row, True) for row in dict.fromkeys(map(twin, config.models))]
    chosen = {kind: config.tries(*kind)[0] for kind in kinds}
    choosing = config.rates or config.dropouts
    tried = results([config.cell(*kind, *one, 0) for kind in kinds for one in config.tries(*kind)] if choosing else [])
    for one in sorted(tried, key=lambda one: float(one["held"])):
        chosen[one["row"], one["blind"]] = one["rate"], one["dropout"]
    runs = results(
        [config.cell(*kind, *best, seed) for kind, best in chosen.items() for seed in range(config.runs(kind[0]))]
    )
    result = judge(runs, test, vocabulary.answers, {row: twin(row) for row in config.models})
    for row in config.models:
        _ship(row, _name(config.cell(row, False, *chosen[row, False], 0)), result, out)
    return {**result, "tried": [{name: value for name, value in one.items() if name != "answers"} for one in tried]}


def twin(row: str) -> str:
    """The row whose twin without an image is this row's too: the first one of the same architecture."""
    return next(name for name, one in ROWS.items() if one.model == ROWS[row].model)


def _name(run: Mapping[str, Any]) -> str:
    kind = "blind" if run["blind"] else "sees"
    return f"{run['row']}-{kind}-{run['rate']:g}-{run['dropout']:g}-{run['seed']}"


def _ship(row: str, name: str, result: Mapping[str, Any], out: Path) -> None:
    """The chosen model of seed 0 with its card, as OUT/ROW-vqa2.safetensors."""
    from pfungst.models import Trained

    trained = Trained.load(out / "weights" / f"{name}.safetensors")
    scores = result["rows"][row]
    shown = {name: {kind: part[kind] for kind in ("sees", "blind", "worth")} for name, part in scores["scores"].items()}
    first = scores["first"]
    card = {
        **trained.card,
        "asked_on": "VQA v2 validation questions, VQA accuracy",
        "accuracy": first["value"],
        "low": first["low"],
        "high": first["high"],
        "command": f"pfungst reproduce photographs FOLDER --models {row}",
        "seeds": {"n": scores["seeds"], "scores": shown},
    }
    dataclasses.replace(trained, card=card).save(out / f"{row}{SUFFIX}.safetensors", half=True)


def judge(
    runs: Sequence[Mapping[str, Any]], test: Dataset, answers: Sequence[str], twins: Mapping[str, str]
) -> dict[str, Any]:
    """Accuracies with intervals of all rows, from the answers that the runs gave.

    runs : one for each row, twin and seed, with `answers`, the number of the answer to every test question
    twins : row -> the row whose twin is its own
    """

    @cache
    def score(question: int, text: str) -> float:
        return vqa_accuracy(text, test[question].answers)

    images = [example.image_id for example in test]
    types = np.array([example.answer_type for example in test])
    order = sorted(runs, key=lambda one: int(one["seed"]))
    places = {
        (row, blind): [i for i, one in enumerate(order) if (one["row"], one["blind"]) == (row, blind)]
        for row in {*twins, *twins.values()}
        for blind in (False, True)
    }
    every = np.array([[score(i, answers[number]) for i, number in enumerate(one["answers"])] for one in order])
    found: dict[str, dict[str, Any]] = {}
    for row, other in twins.items():
        first, alone = (order[places[key][0]] for key in ((row, False), (other, True)))
        found[row] = {
            "backbone": first["backbone"],
            "parameters": first["parameters"],
            "seeds": len(places[row, False]),
            "rate": first["rate"],
            "rate_of_twin": alone["rate"],
            "dropout": first["dropout"],
            "dropout_of_twin": alone["dropout"],
            "held": [order[i]["held"] for i in places[row, False]],
            "held_of_twin": [order[i]["held"] for i in places[other, True]],
            "scores": {},
        }
    for name, kind in TYPES.items():
        chosen = types == kind if kind else np.ones(len(types), bool)
        if not chosen.any():
            continue
        groups = [image for image, wanted in zip(images, chosen, strict=True) if wanted]
        for row, other in twins.items():
            sees, blind = (Scores(every[rows][:, chosen], groups) for rows in (places[row, False], places[other, True]))
            found[row]["scores"][name] = {
                "sees": sees.interval(),
                "blind": blind.interval(),
                "worth": (sees - blind).interval(),
                "by_seed": sees.by_seed(),
                "by_seed_of_twin": blind.by_seed(),
            }
            if name == "All":
                found[row]["first"] = Scores(sees.values[:1], groups).interval()
    frequent, sayable = answers[0], set(answers)
    best = [max((score(i, text) for text in sayable & set(one.answers)), default=0.0) for i, one in enumerate(test)]
    return {
        "rows": found,
        "questions": {name: int((types == kind).sum()) if kind else len(test) for name, kind in TYPES.items()},
        "images": len(set(images)),
        "constant": {"answer": frequent, "accuracy": float(np.mean([score(i, frequent) for i in range(len(test))]))},
        "reachable": float(np.mean(best)),
    }


def score_tables(result: Mapping[str, Any]) -> list[Table]:
    """What the models score, and what they lose without the image."""
    rows: Mapping[str, Any] = result["rows"]
    counts = result["questions"]
    kinds = [name for name in TYPES if counts[name]]
    sees = Table(
        "VQA accuracy on photographs",
        ("model", "features", *kinds, "question only: All", "parameters", "seeds"),
        tuple(
            (
                name, one["backbone"], *(cell(one["scores"][kind]["sees"]) for kind in kinds),
                cell(one["scores"]["All"]["blind"]), f"{one['parameters']:,}", one["seeds"],
            )
            for name, one in rows.items()
        ),
        note=f"In percent, 95% intervals over images and seeds. {counts['All']:,} questions on {result['images']:,} "
        f"images: {counts['Other']:,} other, {counts['Num']:,} number, {counts['Y/N']:,} yes/no. Always saying "
        f'"{result["constant"]["answer"]}" scores {result["constant"]["accuracy"]:.1%}; the answers that the models '
        f"know allow {result['reachable']:.1%}.",
    )  # fmt: skip
    worth = Table(
        "What the image is worth",
        ("model", *kinds, "is it worth anything?"),
        tuple(
            (
                name, *(cell(one["scores"][kind]["worth"], sign="+") for kind in kinds),
                VERDICTS[side(one["scores"]["All"]["worth"])],
            )
            for name, one in rows.items()
        ),
        note="Points of VQA accuracy: the model minus its twin that learns from questions alone, on the same questions "
        "and with the same seeds; 95% intervals over images and seeds.",
    )  # fmt: skip
    return [sees, worth]


EXPERIMENT = Experiment("photographs", PhotographsConfig, run, score_tables)
