"""Rows of a table as examples: the schema of JSONL, CSV, Parquet and Hugging Face data sets.

    column         what                                               other names that are understood
    question       the question (the only one needed)
    hint           what is said before the question
    id             unique in its data set; else the row number
    image          path below the image folder, data URL, base64, or bytes
    image_id       name of the image; else the path
    answers        list of human answers, or of {"answer": ...}
    answer         one answer; with choices also its letter, or its number from 0: one reading for all rows
    target         the right one; else the most frequent answer
    choices        list of options, the target among them; or one column an option: A, B ...
    answer_type, question_type, scene, program
    group          id of the original of a rephrasing
    contrast_group name of a group of questions that look alike but are not answered alike
    wording        `train` or `heldout`: words as in training, or not

Other names that are understood are in `layouts.py`. In CSV a list is JSON (`["a", "b"]`), a Python literal, or texts
between bars (`a|b`).
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from string import ascii_uppercase
from typing import Any

from pfungst.core import BytesImage, Example, Image
from pfungst.data.formats.layouts import (
    NAMES,
    OPTION_COLUMNS,
    Layout,
    Linked,
    layout_of,
)
from pfungst.data.images import StoredImage, from_base64, is_base64, normal_path
from pfungst.data.job import FEW, UNREAD, Found, Job
from pfungst.rows import cells
from pfungst.rows.answer_key import SAID, AnswerIs, AnswerKey
from pfungst.rows.fields import (
    Bad,
    Programs,
    answer_text,
    checked,
    checked_scene,
    kind,
    most_frequent,
    name,
    optional_text,
    record,
    shown,
    text,
)
from pfungst.rows.files import IMAGE_SUFFIXES, File

SEVERAL = "questions with several images, of which the first is shown"
_NAN = "nan"
"""An empty cell as MMBench on the hub spells it."""
_MOST_NAMED = 30
_OF_IMAGES = re.compile(r"image|img|picture|photo|figure|jpe?g|png", re.IGNORECASE)

ColumnOptions = make_dataclass(
    "ColumnOptions",
    [*((name, str, field(default="")) for name in (*NAMES, "metric")), ("answer_is", AnswerIs, field(default=""))],
)
"""The column of each field, where it is called otherwise, how answers are judged, and how they name an option."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the columns of a row mean; found once for rows with the same columns."""

    layout: Layout
    columns: Mapping[str, tuple[str, ...]]
    """Field -> columns of the row that may hold it; the first possible name if there is none."""
    options: tuple[str, ...]
    """The columns that hold one option each."""
    present: frozenset[str]
    """The fields that have a column."""

    @classmethod
    def of(cls, names: Sequence[str], given: Mapping[str, Any]) -> _Shape:
        layout = layout_of(names)
        columns = {}
        for field_, usual in NAMES.items():
            possible = (given[field_],) if field_ in given else layout.columns.get(field_, usual)
            columns[field_] = tuple(column for column in possible if column in names) or possible[:1]
        options = (series for series in OPTION_COLUMNS if sum(column in names for column in series) > 1)
        present = frozenset(field_ for field_, own in columns.items() if own[0] in names)
        return cls(layout, columns, next(options, ()), present)

    def column(self, row: Mapping[str, Any], field: str) -> str:
        candidates = self.columns[field]
        for candidate in candidates:
            if cells.known(row.get(candidate)):
                return candidate
        return candidates[0]


def _type(row: Mapping[str, Any], column: str) -> str:
    """An answer type, or a list of them as InfographicVQA has it."""
    value = row.get(column)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return checked(", ".join(value), f'"{column}"')
    return optional_text(row, column)


def _question_type(row: Mapping[str, Any], column: str) -> str:
    """The kind of a question. A column of another name may hold anything: only words and numbers count."""
    value = row.get(column)
    if column in ("question_type", "type") or isinstance(value, str):
        return _type(row, column)
    return str(value) if isinstance(value, int) else ""


def _of_numbers(choices: object) -> bool:
    """Whether options are numbers, so that an answer which is a number may be one of them."""
    return isinstance(choices, Sequence) and any(isinstance(choice, int | float) for choice in choices)


def _is_yes_no(target: str | None) -> bool:
    return (target or "").strip().lower() in ("yes", "no")


class Rows:
    """Turns rows into examples. `?question=COLUMN` and the like name columns that are called otherwise."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._programs = Programs()
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._named: Counter[str] = Counter()
        self._asked = False
        self._header: tuple[str, ...] = ()
        self._humans, self._only_yes_no = 0, True
        self._same, self._follows = Linked(), Linked()
        self._key = AnswerKey(job.options.get("answer_is", ""))
        self._meant: Mapping[str, str] = {}
        """What the answer of the last row may mean, by the ways to read it."""
        self.pictures: dict[str, Image] = {}
        """Images that a table of their own holds, by image id."""

    def expect(self, columns: Sequence[str]) -> None:
        """The columns of the rows to come, which leave empty cells out."""
        self._header = tuple(columns)

    def column(self, row: Mapping[str, Any], field: str) -> str:
        """The column that holds a field in this row; the first possible name if none does."""
        return self._shape(row).column(row, field)

    def picture_of(
        self, row: dict[str, Any], images: Mapping[str, tuple[StoredImage, int]], column: str
    ) -> StoredImage | None:
        """The image in a column, out of those that a row keeps in its file, each with how many there are; the others
        are put into the row."""
        for there, (image, count) in images.items():
            if there != column:
                row[there] = image
            elif count > 1:
                self.note_several()
        return images[column][0] if column in images else None

    def found(
        self, file: File | None, where: int | str, row: object, prefix: str, picture: Image | None
    ) -> Iterator[Found]:
        """The examples of a row: one, but for tables with several questions a row. A `Bad` one is reported.

        where: its number, or `record 3` and the like. prefix: what ids begin with that are row numbers.
        """
        number = where if isinstance(where, int) else int(where.split()[1])
        try:
            if isinstance(row, Bad):
                raise row
            given = record(row)
        except Bad as problem:
            self._job.bad(file, where, problem)
            return
        unfold = self._shape(given).layout.unfold
        for part in (given,) if unfold is None else unfold(given):
            try:
                example = self.example(part, f"{prefix}{number}", picture)
            except Bad as problem:
                self._job.bad(file, where, problem)
            else:
                yield example, file, number

    def settled(self, examples: Iterable[Found]) -> Iterator[Found]:
        """The examples in their order, each with its right option: one that can be read in two ways waits for a row
        that decides, to the end of the data set if need be."""
        waiting: deque[tuple[str, Found, Mapping[str, str]]] = deque()
        for example in examples:
            if self._meant:
                self._key.add(self._meant, *self._job.place_of(*example[1:]))
                if self._key.sentence:
                    self._job.notes[SAID] = self._key.sentence
            split = self._job.reading
            waiting.append((split, example, self._meant))
            while waiting and self._key.decides(waiting[0][2]):
                self._job.reading, (given, file, number), meant = waiting.popleft()
                yield self._with_right(given, meant), file, number
            self._job.reading = split
        if waiting:
            _, (_, file, number), meant = waiting[0]
            self._key.refuse(*self._job.place_of(file, number), meant)

    def _with_right(self, example: Example, meant: Mapping[str, str]) -> Example:
        if not meant:
            return example
        target = self._job.share(self._key.right(meant))
        return replace(example, target=target, answers=example.answers or self._job.share((target,)))

    def _shape(self, row: Mapping[str, Any]) -> _Shape:
        names = tuple(row)
        if names not in self._shapes:
            shape = self._shapes[names] = _Shape.of(names, self._job.options)
            read = {*shape.layout.has, *shape.options, *(one for columns in shape.columns.values() for one in columns)}
            self._job.unread_columns.update(dict.fromkeys(one for one in names if one not in read))
        return self._shapes[names]

    def example(self, row: Mapping[str, Any], id_: str, picture: Image | None = None) -> Example:
        """An example of a row. `id_` is used where the row has no id; `picture` is an image kept elsewhere. The right
        option is what `settled` makes of `_meant`."""

        self._meant = {}
        shape = self._shape(row)
        layout = shape.layout

        def get(field: str) -> Any:
            if field not in shape.present:
                return None
            value = row.get(shape.column(row, field))
            return value if cells.known(value) else None

        question = self._question(row, shape.column(row, "question"))
        answers = self._list(get("answers"), "answers")
        answer = get("answer")
        if answer is not None and layout.answers:
            answer = layout.answers.get(answer_text(answer, '"answer"').strip(), answer)
        choices, lettered = self._choices(row, get("choices"), shape.options, answer)
        if layout.options_in_question and not choices:
            question, choices = cells.options_at_end(question)
            # options that cannot be told apart stay in the question, and the letters are what is chosen from
            choices, lettered = choices or ("A", "B", "C", "D"), True
        elif not choices and not answers and get("target") is None and "choices" not in self._job.options:
            asked, inside = cells.options_in_lines(question) if isinstance(answer, str) else (question, ())
            if answer in [*ascii_uppercase[: len(inside)]]:
                question, choices, lettered = asked, inside, True
        hint = get("hint")
        if isinstance(hint, str) and hint.strip() not in ("", _NAN):
            question = checked(hint, "the hint").strip() + "\n" + question
        target = get("target")
        if target is not None:
            target = answer_text(target, '"target"')
        elif answer is not None and (choices or not answers):
            if not choices and (said := self._said_by_several(answer)) is not None:
                answers, target = said, most_frequent(said)
            elif choices and (not lettered or "answer_is" in self._job.options):
                self._meant = self._key.meant(answer, choices, _of_numbers(get("choices")))
            else:
                target = self._answer(answer, choices)
        else:
            target = most_frequent(answers)
        if target is not None and not answers:
            answers = (target,)
        if choices and target is not None and target not in choices:
            raise Bad(f"the right answer {shown(target)} is not among its choices {shown(list(choices))}.")
        image, image_name = picture, ""
        if image is None and get("image") is not None:
            self._job.image_column = shape.column(row, "image")
            path = layout.image.format_map({**row, "image": get("image")}) if layout.image else get("image")
            image, image_name = self._image(path)
        if image is not None and cells.known(row.get("image_2")):
            self.note_several()
        image_id = name(get("image_id"), '"image_id"') if get("image_id") is not None else image_name
        if image is None and image_id in self.pictures:
            image = self.pictures[image_id]
        elif image is None and image_id and get("image") is None:
            image = self._job.images.named(image_id.rpartition("/")[2])
            if image is None and image_id.isdecimal():
                image = self._job.images.coco(int(image_id), "")
        given_id: Any = get("id")
        pair_of = ""
        if layout.id:
            given_id = "_".join(answer_text(row.get(part), f'"{part}"') for part in layout.id)
        if isinstance(given_id, str) and given_id.lower().endswith(tuple(IMAGE_SUFFIXES)):
            # MME: an id that is the name of an image, for each of the questions about it
            image_id, pair_of = image_id or given_id, given_id
            self._named[given_id] += 1
            given_id = f"{given_id}:{self._named[given_id]}"
        if image is not None and not image_id:
            image_id = image.digest[:16]  # questions on one image must form one cluster
        if image is None and not image_id:
            self._note_unread(row)
        scene = self._json(get("scene"), "scene")
        id_ = name(given_id, '"id"') if given_id is not None else id_
        group, contrast = self._groups(row, layout, id_, get("group"), get("contrast"))
        if pair_of and not contrast and not choices and answers == (target,) and _is_yes_no(target):
            contrast = pair_of
        example = Example(
            id=id_,
            question=question,
            image=image,
            image_id=self._job.share(image_id),
            answers=self._job.share(tuple(map(self._job.share, answers))),
            target=target if target is None else self._job.share(target),
            answer_type=self._job.share(_type(row, shape.column(row, "answer_type"))),
            question_type=self._job.share(_question_type(row, shape.column(row, "question_type"))),
            choices=choices,
            scene=None if scene is None else checked_scene(scene),
            program=self._programs(self._json(get("program"), "program")),
            group=group,
            wording=self._job.share(optional_text(row, shape.column(row, "wording"))),
            contrast=contrast,
        )
        self._judge(example)
        return example

    def _groups(
        self, row: Mapping[str, Any], layout: Layout, id_: str, group: object, contrast: object
    ) -> tuple[str, str]:
        """The group of a row and its contrast group, empty where it has none."""
        same = "" if group is None else name(group, '"group"')
        other = "" if contrast is None else name(contrast, '"contrast_group"')
        if layout.contrast is not None and not other:
            other = self._job.share(layout.contrast(row))
        if layout.linked is not None:
            asks, follows = (self._list(row.get(column) or None, column) for column in layout.linked)
            same = same or self._same.name(id_, asks)
            other = other or self._follows.name(id_, follows)
        return same, other

    def _judge(self, example: Example) -> None:
        """The metric that fits all examples so far, where none was asked for and not all have choices."""
        self._only_yes_no &= _is_yes_no(example.target) and not example.choices
        if not example.choices:
            self._humans = max(self._humans, len(example.answers))
            if 1 < len(example.answers) < 4 and not self._job.options.get("metric"):
                self._job.count(FEW)
        # several people answered: agreement with them is the measure
        fitting = "vqa" if self._humans > 1 else "yes/no" if self._only_yes_no else ""
        self._job.metric = self._job.options.get("metric", "") or fitting

    def _question(self, row: Mapping[str, Any], column: str) -> str:
        if column not in row:
            column = _Shape.of(self._header, self._job.options).columns["question"][0]
            if column in self._header:
                raise Bad(f'"{column}" is empty.')
        self._asked = self._asked or column in row
        if not self._asked:
            names = ", ".join(str(one) for one in list(row)[:_MOST_NAMED]) or "none"
            raise Bad(f'"{column}" is missing; the columns are {names}. Name the one that asks: ?question=COLUMN.')
        return text(row, column)

    def note_several(self) -> None:
        """Count a question with several images."""
        self._job.count(SEVERAL)

    def _note_unread(self, row: Mapping[str, Any]) -> None:
        """Remember a column that holds images, or else speaks of them, and was not understood."""
        holding = [column for column, value in row.items() if isinstance(value, StoredImage | bytes)]
        speaking = [
            column
            for column, value in row.items()
            if _OF_IMAGES.search(column) and isinstance(value, str | Mapping | Sequence) and value
        ]
        if holding or speaking:
            self._job.notes.setdefault(UNREAD, (holding or speaking)[0])

    def _choices(
        self, row: Mapping[str, Any], value: object, columns: Sequence[str], answer: Any
    ) -> tuple[tuple[str, ...], bool]:
        """The options, from one column or from one for each, and whether answers are always their letters."""
        if value is not None:
            inside = cells.lettered_options(checked(value, '"choices"')) if isinstance(value, str) else ()
            return inside or self._list(value, "choices"), bool(inside)
        if not columns:
            return (), False
        cell = {column: None if row.get(column) == _NAN else row.get(column) for column in columns}
        letters = {letter: cell[column] for letter, column in zip(ascii_uppercase, columns, strict=True)}
        return tuple(checked(one, "an option") for one in cells.option_columns(letters, answer)), True

    def _answer(self, answer: object, choices: Sequence[str]) -> str:
        """An answer that is no option, or the letter of one."""
        if not choices:
            return answer_text(answer, '"answer"')
        if isinstance(answer, int) and not isinstance(answer, bool):
            return next(iter(self._key.meant(answer, choices).values()))
        return cells.right_answer(answer_text(answer, '"answer"'), choices, "the answer")

    def _said_by_several(self, answer: object) -> tuple[str, ...] | None:
        """Answers that stand in one cell as a list of texts; `[Asia, Europe]` and `[2, 5]` are one answer."""
        found = cells.literal(answer) if isinstance(answer, str) else answer
        if not isinstance(found, list) or (isinstance(answer, str) and not all(isinstance(one, str) for one in found)):
            return None
        return self._list(found, "answer")

    def _list(self, value: object, what: str) -> tuple[str, ...]:
        if value is None:
            return ()
        if isinstance(value, str):
            as_list = value.lstrip().startswith("[")
            value = self._literal(value, what) if as_list else [part.strip() for part in value.split("|")]
        if not isinstance(value, Sequence) or isinstance(value, bytes):
            raise Bad(f'"{what}" is {kind(value)}, not a list.')
        items = [one.get("answer") if isinstance(one, Mapping) else one for one in value]
        return tuple(answer_text(item, f'an item of "{what}"') for item in items)

    def _literal(self, value: str, what: str) -> Any:
        """A list as JSON, or as Python writes it; nothing is evaluated."""
        try:
            return self._json(value, what)
        except Bad:
            if isinstance(found := cells.literal(value), list):
                return found
            raise

    def _json(self, value: object, what: str) -> Any:
        """A structure; written as JSON text where the table holds text alone."""
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise Bad(f'"{what}" is not JSON.') from None

    def _image(self, value: object) -> tuple[Image | None, str]:
        if isinstance(value, StoredImage):
            return value, ""
        if isinstance(value, Sequence) and not isinstance(value, str | bytes) and value:
            if len(value) > 1:
                self.note_several()
            value = value[0]
        if isinstance(value, Mapping):
            data, path = value.get("bytes"), value.get("path")
            if isinstance(data, bytes):
                return BytesImage(data), normal_path(path) if isinstance(path, str) else ""
            value = path
        if isinstance(value, bytes):
            return BytesImage(value), ""
        if not isinstance(value, str) or not value:
            raise Bad(f'"image" is {kind(value)}, not a path.')
        if is_base64(value):
            return from_base64(value), ""
        return self._job.images.at(checked(value, '"image"')), normal_path(value)
