"""The audit: can a data set be answered without looking, without reading, or without both?

from pfungst.experiments.audit import audit
audit(load("cocoqa:DIR#train"), load("cocoqa:DIR#test")).verdicts()
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import Answer, DataError, Dataset, Example, MissingExtra, ProbeError, UsageError
from pfungst.core.files import read_json
from pfungst.core.stats import Interval, interval_of
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.audit_features import Features, grid_features, is_there
from pfungst.experiments.audit_open import Judge, OpenAudit, audit_open
from pfungst.experiments.study import cell
from pfungst.probes.decoys.building import K, build
from pfungst.probes.decoys.rulebook import AnswerRule, RuleScores, rules
from pfungst.probes.decoys.sets import DecoySet, kind_name, write
from pfungst.scores.metrics import get_metric

TEST_SHARE = 0.3
"""Share of the images that are tested on where no test split is given (Sect. 5.1: 50/20/30)."""


SEES = {
    "Q": "the question, without choices",
    "A": "neither image nor question",
    "QA": "the question alone",
    "IA": "the image alone",
    "IQA": "everything",
    "HieCoAtt": "everything",
    "Attention": "everything",
}
"""What there is to train -> what it sees. Q answers open questions (`audit_open`), the others pick a choice."""
MODELS = ("Q", "A", "QA", "IA", "IQA")
PEOPLE = ("Human-A", "Human-IA", "Human-QA", "Human-IQA")
"""People who saw the choices alone, with the image, with the question, with both."""


@dataclass(frozen=True)
class ScorerConfig:
    """How a scorer is trained. The paper gives the layer, the loss and the features; the rest is ours."""

    hidden: int = 8192
    """Neurons of the hidden layer (Sect. 5.2)."""
    epochs: int = 20
    """Maximum number of training epochs; the one with the best accuracy on held-out training images counts."""
    batch: int = 128
    """Questions per step, each with all its candidates."""
    rate: float = 3e-4
    dropout: float = 0.5
    decay: float = 1e-4
    held_out: float = 0.1
    """Share of the training images kept to choose the epoch."""
    seed: int = 0
    seeds: int = 1
    """How often to train each scorer, with `seed`, `seed` + 1 ...; intervals are then over images and trainings."""
    device: str = "cpu"
    """Where scorers are trained: cpu, cuda ..."""

    def each(self) -> Iterator[ScorerConfig]:
        """One configuration a training."""
        for number in range(self.seeds):
            yield replace(self, seed=self.seed + number, seeds=1)


@dataclass(frozen=True)
class Cell:
    """One model on one choice set."""

    variant: str
    model: str
    """`Eq. 2`, `position`, `MLP-A`, `MLP-QA`, `MLP-IA`, `MLP-IQA`, `HieCoAtt` or `Attention`."""
    accuracy: Interval
    note: str = ""
    vqa: Interval | None = None
    """What the picked answers score by the metric of the data set, where that is VQA's and several people answered."""


def row_name(name: str) -> str:
    """`MLP-QA` for QA; models with a name keep theirs."""
    return name if len(name) > 3 else f"MLP-{name}"


def find_models(names: Sequence[str]) -> tuple[str, ...]:
    """The scorers of these names, in any case; UsageError for one that does not exist. `none` alone is none."""
    if [name.lower() for name in names] == ["none"]:
        return ()
    known = {name.lower(): name for name in SEES}
    for name in names:
        if name.lower() not in known:
            raise UsageError(f"There is no scorer {name!r}; there are {', '.join(SEES)}, or none.")
    return tuple(dict.fromkeys(known[name.lower()] for name in names))


@dataclass(frozen=True)
class Audit:
    """What was found out about a data set."""

    name: str
    train: int
    test: int
    variants: tuple[str, ...]
    cells: tuple[Cell, ...]
    rules: Mapping[str, RuleScores]
    """Of the test split, by choice set."""
    gains: Mapping[str, Interval]
    """By choice set: accuracy with everything minus that of the best scorer that misses something, paired."""
    human: Mapping[str, float]
    warnings: tuple[str, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
    open: OpenAudit | None = None
    """What the question alone gets on the open questions."""
    fallen: Mapping[str, float] = field(default_factory=dict)
    """Choice set -> share of its decoys that come from the fallback, of sets which are therefore so in name only."""
    metric: str = ""
    """By which `Cell.vqa` is judged."""

    def accuracy(self, variant: str, model: str) -> Interval | None:
        return next((one.accuracy for one in self.cells if (one.variant, one.model) == (variant, model)), None)

    def table(self, vqa: bool = False) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Columns and rows in the layout of Tables 3 to 5: one row per model, one column per choice set.

        vqa: by the protocol of VQA, which scores the picked answer against all human answers; without rows if there
        are none.
        """
        models = list(dict.fromkeys(one.model for one in self.cells if one.vqa is not None or not vqa))
        rows: list[tuple[str, ...]] = []
        if not vqa and self.variants:
            rows.append(("Chance", *(f"{100 * self.rules[name].chance:.1f}" for name in self.variants)))
        for model in models:
            known = {one.variant: one.vqa if vqa else one.accuracy for one in self.cells if one.model == model}
            found = [known.get(name) for name in self.variants]
            rows.append((model, *("" if one is None else cell(one) for one in found)))
        if self.human and not vqa:
            rows.append(("Human", *(f"{100 * self.human[n]:.1f}" if n in self.human else "" for n in self.variants)))
        return ("model", *self.variants), rows

    def verdicts(self) -> list[str]:
        """In words: what each choice set lets through. What open questions do says `open.verdict()`."""
        said = []
        for name in self.variants:
            chance = self.rules[name].chance
            parts = []
            for question, models in (
                ("without image and question", ("Eq. 2", "position", "MLP-A")),
                ("without the image", ("MLP-QA",)),
                ("without the question", ("MLP-IA",)),
            ):
                known = [(found, model) for model in models if (found := self.accuracy(name, model)) is not None]
                if not known:
                    continue
                best, model = max(known, key=lambda one: one[0].value)
                above = best.low > chance
                # One option in four guessed against one in two: a share of what is left above chance is comparable.
                share = (best.value - chance) / (1 - chance) if chance < 1 else 0.0
                word = "hardly" if share < 0.1 else "partly" if share < 0.4 else "largely"
                can = f"can {word}" if above else "cannot"
                parts.append(f"{question} it {can} be answered ({model} {cell(best)})")
            gain = self.gains.get(name)
            more = "" if gain is None else f" Seeing everything adds {cell(gain)} to the best of these."
            strange = self.fallen.get(name)
            but = "" if strange is None else f"; {100 * strange:.0f}% of its decoys are fallbacks"
            said.append(f"{name} (chance {100 * chance:.1f}{but}): {'; '.join(parts)}.{more}")
        return said


def split_by_image(examples: Sequence[Example], seed: int = 0) -> tuple[list[Example], list[Example]]:
    """Training and test examples that share no image."""
    train: list[Example] = []
    test: list[Example] = []
    for one in examples:
        draw = zlib.crc32(f"{seed} {one.image_id or one.id}".encode("utf-8", "surrogatepass")) / 2**32
        (test if draw < TEST_SHARE else train).append(one)
    return train, test


def audit(
    train: Dataset | Sequence[Example],
    test: Dataset | Sequence[Example] | None = None,
    *,
    kinds: Sequence[str] = ("qou", "iou"),
    k: int = K,
    seed: int = 0,
    fallback: str = "frequent",
    balanced: bool = False,
    encoder: Any = None,
    features: Features | None = grid_features,
    config: ScorerConfig | None = None,
    models: Sequence[str] = MODELS,
    human: Mapping[str, float] | None = None,
    people: Sequence[Cell] = (),
    name: str = "",
    sets: Path | None = None,
    scorers: Path | None = None,
    progress: Progress = no_progress,
) -> Audit:
    """Answer open questions from the questions alone; then train scorers on every choice set, each shown only some of
    it, and test them on the same set of the test split.

    kinds, k, fallback, balanced: see `build`. Without kinds only the choices that the data set has are audited.
    train, test: two splits; with one alone, its images are divided 70 to 30. Decoys are made in each split apart.
    encoder: vectors of questions and answers (`words:FILE` as in the paper; by default the embedded encoder).
    features: image -> vector, by default colours and edges on a grid (`audit_features`). Vectors are kept in the cache
        if it has a `fingerprint`. Without it, or where all images are missing, MLP-IA and MLP-IQA are left out; where
        some are missing, the questions about them.
    models: which to train, of `SEES`; with none, only the most common answers, Eq. 2 and the position of the target are
        tried.
    human: accuracy of people by choice set, shown beside the others.
    people: rows of people from a study, with their intervals (`read_people`).
    sets: write the choice sets of both splits to this folder, as train.parquet and test.parquet.
    scorers: folder of this audit alone that keeps what every scorer picked; one that was stopped goes on there.
    """
    models = find_models(models)
    config = config or ScorerConfig(seed=seed)
    metric = getattr(train, "metric", "") or ("vqa" if any(len(one.answers) > 1 for one in train) else "exact")
    named = name or getattr(train, "name", "examples")
    if test is None:
        train, test = split_by_image(train, seed)
    looking = features is not None and any(SEES[one] in ("the image alone", "everything") for one in models)
    train, test, lost = _with_images(train, test) if looking else (train, test, 0)
    if not len(train) or not len(test):
        raise ProbeError("An audit needs questions to train on and others to test on, about different images.")
    if models and find_spec("torch") is None:
        raise MissingExtra("Training the scorers of the audit", "torch")
    learn = "Q" in models
    open_ = audit_open(train, test, metric, learn=learn, seed=seed, device=config.device, progress=progress)
    how: dict[str, Any] = {"encoder": encoder, "fallback": fallback, "balanced": balanced, "progress": progress}
    made = [build(part, kinds or ("random",), k, seed, **how) for part in (train, test)]
    for part, decoys in zip(("train", "test"), made, strict=True):
        if sets is not None and kinds:
            write(decoys, sets / f"{part}.parquet")
    variants = tuple(one for one in made[0].variants if one in made[1].variants and (kinds or one == "Orig"))
    judge = get_metric(metric) if metric.startswith("vqa") and any(len(one.answers) > 1 for one in test) else None
    cells: list[Cell] = []
    for variant in variants:
        cells += _statistics(made[0], made[1], variant, judge, seed)
    gains: dict[str, Interval] = {}
    warnings: list[str] = []
    wanted = [one for one in models if one != "Q"] if variants else []
    if wanted:
        from pfungst.experiments.audit_training import train_scorers

        how = {"encoder": encoder, "features": features, "config": config, "progress": progress, "folder": scorers}
        trained, gains, warnings = train_scorers(made, variants, wanted, judge, seed, **how)
        cells += trained
    if lost:
        warnings.append(f"{lost} questions are left out, because their images are missing.")
    if open_ is None:
        warnings.append("Training and test are about the same images, so the open questions were not asked.")
    elif open_.shared:
        warnings.append(f"Open questions: {open_.shared} training questions are about test images, and are left out.")
    if made[0].vectors is not None and encoder is None:
        warnings.append("Vectors are those of the embedded sentence encoder; the paper averages word vectors.")
    for part, one in zip(("training", "test"), made, strict=True):
        warnings += [f"In the {part} split: {sentence}" for sentence in one.warnings() if kinds]
    warnings += left_out(people, variants)
    return Audit(
        name=named,
        train=len(made[0]),
        test=len(made[1]),
        variants=variants,
        cells=(*cells, *(one for one in people if one.variant in variants)),
        rules={one: rules(made[1], one, seed=seed) for one in variants},
        gains=gains,
        human=dict(human or {}),
        warnings=tuple(warnings),
        about={**made[1].about, **made[1].sources()} if kinds else {},
        open=open_,
        fallen={kind_name(kind): share for kind, share in made[1].fallen.items()} if kinds else {},
        metric=metric if judge is not None else "",
    )


def _with_images(train: Sequence[Example], test: Sequence[Example]) -> tuple[Any, Any, int]:
    """Both splits without the questions whose image is missing, and how many these are; as they are where no image is
    there at all."""
    seen = [[one for one in part if is_there(one.image)] for part in (train, test)]
    lost = len(train) + len(test) - len(seen[0]) - len(seen[1])
    return (seen[0], seen[1], lost) if all(seen) else (train, test, 0)


def _statistics(train: DecoySet, test: DecoySet, variant: str, judge: Judge | None, seed: int) -> list[Cell]:
    """The shortcuts that need no training: Eq. 2, and the position of the target."""
    learnt, asked = train.dataset(variant), test.dataset(variant)
    if variant == "Orig":
        # The order in which the data set itself presents its options is part of what is audited.
        learnt = learnt.subset([one for one in train.examples if one.choices])
        asked = asked.subset([one for one in test.examples if one.choices])
    groups = [one.image_id or one.id for one in asked]
    rule = AnswerRule.fit(learnt)
    places = Counter(one.choices.index(str(one.target)) for one in learnt if one.target in one.choices)
    favourite = max(places, key=lambda place: (places[place], -place)) if places else 0
    right = [float(one.choices[favourite] == one.target) if favourite < len(one.choices) else 0.0 for one in asked]
    by_rule = by_place = None
    if judge is not None:
        worth = [[judge(one, Answer(text)) for text in one.choices] for one in asked]
        shares = [np.dot(picked, value) for picked, value in zip(rule.picks(asked), worth, strict=True)]
        by_rule = interval_of(shares, groups)
        placed = [value[favourite] if favourite < len(value) else 0.0 for value in worth]
        by_place = interval_of(placed, groups)
    said = interval_of(rule.right(asked), groups)
    return [
        Cell(variant, "Eq. 2", said, "answer frequencies of training", by_rule),
        Cell(variant, "position", interval_of(right, groups), f"always option {favourite + 1}", by_place),
    ]


def read_people(path: Path) -> tuple[Cell, ...]:
    """The cells of people, one for each choice set and each thing that was withheld."""
    if not path.is_file():
        raise DataError.at(
            path, "", "there is no such file.", "`pfungst study results DIR --out FOLDER` writes human.json."
        )
    found: Any = read_json(path)
    try:
        cells = tuple(_cell(record) for record in found["cells"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError.at(path, "", f"this is not human.json of a study ({type(error).__name__}: {error}).") from None
    strange = [cell.model for cell in cells if cell.model not in PEOPLE]
    if strange:
        raise DataError.at(path, "", f"there is no row {strange[0]!r}; there are {', '.join(PEOPLE)}.")
    return cells


def left_out(cells: Sequence[Cell], variants: Sequence[str]) -> list[str]:
    """Sentences about cells of choice sets that an audit does not have."""
    names = sorted({cell.variant for cell in cells} - set(variants))
    known = ", ".join(variants)
    return [f"People were asked about the choice set {name}, which is not audited here ({known})." for name in names]


def _cell(record: Any) -> Cell:
    one = record["accuracy"]
    low, high = (float("nan") if one[name] is None else float(one[name]) for name in ("low", "high"))
    accuracy = Interval(float(one["value"]), low, high, int(one["n"]), int(one["clusters"]), str(one["how"]))
    return Cell(str(record["variant"]), str(record["model"]), accuracy, str(record.get("note", "")))
