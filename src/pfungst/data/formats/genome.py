"""Visual Genome: 1.7 million questions on 108,000 images.

`question_answers.json`: [{"id": 1, "qas": [{"qa_id": 986769, "image_id": 1, "question": "What color is the clock?",
    "answer": "Green.", "a_objects": [], "q_objects": []}]}]; images `VG_100K/1.jpg` and `VG_100K_2/1.jpg`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pfungst.core import Example
from pfungst.data.formats.nested import find_file, read_pairs
from pfungst.data.job import Format, Found, Job
from pfungst.rows.fields import identifier, name, text
from pfungst.rows.files import File
from pfungst.rows.json_records import JsonRecords


class VisualGenome(Format):
    """Visual Genome questions and answers."""

    name = "genome"
    title = "Visual Genome"
    expects = "question_answers.json"
    metric = "exact"

    def claims(self, file: File, head: str) -> float:
        if file.suffix != ".json":
            return 0.0
        if file.stem.lower() == "question_answers":
            return 0.95
        return 0.9 if head.lstrip().startswith("[") and '"qas"' in head else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        file = find_file(job, self, lambda name: name == "question_answers")
        job.name = "visual genome"
        return read_pairs(job, JsonRecords(file), "questions", "qas", _example)


def _example(job: Job, image: Mapping[str, Any], pair: Mapping[str, Any]) -> Example:
    answer = job.share(text(pair, "answer"))
    image_id = job.share(name(pair.get("image_id", image.get("id", image.get("image_id"))), '"image_id"'))
    question = text(pair, "question")
    return Example(
        id=identifier(pair, "qa_id"),
        question=question,
        image=job.images.named(image_id, ".jpg"),
        image_id=image_id,
        answers=(answer,),
        target=answer,
        question_type=job.share(_first_word(question)),
    )


def _first_word(question: str) -> str:
    """Visual Genome sorts its questions by their first word: what, where, how, when, who, why."""
    word = question.split(maxsplit=1)[0].lower().rstrip(",?!.")
    return word if word in ("what", "where", "how", "when", "who", "why") else ""
