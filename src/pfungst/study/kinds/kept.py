"""Does the answer stay? People see the disturbed questions of a run, with the answer to the questions as they stand.

It shows people what a probe claims: that a disturbed question keeps its answer, and that a reader knows which question
is meant where others are appended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pfungst.api import load_again, part_again
from pfungst.core import Example, Finding, Image, PfungstError, Run, Table, read_config
from pfungst.probes.measure import grouped
from pfungst.report.page import csv_bytes
from pfungst.study.items import Content, Field, Item
from pfungst.study.kinds import (
    YES_NO,
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

FITS, CLEAR = "fits", "clear"
FIELDS = (
    Field(FITS, "Is the answer right for this question?", (*YES_NO, ("unsure", "I cannot tell"))),
    Field(CLEAR, "Is it clear which question is to be answered?", YES_NO),
)
ALL = "all"


@dataclass(frozen=True)
class Kept(Kind):
    """Do the disturbed questions of a run keep their answers?"""

    probe: str = "noise"
    """Whose questions: noise, surface, rephrase ..."""
    items: int = 100
    """Questions to show, drawn at random, each in one of its disturbed forms."""

    name: ClassVar[str] = "kept"
    title: ClassVar[str] = "Is this answer right?"
    instructions: ClassVar[str] = (
        "You see a question about an image, and an answer. The question may be followed by other text, or be written "
        "oddly. Say whether the answer is right, and whether it is clear which question is to be answered."
    )
    data: ClassVar[str] = "a run folder"

    def make(self, data: str, options: Mapping[str, Any], limit: int | None, settings: StudySettings) -> Made:
        run = Path(named(data, self.data))
        config = read_config(run)
        examples = {one.id: one for one in part_again(load_again(config, run), config)}
        forms = grouped(self._rows(run, examples), lambda row: str(row["example_id"]))
        if not forms:
            raise PfungstError(f"{run} has no disturbed questions of the probe {self.probe} with a right answer.")
        images: dict[str, Image] = {}
        drawn = sample(list(forms.values()), self.items if limit is None else limit, settings.seed)
        rows = [sample(some, 1, settings.seed + number)[0] for number, some in enumerate(drawn)]
        items = [_item(row, examples[row["example_id"]], images) for row in rows]
        known = [examples[name] for name in forms]
        for number, one in enumerate(sample(known, 4, settings.seed)):
            others = [other.target for other in known if number % 2 and other.target != one.target]
            items.append(_practice(number, one, others[0] if others else None, images))
        notes = () if images else ("The data set has no images that can be shown: people judge by the words alone.",)
        return Made([*items, *checks(FIELDS)], images, notes)

    def _rows(self, run: Path, examples: Mapping[str, Example]) -> list[Mapping[str, Any]]:
        """The disturbed questions that claim to keep the answer, and those that control them."""
        found = Run.open(run).rows([("role", "in", ["keeps", "control"])], probes=[self.probe])
        return [row for row in found if row["example_id"] in examples and row["target"]]

    def outcome(self, answers: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> Outcome:
        variants = grouped(answers, lambda row: str(row["about"]["variant"]))
        numbers: dict[str, Finding] = {}
        rows: list[tuple[Any, ...]] = []
        for name, some in {ALL: answers, **variants}.items():
            shares = [_share(some, field, name) for field in (FITS, CLEAR)]
            numbers |= {f"{field}, {name}": one for field, one in zip((FITS, CLEAR), shares, strict=True)}
            rows.append((name, len(by_item(some)), len(some), *shares))
        table = Table(
            "Do disturbed questions keep their answers?",
            ("variant", "questions", "judgements", "the answer is right", "it is clear which question is meant"),
            tuple(rows),
            "By the majority of those who saw a question; ties count as no. " + intervals(answers, "images"),
        )
        columns = ("example_id", "variant", "question", "target", "judged", FITS, CLEAR)
        files = {"kept.csv": csv_bytes(columns, list(map(_exported, by_item(answers).values())))} if answers else {}
        return Outcome((table,), FITS, numbers, files)


def _share(answers: Sequence[Mapping[str, Any]], field: str, condition: str) -> Finding:
    def most(said: Sequence[Mapping[str, Any]]) -> bool:
        return bool(2 * sum(row["value"][field] == "yes" for row in said) > len(said))

    return majority_share("share", answers, most, lambda row: str(row["about"]["image_id"]), condition)


def _exported(said: Sequence[Mapping[str, Any]]) -> list[Any]:
    about = said[0]["about"]
    votes = [sum(row["value"][field] == "yes" for row in said) for field in (FITS, CLEAR)]
    return [*(about[name] for name in ("example_id", "variant", "question", "target")), len(said), *votes]


def _item(row: Mapping[str, Any], example: Example, images: dict[str, Image]) -> Item:
    about = {
        "example_id": example.id, "image_id": example.image_id or example.id, "variant": row["variant"],
        "question": row["question"], "target": row["target"],
    }  # fmt: skip
    content = _content(row["question"], row["target"], example, images)
    return Item(f"kept {row['variant']} {example.id}", content, f"kept {example.id}", row["variant"], about=about)


def _content(question: str, answer: str, example: Example, images: dict[str, Image]) -> Content:
    return Content(FIELDS, question, shown_image(example, images), (("Answer", answer),))


def _practice(number: int, example: Example, wrong: str | None, images: dict[str, Image]) -> Item:
    made = Item("", _content(example.question, wrong or str(example.target), example, images), "")
    why = f"The right answer is “{example.target}”. There is only one question."
    return practised(made, number, why, {FITS: "no" if wrong else "yes", CLEAR: "yes"})
