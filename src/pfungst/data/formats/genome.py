"""Visual Genome: 1.7 million questions on 108,000 pictures.

`question_answers.json`: [{"id": 1, "qas": [{"qa_id": 986769, "image_id": 1, "question": "What color is the clock?",
    "answer": "Green.", "a_objects": [], "q_objects": []}]}]; pictures `VG_100K/1.jpg` and `VG_100K_2/1.jpg`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pfungst.core import DataError, Example
from pfungst.data.fields import Bad, identifier, kind, name, record, text
from pfungst.data.files import File
from pfungst.data.job import Format, Found, Job
from pfungst.data.json_records import JsonRecords


class VisualGenome(Format):
    """Visual Genome questions and answers."""

    name = "genome"
    title = "Visual Genome question_answers"
    expects = "question_answers.json"
    metric = "exact"

    def claims(self, file: File, head: str) -> float:
        if file.suffix != ".json":
            return 0.0
        if file.stem.lower() == "question_answers":
            return 0.95
        return 0.9 if head.lstrip().startswith("[") and '"qas"' in head else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        files = [file for file in job.files if file.suffix == ".json"]
        files = [file for file in files if file.stem.lower() == "question_answers"] or files
        if not files:
            raise DataError.at(job.place, "", "there is no file of Visual Genome in it.", f"Expected: {self.expects}.")
        file = min(files, key=lambda file: (file.preference, file))
        job.name = "visual genome"
        reader = JsonRecords(file)
        for value in reader.list("questions"):
            try:
                of = record(value)
                pairs = of.get("qas")
                if not isinstance(pairs, Sequence) or isinstance(pairs, str):
                    raise Bad(f'"qas" is {kind(pairs)}, not a list.')
            except Bad as problem:
                job.bad(file, reader.where, problem)
                continue
            for pair in pairs:
                try:
                    example = _example(job, of, record(pair))
                except Bad as problem:
                    job.bad(file, reader.where, problem)
                else:
                    yield example, file, reader.number


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
