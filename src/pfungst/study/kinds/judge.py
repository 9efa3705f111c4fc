"""Labels for a judge: people say whether answers of a run are right, so that a judge's accuracy can be corrected.

The export is the table that `judge:PLAYER,labels=FILE` reads. People see what the judge sees, and the image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pfungst.core import Example, Image, PfungstError, Table, read_config
from pfungst.core.stats import bootstrap
from pfungst.study.items import TRAINING, Content, Field, Item
from pfungst.study.kinds.base import Kind, Made, Outcome, checks, finding, image_name, run_folder, sample, seen
from pfungst.study.settings import StudySettings

FIELDS = (Field("right", "Is the reply right?", (("right", "Right"), ("wrong", "Wrong"), ("unsure", "I cannot tell"))),)


@dataclass(frozen=True)
class Judge(Kind):
    """Are these answers right? Labels by which a judge is calibrated."""

    probe: str = ""
    """Answers of this probe alone [all probes]."""
    items: int = 100
    """Answers to label, drawn by chance."""

    name: ClassVar[str] = "judge"
    title: ClassVar[str] = "Is this answer right?"
    instructions: ClassVar[str] = (
        "You see a question about an image, the reference answers, and a reply. Say whether the reply is right. What "
        "counts is what it says, not how: a right answer in a long sentence is right, a wrong one in fine words wrong."
    )
    data: ClassVar[str] = "a run folder"

    def make(self, data: str, options: Mapping[str, Any], limit: int | None, settings: StudySettings) -> Made:
        from pfungst.api import load_again, part_again
        from pfungst.report.answers import Chosen, answers

        run = run_folder(data, self.data)
        config = read_config(run)
        examples = {one.id: one for one in part_again(load_again(config, run), config)}
        rows = [row for row in answers(run, Chosen(probe=self.probe)) if row["example_id"] in examples]
        rows = [row for row in rows if (row["raw"] or row["answer"] or "").strip()]
        if not rows:
            raise PfungstError(f"{run} has no answers to label.")
        drawn = sample(rows, self.items if limit is None else limit, settings.seed)
        images: dict[str, Image] = {}
        items = [_item(row, examples[row["example_id"]], images) for row in drawn]
        known = [one for one in examples.values() if one.target]
        practice = sample(known, 4, settings.seed)
        for number, one in enumerate(practice):
            wrong = next((other.target for other in known if number % 2 and other.target != one.target), None)
            items.append(_practice(number, one, wrong, images))
        notes = (
            () if images else ("The data set has no images that can be shown: people judge by the references alone.",)
        )
        return Made([*items, *checks(FIELDS)], images, notes)

    def outcome(self, answers: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> Outcome:
        by_item: dict[str, list[Mapping[str, Any]]] = {}
        for row in answers:
            by_item.setdefault(row["item"], []).append(row)
        labels, shares, images = [], [], []
        for rows in by_item.values():
            said = [row["value"]["right"] for row in rows]
            right, wrong = said.count("right"), said.count("wrong")
            about = rows[0]["about"]
            verdict: int | None = None if right == wrong else int(right > wrong)
            if verdict is not None:
                shares.append(float(verdict))
                images.append(about["image_id"])
            labels.append([about["example_id"], about["probe"], about["variant"], about["reply"],
                           "" if verdict is None else verdict, right, wrong, len(said) - right - wrong])  # fmt: skip
        share = finding("accuracy", bootstrap(shares, images), "as people see it")
        table = Table(
            "Labels", ("answers labelled", "people agree on a majority", "right"), ((len(labels), len(shares), share),),
            "The majority of the people who labelled an answer; ties have no label. 95% interval over images.",
        )  # fmt: skip
        from pfungst.report.exports.tables import csv_bytes

        columns = ("id", "probe", "condition", "reply", "right", "people_right", "people_wrong", "people_unsure")
        files = {"labels.csv": csv_bytes(columns, labels)} if labels else {}
        return Outcome((table,), "right", {"right": share}, files)


def _content(example: Example, question: str, choices: Sequence[str], reply: str, images: dict[str, Image]) -> Content:
    image = seen(example.image)
    if image is not None:
        images[image_name(example)] = image
    known: dict[str, int] = {}
    for one in example.answers or ((example.target,) if example.target else ()):
        known[one] = known.get(one, 0) + 1
    references = ", ".join(f"{text} ({n} people)" if n > 1 else text for text, n in known.items())
    facts = [("Options", " / ".join(choices))] if choices else []
    facts += [("Reference answers", references), ("Reply", reply)]
    return Content(FIELDS, question, ((image_name(example), "The image"),) if image is not None else (), tuple(facts))


def _item(row: Mapping[str, Any], example: Example, images: dict[str, Image]) -> Item:
    reply = row["raw"] or row["answer"]
    content = _content(example, example.question, row["choices"] or (), reply, images)
    about = {"example_id": example.id, "image_id": example.image_id or example.id, "probe": row["probe"],
             "variant": row["variant"], "reply": reply}  # fmt: skip
    name = f"{row['probe']} {row['variant']} {example.id}"
    return Item(name, content, name, row["probe"], about=about)


def _practice(number: int, example: Example, wrong: str | None, images: dict[str, Image]) -> Item:
    reply = wrong or str(example.target)
    made = _content(example, example.question, example.choices, reply, images)
    why = f"The references say “{example.target}”, the reply says “{reply}”."
    name = f"training {number}"
    gold = {"right": "wrong" if wrong else "right"}
    return Item(name, replace(made, explanation=why), name, role=TRAINING, gold=gold)
