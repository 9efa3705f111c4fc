"""DAQUAR: questions on indoor scenes (NYU Depth v2).

Two forms are read. The release, `qa.894.raw.train.txt` and `qa.894.raw.test.txt` (also `qa.37.`): a line with a
question that ends in "in the image3 ?", then a line with its answer. And tables, `data_train.csv` and `data_eval.csv`,
with the columns question, answer and image_id. Several answers to one question are one text, "cup, plate": all of them
are asked for. The images are `image3.png` or `image3.jpg`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from pfungst.core import DataError, Example
from pfungst.data.job import Format, Found, Job, split_of
from pfungst.rows.fields import Bad, answer_type, checked
from pfungst.rows.files import File
from pfungst.rows.json_records import lines
from pfungst.rows.tables import csv_rows

_RELEASE = re.compile(r"qa\.(\d+)\.raw(?:\.(train|test))?", re.IGNORECASE)
_IMAGE = re.compile(r"image\d{1,6}", re.IGNORECASE)


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

    def claims(self, file: File, head: str) -> float:
        if file.suffix == ".txt" and _RELEASE.fullmatch(file.stem):
            return 0.95
        if file.suffix == ".csv":
            first, _, rest = head.partition("\n")
            columns = {cell.strip() for cell in first.split(",")}
            if columns == {"question", "answer", "image_id"} and _IMAGE.search(rest):
                return 0.9
        return 0.0

    def read(self, job: Job) -> Iterator[Found]:
        classes = job.options.get("classes")
        there = {release[1] for file in job.files if (release := _RELEASE.fullmatch(file.stem))}
        wanted = classes or ("894" if "894" in there else min(there, default=""))
        splits: dict[str, File] = {}
        for file in sorted(job.files, key=lambda file: (file.preference, file)):
            release = _RELEASE.fullmatch(file.stem)
            if file.suffix == ".csv" and not classes:
                splits.setdefault(split_of(file.stem), file)
            elif file.suffix == ".txt" and release and release[1] == wanted:
                splits.setdefault((release[2] or "").lower(), file)
        texts = [file for file in job.files if file.suffix == ".txt"]
        if not splits and len(job.files) == len(texts) == 1:
            splits[split_of(texts[0].stem)] = texts[0]
        if len(splits) > 1:
            splits.pop("", None)  # qa.894.raw.txt holds both splits again
        for split, file in self.chosen(job, splits, "there are no DAQUAR files in it."):
            rows = _table(job, file) if file.suffix == ".csv" else _release(file)
            for count, (number, question, answer, image_id) in enumerate(rows, start=1):
                id_ = f"{split}-{count}" if split else str(count)
                yield from job.example((file, number), _example, job, id_, question, answer, image_id)


def _release(file: File) -> Iterator[tuple[int, str, str, str]]:
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


def _table(job: Job, file: File) -> Iterator[tuple[int, str, str, str]]:
    for number, row, _ in csv_rows(file):
        if isinstance(row, Bad):
            job.bad(file, number, row)
            continue
        cells = [row.get(column, "") for column in ("question", "answer", "image_id")]
        yield number, cells[0], cells[1], cells[2]


def _example(job: Job, id_: str, question: str, answer: str, image_id: str) -> Example:
    question = checked(question.strip(), "the question")
    if not question:
        raise Bad("the question is empty.")
    if not image_id.strip():
        raise Bad("the question names no image.")
    image_id = checked(image_id.strip(), "the image name")
    parts = [part.strip() for part in checked(answer, "the answer").split(",")]
    target = job.share(", ".join(filter(None, parts)))
    if not target:
        raise Bad("the answer is empty.")
    stem = image_id.rpartition("/")[2]
    stem = stem.rpartition(".")[0] if stem.lower().endswith((".png", ".jpg")) else stem
    return Example(
        id=id_,
        question=question,
        image=job.images.named(stem, ".png"),
        image_id=job.share(image_id),
        answers=(target,),
        target=target,
        answer_type=answer_type(target),
    )
