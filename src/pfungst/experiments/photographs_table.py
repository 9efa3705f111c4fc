"""The tables of `pfungst reproduce photographs`: VQA accuracy by answer type, and what the image is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import Dataset, Table
from pfungst.core.stats import bootstrap_means
from pfungst.scores.vqa import vqa_accuracy

TYPES = {"Other": "other", "Num": "number", "Y/N": "yes/no", "All": ""}
"""Columns of the papers' tables, and the answer type behind each."""
Floats = NDArray[np.float64]


def judge(
    runs: Sequence[Mapping[str, Any]], test: Dataset, answers: Sequence[str], rows: Sequence[str]
) -> dict[str, Any]:
    """Accuracies with intervals of all rows, from the answers that the runs gave.

    runs : one for each row, twin and seed, with `answers`, the number of the answer to every test question
    """
    known: dict[tuple[int, str], float] = {}

    def score(question: int, text: str) -> float:
        if (question, text) not in known:
            known[question, text] = vqa_accuracy(text, test[question].answers)
        return known[question, text]

    def scores(given: Sequence[int]) -> list[float]:
        return [score(question, answers[number]) for question, number in enumerate(given)]

    images = [example.image_id for example in test]
    types = np.array([example.answer_type for example in test])
    found = {}
    for row in rows:
        mine = sorted((one for one in runs if one["row"] == row), key=lambda one: int(one["seed"]))
        sees = np.array([scores(one["answers"]) for one in mine if not one["blind"]])
        blind = np.array([scores(one["answers"]) for one in mine if one["blind"]])
        first = next(one for one in mine if not one["blind"])
        twin = next(one for one in mine if one["blind"])
        found[row] = {
            "backbone": first["backbone"],
            "parameters": first["parameters"],
            "seeds": len(sees),
            "chosen": {name: first[name] for name in ("rate", "dropout")},
            "chosen_blind": {name: twin[name] for name in ("rate", "dropout")},
            "held": [one["held"] for one in mine if not one["blind"]],
            "first": over_images_and_seeds(sees[:1], images),
            "scores": {
                name: {
                    "sees": over_images_and_seeds(sees[:, here], _some(images, here)),
                    "blind": over_images_and_seeds(blind[:, here], _some(images, here)),
                    "worth": over_images_and_seeds((sees - blind)[:, here], _some(images, here)),
                    "by_seed": sees[:, here].mean(1).tolist(),
                }
                for name, kind in TYPES.items()
                for here in [types == kind if kind else np.ones(len(types), bool)]
            },
        }
    frequent, sayable = answers[0], set(answers)
    best = [max((score(i, text) for text in sayable & set(one.answers)), default=0.0) for i, one in enumerate(test)]
    return {
        "rows": found,
        "questions": {name: int((types == kind).sum()) if kind else len(test) for name, kind in TYPES.items()},
        "images": len(set(images)),
        "constant": {"answer": frequent, "accuracy": float(np.mean([score(i, frequent) for i in range(len(test))]))},
        "reachable": float(np.mean(best)),
    }


def over_images_and_seeds(scores: Floats, images: Sequence[str], draws: int = 2000) -> dict[str, float]:
    """Mean of scores (seeds, questions) with a 95% interval: images are drawn again, and seeds, both at once."""
    means = bootstrap_means(scores, images, draws=draws)
    chosen = np.random.default_rng(1).integers(0, len(scores), size=(len(means), len(scores)))
    low, high = np.quantile(np.take_along_axis(means, chosen, 1).mean(1), (0.025, 0.975))
    return {"value": float(scores.mean()), "low": float(low), "high": float(high)}


def _some(images: Sequence[str], here: NDArray[np.bool_]) -> list[str]:
    return [image for image, wanted in zip(images, here, strict=True) if wanted]


def score_tables(result: Mapping[str, Any]) -> list[Table]:
    """What the models score, and what they lose without the image."""
    rows: Mapping[str, Any] = result["rows"]
    counts = result["questions"]
    sees = Table(
        "VQA accuracy on photographs",
        ("model", "features", *TYPES, "question only: All", "parameters", "seeds"),
        tuple(
            (
                name, one["backbone"], *(_percent(one["scores"][kind]["sees"]) for kind in TYPES),
                _percent(one["scores"]["All"]["blind"]), f"{one['parameters']:,}", one["seeds"],
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
        ("model", *TYPES, "is it worth anything?"),
        tuple(
            (
                name, *(_points(one["scores"][kind]["worth"]) for kind in TYPES),
                _verdict(one["scores"]["All"]["worth"]),
            )
            for name, one in rows.items()
        ),
        note="Points of VQA accuracy: the model minus its twin that learns from questions alone, on the same questions "
        "and with the same seeds; 95% intervals over images and seeds.",
    )  # fmt: skip
    return [sees, worth]


def _percent(part: Mapping[str, float]) -> str:
    return f"{100 * part['value']:.1f} [{100 * part['low']:.1f}, {100 * part['high']:.1f}]"


def _points(part: Mapping[str, float]) -> str:
    return f"{100 * part['value']:+.1f} [{100 * part['low']:.1f}, {100 * part['high']:.1f}]"


def _verdict(worth: Mapping[str, float]) -> str:
    if worth["low"] > 0:
        return "yes"
    return "no: it does harm" if worth["high"] < 0 else "not shown"
