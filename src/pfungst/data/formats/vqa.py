"""VQA v1 and v2, every data set published in their format, OK-VQA and VQA-Rephrasings.

Questions: {"task_type": "Open-Ended", "data_type": "mscoco", "data_subtype": "val2014", "questions": [
    {"question_id": 42000, "image_id": 42, "question": "...", "multiple_choices": [18 texts]}, ...]}
Annotations: {"annotations": [{"question_id": 42000, "image_id": 42, "question_type": "what is",
    "answer_type": "other", "multiple_choice_answer": "...", "answers": [{"answer": "..."}, ten of them]}, ...]}
Without annotations (the test splits) the questions load unlabelled. Complementary pairs of VQA v2
(`v2_mscoco_val2014_complementary_pairs.json`: [[question_id, question_id], ...]) are contrast groups.

OK-VQA: its files are called like those of VQA v1 (`OpenEnded_mscoco_val2014_questions.json`,
`mscoco_val2014_annotations.json`), so it is recognised by `raw_answer` in the annotations or by the name of its folder.
Where the annotations are missing but a file of soft labels (`*soft_labels*.json`: a list of
{"question_id", "label": {answer: score}}) is there, the human answers are rebuilt from it.

VQA-Rephrasings, questions of VQA v2 each with three rephrasings by people:
`v2_OpenEnded_mscoco_valrep2014_humans_og_questions.json` and `v2_mscoco_valrep2014_humans_og_annotations.json`. A
rephrasing names its original question in `rephrasing_of`. The published ids of some rephrasings are those of other
questions; such a rephrasing is loaded with the id `ORIGINAL:ID`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pfungst.core import DataError, Example, Image
from pfungst.data.job import FEW, Format, Found, Job, canonical, split_of
from pfungst.rows.fields import (
    Bad,
    checked,
    identifier,
    most_frequent,
    name,
    optional_text,
    record,
    shown,
    text,
    texts,
    whole,
)
from pfungst.rows.files import File
from pfungst.rows.json_records import JsonRecords

_QUESTIONS = re.compile(r"(v2_)?(?:(openended|multiplechoice)_)?(?:(.*?)[-_.])?questions", re.IGNORECASE)
_ANNOTATIONS = re.compile(r"(v2_)?(?:(.*?)[-_.])?annotations", re.IGNORECASE)
_PAIRS = re.compile(r"(v2_)?(?:(.*?)[-_.])?complementary_pairs", re.IGNORECASE)


@dataclass(frozen=True)
class VqaOptions:
    """Which of several releases in one folder is read."""

    task: str = ""
    """`open-ended` (the default) or `multiple-choice`."""
    version: Literal["1", "2"] | None = None
    """Version of the questions: VQA v1 or v2."""
    annotations: str = ""
    """An annotations file in another place or with another name."""


@dataclass(frozen=True, slots=True)
class Part:
    """The files of one split of one release."""

    questions: File
    annotations: File | None
    split: str
    """As the file says it: `val2014`, `test-dev2015`, `train`; empty if it says nothing."""
    version: str
    """`1` or `2`; empty where the name does not tell."""
    task: str
    """`open-ended` or `multiple-choice`."""
    pairs: File | None = None
    """Complementary pairs of VQA v2: one question on two images, with two answers."""


def is_questions(file: File) -> bool:
    return file.suffix == ".json" and _QUESTIONS.fullmatch(file.stem) is not None


def find_parts(job: Job) -> list[Part]:
    """The splits that are there, with their annotations, narrowed by the options `task` and `version`."""
    files = job.sorted(".json")
    named = [file for file in files if is_questions(file)] or (files if len(files) == 1 else [])
    if not named:
        return []
    beside = [file for file in job.companions if file.suffix == ".json"]
    parts = [_part(job, file, beside) for file in named]
    version, task = job.options.get("version"), _task(job.options.get("task", ""))
    parts = [part for part in parts if not version or part.version in ("", version)]
    if not task:
        task = "open-ended" if any(part.task == "open-ended" for part in parts) else "multiple-choice"
    parts = [part for part in parts if part.task == task]
    if not parts:
        raise DataError.at(job.place, "", f"there are no {task} questions of that version in it.")
    return sorted(parts, key=lambda part: (part.split, part.questions))


def only(parts: list[Part], job: Job) -> Part:
    """The one part of a split; copies of one file (plain, .gz, .zip) count as one."""
    names = sorted({part.questions.name for part in parts})
    folders = {part.questions.folder for part in parts if part.questions.preference == parts[0].questions.preference}
    if len(names) > 1 or len(folders) > 1:
        raise DataError.at(
            job.place,
            "",
            f"there are several files of this split: {', '.join(sorted(part.questions.label for part in parts))}.",
            "Name one of them, or choose with ?version=2.",
        )
    return parts[0]


def _part(job: Job, file: File, beside: list[File]) -> Part:
    name = _QUESTIONS.fullmatch(file.stem)
    version, task, rest = (name[1], name[2], name[3] or "") if name else (None, None, file.stem)
    split = split_of(rest) or split_of(file.folder.rpartition("/")[2])
    if given := job.options.get("annotations"):
        annotations: File | None = _given(given, job)
    else:
        annotations = _partner(file, version or "", rest, split, beside, _ANNOTATIONS)
    return Part(
        questions=file,
        annotations=annotations,
        split=split,
        version="2" if version else ("1" if task else ""),
        task="multiple-choice" if (task or "").lower() == "multiplechoice" else "open-ended",
        pairs=_partner(file, version or "", rest, split, beside, _PAIRS),
    )


def _partner(
    file: File, version: str, rest: str, split: str, beside: list[File], pattern: re.Pattern[str]
) -> File | None:
    """The annotations (or pairs) that belong to a file of questions, by name; never those of another split."""
    ranked: list[tuple[int, File]] = []
    partners = [(other, name) for other in beside if (name := pattern.fullmatch(other.stem))]
    for other, name in partners:
        if (name[1] or "").lower() != version.lower():
            continue
        other_split = split_of(name[2] or "") or split_of(other.folder.rpartition("/")[2])
        same_folder = other.folder == file.folder
        if (name[2] or "").lower() == rest.lower() and split == other_split:
            ranked.append((0 if same_folder else 1, other))
        elif same_folder and len(partners) == 1 and (not split or not other_split):
            ranked.append((2, other))
    return min(ranked)[1] if ranked else None


def _given(path: str, job: Job) -> File:
    for file in job.companions:
        if path in (file.name, file.label, str(file.path)):
            return file
    if not Path(path).is_file():
        raise DataError.at(path, "", "there is no such annotations file.")
    return File(Path(path))


def _task(asked: str) -> str:
    known = {"": "", "open-ended": "open-ended", "openended": "open-ended"}
    known |= {"multiple-choice": "multiple-choice", "multiplechoice": "multiple-choice", "mc": "multiple-choice"}
    if asked.lower() not in known:
        raise DataError(f"There is no task {asked!r}; the tasks are open-ended and multiple-choice.")
    return known[asked.lower()]


class Asked(NamedTuple):
    """A record of a questions file."""

    number: int
    id: str
    image_id: str
    question: str
    choices: tuple[str, ...]
    coco_split: str
    rephrasing_of: str


class Label(NamedTuple):
    """A record of an annotations file."""

    image_id: str
    answers: tuple[str, ...]
    target: str | None
    answer_type: str
    question_type: str


class Vqa(Format):
    """VQA v1 and v2."""

    name = "vqa"
    title = "VQA v1 and v2, and data sets in their format"
    expects = "*questions.json and, except for test splits, *annotations.json"
    metric = "vqa"
    options = VqaOptions
    endings = frozenset({".json"})

    def claims(self, file: File, head: str) -> float:
        published = _QUESTIONS.fullmatch(file.stem)
        if published is None:
            return 0.0
        if published[2]:  # `v2_OpenEnded_mscoco_val2014_questions.json` and its kin
            return 0.9
        return 0.7 if '"question_id"' in head and '"question"' in head else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        splits: dict[str, list[Part]] = {}
        for part in find_parts(job):
            splits.setdefault(part.split, []).append(part)
        for _, parts in self.chosen(job, splits, "there is no questions file in it.", canonical):
            yield from self.read_part(job, only(parts, job))

    def read_part(self, job: Job, part: Part) -> Iterator[Found]:
        reader = JsonRecords(part.questions)
        asked_for = job.each(reader, "questions", lambda value: _asked(value, reader.number, job.share))
        questions = list(islice(asked_for, job.limit))
        labels = self.labels(job, part, {asked.id for asked in questions} if job.limit is not None else None)
        subtype = str(reader.header.get("data_subtype") or split_of(part.questions.stem) or part.split)
        find = _picture_rule(job, str(reader.header.get("data_type") or part.questions.stem), subtype)
        if questions and all(asked.choices for asked in questions):
            job.metric = "choice"
        contrasts = self._pairs(job, part)
        originals = {asked.rephrasing_of for asked in questions}
        for asked, id_ in zip(questions, _unique_ids(questions)):
            group = asked.rephrasing_of or (asked.id if asked.id in originals else "")
            groups = (group, contrasts.get(asked.id, ""))
            for found in job.example((part.questions, asked.number), _example, asked, id_, groups, labels, find):
                if 1 < len(found[0].answers) < 4 and not found[0].choices and "answers" not in job.notes:
                    job.count(FEW)
                yield found

    def _pairs(self, job: Job, part: Part) -> dict[str, str]:
        """Question -> its contrast group, from the file of complementary pairs."""
        if part.pairs is None:
            return {}
        groups: dict[str, str] = {}
        for first, second in job.each(JsonRecords(part.pairs), "complementary_pairs", _pair):
            group = groups.get(first) or groups.get(second) or first
            groups.setdefault(first, group)
            groups.setdefault(second, group)
        return groups

    def labels(self, job: Job, part: Part, wanted: set[str] | None) -> Labels | None:
        """The annotations of a split, None where it has none. `wanted` ends the reading when all of them are found."""
        if part.annotations is None:
            return None
        labels = Labels(part.annotations.label)
        share = job.shared.setdefault

        def add(value: Any) -> str:
            answers = _answers(value, share)
            label = Label(
                job.label(value, "image_id", identifier) if value.get("image_id") is not None else "",
                answers,
                job.label(value, "multiple_choice_answer", optional_text) or most_frequent(answers),
                job.label(value, "answer_type", optional_text),
                job.label(value, "question_type", optional_text),
            )
            id_ = identifier(value, "question_id")
            labels.add(id_, label)
            return id_

        for id_ in job.each(JsonRecords(part.annotations), "annotations", add):
            if wanted is not None:
                wanted.discard(id_)
                if not wanted:
                    break
        return labels


def _pair(value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise Bad(f"{shown(value)} is not a pair of question ids.")
    return name(value[0], "a question id"), name(value[1], "a question id")


def _asked(value: Any, number: int, share: Callable[[str], str]) -> Asked:
    """A question; the usual kind in few steps, whatever is odd told by the careful way."""
    try:
        id_, image, question = value["question_id"], value["image_id"], value["question"]
        usual = type(id_) is type(image) is int and id_.bit_length() < 64 and image.bit_length() < 64
        if usual and len(value) == 3 and question.isascii() and question.strip() and len(question) < 10_000:
            return Asked(number, str(id_), share(str(image)), question, (), "", "")
    except (TypeError, KeyError, AttributeError, IndexError):
        pass
    of = record(value)
    choices = of.get("multiple_choices")
    return Asked(
        number,
        identifier(of, "question_id"),
        share(identifier(of, "image_id")),
        text(of, "question"),
        () if choices is None else tuple(map(share, texts(choices, '"multiple_choices"'))),
        share(optional_text(of, "coco_split")),
        "" if of.get("rephrasing_of") is None else identifier(of, "rephrasing_of"),
    )


_ANSWER = itemgetter("answer")
_UNLABELLED = Label("", (), None, "", "")


def _example(
    asked: Asked, id_: str, groups: tuple[str, str], labels: Labels | None, find: Callable[[Asked], Image | None]
) -> Example:
    label = labels.of(asked) if labels is not None else _UNLABELLED
    if asked.choices and label.target is not None and label.target not in asked.choices:
        raise Bad(f"the right answer {shown(label.target)} is not among its choices.")
    return Example(
        id=id_,
        question=asked.question,
        image=find(asked),
        image_id=asked.image_id,
        answers=label.answers,
        target=label.target,
        answer_type=label.answer_type,
        question_type=label.question_type,
        choices=asked.choices,
        group=groups[0],
        contrast=groups[1],
    )


class Labels:
    """Annotations by question id. Published rephrasings reuse ids of other questions; the image tells them apart."""

    def __init__(self, label: str) -> None:
        self._file = label
        self._by_id: dict[str, Label] = {}
        self._more: dict[tuple[str, str], Label] = {}

    def add(self, id_: str, label: Label) -> None:
        first = self._by_id.setdefault(id_, label)
        if first is label:
            return
        if first.image_id == label.image_id or (id_, label.image_id) in self._more:
            raise Bad(f"the question {id_} is annotated twice.")
        self._more[id_, label.image_id] = label

    def of(self, asked: Asked) -> Label:
        label = self._by_id.get(asked.id)
        if label is not None and label.image_id not in ("", asked.image_id):
            label = self._more.get((asked.id, asked.image_id))
            if label is None:
                raise Bad(f"the annotation of question {asked.id} is about another image (in {self._file}).")
        if label is None:
            raise Bad(f"the question {asked.id} has no annotation in {self._file}.")
        return label


def _answers(value: Any, share: Callable[[str, str], str]) -> tuple[str, ...]:
    """The human answers of an annotation; the usual kind in few steps, whatever is odd told by the careful way."""
    try:
        given = list(map(_ANSWER, value["answers"]))
        joined = "".join(given)
        if given and joined.isascii() and len(joined) < 10_000:
            return tuple(map(share, given, given))
    except (TypeError, KeyError, AttributeError, IndexError):
        pass
    items = record(value).get("answers")
    if not isinstance(items, list):
        raise Bad('"answers" is missing or not a list.')
    if not items:
        raise Bad('"answers" is empty.')
    answers = []
    for one in items:
        answer = one.get("answer") if isinstance(one, Mapping) else None
        if not isinstance(answer, str):
            raise Bad('an item of "answers" has no text "answer".')
        answers.append(checked(answer, "an answer"))
    return tuple(map(share, answers, answers))


def _unique_ids(questions: list[Asked]) -> list[str]:
    """Ids of the questions. A rephrasing whose published id is taken by another question gets `ORIGINAL:ID`."""
    if not any(asked.rephrasing_of for asked in questions):
        return [asked.id for asked in questions]
    taken = {asked.id for asked in questions if not asked.rephrasing_of}
    ids = []
    for asked in questions:
        id_ = asked.id
        if asked.rephrasing_of:
            id_ = f"{asked.rephrasing_of}:{asked.id}" if id_ in taken else id_
            taken.add(id_)
        ids.append(id_)
    return ids


def _picture_rule(job: Job, data_type: str, subtype: str) -> Callable[[Asked], Image | None]:
    """The published file name of an image: COCO photographs, or the abstract scenes of VQA v1."""
    if "abstract" in data_type.lower():
        return lambda asked: job.images.named(
            f"abstract_v002_{subtype}_{whole(asked.image_id, 'image_id'):012d}", ".png", subtype
        )

    def coco(asked: Asked) -> Image | None:
        if not asked.image_id.isascii() or not asked.image_id.isdigit() or len(asked.image_id) > 12:
            return job.images.named(asked.image_id.rpartition("/")[2].removesuffix(".jpg"), ".jpg", subtype)
        split = asked.coco_split or subtype
        # data of one's own in this format: 42.jpg
        return job.images.coco(int(asked.image_id), split) or job.images.named(asked.image_id, ".jpg", split)

    return coco


HUMANS = 10
"""Answers to each question."""


class OkVqa(Vqa):
    """OK-VQA."""

    name = "okvqa"
    title = "OK-VQA"
    expects = "OpenEnded_mscoco_*_questions.json and mscoco_*_annotations.json (or *soft_labels*.json)"

    def claims(self, file: File, head: str) -> float:
        if '"raw_answer"' in head and '"annotations"' in head:
            return 0.95
        near = "/".join([*Path(file.folder).absolute().parts[-2:], file.name]).lower()
        named = re.search(r"ok[-_]?vqa", near) is not None and not file.name.startswith("v2_")
        return 0.95 if named and is_questions(file) else 0.0

    def labels(self, job: Job, part: Part, wanted: set[str] | None) -> Labels | None:
        if part.annotations is not None:
            return super().labels(job, part, wanted)
        soft = [file for file in job.companions if file.suffix == ".json" and "soft_label" in file.stem.lower()]
        soft = [file for file in soft if canonical(split_of(file.stem)) in ("", canonical(part.split))]
        return _soft_labels(job, soft[0]) if soft else None


def _soft_labels(job: Job, file: File) -> Labels:
    labels = Labels(file.label)

    def add(value: Any) -> None:
        of = record(value)
        answers = tuple(map(job.share, answers_of(of.get("label"))))
        labels.add(identifier(of, "question_id"), Label("", answers, most_frequent(answers), "", ""))

    for _ in job.each(JsonRecords(file), "labels", add):
        pass
    job.notes["answers"] = "rebuilt from soft labels"
    return labels


def answers_of(scores: object) -> tuple[str, ...]:
    """Human answers that give these scores under min(matches / 3, 1): a third is one person, two thirds are two.

    Fully right answers share the rest of the ten people, three at least each. Most frequent first.
    """
    if not isinstance(scores, Mapping):
        raise Bad('"label" is missing or not an object of answers and scores.')
    counts: dict[str, int] = {}
    for answer, score in scores.items():
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
            raise Bad('a score of "label" is not a number from 0 to 1.')
        counts[checked(answer, "an answer")] = round(3 * score)
    sure = [answer for answer, count in counts.items() if count == 3]
    rest = HUMANS - sum(count for count in counts.values() if count < 3)
    for rank, answer in enumerate(sure):
        counts[answer] = max(3, rest // len(sure) + (rank < rest % len(sure)))
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return tuple(answer for answer, count in ordered for _ in range(count))


class Rephrasings(Vqa):
    """VQA-Rephrasings. `Example.group` is the id of the original question, for the original too."""

    name = "rephrasings"
    title = "VQA-Rephrasings"
    expects = "*valrep2014*questions.json and *valrep2014*annotations.json"

    def claims(self, file: File, head: str) -> float:
        return 0.95 if is_questions(file) and ("valrep" in file.stem.lower() or '"rephrasing_of"' in head) else 0.0
