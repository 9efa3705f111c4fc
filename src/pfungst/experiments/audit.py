"""The audit: can a multiple choice be answered without looking, without reading, or without both?

from pfungst.experiments.audit import audit
audit(load("cocoqa:DIR#train"), load("cocoqa:DIR#test")).verdicts()
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pfungst.core import Dataset, Example, MissingExtra, ProbeError, UsageError
from pfungst.core.stats import Interval, bootstrap, compare_paired
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.audit_features import Features, grid_features
from pfungst.probes.decoys.building import K, build, find_encoder
from pfungst.probes.decoys.rulebook import AnswerRule, RuleScores, rules
from pfungst.probes.decoys.sets import DecoySet

TEST_SHARE = 0.3
"""Share of the images that are tested on where no test split is given (Sect. 5.1: 50/20/30)."""
SEES = {"A": "neither image nor question", "QA": "the question alone", "IA": "the image alone", "IQA": "everything"}


@dataclass(frozen=True)
class ScorerConfig:
    """How a scorer is trained. The paper gives the layer, the loss and the features; the rest is ours."""

    hidden: int = 8192
    """Neurons of the hidden layer (Sect. 5.2)."""
    epochs: int = 20
    """At most; the epoch with the best accuracy on held-out training images counts."""
    batch: int = 128
    """Questions per step, each with all its candidates."""
    rate: float = 3e-4
    dropout: float = 0.5
    decay: float = 1e-4
    held_out: float = 0.1
    """Share of the training images kept to choose the epoch."""
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True)
class Cell:
    """One model on one choice set."""

    variant: str
    model: str
    """`Eq. 2`, `position`, `MLP-A`, `MLP-QA`, `MLP-IA` or `MLP-IQA`."""
    accuracy: Interval
    note: str = ""


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

    def accuracy(self, variant: str, model: str) -> Interval | None:
        return next((one.accuracy for one in self.cells if (one.variant, one.model) == (variant, model)), None)

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Columns and rows in the layout of Tables 3 to 5: one row per model, one column per choice set."""
        models = list(dict.fromkeys(one.model for one in self.cells))
        rows = [("Chance", *(f"{100 * self.rules[name].chance:.1f}" for name in self.variants))]
        for model in models:
            found = [self.accuracy(name, model) for name in self.variants]
            rows.append((model, *("" if one is None else percent(one) for one in found)))
        if self.human:
            rows.append(("Human", *(f"{100 * self.human[n]:.1f}" if n in self.human else "" for n in self.variants)))
        return ("model", *self.variants), rows

    def verdicts(self) -> list[str]:
        """In words: what each choice set lets through."""
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
                parts.append(f"{question} it {can} be answered ({model} {percent(best)})")
            gain = self.gains.get(name)
            more = "" if gain is None else f" Seeing everything adds {percent(gain)} to the best of these."
            said.append(f"{name} (chance {100 * chance:.1f}): {'; '.join(parts)}.{more}")
        return said


def percent(one: Interval) -> str:
    """`36.6 [35.1, 38.0]`"""
    if one.low != one.low:
        return f"{100 * one.value:.1f}"
    return f"{100 * one.value:.1f} [{100 * one.low:.1f}, {100 * one.high:.1f}]"


def check_models(names: Sequence[str]) -> None:
    """Raise UsageError for a scorer that does not exist."""
    for name in names:
        if name not in SEES:
            raise UsageError(f"There is no scorer {name!r}; there are {', '.join(SEES)}, or none.")


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
    models: Sequence[str] = ("A", "QA", "IA", "IQA"),
    human: Mapping[str, float] | None = None,
    name: str = "",
    progress: Progress = no_progress,
) -> Audit:
    """Train scorers on every choice set, each shown only some of it, and test them on the same set of the test split.

    kinds, k, fallback, balanced: see `build`.
    train, test: two splits; with one alone, its images are divided 70 to 30. Decoys are made in each split apart.
    encoder: vectors of questions and answers (`words:FILE` as in the paper; by default the embedded encoder).
    features: image -> vector, by default colours and edges on a grid (`audit_features`). Without it, or where images
        are missing, MLP-IA and MLP-IQA are left out.
    models: which scorers to train; with none, only Eq. 2 and the position of the target are tried.
    human: accuracy of people by choice set, shown beside the others.
    """
    check_models(models)
    if test is None:
        train, test = split_by_image(train, seed)
    if not len(train) or not len(test):
        raise ProbeError("An audit needs questions to train on and others to test on, about different images.")
    made = [
        build(part, kinds, k, seed, encoder=encoder, fallback=fallback, balanced=balanced, progress=progress)
        for part in (train, test)
    ]
    variants = tuple(one for one in made[0].variants if one in made[1].variants)
    cells: list[Cell] = []
    for variant in variants:
        cells += _statistics(made[0], made[1], variant, seed)
    trained, gains, warnings = _train(made, variants, models, encoder, features, config, seed, progress)
    if made[0].vectors is not None and encoder is None:
        warnings.append("Vectors are those of the embedded sentence encoder; the paper averages word vectors.")
    for part, one in zip(("training", "test"), made, strict=True):
        warnings += [f"In the {part} split: {sentence}" for sentence in one.warnings()]
    return Audit(
        name=name or getattr(train, "name", "examples"),
        train=len(made[0]),
        test=len(made[1]),
        variants=variants,
        cells=(*cells, *trained),
        rules={one: rules(made[1], one, seed=seed) for one in variants},
        gains=gains,
        human=dict(human or {}),
        warnings=tuple(warnings),
        about=made[1].about,
    )


def _statistics(train: DecoySet, test: DecoySet, variant: str, seed: int) -> list[Cell]:
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
    return [
        Cell(variant, "Eq. 2", bootstrap(rule.right(asked), groups, seed=seed), "answer frequencies of training"),
        Cell(variant, "position", bootstrap(right, groups, seed=seed), f"always option {favourite + 1}"),
    ]


def _train(
    made: Sequence[DecoySet],
    variants: Sequence[str],
    models: Sequence[str],
    encoder: Any,
    features: Features | None,
    config: ScorerConfig | None,
    seed: int,
    progress: Progress,
) -> tuple[list[Cell], dict[str, Interval], list[str]]:
    cells: list[Cell] = []
    gains: dict[str, Interval] = {}
    warnings: list[str] = []
    if not models:
        return cells, gains, warnings
    try:
        from pfungst.experiments import audit_scorers as scorers
    except ImportError:
        raise MissingExtra("Training the scorers of the audit", "torch") from None
    chosen = find_encoder(encoder)
    config = config or ScorerConfig(seed=seed)
    train, test = (scorers.Tasks(part, chosen, features, progress) for part in made)
    if train.images is None or test.images is None:
        dropped = [inputs for inputs in models if "I" in inputs]
        models = [inputs for inputs in models if "I" not in inputs]
        if dropped:
            warnings.append(
                f"Without images {', '.join(f'MLP-{inputs}' for inputs in dropped)} cannot be trained "
                f"({train.without_image + test.without_image} images are missing)."
            )
    elif features is grid_features:
        warnings.append(
            "Image features are colours and edges on a grid, not those of a network: MLP-IA and MLP-IQA see little."
        )
    done, total = 0, len(variants) * len(models)
    for variant in variants:
        learnt, _ = train.of(variant)
        asked, groups = test.of(variant)
        right: dict[str, Any] = {}
        for inputs in models:
            name = f"MLP-{inputs} on {variant}"

            def told(what: str, step: int, steps: int, name: str = name, done: int = done) -> None:
                progress(f"training scorers · {name}, step {step:,} of {steps:,}", done, total)

            scorer = scorers.train(learnt, inputs, config, progress=told)
            right[inputs] = scorers.right(scorer, asked)
            note = f"sees {SEES[inputs]}; epoch {scorer.epoch} of {config.epochs}, hidden {config.hidden}"
            cells.append(Cell(variant, f"MLP-{inputs}", bootstrap(right[inputs], groups, seed=seed), note))
            done += 1
            progress("training scorers", done, total)
        partial = [inputs for inputs in right if inputs != "IQA"]
        if partial and "IQA" in right:
            best = max(partial, key=lambda inputs: float(np.mean(right[inputs])))
            gains[variant] = compare_paired(right["IQA"], right[best], groups, seed=seed).difference
    return cells, gains, warnings
