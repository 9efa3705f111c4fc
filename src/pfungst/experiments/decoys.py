"""Tables 3 to 6 of Being Negative but Constructively: what can be answered without the image, the question, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import Dataset, Example, NamedImage, Table, UsageError
from pfungst.core.files import jsonable
from pfungst.core.stats import Interval
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.audit import (
    PEOPLE,
    SEES,
    ScorerConfig,
    audit,
    find_models,
    left_out,
    read_people,
    row_name,
    split_by_image,
)
from pfungst.experiments.base import Experiment, check_known, claim, kept, option
from pfungst.experiments.study import Scores, cell

if TYPE_CHECKING:
    from pfungst.experiments.audit_features import Features
    from pfungst.experiments.audit_scorers import Task

SPLITS = {
    "daquar": ("all", ""),
    "cocoqa": ("train", "test"),
    "okvqa": ("val", ""),
    "vqa2": ("train", "val"),
    "vqa2_photos": ("train", "val"),
}
"""Folder -> splits to train and to test on. Without a second the images are divided 70 to 30: DAQUAR's own split is by
question, and of OK-VQA one split is enough."""
TITLES = {
    "daquar": "DAQUAR",
    "cocoqa": "COCO-QA",
    "okvqa": "OK-VQA",
    "vqa2": "VQA v2",
    "vqa2_photos": "VQA v2 with photographs",
}
CONSTRUCTIONS = ("frequent", "neutral", "balanced")


@dataclass(frozen=True)
class DecoysConfig:
    """Tables 1 and 3 to 6 of the decoys paper: what can be answered without the image, the question, or both.

    With the paper's hidden layer of 8,192 this takes minutes on a GPU and hours on a CPU: `--hidden 512 --models A,QA`
    or `--models none` (Eq. 2 alone) are for a first look. OUT/sets holds the choice sets as Parquet files.
    """

    data: Path
    """Folder with the folders daquar, cocoqa, okvqa, vqa2, vqa2_photos (any of them) and glove."""
    sets: tuple[str, ...] = option((), free=True)
    """Which of them [all that are there]."""
    constructions: tuple[str, ...] = option(("frequent", "balanced"), free=True)
    """How decoys are made: `frequent` (the paper's fallback), `neutral`, `balanced`."""
    kinds: tuple[str, ...] = ("qou", "iou", "random", "both")
    """Kinds of decoys."""
    vectors: Path | None = None
    """File of word vectors [the first in DATA/glove, else the embedded encoder]."""
    features: str = "efficientnet-lite0"
    """What scorers see of an image, see `pfungst audit`."""
    models: tuple[str, ...] = ("Q", "A", "QA", "IA", "IQA", "HieCoAtt", "Attention")
    """What to train: Q (open questions), A, QA, IA, IQA, HieCoAtt, Attention; `none` for statistics only."""
    hidden: int = 8192
    """Neurons of the hidden layer."""
    epochs: int = 12
    """Maximum number of training epochs."""
    batch: int = 512
    """Questions per step."""
    transfer: str = option("", free=True)
    """Data set that Table 6 transfers from [vqa2_photos, else vqa2, else cocoqa]; `none` for no table."""
    limit: int | None = None
    """Use only this many examples, from the start of each split."""
    human: Path | None = option(None, free=True)
    """Folder with what studies found: human.json of `pfungst study results`, named DATA-CONSTRUCTION.json."""
    seed: int = 0
    """Seed of every random choice."""
    seeds: int = 1
    """How often to train each scorer; intervals then cover images and trainings."""
    device: str = option("cpu", free=True)
    """Where scorers are trained, such as cpu or cuda."""

    def __post_init__(self) -> None:
        check_known(self.constructions, CONSTRUCTIONS, "Decoys are made {1}, not {0!r}.")
        find_models(self.models)

    def check_folders(self) -> None:
        """Refuse a data set that is not there."""
        for name in (*self.sets, *([] if self.transfer in ("", "none") else [self.transfer])):
            if name not in SPLITS or not (self.data / name).is_dir():
                raise UsageError(
                    f"{self.data / name} is not a folder with one of {', '.join(SPLITS)}: name others with --sets."
                )
        if not self.chosen:
            raise UsageError(f"{self.data} has none of the folders {', '.join(SPLITS)}.")

    @property
    def chosen(self) -> tuple[str, ...]:
        """The data sets that are audited."""
        return self.sets or tuple(name for name in SPLITS if (self.data / name).is_dir())

    @property
    def source(self) -> str:
        """The data set that is transferred from, empty for none."""
        if self.transfer == "none" or not {"QA", "IQA"} & set(self.scorers):
            return ""
        there = [name for name in ("vqa2_photos", "vqa2", "cocoqa") if name in self.chosen]
        return self.transfer or (there[0] if there else "")

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
        return ScorerConfig(
            self.hidden, self.epochs, self.batch, seed=self.seed, seeds=self.seeds, device=self.device
        )  # fmt: skip


@dataclass(frozen=True)
class DecoysResult:
    """What was found out, as JSON."""

    audits: tuple[dict[str, Any], ...]
    open: tuple[dict[str, Any], ...]
    transfer: tuple[dict[str, Any], ...]


def run(config: DecoysConfig, out: Path, *, progress: Progress = no_progress) -> DecoysResult:
    """Audit every data set with every construction, then transfer. OUT/NAME.json keeps what is finished."""
    config.check_folders()
    claim(out, config)
    audits = [
        _with_people(
            config,
            kept(out / f"{name}-{construction}.json", partial(_audit, config, name, construction, out, progress)),
        )
        for name in config.chosen
        for construction in config.constructions
    ]
    source = config.source
    targets = [name for name in config.chosen if source and name[:4] != source[:4]]
    moved = [
        kept(out / f"transfer-{source}-{name}.json", partial(_transfer, config, source, name, progress))
        for name in targets
    ]
    asked = [kept(out / f"open-{name}.json", partial(_open, config, name, progress)) for name in config.chosen]
    return DecoysResult(tuple(audits), tuple(asked), tuple(moved))


def tables(result: DecoysResult) -> list[Table]:
    """Tables 3 to 5, one for each data set and construction, then Table 6; open questions once a data set."""
    made = []
    for one in result.audits:
        title = f"{TITLES[one['data']]}, {one['construction']}"
        counts = f"({one['train']:,} to train, {one['test']:,} to test)"
        note = "\n".join([*one["verdicts"], *one["warnings"]])
        made.append(Table(f"{title} {counts}", tuple(one["columns"]), _rows(one["rows"]), note))
        if one["vqa"]["rows"]:
            how = f"The picked answer against all human answers, metric {one['vqa']['metric']}."
            columns, rows = tuple(one["vqa"]["columns"]), _rows(one["vqa"]["rows"])
            made.append(Table(f"{title}, VQA protocol", columns, rows, how))
    for one in result.open:
        title = f"{TITLES[one['data']]}, open questions"
        made.append(Table(title, tuple(one["columns"]), _rows(one["rows"]), one["verdict"]))
    for moved in result.transfer:
        source = TITLES[moved["source"]]
        columns = ("target", "trained on it alone", f"{source} alone", "fine-tuned", "gain")
        title = f"Transfer from {source} to {TITLES[moved['target']]}, QoU+IoU, {row_name(moved['inputs'])}"
        made.append(Table(title, columns, ((TITLES[moved["target"]], *moved["row"]),)))
    return made


def _rows(rows: Sequence[Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(map(tuple, rows))


def _load(config: DecoysConfig, name: str) -> tuple[Dataset, Dataset]:
    from pfungst.data import load

    train, test = SPLITS[name]
    whole = load(config.data / name, split=train, limit=config.limit)
    if test:
        return whole, load(config.data / name, split=test, limit=config.limit)
    first, second = split_by_image(whole, config.seed)
    return whole.subset(first), whole.subset(second)


def _audit(config: DecoysConfig, name: str, construction: str, out: Path, progress: Progress) -> dict[str, Any]:
    train, test = _load(config, name)
    balanced = construction == "balanced"
    found = audit(
        train, test, kinds=config.kinds, seed=config.seed, encoder=config.encoder,
        fallback="frequent" if balanced else construction, balanced=balanced,
        features=_features(config, train), config=config.training,
        models=[one for one in config.scorers if one != "Q"], name=name,
        sets=out / "sets" / f"{name}-{construction}", scorers=out / "scorers" / f"{name}-{construction}",
        progress=progress,
    )  # fmt: skip
    columns, rows = found.table()
    by_vqa = found.table(vqa=True) if found.metric else ((), [])
    record: dict[str, Any] = jsonable(
        {
            "data": name, "construction": construction, "train": found.train, "test": found.test, "columns": columns,
            "rows": rows, "verdicts": found.verdicts(), "warnings": found.warnings, "cells": found.cells,
            "rules": found.rules, "gains": found.gains, "sources": found.about.get("counts"),
            "vqa": {"metric": found.metric, "columns": by_vqa[0], "rows": by_vqa[1]},
        }
    )  # fmt: skip
    return record


def _with_people(config: DecoysConfig, record: dict[str, Any]) -> dict[str, Any]:
    """The same with the rows of people, where a study asked them about these choice sets."""
    file = config.human / f"{record['data']}-{record['construction']}.json" if config.human is not None else None
    if file is None or not file.is_file():
        return record
    cells, variants = read_people(file), list(record["columns"])[1:]
    rows = []
    for model in PEOPLE:
        known = {one.variant: cell(one.accuracy) for one in cells if one.model == model}
        if any(name in known for name in variants):
            rows.append([model, *(known.get(name, "") for name in variants)])
    warnings = [*record["warnings"], *left_out(cells, variants)]
    return {**record, "rows": [*record["rows"], *rows], "warnings": warnings}


def _open(config: DecoysConfig, name: str, progress: Progress) -> dict[str, Any]:
    """What the question alone gets on the open questions."""
    from pfungst.experiments.audit_open import audit_open

    train, test = _load(config, name)
    learn = "Q" in config.scorers
    how: dict[str, Any] = {"seed": config.seed, "device": config.device, "progress": progress}
    found = audit_open(train, test, test.metric, learn=learn, **how)
    if found is None:
        return {"data": name, "columns": [], "rows": [], "verdict": "Training and test are about the same images."}
    columns, rows = found.table()
    record = {"data": name, "columns": columns, "rows": rows, "verdict": found.verdict(), "found": found}
    return dict(jsonable(record))


def _features(config: DecoysConfig, examples: Sequence[Example]) -> Features | None:
    """What scorers see of the images, where there are images to see."""
    from pfungst.experiments.audit_features import image_features

    there = any(one.image is not None and not isinstance(one.image, NamedImage) for one in examples[:100])
    looks = any(SEES[name] in ("the image alone", "everything") for name in config.scorers)
    return image_features(config.features, config.device) if there and looks else None


def _transfer(config: DecoysConfig, source: str, name: str, progress: Progress) -> dict[str, Any]:
    """A row of Table 6: MLP-IQA where both data sets have images, else MLP-QA."""
    from pfungst.experiments.audit_scorers import Tasks
    from pfungst.probes.decoys.building import build
    from pfungst.text import get_encoder

    encoder = get_encoder(config.encoder)
    first, (train, test) = _load(config, source)[0], _load(config, name)
    features = _features(config, train) if _features(config, first) and "IQA" in config.scorers else None
    inputs = "QA" if features is None else "IQA"

    def task(examples: Any) -> tuple[Task, list[str]]:
        made = build(examples, seed=config.seed, encoder=encoder, progress=progress)
        return Tasks(made, encoder, features, progress).of("QoU+IoU")

    asked, images = task(test)
    found = transfer(task(first)[0], task(train)[0], asked, images, inputs, config.training, config.seed, progress)
    row = [cell(one) for one in (found.alone, found.before, found.after, found.gain)]
    return {"source": source, "target": name, "inputs": inputs, "row": row, "found": jsonable(found)}


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
    alone, before, after = [], [], []
    for one in config.each():
        start = train(source, inputs, one, progress=progress)
        before.append(right(start, test))
        alone.append(right(train(target, inputs, one, progress=progress), test))
        after.append(right(train(target, inputs, one, start, progress), test))
    first, second, third = (Scores(np.stack(rows), groups) for rows in (alone, before, after))
    return Transfer(first.mean(), second.mean(), third.mean(), (third - first).mean())


EXPERIMENT = Experiment("decoys", DecoysConfig, run, tables)
