"""The cells of the audit's table: what each scorer, and each shortcut that needs no training, gets on a choice set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from pfungst.core import Answer, Example, MissingExtra
from pfungst.core.stats import Interval, bootstrap, compare_paired
from pfungst.core.types import Progress
from pfungst.experiments.audit_config import SEES, Cell, ScorerConfig, over_seeds, row_name
from pfungst.experiments.audit_features import Features, grid_features
from pfungst.experiments.audit_open import Judge
from pfungst.probes.decoys.building import find_encoder
from pfungst.probes.decoys.rulebook import AnswerRule
from pfungst.probes.decoys.sets import DecoySet


def need_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise MissingExtra("Training the scorers of the audit", "torch")


def _worth(example: Example, choices: Sequence[str], judge: Judge) -> list[float]:
    return [judge(example, Answer(text)) for text in choices]


def statistics(train: DecoySet, test: DecoySet, variant: str, judge: Judge | None, seed: int) -> list[Cell]:
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
        worth = [_worth(one, one.choices, judge) for one in asked]
        shares = [np.dot(picked, value) for picked, value in zip(rule.picks(asked), worth, strict=True)]
        by_rule = bootstrap(shares, groups, seed=seed)
        placed = [value[favourite] if favourite < len(value) else 0.0 for value in worth]
        by_place = bootstrap(placed, groups, seed=seed)
    said = bootstrap(rule.right(asked), groups, seed=seed)
    return [
        Cell(variant, "Eq. 2", said, "answer frequencies of training", by_rule),
        Cell(variant, "position", bootstrap(right, groups, seed=seed), f"always option {favourite + 1}", by_place),
    ]


def train_scorers(
    made: Sequence[DecoySet],
    variants: Sequence[str],
    models: Sequence[str],
    encoder: Any,
    features: Features | None,
    config: ScorerConfig,
    judge: Judge | None,
    seed: int,
    progress: Progress,
) -> tuple[list[Cell], dict[str, Interval], list[str]]:
    cells: list[Cell] = []
    gains: dict[str, Interval] = {}
    warnings: list[str] = []
    if not models:
        return cells, gains, warnings
    need_torch()
    from pfungst.experiments import audit_attention as attention
    from pfungst.experiments import audit_scorers as scorers
    from pfungst.experiments.audit_training import train_mlps

    chosen = find_encoder(encoder)
    grids = any(name in attention.NAMES for name in models)
    train, test = (scorers.Tasks(part, chosen, features, progress, grids) for part in made)
    if train.images is None or test.images is None:
        dropped = [name for name in models if SEES[name] in ("the image alone", "everything")]
        models = [name for name in models if name not in dropped]
        if dropped:
            warnings.append(
                f"Without images {', '.join(map(row_name, dropped))} cannot be trained "
                f"({train.without_image + test.without_image} images are missing)."
            )
    elif grids and (train.grids is None or test.grids is None):
        models = [name for name in models if name not in attention.NAMES]
        warnings.append("HieCoAtt and Attention need feature maps, and these image features are single vectors.")
    elif features is grid_features:
        warnings.append(
            "Image features are colours and edges on a grid, not those of a network: MLP-IA and MLP-IQA see little."
        )
    vectors = encoder.removeprefix("words:") if isinstance(encoder, str) and encoder.startswith("words:") else None
    looking = any(name in attention.NAMES for name in models)
    reading = attention.Reading(train, test, vectors, config.device) if looking else None
    trained = train_mlps(train, test, variants, models, config, progress)
    done, total = 0, len(variants) * len(models) * config.seeds
    for variant in variants:
        learnt, _ = train.of(variant)
        asked, groups = test.of(variant)
        worth = None if judge is None else test.worth(variant, judge)
        right: dict[str, Any] = {}
        for inputs in models:
            picks, epochs = [], []
            for number, one in enumerate(config.each()):
                name = f"{row_name(inputs)} on {variant}"

                def told(what: str, step: int, steps: int, name: str = name, done: int = done) -> None:
                    progress(f"training scorers · {name}, step {step:,} of {steps:,}", done, total)

                if reading is not None and inputs in attention.NAMES:
                    seen = [reading.of(part, task) for part, task in (("train", learnt), ("test", asked))]
                    model, epoch = attention.train(reading, seen[0], inputs, one, told)
                    picks.append(attention.picks(model, seen[1]))
                else:
                    found, epoch = trained[variant, inputs, number]
                    picks.append(found)
                epochs.append(str(epoch))
                done += 1
                progress("training scorers", done, total)
            right[inputs] = np.stack(picks)[:, :, 0]
            by_vqa = None if worth is None else over_seeds([(one * worth).sum(1) for one in picks], groups, seed)
            note = f"sees {SEES[inputs]}; epoch {', '.join(epochs)} of {config.epochs}, hidden {config.hidden}"
            cells.append(Cell(variant, row_name(inputs), over_seeds(right[inputs], groups, seed), note, by_vqa))
        partial = [inputs for inputs in right if SEES[inputs] != "everything"]
        if partial and "IQA" in right:
            best = max(partial, key=lambda inputs: float(np.mean(right[inputs])))
            gains[variant] = difference(right["IQA"], right[best], groups, seed)
    return cells, gains, warnings


def difference(first: Any, second: Any, groups: Sequence[Any], seed: int) -> Interval:
    """Mean of first minus second, both (trainings, questions), on the same questions and with the same seeds."""
    if len(first) == 1:
        return compare_paired(first[0], second[0], groups, seed=seed).difference
    return over_seeds(first - second, groups, seed)
