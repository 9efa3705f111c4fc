"""OK-VQA: questions that need knowledge from outside of the image, in the format of VQA.

Its files are called like those of VQA v1 (`OpenEnded_mscoco_val2014_questions.json`,
`mscoco_val2014_annotations.json`), so it is recognised by `raw_answer` in the annotations or by the name of its folder.
Where the annotations are missing but a file of soft labels (`*soft_labels*.json`: a list of
{"question_id", "label": {answer: score}}) is there, the human answers are rebuilt from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pfungst.data.formats.vqa import Label, Labels, Vqa
from pfungst.data.formats.vqa_files import Part, is_questions
from pfungst.data.job import Job, canonical, split_of
from pfungst.rows.fields import Bad, checked, identifier, most_frequent, record
from pfungst.rows.files import File
from pfungst.rows.json_records import JsonRecords

HUMANS = 10
"""Answers to each question."""


class OkVqa(Vqa):
    """OK-VQA."""

    name = "okvqa"
    title = "OK-VQA"
    expects = "OpenEnded_mscoco_*_questions.json and mscoco_*_annotations.json (or *soft_labels*.json)"

    def claims(self, file: File, head: str) -> float:
        if file.suffix != ".json":
            return 0.0
        if '"raw_answer"' in head and '"annotations"' in head:
            return 0.95
        near = "/".join([*Path(file.folder).absolute().parts[-2:], file.name]).lower()
        named = re.search(r"ok[-_]?vqa", near) is not None and not file.name.startswith("v2_")
        return 0.95 if named and is_questions(file) else 0.0

    def labels(self, job: Job, part: Part, wanted: set[str] | None) -> Labels | None:
        if part.annotations is not None:
            return super().labels(job, part, wanted)
        soft = [file for file in job.companions if file.suffix == ".json" and "soft_label" in file.stem.lower()]
        soft = [file for file in soft if canonical(split_of(file.stem)) in ("", canonical(part.split))]
        return _soft_labels(job, soft[0]) if soft else None


def _soft_labels(job: Job, file: File) -> Labels:
    labels = Labels(file.label)

    def add(value: Any) -> None:
        of = record(value)
        answers = tuple(map(job.share, answers_of(of.get("label"))))
        labels.add(identifier(of, "question_id"), Label("", answers, most_frequent(answers), "", ""))

    for _ in job.each(JsonRecords(file), "labels", add):
        pass
    job.notes["answers"] = "rebuilt from soft labels"
    return labels


def answers_of(scores: object) -> tuple[str, ...]:
    """Human answers that give these scores under min(matches / 3, 1): a third is one person, two thirds are two.

    Fully right answers share the rest of the ten people, three at least each. Most frequent first.
    """
    if not isinstance(scores, Mapping):
        raise Bad('"label" is missing or not an object of answers and scores.')
    counts: dict[str, int] = {}
    for answer, score in scores.items():
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
            raise Bad('a score of "label" is not a number from 0 to 1.')
        counts[checked(answer, "an answer")] = round(3 * score)
    sure = [answer for answer, count in counts.items() if count == 3]
    rest = HUMANS - sum(count for count in counts.values() if count < 3)
    for rank, answer in enumerate(sure):
        counts[answer] = max(3, rest // len(sure) + (rank < rest % len(sure)))
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return tuple(answer for answer, count in ordered for _ in range(count))
