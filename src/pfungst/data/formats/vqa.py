"""VQA v1 and v2, and every data set published in their format.

Questions: {"task_type": "Open-Ended", "data_type": "mscoco", "data_subtype": "val2014", "questions": [
    {"question_id": 42000, "image_id": 42, "question": "...", "multiple_choices": [18 texts]}, ...]}
Annotations: {"annotations": [{"question_id": 42000, "image_id": 42, "question_type": "what is",
    "answer_type": "other", "multiple_choice_answer": "...", "answers": [{"answer": "..."}, ten of them]}, ...]}
Without annotations (the test splits) the questions load unlabelled. Complementary pairs of VQA v2
(`v2_mscoco_val2014_complementary_pairs.json`: [[question_id, question_id], ...]) are contrast groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from pfungst.core import Example, Image
from pfungst.data.formats.vqa_files import Part, VqaOptions, find_parts, is_published_name, is_questions, only
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

    def claims(self, file: File, head: str) -> float:
        if is_published_name(file):
            return 0.9
        return 0.7 if is_questions(file) and '"question_id"' in head and '"question"' in head else 0.0

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
