"""COCO-QA: questions made from captions, four files of equal length for each split.

`train/` and `test/` hold `questions.txt`, `answers.txt`, `img_ids.txt` and `types.txt` (0 object, 1 number, 2 color,
3 location), one line per question. These four are question types; the answer types are VQA's. The images of the
training questions are COCO train2014, those of the test questions val2014.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from pfungst.core import DataError, Example
from pfungst.data.job import Format, Found, Job, split_of
from pfungst.rows.fields import Bad, answer_type, checked, whole
from pfungst.rows.files import File
from pfungst.rows.json_records import lines

TYPES = ("object", "number", "color", "location")
_SUBTYPES = {"train": "train2014", "test": "val2014"}
_PARTS = ("questions", "answers", "img_ids", "types")


class CocoQa(Format):
    """COCO-QA."""

    name = "cocoqa"
    title = "COCO-QA"
    expects = "questions.txt and img_ids.txt, with answers.txt and types.txt, in train/ and test/"
    metric = "exact"

    def claims(self, file: File, head: str) -> float:
        return 0.9 if file.name.lower() == "img_ids.txt" else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        folders: dict[str, dict[str, File]] = {}
        for file in sorted(job.companions, key=lambda file: (file.preference, file)):
            if file.suffix == ".txt" and file.stem.lower() in _PARTS:
                folders.setdefault(file.folder, {}).setdefault(file.stem.lower(), file)
        splits: dict[str, dict[str, File]] = {}
        for folder, parts in folders.items():
            if {"questions", "img_ids"} <= set(parts):
                splits.setdefault(split_of(folder.rstrip("/").rpartition("/")[2]), parts)
        for split, parts in self.chosen(job, splits, "there are no COCO-QA files in it."):
            yield from _read(job, split, parts)


def _read(job: Job, split: str, parts: dict[str, File]) -> Iterator[Found]:
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
        yield from job.example((questions, number), _example, job, split, number, cells)


def _example(job: Job, split: str, number: int, cells: Mapping[str, str]) -> Example:
    """cells: the lines of the files that are there."""
    question = checked(cells["questions"].strip(), "the question")
    if not question:
        raise Bad("the question is empty.")
    image_number = whole(cells["img_ids"].strip(), "the image number")
    if not 0 <= image_number < 10**12:
        raise Bad(f"the image number {image_number} is not a COCO number.")
    target = None
    if "answers" in cells:
        target = job.share(checked(cells["answers"].strip(), "the answer"))
        if not target:
            raise Bad("the answer is empty.")
    kind = ""
    if "types" in cells:
        type_ = cells["types"].strip()
        if type_ not in ("0", "1", "2", "3"):
            raise Bad("the type is not 0, 1, 2 or 3.")
        kind = TYPES[int(type_)]
    return Example(
        id=f"{split}-{number}" if split else str(number),
        question=question,
        image=job.images.coco(image_number, _SUBTYPES.get(split, "")),
        image_id=job.share(str(image_number)),
        answers=() if target is None else (target,),
        target=target,
        answer_type=("number" if kind == "number" else "other") if kind else answer_type(target),
        question_type=kind,
    )
