"""Rephrasings in two stages, as VQA-Rephrasings was collected (Sect. 4.1 of Cycle-Consistency for Robust VQA).

Stage one (`rephrase`): a person sees image, question and answer and writes three rephrasings that keep the answer.
Stage two (`validate`, also alone): others judge each of them. What most of them find fault with goes back to stage one,
where somebody else writes another one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pfungst.core import Dataset, Example, Image, Table, UsageError
from pfungst.probes.rephrase.generators import with_rephrasings
from pfungst.probes.rephrase.results import FILE as VALIDATED
from pfungst.study.items import BadAnswer, Content, Field, Item
from pfungst.study.kinds import (
    YES_NO,
    Kind,
    Made,
    Outcome,
    by_item,
    checks,
    intervals,
    load_data,
    majority_share,
    practised,
    sample,
    shown_image,
)
from pfungst.study.settings import StudySettings

FIELDS = (
    Field("meaning", "Do both questions ask for the same thing?", YES_NO),
    Field("answer", "Does the answer fit both questions?", YES_NO),
    Field("grammar", "Is the new question correct English?", YES_NO),
)
TASK = "Compare the new question with the original one."
EXAMPLES = (
    (
        "What color is the car?",
        "red",
        "Which color does the car have?",
        "yes yes yes",
        "It asks for the same thing in other words.",
    ),
    ("What color is the car?", "red", "Is the car red?", "no no yes", "Its answer is yes, no longer red."),
    ("How many dogs are there?", "2", "How much dogs there is?", "yes yes no", "The grammar is wrong."),
)
"""Training: original, answer, rephrasing, what is right, why."""
STAGE = 2


def training() -> list[Item]:
    made = []
    for number, (original, answer, text, right, why) in enumerate(EXAMPLES):
        gold = dict(zip((one.name for one in FIELDS), right.split(), strict=True))
        made.append(practised(Item("", judged(original, answer, text), ""), number, why, gold))
    return made


def judged(original: str, answer: str, text: str, images: tuple[tuple[str, str], ...] = ()) -> Content:
    return Content(
        FIELDS, text, images, (("Original question", original), ("Answer", answer)), TASK
    )  # fmt: skip


def is_valid(value: Mapping[str, str]) -> bool:
    return all(value[one.name] == "yes" for one in FIELDS)


def majority(said: Sequence[Mapping[str, str]]) -> bool:
    """Whether a rephrasing is valid: at least half of those who judged it found no fault."""
    return 2 * sum(map(is_valid, said)) >= len(said)


def described(example: Example) -> dict[str, Any]:
    """What an export needs to know of the original."""
    return {
        "original": example.id, "question": example.question, "image_id": example.image_id, "target": example.target,
        "answers": list(example.answers), "answer_type": example.answer_type, "question_type": example.question_type,
    }  # fmt: skip


@dataclass(frozen=True)
class Validate(Kind):
    """Do rephrasings keep meaning, answer and grammar?"""

    generator: str = ""
    """Who makes the rephrasings, as in the probe rephrase: rules, world, model:PLAYER [the groups of the data set]."""
    count: int = 3
    """Rephrasings per question, if they are made."""

    name: ClassVar[str] = "validate"
    title: ClassVar[str] = "Do these questions ask the same thing?"
    instructions: ClassVar[str] = (
        "You see a question with its answer, and a new question that was written to ask the same thing in other "
        "words. Judge whether it means the same, whether the same answer fits, and whether it is correct English."
    )
    data: ClassVar[str] = "a data set with rephrasings, or any with validate:generator=rules"

    def make(self, data: str, options: Mapping[str, Any], limit: int | None, settings: StudySettings) -> Made:
        loaded: Dataset = load_data(data, options, self.data)
        if self.generator:
            if limit is not None:  # some questions get fewer rephrasings than wanted, or none
                loaded = replace(loaded, examples=tuple(sample(loaded.originals, 2 * limit, settings.seed)))
            loaded = with_rephrasings(loaded, self.generator, self.count, settings.seed)
        originals = {one.id: one for one in loaded if one.group == one.id}
        pairs = [(originals[one.group], one) for one in loaded if one.group in originals and one.group != one.id]
        if not pairs:
            raise UsageError(f"{data} has no rephrasings. Let rules make them: validate:generator=rules.")
        images: dict[str, Image] = {}
        items = [
            Item(
                f"validate {new.id}",
                judged(old.question, str(old.target or ""), new.question, shown_image(old, images)),
                f"validate {new.id}", self.generator or "data",
                about={**described(old), "id": new.id, "text": new.question},
            )
            for old, new in sample(pairs, limit, settings.seed)
        ]  # fmt: skip
        return Made([*training(), *items, *checks(FIELDS)], images)

    def outcome(self, answers: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> Outcome:
        table, numbers, valid = votes(answers)
        return Outcome((table,), "meaning", numbers, {**export(valid), **judgements(answers)})


def votes(
    answers: Sequence[Mapping[str, Any]],
) -> tuple[Table, dict[str, Any], list[tuple[Mapping[str, Any], str]]]:
    """The table of stage two, its numbers, and the valid rephrasings: what is known of each, and its words."""
    items = by_item(answers).values()
    rows: list[tuple[Any, ...]] = []
    numbers: dict[str, Any] = {}

    def told(words: str, keeps: Any) -> None:
        def verdict(some: Sequence[Mapping[str, Any]]) -> bool:
            return bool(2 * sum(keeps(row["value"]) for row in some) >= len(some))

        numbers[words] = majority_share("share", answers, verdict, lambda row: str(row["about"]["original"]), words)
        rows.append((words, len(items), len(answers), numbers[words]))

    for one, words in zip(FIELDS, ("same meaning", "same answer", "correct grammar"), strict=True):
        told(words, lambda value, name=one.name: value[name] == "yes")
    told("valid", is_valid)
    table = Table(
        "Rephrasings that people find valid", ("", "rephrasings", "judgements", "share"), tuple(rows),
        "By the majority of those who judged a rephrasing; valid: without any fault. "
        + intervals(answers, "questions"),
    )  # fmt: skip
    kept = [
        (some[0]["about"], str(some[0]["about"]["text"])) for some in items if majority([row["value"] for row in some])
    ]
    return table, numbers, kept


def judgements(answers: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """Every judged rephrasing and how many people found it without fault, as `rephrase:validated=` reads it."""
    lines = []
    for rows in by_item(answers).values():
        about, said = rows[0]["about"], [row["value"] for row in rows]
        found = {
            "original": str(about["original"]), "question": about["question"], "text": about["text"],
            "judged": len(said), **{one.name: sum(value[one.name] == "yes" for value in said) for one in FIELDS},
            "valid": sum(map(is_valid, said)),
        }  # fmt: skip
        lines.append(json.dumps(found, ensure_ascii=False) + "\n")
    return {VALIDATED: "".join(lines).encode()} if lines else {}


def export(valid: Sequence[tuple[Mapping[str, Any], str]]) -> dict[str, bytes]:
    """The originals and their valid rephrasings in the format of VQA-Rephrasings.

    Published ids are numbers; originals that have one keep it, and their rephrasings count on from the largest.
    """
    questions: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    originals: dict[str, int] = {}
    known = [str(about["original"]) for about, _ in valid]
    numeric = all(map(_is_number, known))
    largest = max((int(one) for one in known if numeric), default=len(set(known)))
    images = {name: n for n, name in enumerate(dict.fromkeys(str(about["image_id"]) for about, _ in valid), 1)}
    numbered = all(map(_is_number, images))

    def write(id_: int, about: Mapping[str, Any], text: str, of: int | None) -> None:
        image = int(about["image_id"]) if numbered else images[str(about["image_id"])]
        questions.append({"question_id": id_, "image_id": image, "question": text,
                          **({} if of is None else {"rephrasing_of": of})})  # fmt: skip
        target = about["target"]
        given = list(about["answers"]) or ([target] if target is not None else [])
        labels.append({
            "question_id": id_, "image_id": image, "question_type": about["question_type"],
            "answer_type": about["answer_type"], "multiple_choice_answer": target,
            "answers": [{"answer": one, "answer_id": n, "answer_confidence": "yes"} for n, one in enumerate(given, 1)],
        })  # fmt: skip

    for about, text in valid:
        name = str(about["original"])
        if name not in originals:
            originals[name] = int(name) if numeric else len(originals) + 1
            write(originals[name], about, str(about["question"]), None)
        largest += 1
        write(largest, about, text, originals[name])
    if not questions:
        return {}
    head = {"data_type": "mscoco", "data_subtype": "valrep2014"}
    files = {
        "v2_OpenEnded_mscoco_valrep2014_humans_og_questions.json": {
            **head, "task_type": "Open-Ended", "questions": questions
        },
        "v2_mscoco_valrep2014_humans_og_annotations.json": {**head, "annotations": labels},
    }  # fmt: skip
    made = {f"rephrasings/{name}": json.dumps(content).encode() for name, content in files.items()}
    names = {
        "questions": {str(n): name for name, n in originals.items()},
        "images": {str(n): i for i, n in images.items()},
    }
    return {**made, "rephrasings.names.json": json.dumps(names, indent=1).encode()}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 16


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
            self._write(described(one), shown_image(one, images), self.count, 1)
            for one in sample(fit, limit, settings.seed)
        ]
        return Made([*training(), *items, *checks(FIELDS)], images)

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
        if item["stage"] == STAGE:
            if len(said) < item["wanted"] or majority(said) or about["attempt"] >= settings.attempts:
                return ()
            kept = {name: value for name, value in about.items() if name not in ("id", "text", "attempt")}
            again = self._write(kept, content.images, 1, about["attempt"] + 1, f"again {item['name']}")
            return (again,)
        return [
            Item(
                f"validate {item['name']} {field.name} by {worker}",
                judged(about["question"], str(about["target"]), said[-1][field.name], content.images),
                f"validate {item['name']} {field.name} by {worker}", "validate", stage=STAGE, author=worker,
                about={**about, "id": f"{item['name']} {field.name}", "text": said[-1][field.name]},
            )
            for field in content.fields
        ]  # fmt: skip

    def outcome(self, answers: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> Outcome:
        judged = [row for row in answers if row["stage"] == STAGE]
        table, numbers, valid = votes(judged)
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
        return Outcome((progress, table), "meaning", numbers, {**export(kept), **judgements(judged)})
