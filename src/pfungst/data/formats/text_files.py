"""Questions in plain text files and small tables: COCO-QA, DAQUAR and MME.

COCO-QA, made from captions: `train/` and `test/` hold `questions.txt`, `answers.txt`, `img_ids.txt` and `types.txt` (0
    object, 1 number, 2 color, 3 location), one line per question. These four are question types; the answer types are
    VQA's. The images of the training questions are COCO train2014, those of the test questions val2014.
DAQUAR, indoor scenes (NYU Depth v2): the release, `qa.894.raw.train.txt` and `qa.894.raw.test.txt` (also `qa.37.`), has
    a line with a question that ends in "in the image3 ?", then a line with its answer. Tables, `data_train.csv` and
    `data_eval.csv`, have the columns question, answer and image_id. Several answers to one question are one text, "cup,
    plate": all of them are asked for. The images are `image3.png` or `image3.jpg`.
MME: a folder a category, a text file an image, `existence/000000006040.txt` beside `existence/000000006040.jpg`, or
    `artwork/questions_answers_YN/10002.txt` and `artwork/images/10002.jpg`. A line is the question, a tab, and Yes or
    No. The two questions of an image are a contrast group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Literal

from pfungst.core import DataError, Example
from pfungst.data.job import Format, Found, Job, split_of
from pfungst.rows.fields import Bad, answer_type, checked, whole
from pfungst.rows.files import File
from pfungst.rows.json_records import lines
from pfungst.rows.tables import csv_rows

TYPES = ("object", "number", "color", "location")
_SUBTYPES = {"train": "train2014", "test": "val2014"}
_PARTS = ("questions", "answers", "img_ids", "types")


def _filled(cell: str, what: str) -> str:
    """A line or cell that must say something."""
    cell = checked(cell.strip(), what)
    if not cell:
        raise Bad(f"{what} is empty.")
    return cell


class CocoQa(Format):
    """COCO-QA."""

    name = "cocoqa"
    title = "COCO-QA"
    expects = "questions.txt and img_ids.txt, with answers.txt and types.txt, in train/ and test/"
    metric = "exact"
    endings = frozenset({".txt"})

    def claims(self, file: File, head: str) -> float:
        return 0.9 if file.name.lower() == "img_ids.txt" else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        folders: dict[str, dict[str, File]] = {}
        for file in sorted(job.companions):
            if file.suffix == ".txt" and file.stem.lower() in _PARTS:
                folders.setdefault(file.folder, {}).setdefault(file.stem.lower(), file)
        splits: dict[str, dict[str, File]] = {}
        for folder, parts in folders.items():
            if {"questions", "img_ids"} <= set(parts):
                splits.setdefault(split_of(folder.rstrip("/").rpartition("/")[2]), parts)
        for split, parts in self.chosen(job, splits, "there are no COCO-QA files in it."):
            yield from _cocoqa_lines(job, split, parts)


def _cocoqa_lines(job: Job, split: str, parts: Mapping[str, File]) -> Iterator[Found]:
    questions = parts["questions"]
    present = [part for part in _PARTS if part in parts]
    for number, row in enumerate(zip_longest(*(lines(parts[part]) for part in present)), start=1):
        cells = dict(zip(present, row, strict=True))
        if not any(cell and cell.strip() for cell in row):
            continue  # a blank line at the end
        if None in row:
            short = [parts[part].name for part in present if cells[part] is None]
            raise DataError.at(
                questions.label, f"line {number}", f"{', '.join(short)} ends here, but the other files continue."
            )
        yield from job.example((questions, number), _cocoqa, job, split, number, cells)


def _cocoqa(job: Job, split: str, number: int, cells: Mapping[str, str]) -> Example:
    """cells: the lines of the files that are there."""
    question = _filled(cells["questions"], "the question")
    image_number = whole(cells["img_ids"].strip(), "the image number")
    if not 0 <= image_number < 10**12:
        raise Bad(f"the image number {image_number} is not a COCO number.")
    target = _filled(cells["answers"], "the answer") if "answers" in cells else None
    type_ = cells.get("types", "").strip()
    if "types" in cells and type_ not in ("0", "1", "2", "3"):
        raise Bad("the type is not 0, 1, 2 or 3.")
    kind = TYPES[int(type_)] if type_ else ""
    return job.made(
        f"{split}-{number}" if split else str(number),
        question,
        target,
        str(image_number),
        job.images.coco(image_number, _SUBTYPES.get(split, "")),
        answer_type=("number" if kind == "number" else "other") if kind else answer_type(target),
        question_type=kind,
    )


_RELEASE = re.compile(r"qa\.(\d+)\.raw(?:\.(train|test))?", re.IGNORECASE)
_IMAGE = re.compile(r"image\d{1,6}", re.IGNORECASE)
_COLUMNS = ("question", "answer", "image_id")


@dataclass(frozen=True)
class DaquarOptions:
    """Which of the two sets is read."""

    classes: Literal["37", "894"] | None = None
    """The reduced set of 37, or all 894 (the default)."""


class Daquar(Format):
    """DAQUAR, with all its 894 classes or the reduced set of 37 (`?classes=37`)."""

    name = "daquar"
    title = "DAQUAR"
    expects = "qa.894.raw.train.txt and qa.894.raw.test.txt, or data_train.csv and data_eval.csv"
    metric = "exact"
    options = DaquarOptions
    endings = frozenset({".txt", ".csv"})

    def claims(self, file: File, head: str) -> float:
        if file.suffix == ".txt" and _RELEASE.fullmatch(file.stem):
            return 0.95
        first, _, rest = head.partition("\n")
        named = file.suffix == ".csv" and {cell.strip() for cell in first.split(",")} == set(_COLUMNS)
        return 0.9 if named and _IMAGE.search(rest) else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        classes = job.options.get("classes")
        there = {release[1] for file in job.files if (release := _RELEASE.fullmatch(file.stem))}
        wanted = classes or ("894" if "894" in there else min(there, default=""))
        splits: dict[str, File] = {}
        for file in sorted(job.files):
            release = _RELEASE.fullmatch(file.stem)
            if file.suffix == ".csv" and not classes:
                splits.setdefault(split_of(file.stem), file)
            elif file.suffix == ".txt" and release and release[1] == wanted:
                splits.setdefault((release[2] or "").lower(), file)
        if not splits and len(job.files) == 1 and job.files[0].suffix == ".txt":
            splits[split_of(job.files[0].stem)] = job.files[0]
        if len(splits) > 1:
            splits.pop("", None)  # qa.894.raw.txt holds both splits again
        for split, file in self.chosen(job, splits, "there are no DAQUAR files in it."):
            rows = _daquar_table(job, file) if file.suffix == ".csv" else _daquar_release(file)
            for count, (number, *cells) in enumerate(rows, start=1):
                yield from job.example(
                    (file, number), _daquar, job, f"{split}-{count}" if split else str(count), *cells
                )


def _daquar_release(file: File) -> Iterator[tuple[int, str, str, str]]:
    """(line, question, answer, image name) of the published text files."""
    text = (line.strip() for line in lines(file))
    numbered = ((number, line) for number, line in enumerate(text, start=1) if line)
    while pair := tuple(islice(numbered, 2)):
        number, question = pair[0]
        if len(pair) < 2:
            raise DataError.at(file.label, f"line {number}", "the last question has no answer.")
        question, image = without_image(question)
        if without_image(pair[1][1])[1]:
            where = f"line {pair[1][0]}"
            raise DataError.at(file.label, where, f"the question of line {number} has no answer: another one follows.")
        yield number, question, pair[1][1], image


def without_image(question: str) -> tuple[str, str]:
    """("what is on the table", "image3") of "what is on the table in the image3 ?": the name of the file is no part of
    what is asked. An image named in mid-sentence stays there."""
    words = question.split()
    places = [place for place, word in enumerate(words) if _IMAGE.fullmatch(word.rstrip("?.,"))]
    if not places:
        return question, ""
    last = places[-1]
    image = words[last].rstrip("?.,").lower()
    if all(word in ("?", ".") for word in words[last + 1 :]):
        end = last
        if end and words[end - 1].lower() == "the":
            end -= 1
        if end and words[end - 1].lower() in ("in", "on", "of", "at"):
            end -= 1
        words = words[:end]
    return " ".join(words), image


def _daquar_table(job: Job, file: File) -> Iterator[tuple[int, str, str, str]]:
    for number, row, _ in csv_rows(file):
        if isinstance(row, Bad):
            job.bad(file, number, row)
        else:
            question, answer, image = (row.get(column, "") for column in _COLUMNS)
            yield number, question, answer, image


def _daquar(job: Job, id_: str, question: str, answer: str, image_id: str) -> Example:
    question = _filled(question, "the question")
    if not image_id.strip():
        raise Bad("the question names no image.")
    image_id = checked(image_id.strip(), "the image name")
    parts = [part.strip() for part in checked(answer, "the answer").split(",")]
    target = _filled(", ".join(filter(None, parts)), "the answer")
    stem = image_id.rpartition("/")[2]
    stem = stem.rpartition(".")[0] if stem.lower().endswith((".png", ".jpg")) else stem
    return job.made(id_, question, target, image_id, job.images.named(stem, ".png"), answer_type=answer_type(target))


_APART = re.compile(r"questions_answers_YN(_\w+)?", re.IGNORECASE)


class Mme(Format):
    """MME, both halves: perception and cognition."""

    name = "mme"
    title = "MME"
    expects = "CATEGORY/NAME.txt or CATEGORY/questions_answers_YN/NAME.txt, two lines of question, tab, Yes or No"
    metric = "yes/no"
    endings = frozenset({".txt"})

    def claims(self, file: File, head: str) -> float:
        first = [line for line in head.splitlines() if line.strip()][:2]
        return 0.8 if first and all(_mme_line(line) for line in first) else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        files: list[tuple[str, str, bool, File]] = []
        for file in job.sorted(".txt"):
            if self.claims(file, file.head()):
                *_, above, folder = ("", *file.folder.replace("\\", "/").split("/"))
                apart = _APART.fullmatch(folder)
                files.append((above if apart else folder, file.stem, apart is not None and apart[1] is not None, file))
        # where the questions stand there in a second language too, those of the release count
        plain = {(category, stem) for category, stem, translated, _ in files if not translated}
        files = [one for one in files if one[:2] not in plain or not one[2]]
        if not files:
            raise self.nothing(job, "there are no MME questions in it.")
        job.name = "mme"
        for category, stem, _, file in sorted(files, key=lambda one: (*one[:2], one[3])):
            for number, line in enumerate(lines(file), start=1):
                if line.strip():
                    yield from job.example((file, number), _mme, job, category, stem, number, line)


def _mme_line(line: str) -> tuple[str, str] | None:
    """The question of a line and its answer; None where it is no such line."""
    question, *rest = line.strip().split("\t")
    answer = rest[0].strip().rstrip(".").capitalize() if len(rest) == 1 else ""
    return (question.strip(), answer) if question.strip() and answer in ("Yes", "No") else None


def _mme(job: Job, category: str, stem: str, number: int, line: str) -> Example:
    pair = _mme_line(line)
    if pair is None:
        raise Bad("the line is not a question, a tab, and Yes or No.")
    image_id = job.share(f"{category}/{stem}")
    return job.made(
        f"{image_id}:{number}",
        checked(pair[0], "the question"),
        pair[1],
        image_id,
        job.images.within(stem, category),
        answer_type="yes/no",
        question_type=job.share(category),
        contrast=image_id,
    )
