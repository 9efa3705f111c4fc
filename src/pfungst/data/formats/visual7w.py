"""Visual7W telling: what, where, when, who, why and how, four choices each.

`dataset_v7w_telling.json`: {"dataset": "v7w_telling", "images": [{"image_id": 1, "filename": "v7w_1.jpg",
    "split": "train", "qa_pairs": [{"qa_id": 1, "question": "...", "answer": "...", "type": "what",
    "multiple_choices": [three wrong ones]}]}]}
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from pfungst.core import DataError, Example
from pfungst.data.formats.nested import find_file, read_pairs
from pfungst.data.job import Format, Found, Job
from pfungst.rows.fields import identifier, name, optional_text, text, texts
from pfungst.rows.files import File
from pfungst.rows.json_records import JsonRecords


class Visual7W(Format):
    """Visual7W telling. The id of a question decides where its right answer is among the choices."""

    name = "visual7w"
    title = "Visual7W"
    expects = "dataset_v7w_telling.json"
    metric = "choice"

    def claims(self, file: File, head: str) -> float:
        if file.suffix != ".json":
            return 0.0
        return 0.95 if "v7w_telling" in file.stem.lower() or ('"qa_pairs"' in head and '"images"' in head) else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        file = find_file(job, self, lambda name: "v7w_telling" in name)
        chosen = self._splits(job, file)
        job.name = " ".join(["visual7w", *chosen])

        def wanted(image: Mapping[str, Any]) -> bool:
            job.reading = optional_text(image, "split")
            return job.reading in chosen

        return read_pairs(job, JsonRecords(file), "images", "qa_pairs", _example, wanted)

    def _splits(self, job: Job, file: File) -> list[str]:
        """The splits are told in the records only, so an unnamed or misspelt one costs a look through the file."""
        there: dict[str, None] = {}
        reader = JsonRecords(file)
        for value in reader.list("images"):
            if isinstance(value, Mapping) and isinstance(value.get("split"), str | None):
                there[value.get("split") or ""] = None
            if {"train", "val", "test"} <= set(there):
                break
        if "pointing" in str(reader.header.get("dataset", "")):
            raise DataError.at(file.label, "", "this is Visual7W pointing; only telling questions have text answers.")
        return job.choose(list(there))


def _example(job: Job, image: Mapping[str, Any], pair: Mapping[str, Any]) -> Example:
    id_ = identifier(pair, "qa_id")
    target = text(pair, "answer")
    decoys = pair.get("multiple_choices")
    image_id = name(image.get("image_id", pair.get("image_id")), '"image_id"')
    filename = optional_text(image, "filename") or f"v7w_{image_id}.jpg"
    stem, _, suffix = filename.rpartition("/")[2].rpartition(".")
    return Example(
        id=id_,
        question=text(pair, "question"),
        image=job.images.named(stem or suffix, f".{suffix}"),
        image_id=job.share(image_id),
        answers=(target,),
        target=target,
        answer_type="",
        question_type=job.share(optional_text(pair, "type")),
        choices=() if decoys in (None, []) else with_target(texts(decoys, '"multiple_choices"'), target, id_),
    )


def with_target(decoys: tuple[str, ...], target: str, id_: str) -> tuple[str, ...]:
    """The choices: the target among its decoys, at a place that depends on nothing but the id.

    The file lists the decoys alone; a target that always came last would be a cue.
    """
    if target in decoys:
        return decoys
    place = int.from_bytes(hashlib.sha256(id_.encode()).digest()[:8], "big") % (len(decoys) + 1)
    return (*decoys[:place], target, *decoys[place:])
