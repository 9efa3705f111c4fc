"""GQA: compositional questions on images of Visual Genome.

`val_balanced_questions.json` (train, val, testdev, test, challenge, submission; balanced or all): {"05451384":
    {"imageId": "2382986", "question": "...", "answer": "yes", "types": {"structural": "verify", "semantic": "attr",
    "detailed": "..."}, "equivalent": ["05451384", ...], "entailed": [...], ...}}. `train_all_questions` is a folder of
ten such files. Images `images/2382986.jpg`. Equivalent questions form a group, those whose answers follow from one
another a contrast group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pfungst.core import Example
from pfungst.data.formats.layouts import Linked
from pfungst.data.job import Format, Found, Job
from pfungst.rows.fields import identifier, name, optional_text, record, text
from pfungst.rows.files import File
from pfungst.rows.json_records import JsonRecords

_NAME = re.compile(r"(train|val|testdev|test|challenge|submission)_(balanced|all)_questions(?:_(\d+))?", re.IGNORECASE)


@dataclass(frozen=True)
class GqaOptions:
    """Which of the two sets is read."""

    version: Literal["balanced", "all"] | None = None
    """The balanced questions, if there are any, or all of them."""


class Gqa(Format):
    """GQA, the balanced questions or all of them (`?version=all`)."""

    name = "gqa"
    title = "GQA"
    expects = "SPLIT_balanced_questions.json"
    metric = "exact"
    options = GqaOptions

    def claims(self, file: File, head: str) -> float:
        if file.suffix != ".json" or head.lstrip().startswith("["):
            return 0.0  # a list of questions is a table, which has a layout for them
        if '"imageId"' in head and '"question"' in head and head.lstrip().startswith("{"):
            return 0.95
        return 0.92 if _NAME.fullmatch(file.stem) else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        for _, files in self.chosen(job, _splits(job), "there are no GQA questions in it."):
            same, follows = Linked(), Linked()
            for file in files:
                reader = JsonRecords(file)
                for id_, value in reader.members():
                    yield from job.example(reader, _example, job, id_, value, same, follows)


def _splits(job: Job) -> dict[str, list[File]]:
    version = job.options.get("version")
    found: dict[tuple[str, str], dict[tuple[int, str], File]] = {}
    jsons = sorted((file for file in job.files if file.suffix == ".json"), key=lambda f: (f.preference, f))
    for file in jsons:
        if name := _NAME.fullmatch(file.stem):
            part = (int(name[3] or 0), file.name)
            found.setdefault((name[2].lower(), name[1].lower()), {}).setdefault(part, file)
    versions = {key[0] for key in found}
    chosen = version or ("balanced" if "balanced" in versions else "all")
    splits = {
        split: [files[part] for part in sorted(files)] for (of, split), files in sorted(found.items()) if of == chosen
    }
    if not splits and len(jsons) == 1:
        return {"": jsons}
    return splits


def _ids(of: Mapping[str, Any], key: str) -> list[str]:
    """Ids of other questions; some releases write an empty object for none."""
    value = of.get(key)
    return [name(one, f'an id in "{key}"') for one in value] if isinstance(value, list) else []


def _example(job: Job, id_: str, value: Any, same: Linked, follows: Linked) -> Example:
    of = record(value)
    target = job.share(text(of, "answer")) if of.get("answer") is not None else None
    image_id = job.share(identifier(of, "imageId"))
    types = of.get("types")
    structural = optional_text(types, "structural") if isinstance(types, Mapping) else ""
    # GQA reports "query" questions as open and all others as binary
    answer_type = ("open" if structural == "query" else "binary") if structural else ""
    return Example(
        id=name(id_, "the question id"),
        question=text(of, "question"),
        image=job.images.named(image_id, ".jpg"),
        image_id=image_id,
        answers=() if target is None else (target,),
        target=target,
        answer_type=answer_type,
        question_type=job.share(structural),
        group=same.name(id_, _ids(of, "equivalent")),
        contrast=follows.name(id_, _ids(of, "entailed")),
    )
