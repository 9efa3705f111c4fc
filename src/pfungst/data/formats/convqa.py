"""ConVQA: sets of questions about one fact in an image, whose answers must fit together.

Logical ConVQA is a folder of files `qas_2342914.json`, {"consistent": [set, ...]}, one an image of Visual Genome; its
cleaned test set is one file {"2342914": [set, ...], ...}. A set is a list of {"question": "is train yellow", "answer":
"yes"}. Images `2342914.jpg` in any folder. A set is a contrast group: its answers follow from one another, and differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pfungst.core import Example
from pfungst.data.job import Format, Found, Job, canonical, split_of
from pfungst.rows.fields import Bad, answer_text, items, name, record, text
from pfungst.rows.files import File
from pfungst.rows.json_records import JsonRecords

_NAME = re.compile(r"qas_(\w+)", re.IGNORECASE)
_SETS = r"\[\s*(?:\[\s*\]\s*,\s*)*\[\s*\{\s*\"(?:question|answer)\"\s*:"
_BY_IMAGE = re.compile(r"\s*\{\s*\"\w{1,40}\"\s*:\s*(?:\[\s*\]\s*,\s*\"\w{1,40}\"\s*:\s*)*" + _SETS)


class ConVqa(Format):
    """Logical ConVQA, and other sets in its layout."""

    name = "convqa"
    title = "ConVQA"
    expects = "qas_IMAGE.json, or one JSON file of image ids and their sets of questions"
    metric = "exact"

    def claims(self, file: File, head: str) -> float:
        if file.suffix != ".json":
            return 0.0
        if _NAME.fullmatch(file.stem) and '"consistent"' in head:
            return 0.95
        return 0.9 if _BY_IMAGE.match(head) else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        splits: dict[str, list[File]] = {}
        for file in sorted(job.files, key=lambda file: (file.preference, file)):
            if self.claims(file, file.head()):
                apart = _NAME.fullmatch(file.stem)
                named = file.folder.rpartition("/")[2] if apart else file.stem
                splits.setdefault(split_of(named), []).append(file)
        for _, files in self.chosen(job, splits, "there are no ConVQA sets in it.", canonical):
            for file in files:
                yield from _read(job, file)


def _read(job: Job, file: File) -> Iterator[Found]:
    apart = _NAME.fullmatch(file.stem)
    reader = JsonRecords(file)
    for key, value in reader.members():
        if apart and key != "consistent":
            continue
        image = apart[1] if apart else key
        try:
            sets = items(value, f"the sets of image {image}")
            questions = [
                (number, at, one) for number, of in enumerate(sets) for at, one in enumerate(items(of, "a set"))
            ]
        except Bad as problem:
            job.bad(file, reader.where, problem)
            continue
        for number, at, one in questions:
            yield from job.example(reader, _example, job, image, number, at, one)


def _example(job: Job, image: str, number: int, at: int, value: Any) -> Example:
    of = record(value)
    image_id = job.share(name(image, "the image id"))
    target = job.share(answer_text(of.get("answer"), '"answer"'))
    found = job.images.named(image_id, ".jpg")
    if found is None and image_id.isdecimal() and len(image_id) <= 12:
        found = job.images.coco(int(image_id), "")
    return Example(
        id=f"{image_id}-{number}-{at}",
        question=text(of, "question"),
        image=found,
        image_id=image_id,
        answers=(target,),
        target=target,
        answer_type="yes/no" if target.lower() in ("yes", "no") else "other",
        contrast=job.share(f"{image_id}-{number}"),
    )
