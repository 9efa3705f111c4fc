"""Rows of a table as examples: the schema of JSONL, CSV, Parquet and Hugging Face data sets.

    column         what                                               other names that are understood
    question       the question (the only one needed)                 query, sent
    id             unique in its data set; else the row number        question_id, qa_id, questionId, uid
    image          path below the image folder, data URL, or bytes    image_path, image_file, file_name, img
    image_id       name of the image; else the path                   imageId, img_id
    answers        list of human answers                              (a list of {"answer": ...} is understood)
    answer         one answer; with choices also its number from 0    label
    target         the right one; else the most frequent answer       multiple_choice_answer
    choices        list of options, the target among them             options, multiple_choices
    answer_type, question_type, group, scene, program                 type (question_type), rephrasing_of (group)
    wording        `train` or `heldout`: words as in training, or not phrasing_split

In CSV a list is JSON (`["a", "b"]`) or texts between bars (`a|b`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, make_dataclass
from typing import Any

from pfungst.core import BytesImage, Example, Image
from pfungst.data.fields import (
    Bad,
    answer_text,
    checked,
    kind,
    most_frequent,
    name,
    optional_text,
    shown,
    text,
)
from pfungst.data.formats.clevr import Programs, checked_scene
from pfungst.data.job import Job

NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "query", "sent"),
    "id": ("id", "question_id", "qa_id", "questionId", "uid"),
    "image": ("image", "image_path", "image_file", "file_name", "img"),
    "image_id": ("image_id", "imageId", "img_id"),
    "answers": ("answers",),
    "answer": ("answer", "label"),
    "target": ("target", "multiple_choice_answer"),
    "choices": ("choices", "options", "multiple_choices"),
    "answer_type": ("answer_type",),
    "question_type": ("question_type", "type"),
    "group": ("group", "rephrasing_of"),
    "wording": ("wording", "phrasing_split"),
    "scene": ("scene",),
    "program": ("program",),
}
"""Field of an example -> columns it is read from; the first that has a value counts."""

ColumnOptions = make_dataclass("ColumnOptions", [(name, str, field(default="")) for name in (*NAMES, "metric")])
"""The column of each field, where it is called otherwise, and how answers are judged."""


class Rows:
    """Turns rows into examples. `?question=COLUMN` and the like name columns that are called otherwise."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._programs = Programs()
        self._columns = {name: (job.options[name],) if name in job.options else names for name, names in NAMES.items()}

    def column(self, row: Mapping[str, Any], field: str) -> str:
        """The column that holds a field in this row; the first possible name if none does."""
        for candidate in self._columns[field]:
            value = row.get(candidate)
            if value is not None and not (isinstance(value, float) and value != value):
                return candidate
        return self._columns[field][0]

    def example(self, row: Mapping[str, Any], id_: str, picture: Callable[[], Image] | None = None) -> Example:
        """An example of a row. `id_` is used where the row has no id; `picture` stands for an image kept elsewhere."""

        def get(field: str) -> Any:
            return row.get(self.column(row, field))

        question = text(row, self.column(row, "question"))
        choices = self._list(get("choices"), "choices")
        answers = self._list(get("answers"), "answers")
        answer = get("answer")
        if answer is not None and not answers:
            answers = (self._answer(answer, choices),)
        target = get("target")
        target = answer_text(target, '"target"') if target is not None else most_frequent(answers)
        if target is not None and not answers:
            answers = (target,)
        if choices and target is not None and target not in choices:
            raise Bad(f"the right answer {shown(target)} is not among its choices.")
        image, image_name = picture() if picture else None, ""
        if image is None and get("image") is not None:
            image, image_name = self._image(get("image"))
        image_id = name(get("image_id"), '"image_id"') if get("image_id") is not None else image_name
        if image is None and image_id and get("image") is None:
            image = self._job.images.named(image_id.rpartition("/")[2])
        if image is not None and not image_id:
            image_id = image.digest[:16]  # questions on one image must form one cluster
        scene = self._json(get("scene"), "scene")
        given_id = get("id")
        group = get("group")
        return Example(
            id=name(given_id, '"id"') if given_id is not None else id_,
            question=question,
            image=image,
            image_id=self._job.share(image_id),
            answers=tuple(map(self._job.share, answers)),
            target=target if target is None else self._job.share(target),
            answer_type=self._job.share(optional_text(row, self.column(row, "answer_type"))),
            question_type=self._job.share(optional_text(row, self.column(row, "question_type"))),
            choices=choices,
            scene=None if scene is None else checked_scene(scene),
            program=self._programs(self._json(get("program"), "program")),
            group="" if group is None else name(group, '"group"'),
            wording=self._job.share(optional_text(row, self.column(row, "wording"))),
        )

    def _answer(self, answer: object, choices: Sequence[str]) -> str:
        if choices and isinstance(answer, int) and not isinstance(answer, bool):
            if not 0 <= answer < len(choices):
                raise Bad(f"the answer is choice {answer}, but there are {len(choices)} choices, counted from 0.")
            return choices[answer]
        return answer_text(answer, '"answer"')

    def _list(self, value: object, what: str) -> tuple[str, ...]:
        if value is None:
            return ()
        if isinstance(value, str):
            as_json = value.lstrip().startswith("[")
            value = self._json(value, what) if as_json else [part.strip() for part in value.split("|")]
        if not isinstance(value, Sequence) or isinstance(value, bytes):
            raise Bad(f'"{what}" is {kind(value)}, not a list.')
        items = [one.get("answer") if isinstance(one, Mapping) else one for one in value]
        return tuple(answer_text(item, f'an item of "{what}"') for item in items)

    def _json(self, value: object, what: str) -> Any:
        """A structure; written as JSON text where the table holds text alone."""
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise Bad(f'"{what}" is not JSON.') from None

    def _image(self, value: object) -> tuple[Image | None, str]:
        if isinstance(value, Mapping):
            data, path = value.get("bytes"), value.get("path")
            if isinstance(data, bytes):
                return BytesImage(data), path if isinstance(path, str) else ""
            value = path
        if isinstance(value, bytes):
            return BytesImage(value), ""
        if not isinstance(value, str) or not value:
            raise Bad(f'"image" is {kind(value)}, not a path.')
        if value.startswith("data:"):
            return self._job.images.at(value), ""
        return self._job.images.at(checked(value, '"image"')), value
