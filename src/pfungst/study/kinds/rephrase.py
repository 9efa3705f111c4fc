"""Rephrasings in two stages, as VQA-Rephrasings was collected (Sect. 4.1 of Cycle-Consistency for Robust VQA).

Stage one: a person sees image, question and answer and writes three rephrasings that keep the answer. Stage two: others
judge each of them (`validate`). What most of them find fault with goes back to stage one, where somebody else writes
another one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pfungst.core import Image, Table, UsageError
from pfungst.study.items import BadAnswer, Content, Field, Item
from pfungst.study.kinds import validate
from pfungst.study.kinds.base import Kind, Made, Outcome, checks, load_data, sample, shown_image
from pfungst.study.settings import StudySettings

ORIGINAL = "Original question"
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


@dataclass(frozen=True)
class Rephrase(Kind):
    """Write rephrasings of a question; others validate them, and what fails is written again."""

    count: int = 3
    """Rephrasings of every question (Sect. 4.1: three)."""

    name: ClassVar[str] = "rephrase"
    title: ClassVar[str] = "Say it in other words"
    instructions: ClassVar[str] = (
        "There are two kinds of items. In some you see a question about an image with its answer, and write new "
        "questions that ask the same thing in other words: the answer must stay the same. In others you judge what "
        "somebody else wrote."
    )
    data: ClassVar[str] = "a data set with questions and their answers"
    follows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1 <= self.count <= len(ORDINALS):
            raise UsageError(f"count must be between 1 and {len(ORDINALS)}.")

    def make(self, data: str, options: Mapping[str, Any], limit: int | None, settings: StudySettings) -> Made:
        loaded = load_data(data, options, self.data)
        fit = [one for one in loaded.originals if one.target is not None]
        if not fit:
            raise UsageError(f"{data} has no question with a known answer.")
        images: dict[str, Image] = {}
        items = [
            self._write(validate.described(one), shown_image(one, images), self.count, 1)
            for one in sample(fit, limit, settings.seed)
        ]
        return Made([*validate.training(), *items, *checks(validate.FIELDS)], images)

    def _write(
        self, about: Mapping[str, Any], images: tuple[tuple[str, str], ...], count: int, attempt: int, name: str = ""
    ) -> Item:
        words = [f"{word.capitalize()} new question" for word in ORDINALS[:count]] if count > 1 else ["New question"]
        task = f"Write {count} new questions that ask" if count > 1 else "Write one new question that asks"
        content = Content(
            tuple(Field(f"text{number}", label) for number, label in enumerate(words)),
            images=images, facts=((ORIGINAL, str(about["question"])), ("Answer", str(about["target"]))),
            task=f"{task} the same thing in other words. The answer must stay the same.",
        )  # fmt: skip
        known = {**about, "attempt": attempt}
        # The same person is not asked to rephrase a question twice.
        return Item(
            name or f"write {about['original']}", content, f"write {about['original']}", "write", about=known, wanted=1
        )

    def accept(self, content: Content, value: Mapping[str, str]) -> None:
        if ORIGINAL not in dict(content.facts) or not any(name.startswith("text") for name in value):
            return
        texts = [dict(content.facts)[ORIGINAL], *(value[one.name] for one in content.fields)]
        bare = ["".join(sign for sign in text.casefold() if sign.isalnum()) for text in texts]
        if any(len(text.split()) < 2 for text in texts[1:]):
            raise BadAnswer("A question has at least two words.")
        if bare[0] in bare[1:]:
            raise BadAnswer("One of the new questions is the original question. Please say it in other words.")
        if len(set(bare)) < len(bare):
            raise BadAnswer("Two of the new questions are the same. Please write different ones.")

    def follow(
        self, item: Mapping[str, Any], said: Sequence[Mapping[str, str]], worker: int, settings: StudySettings
    ) -> Sequence[Item]:
        about, content = json.loads(item["about"]), Content.of(item["content"])
        if item["stage"] == validate.STAGE:
            if len(said) < item["wanted"] or validate.majority(said) or about["attempt"] >= settings.attempts:
                return ()
            kept = {name: value for name, value in about.items() if name not in ("id", "text", "attempt")}
            again = self._write(kept, content.images, 1, about["attempt"] + 1, f"again {item['name']}")
            return (again,)
        return [
            Item(
                f"validate {item['name']} {field.name} by {worker}",
                validate.judged(about["question"], str(about["target"]), said[-1][field.name], content.images),
                f"validate {item['name']} {field.name} by {worker}", "validate", stage=validate.STAGE, author=worker,
                about={**about, "id": f"{item['name']} {field.name}", "text": said[-1][field.name]},
            )
            for field in content.fields
        ]  # fmt: skip

    def outcome(self, answers: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> Outcome:
        judged = [row for row in answers if row["stage"] == validate.STAGE]
        table, numbers, valid = validate.votes(judged)
        some: dict[str, int] = {}
        kept = []
        for about, text in valid:
            some[about["original"]] = some.get(about["original"], 0) + 1
            if some[about["original"]] <= self.count:
                kept.append((about, text))
        asked = {row["about"]["original"] for row in items}
        written = sum(len(row["value"]) for row in answers if row["stage"] == 1)
        whole = sum(some.get(one, 0) >= self.count for one in asked)
        progress = Table(
            "Progress", ("questions", "rephrasings written", "judged", "valid", "questions with all rephrasings"),
            ((len(asked), written, len({row["item"] for row in judged}), len(valid), whole),),
        )  # fmt: skip
        return Outcome((progress, table), "meaning", numbers, {**validate.export(kept), **validate.judgements(judged)})
