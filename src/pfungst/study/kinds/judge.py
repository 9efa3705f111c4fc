"""Labels for a judge: people say whether answers of a run are right, so that a judge's accuracy can be corrected.

The export is the table that `judge:PLAYER,labels=FILE` reads. People see what the judge sees, and the image.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pfungst.api import load_again, part_again
from pfungst.core import Example, Image, PfungstError, Run, Table, read_config
from pfungst.report.page import csv_bytes
from pfungst.study.items import Content, Field, Item
from pfungst.study.kinds import (
    Kind,
    Made,
    Outcome,
    by_item,
    checks,
    intervals,
    majority_share,
    named,
    practised,
    sample,
    shown_image,
)
from pfungst.study.settings import StudySettings

FIELDS = (Field("right", "Is the reply right?", (("right", "Right"), ("wrong", "Wrong"), ("unsure", "I cannot tell"))),)


@dataclass(frozen=True)
class Judge(Kind):
    """Are these answers right? Labels to calibrate a judge."""

    probe: str = ""
    """Only answers of this probe [all probes]."""
    items: int = 100
    """Answers to label, drawn at random."""

    name: ClassVar[str] = "judge"
    title: ClassVar[str] = "Is this answer right?"
    instructions: ClassVar[str] = (
        "You see a question about an image, the reference answers, and a reply. Say whether the reply is right. What "
        "counts is what it says, not how: a right answer in a long sentence is right, a wrong one in fine words wrong."
    )
    data: ClassVar[str] = "a run folder"

    def make(self, data: str, options: Mapping[str, Any], limit: int | None, settings: StudySettings) -> Made:
        run = Path(named(data, self.data))
        config = read_config(run)
        examples = {one.id: one for one in part_again(load_again(config, run), config)}
        found = Run.open(run).rows(probes=[self.probe] if self.probe else ())
        rows = [row for row in found if row["example_id"] in examples and row["reply"].strip()]
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
            () if images else ("The data set has no images that can be shown: people judge only by the references.",)
        )
        return Made([*items, *checks(FIELDS)], images, notes)

    def outcome(self, answers: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> Outcome:
        labels = []
        for rows in by_item(answers).values():
            said = [row["value"]["right"] for row in rows]
            right, wrong = said.count("right"), said.count("wrong")
            about = rows[0]["about"]
            verdict = _verdict(rows)
            label = "" if verdict is None else int(verdict)
            labels.append([about["example_id"], about["probe"], about["variant"], about["reply"],
                           label, right, wrong, len(said) - right - wrong])  # fmt: skip
        share = majority_share(
            "accuracy", answers, _verdict, lambda row: str(row["about"]["image_id"]), "as people see it"
        )
        sure = sum(row[4] != "" for row in labels)
        table = Table(
            "Labels", ("answers labelled", "people agree on a majority", "right"), ((len(labels), sure, share),),
            "The majority of the people who labelled an answer; ties have no label. " + intervals(answers, "images"),
        )  # fmt: skip
        columns = ("id", "probe", "condition", "reply", "right", "people_right", "people_wrong", "people_unsure")
        files = {"labels.csv": csv_bytes(columns, labels)} if labels else {}
        return Outcome((table,), "right", {"right": share}, files)


def _verdict(said: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether most of those who could tell find an answer right; None for a tie."""
    words = [row["value"]["right"] for row in said]
    right, wrong = words.count("right"), words.count("wrong")
    return None if right == wrong else right > wrong


def _content(example: Example, choices: Sequence[str], reply: str, images: dict[str, Image]) -> Content:
    known = Counter(example.answers or ((example.target,) if example.target else ()))
    references = ", ".join(f"{text} ({n} people)" if n > 1 else text for text, n in known.items())
    facts = [("Options", " / ".join(choices))] if choices else []
    facts += [("Reference answers", references), ("Reply", reply)]
    return Content(FIELDS, example.question, shown_image(example, images), tuple(facts))


def _item(row: Mapping[str, Any], example: Example, images: dict[str, Image]) -> Item:
    reply = row["reply"]
    content = _content(example, row["choices"] or (), reply, images)
    about = {"example_id": example.id, "image_id": example.image_id or example.id, "probe": row["probe"],
             "variant": row["variant"], "reply": reply}  # fmt: skip
    name = f"{row['probe']} {row['variant']} {example.id}"
    return Item(name, content, name, row["probe"], about=about)


def _practice(number: int, example: Example, wrong: str | None, images: dict[str, Image]) -> Item:
    reply = wrong or str(example.target)
    made = Item("", _content(example, example.choices, reply, images), "")
    why = f"The references say “{example.target}”, the reply says “{reply}”."
    return practised(made, number, why, {"right": "wrong" if wrong else "right"})
