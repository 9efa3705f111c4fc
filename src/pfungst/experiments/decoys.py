"""Tables 3 to 6 of Being Negative but Constructively: what can be answered without the image, the question, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import Table, UsageError
from pfungst.core.files import jsonable
from pfungst.core.stats import Interval, bootstrap, compare_paired
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.audit_config import ScorerConfig, find_models
from pfungst.experiments.base import Experiment, claim, kept, option

if TYPE_CHECKING:
    from pfungst.experiments.audit_scorers import Task

SPLITS = {"daquar": ("all", ""), "cocoqa": ("train", "test"), "vqa2": ("train", "val")}
"""Folder -> splits to train and to test on; DAQUAR's images are divided 70 to 30, as its own split is by question."""
TITLES = {"daquar": "DAQUAR", "cocoqa": "COCO-QA", "vqa2": "VQA v2"}
CONSTRUCTIONS = ("frequent", "neutral", "balanced")
SOURCE = "cocoqa"
"""The data set that is transferred from."""


@dataclass(frozen=True)
class DecoysConfig:
    """Tables 3 to 6 of the decoys paper: what can be answered without the image, the question, or both.

    With the paper's hidden layer of 8,192 this takes minutes on a GPU and hours on a CPU: `--hidden 512 --models A,QA`
    or `--models none` (Eq. 2 alone) are for a first look.
    """

    data: Path
    """Folder with the folders daquar, cocoqa, vqa2 (any of them) and glove."""
    sets: tuple[str, ...] = option(tuple(SPLITS), free=True)
    """Which of them."""
    constructions: tuple[str, ...] = option(("frequent", "balanced"), free=True)
    """How decoys are made, of `frequent` (the paper's fallback), `neutral` and `balanced`."""
    kinds: tuple[str, ...] = ("qou", "iou", "random", "both")
    """Kinds of decoys."""
    vectors: Path | None = None
    """File of word vectors [the first in DATA/glove, else the embedded encoder]."""
    features: str = "efficientnet-lite0"
    """What scorers see of an image, see `pfungst audit`."""
    models: tuple[str, ...] = ("A", "QA", "IA", "IQA")
    """Scorers to train, of A, QA, IA, IQA; `none` for the statistics alone."""
    hidden: int = 8192
    """Neurons of the hidden layer."""
    epochs: int = 12
    """Most epochs of training."""
    batch: int = 512
    """Questions per step."""
    transfer: bool = option(True, free=True)
    """Whether Table 6 is made too, from COCO-QA to the others."""
    limit: int | None = None
    """Use only the first examples of each split, this many."""
    seed: int = 0
    """Seed of every random choice."""
    device: str = option("cpu", free=True)
    """Where scorers are trained, such as cpu or cuda."""

    def __post_init__(self) -> None:
        for name in self.sets:
            if name not in SPLITS or not (self.data / name).is_dir():
                raise UsageError(
                    f"{self.data / name} is not a folder with one of {', '.join(SPLITS)}: name others with --sets."
                )
        for construction in self.constructions:
            if construction not in CONSTRUCTIONS:
                raise UsageError(f"Decoys are made {', '.join(CONSTRUCTIONS)}, not {construction!r}.")
        self.scorers  # noqa: B018  names that do not exist are refused at once

    @property
    def scorers(self) -> tuple[str, ...]:
        return find_models(self.models)

    @property
    def encoder(self) -> str | None:
        """What makes texts vectors."""
        here = sorted(path for path in (self.data / "glove").glob("*") if path.suffix in (".npz", ".txt", ".bin"))
        chosen = self.vectors or (here[0] if here else None)
        return f"words:{chosen}" if chosen else None

    @property
    def training(self) -> ScorerConfig:
        return ScorerConfig(self.hidden, self.epochs, self.batch, seed=self.seed, device=self.device)


@dataclass(frozen=True)
class DecoysResult:
    """What was found out, as JSON."""

    audits: tuple[dict[str, Any], ...]
    transfer: tuple[dict[str, Any], ...]


def run(config: DecoysConfig, out: Path, *, progress: Progress = no_progress) -> DecoysResult:
    """Audit every data set with every construction, then transfer. OUT/NAME.json keeps what is finished."""
    claim(out, config)
    audits = [
        kept(out / f"{name}-{construction}.json", partial(_audit, config, name, construction, progress))
        for name in config.sets
        for construction in config.constructions
    ]
    moves = config.transfer and config.scorers and SOURCE in config.sets
    targets = [name for name in config.sets if name != SOURCE] if moves else []
    moved = [kept(out / f"transfer-{name}.json", partial(_transfer, config, name, progress)) for name in targets]
    return DecoysResult(tuple(audits), tuple(moved))


def tables(result: DecoysResult) -> list[Table]:
    """Tables 3 to 5, one for each data set and construction, then Table 6."""
    made = [
        Table(
            f"{TITLES[one['data']]}, {one['construction']} ({one['train']:,} to train, {one['test']:,} to test)",
            tuple(one["columns"]),
            tuple(map(tuple, one["rows"])),
            "\n".join([*one["verdicts"], *one["warnings"]]),
        )
        for one in result.audits
    ]
    if result.transfer:
        columns = ("target", "trained on it alone", "COCO-QA alone", "fine-tuned", "gain")
        rows = tuple((TITLES[moved["target"]], *moved["row"]) for moved in result.transfer)
        made.append(Table("Transfer from COCO-QA, QoU+IoU, MLP-QA", columns, rows))
    return made


def _load(config: DecoysConfig, name: str) -> tuple[Any, Any]:
    from pfungst.data import load
    from pfungst.experiments.audit import split_by_image

    train, test = SPLITS[name]
    whole = load(config.data / name, split=train, limit=config.limit)
    if test:
        return whole, load(config.data / name, split=test, limit=config.limit)
    return split_by_image(whole, config.seed)


def _audit(config: DecoysConfig, name: str, construction: str, progress: Progress) -> dict[str, Any]:
    from pfungst.experiments.audit import audit
    from pfungst.experiments.audit_features import image_features

    train, test = _load(config, name)
    seen = any("I" in inputs for inputs in config.scorers) and train[0].image is not None
    balanced = construction == "balanced"
    found = audit(
        train, test, kinds=config.kinds, seed=config.seed, encoder=config.encoder,
        fallback="frequent" if balanced else construction, balanced=balanced,
        features=image_features(config.features, config.device) if seen else None,
        config=config.training, models=config.scorers, name=name, progress=progress,
    )  # fmt: skip
    columns, rows = found.table()
    record: dict[str, Any] = jsonable(
        {
            "data": name, "construction": construction, "train": found.train, "test": found.test, "columns": columns,
            "rows": rows, "verdicts": found.verdicts(), "warnings": found.warnings, "cells": found.cells,
            "rules": found.rules, "gains": found.gains,
        }
    )  # fmt: skip
    return record


def _transfer(config: DecoysConfig, name: str, progress: Progress) -> dict[str, Any]:
    """A row of Table 6, with MLP-QA, because COCO-QA's images are rarely at hand."""
    from pfungst.experiments.audit import percent
    from pfungst.experiments.audit_scorers import Tasks
    from pfungst.probes.decoys.building import build, find_encoder

    encoder = find_encoder(config.encoder)

    def task(examples: Any) -> tuple[Task, list[str]]:
        return Tasks(build(examples, seed=config.seed, encoder=encoder, progress=progress), encoder, None).of("QoU+IoU")

    source, _ = task(_load(config, SOURCE)[0])
    train, test = _load(config, name)
    asked, images = task(test)
    found = transfer(source, task(train)[0], asked, images, "QA", config.training, config.seed, progress)
    return {"target": name, "row": [percent(cell) for cell in (found.alone, found.before, found.after, found.gain)]}


@dataclass(frozen=True)
class Transfer:
    """Accuracy on the target's test questions."""

    alone: Interval
    """Trained on the target alone."""
    before: Interval
    """Trained on the source alone."""
    after: Interval
    """Trained on the source, then fine-tuned on the target."""
    gain: Interval
    """After minus alone, paired."""


def transfer(
    source: Task,
    target: Task,
    test: Task,
    groups: Sequence[Any],
    inputs: str = "IQA",
    config: ScorerConfig | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Transfer:
    """Three scorers on the test questions of the target, in the layout of Table 6.

    source, target, test: tasks whose vectors and image features come from the same encoder and feature function.
    groups: the image of every test question, for the intervals.
    """
    from pfungst.experiments.audit_scorers import right, train

    config = config or ScorerConfig(seed=seed)
    start = train(source, inputs, config, progress=progress)
    alone = right(train(target, inputs, config, progress=progress), test)
    before = right(start, test)
    after = right(train(target, inputs, config, start, progress), test)
    return Transfer(
        bootstrap(alone, groups, seed=seed),
        bootstrap(before, groups, seed=seed),
        bootstrap(after, groups, seed=seed),
        compare_paired(after, alone, groups, seed=seed).difference,
    )


EXPERIMENT = Experiment("decoys", DecoysConfig, run, tables)
