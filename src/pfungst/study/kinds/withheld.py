"""Multiple choice with information withheld: the human columns of Being Negative but Constructively (Tables 3 to 5).

A person picks the answer from the choices alone (A), with the image (I+A), with the question (Q+A), or with both
(I+Q+A). Nobody sees a question in two conditions, and three people see each (Sect. 5.2 of the paper).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pfungst.core import Example, Image, Table, UsageError
from pfungst.core.files import jsonable
from pfungst.study.items import Content, Field, Item
from pfungst.study.kinds import (
    Kind,
    Made,
    Outcome,
    checks,
    intervals,
    load_data,
    practised,
    sample,
    seen,
    share,
    shown_image,
)
from pfungst.study.settings import StudySettings

CONDITIONS = {"A": "A", "IA": "I+A", "QA": "Q+A", "IQA": "I+Q+A"}
TASKS = {
    "A": "You see neither the image nor the question. Which of these is most likely the right answer?",
    "IA": "You do not see the question. Which of these is most likely the right answer to a question about this image?",
    "QA": "You do not see the image. Which of these is most likely the right answer?",
    "IQA": "Which of these is the right answer?",
}


@dataclass(frozen=True)
class Withheld(Kind):
    """Multiple choice with the image, the question, or both withheld."""

    conditions: tuple[str, ...] = tuple(CONDITIONS)
    """What is shown: A (only the choices), IA, QA, IQA."""
    sets: tuple[str, ...] = ()
    """Choice sets of a file of decoys by their columns, such as orig+qou+iou+qou_iou [its column `choices`]."""
    training: int = 4
    """Training items, with feedback."""

    name: ClassVar[str] = "withheld"
    title: ClassVar[str] = "Which answer is right?"
    instructions: ClassVar[str] = (
        "Each item has a list of answers, one of which is right. It belongs to a question about an image, but "
        "sometimes you see only the image, only the question, or neither. Pick the answer that you think is right; "
        "guess if you have to."
    )
    data: ClassVar[str] = "a multiple-choice data set, such as `pfungst decoys` writes"

    def __post_init__(self) -> None:
        for name in self.conditions:
            if name not in CONDITIONS:
                raise UsageError(f"There is no condition {name!r}; there are {', '.join(CONDITIONS)}.")

    def make(self, data: str, options: Mapping[str, Any], limit: int | None, settings: StudySettings) -> Made:
        by_set = {
            name: {one.id: one for one in load_data(_with(data, name), options, self.data) if _fit(one)}
            for name in self.sets or (_headline(data),)
        }
        first, *others = by_set.values()
        shared = [one for one in first.values() if all(one.id in more for more in others)]
        sees_image = any("I" in name for name in self.conditions)
        fit = [one for one in shared if not sees_image or seen(one.image) is not None]
        if not fit:
            if not shared:
                sets = f" in the choice sets {', '.join(self.sets)}" if self.sets else ""
                raise UsageError(
                    f"{data} has no question with a right answer among its choices{sets}. `pfungst decoys` makes "
                    "choices."
                )
            raise UsageError(
                f"{data} has no image for its questions. Give --images, or withhold the image with "
                "withheld:conditions=A+QA."
            )
        drawn = sample(fit, None if limit is None else limit + self.training, settings.seed)
        trained, asked = drawn[: self.training], drawn[self.training :]
        if not asked:
            trained, asked = [], drawn
        rng = np.random.default_rng([settings.seed, 3])
        images: dict[str, Image] = {}
        items: list[Item] = []
        for number, one in enumerate(trained):
            made = _item(one, self.conditions[-1], "", rng, images)
            why = f"The right answer is “{one.target}”."
            items.append(practised(made, number, why, {"choice": str(made.about["target"])}))
        for one in asked:
            items += [
                _item(examples[one.id], condition, name, rng, images)
                for name, examples in by_set.items()
                for condition in self.conditions
            ]
        items += checks((Field("choice", "The right answer", tuple((str(n), str(n)) for n in (1, 2, 3, 4))),))
        many = settings.wanted * len(self.conditions) * len(by_set)
        notes = (f"Nobody sees a question twice, so at least {many} workers are needed for all answers.",)
        return Made(items, images, notes)

    def outcome(self, answers: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> Outcome:
        names = list(dict.fromkeys(str(row["about"]["set"]) for row in items))
        conditions = [one for one in CONDITIONS if any(row["about"]["condition"] == one for row in items)]
        rows, cells, numbers = [], [], {}
        for condition in conditions:
            shown: list[Any] = [CONDITIONS[condition]]
            for name in names:
                some = [r for r in answers if (r["about"]["condition"], r["about"]["set"]) == (condition, name)]
                column = f"{CONDITIONS[condition]} {name}".strip()
                accuracy = share("accuracy", some, _is_right, lambda row: str(row["about"]["image_id"]), column)
                shown += [len(some), accuracy]
                numbers[column] = accuracy
                people = len({row["worker"] for row in some})
                if some:
                    note = f"{len(some)} answers by {people} people"
                    cells.append(
                        {"variant": name or "Orig", "model": f"Human-{condition}", "accuracy": accuracy, "note": note}
                    )
            rows.append(tuple(shown))
        chance = [1 / row["about"]["choices"] for row in items]
        columns = [column for name in names for column in ("answers", f"accuracy {name}".strip())]
        table = Table(
            "Accuracy of people, by what they saw", ("seen", *columns), tuple(rows),
            f"I: image, Q: question, A: choices. Chance is {100 * sum(chance) / max(1, len(chance)):.1f}%. "
            + intervals(answers, "images"),
        )  # fmt: skip
        human = json.dumps(jsonable({"cells": cells}), indent=1).encode()
        return Outcome((table,), "choice", numbers, {"human.json": human})


def _is_right(row: Mapping[str, Any]) -> bool:
    return bool(row["value"]["choice"] == row["about"]["target"])


def _with(data: str, name: str) -> str:
    if not name:
        return data
    return f"{data}{'&' if '?' in data else '?'}choices=choices_{name}"


def _headline(data: str) -> str:
    """The set that a file of decoys has in its column `choices`; empty for other data sets."""
    import pyarrow.parquet as pq

    file = Path(data.partition("?")[0])
    if "choices=" in data or file.suffix not in (".parquet", ".jsonl") or not file.is_file():
        return ""
    try:
        if file.suffix == ".jsonl":
            with open(file, encoding="utf-8") as lines:
                row = json.loads(lines.readline())
        else:
            row = next(pq.ParquetFile(file).iter_batches(1)).to_pylist()[0]
    except (OSError, ValueError, StopIteration, IndexError):
        return ""  # the loader says what is wrong with it
    names = [name for name in row if name.startswith("choices_") and row[name] == row.get("choices")]
    return max(names, key=len).removeprefix("choices_") if names else ""


def _fit(example: Example) -> bool:
    return example.target is not None and len(example.choices) > 1 and example.target in example.choices


def _variant(name: str) -> str:
    """`QoU+IoU` of `qou_iou`: as the audit names its choice sets."""
    known = {"orig": "Orig", "qou": "QoU", "iou": "IoU", "both": "Both", "random": "Random", "all": "All"}
    return "+".join(known.get(part, part) for part in name.split("_")) if name else ""


def _item(example: Example, condition: str, name: str, rng: np.random.Generator, images: dict[str, Image]) -> Item:
    order = [example.choices[number] for number in rng.permutation(len(example.choices))]
    # Values are places: equal or empty texts stay apart, and no value tells what is right.
    options = tuple((str(place), text) for place, text in enumerate(order))
    content = Content(
        (Field("choice", "The right answer", options),), example.question if "Q" in condition else "",
        shown_image(example, images) if "I" in condition else (), task=TASKS[condition],
    )  # fmt: skip
    about = {
        "example_id": example.id, "image_id": example.image_id or example.id, "condition": condition,
        "set": _variant(name), "target": str(order.index(str(example.target))), "choices": len(order),
    }  # fmt: skip
    label = f"{CONDITIONS[condition]} {_variant(name)}".strip()
    return Item(f"{label} {example.id}", content, example.id, label, about=about)
