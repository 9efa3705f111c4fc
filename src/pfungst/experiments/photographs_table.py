"""The tables of `pfungst reproduce photographs`: VQA accuracy by answer type, and what the image is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import Dataset, Table
from pfungst.core.stats import over_runs
from pfungst.experiments.base import in_percent, span
from pfungst.scores.vqa import vqa_accuracy

TYPES = {"Other": "other", "Num": "number", "Y/N": "yes/no", "All": ""}
"""Columns of the papers' tables, and the answer type behind each."""
Floats = NDArray[np.float64]


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
        here = types == kind if kind else np.ones(len(types), bool)
        if not here.any():
            continue
        values = every[:, here]
        groups = [image for image, wanted in zip(images, here, strict=True) if wanted]
        for row, other in twins.items():
            sees, blind = places[row, False], places[other, True]
            found[row]["scores"][name] = {
                "sees": span(over_runs(values[sees], groups)),
                "blind": span(over_runs(values[blind], groups)),
                "worth": span(over_runs(values[sees] - values[blind], groups, bounds=(-1.0, 1.0))),
                "by_seed": values[sees].mean(1).tolist(),
                "by_seed_of_twin": values[blind].mean(1).tolist(),
            }
            if name == "All":
                found[row]["first"] = span(over_runs(values[sees[:1]], groups))
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
                name, one["backbone"], *(in_percent(one["scores"][kind]["sees"]) for kind in kinds),
                in_percent(one["scores"]["All"]["blind"]), f"{one['parameters']:,}", one["seeds"],
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
                name, *(in_percent(one["scores"][kind]["worth"], "+") for kind in kinds),
                _verdict(one["scores"]["All"]["worth"]),
            )
            for name, one in rows.items()
        ),
        note="Points of VQA accuracy: the model minus its twin that learns from questions alone, on the same questions "
        "and with the same seeds; 95% intervals over images and seeds.",
    )  # fmt: skip
    return [sees, worth]


def _verdict(worth: Mapping[str, float]) -> str:
    if worth["low"] > 0:
        return "yes"
    return "no: it does harm" if worth["high"] < 0 else "not shown"
