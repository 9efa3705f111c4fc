"""Questions on images of Visual Genome: its own, Visual7W, GQA and ConVQA. All are JSON, and read record by record.

Visual Genome, `question_answers.json`: [{"id": 1, "qas": [{"qa_id": 986769, "image_id": 1, "question": "What color is
    the clock?", "answer": "Green."}]}]; images `VG_100K/1.jpg` and `VG_100K_2/1.jpg`. 1.7 million questions.
Visual7W telling, `dataset_v7w_telling.json`: {"dataset": "v7w_telling", "images": [{"image_id": 1, "filename":
    "v7w_1.jpg", "split": "train", "qa_pairs": [{"qa_id": 1, "question": "...", "answer": "...", "type": "what",
    "multiple_choices": [three wrong ones]}]}]}
GQA, `val_balanced_questions.json` (train, val, testdev, test, challenge, submission; balanced or all): {"05451384":
    {"imageId": "2382986", "question": "...", "answer": "yes", "types": {"structural": "verify"}, "equivalent":
    ["05451384", ...], "entailed": [...]}}. `train_all_questions` is a folder of ten such files. Equivalent questions
    form a group, those whose answers follow from one another a contrast group.
ConVQA: a folder of files `qas_2342914.json`, {"consistent": [set, ...]}, one an image; its cleaned test set is one file
    {"2342914": [set, ...], ...}. A set is a list of {"question": "is train yellow", "answer": "yes"}, and a contrast
    group: its answers follow from one another, and differ.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pfungst.core import DataError, Example
from pfungst.data.formats.layouts import Linked
from pfungst.data.job import Format, Found, Job, canonical, split_of
from pfungst.rows.fields import Bad, answer_text, identifier, items, name, optional_text, record, text, texts
from pfungst.rows.files import File
from pfungst.rows.json_records import JsonRecords

Fields = Mapping[str, Any]
"""A record of a file."""


def _file(job: Job, format_: Format, stem: str) -> File:
    """The file that is called so; any other JSON file where there is none."""
    files = job.sorted(".json")
    files = [file for file in files if stem in file.stem.lower()] or files
    if not files:
        raise format_.nothing(job, f"there is no {format_.title} file in it.")
    return files[0]


def _read_pairs(
    job: Job,
    file: File,
    pictures: str,
    pairs: str,
    make: Callable[[Job, Fields, Fields], Example],
    wanted: Callable[[Fields], bool] = lambda image: True,
) -> Iterator[Found]:
    """An example of every question in the list `pairs` of every wanted record in the list `pictures`."""
    reader = JsonRecords(file)

    def questions(value: object) -> tuple[Fields, list[Any]]:
        image = record(value)
        listed = items(image.get(pairs), f'"{pairs}"')
        return image, listed if wanted(image) else []

    for image, listed in job.each(reader, pictures, questions):
        for pair in listed:
            yield from job.example(
                (file, reader.number), lambda image, pair: make(job, image, record(pair)), image, pair
            )


class VisualGenome(Format):
    """Visual Genome questions and answers."""

    name = "genome"
    title = "Visual Genome"
    expects = "question_answers.json"
    metric = "exact"
    endings = frozenset({".json"})

    def claims(self, file: File, head: str) -> float:
        if file.stem.lower() == "question_answers":
            return 0.95
        return 0.9 if head.lstrip().startswith("[") and '"qas"' in head else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        file = _file(job, self, "question_answers")
        job.name = "visual genome"
        return _read_pairs(job, file, "questions", "qas", _genome)


def _genome(job: Job, image: Fields, pair: Fields) -> Example:
    image_id = name(pair.get("image_id", image.get("id", image.get("image_id"))), '"image_id"')
    question = text(pair, "question")
    # Visual Genome sorts its questions by their first word
    word = question.split(maxsplit=1)[0].lower().rstrip(",?!.")
    return job.made(
        identifier(pair, "qa_id"),
        question,
        text(pair, "answer"),
        image_id,
        job.images.named(image_id, ".jpg"),
        question_type=job.share(word) if word in ("what", "where", "how", "when", "who", "why") else "",
    )


class Visual7W(Format):
    """Visual7W telling. The id of a question decides where its right answer is among the choices."""

    name = "visual7w"
    title = "Visual7W"
    expects = "dataset_v7w_telling.json"
    metric = "choice"
    endings = frozenset({".json"})

    def claims(self, file: File, head: str) -> float:
        return 0.95 if "v7w_telling" in file.stem.lower() or ('"qa_pairs"' in head and '"images"' in head) else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        file = _file(job, self, "v7w_telling")
        chosen = self._splits(job, file)
        job.name = " ".join(["visual7w", *chosen])

        def wanted(image: Fields) -> bool:
            job.reading = optional_text(image, "split")
            return job.reading in chosen

        return _read_pairs(job, file, "images", "qa_pairs", _visual7w, wanted)

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


def _visual7w(job: Job, image: Fields, pair: Fields) -> Example:
    id_, target = identifier(pair, "qa_id"), text(pair, "answer")
    decoys = pair.get("multiple_choices")
    image_id = name(image.get("image_id", pair.get("image_id")), '"image_id"')
    filename = optional_text(image, "filename") or f"v7w_{image_id}.jpg"
    stem, _, suffix = filename.rpartition("/")[2].rpartition(".")
    return job.made(
        id_,
        text(pair, "question"),
        target,
        image_id,
        job.images.named(stem or suffix, f".{suffix}"),
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


_GQA = re.compile(r"(train|val|testdev|test|challenge|submission)_(balanced|all)_questions(?:_(\d+))?", re.IGNORECASE)


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
    endings = frozenset({".json"})

    def claims(self, file: File, head: str) -> float:
        if head.lstrip().startswith("["):
            return 0.0  # a list of questions is a table, which has a layout for them
        if '"imageId"' in head and '"question"' in head and head.lstrip().startswith("{"):
            return 0.95
        return 0.92 if _GQA.fullmatch(file.stem) else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        for _, files in self.chosen(job, _gqa_splits(job), "there are no GQA questions in it."):
            same, follows = Linked(), Linked()
            for file in files:
                reader = JsonRecords(file)
                for id_, value in reader.members():
                    yield from job.example((file, reader.number), _gqa, job, id_, value, same, follows)


def _gqa_splits(job: Job) -> dict[str, list[File]]:
    found: dict[tuple[str, str], dict[tuple[int, str], File]] = {}
    files = job.sorted(".json")
    for file in files:
        if match := _GQA.fullmatch(file.stem):
            part = (int(match[3] or 0), file.name)
            found.setdefault((match[2].lower(), match[1].lower()), {}).setdefault(part, file)
    version = job.options.get("version") or ("balanced" if any(of == "balanced" for of, _ in found) else "all")
    splits = {
        split: [parts[part] for part in sorted(parts)] for (of, split), parts in sorted(found.items()) if of == version
    }
    return {"": files} if not splits and len(files) == 1 else splits


def _gqa(job: Job, id_: str, value: Any, same: Linked, follows: Linked) -> Example:
    of = record(value)
    target = text(of, "answer") if of.get("answer") is not None else None
    image_id = identifier(of, "imageId")
    types = of.get("types")
    structural = optional_text(types, "structural") if isinstance(types, Mapping) else ""

    def ids(key: str) -> list[str]:
        """Ids of other questions; some releases write an empty object for none."""
        return [name(other, f'an id in "{key}"') for other in of[key]] if isinstance(of.get(key), list) else []

    return job.made(
        name(id_, "the question id"),
        text(of, "question"),
        target,
        image_id,
        job.images.named(image_id, ".jpg"),
        # GQA reports "query" questions as open and all others as binary
        answer_type=("open" if structural == "query" else "binary") if structural else "",
        question_type=job.share(structural),
        group=same.name(id_, ids("equivalent")),
        contrast=follows.name(id_, ids("entailed")),
    )


_APART = re.compile(r"qas_(\w+)", re.IGNORECASE)
_SETS = r"\[\s*(?:\[\s*\]\s*,\s*)*\[\s*\{\s*\"(?:question|answer)\"\s*:"
_BY_IMAGE = re.compile(r"\s*\{\s*\"\w{1,40}\"\s*:\s*(?:\[\s*\]\s*,\s*\"\w{1,40}\"\s*:\s*)*" + _SETS)


class ConVqa(Format):
    """Logical ConVQA, and other sets in its layout."""

    name = "convqa"
    title = "ConVQA"
    expects = "qas_IMAGE.json, or one JSON file of image ids and their sets of questions"
    metric = "exact"
    endings = frozenset({".json"})

    def claims(self, file: File, head: str) -> float:
        if _APART.fullmatch(file.stem) and '"consistent"' in head:
            return 0.95
        return 0.9 if _BY_IMAGE.match(head) else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        splits: dict[str, list[File]] = {}
        for file in job.sorted(".json"):
            if self.claims(file, file.head()):
                named = file.folder.rpartition("/")[2] if _APART.fullmatch(file.stem) else file.stem
                splits.setdefault(split_of(named), []).append(file)
        for _, files in self.chosen(job, splits, "there are no ConVQA sets in it.", canonical):
            for file in files:
                yield from _convqa_sets(job, file)


def _convqa_sets(job: Job, file: File) -> Iterator[Found]:
    apart = _APART.fullmatch(file.stem)
    reader = JsonRecords(file)
    for key, value in reader.members():
        if apart and key != "consistent":
            continue
        image = apart[1] if apart else key
        try:
            sets = items(value, f"the sets of image {image}")
            questions = [
                (f"{number}-{at}", one) for number, of in enumerate(sets) for at, one in enumerate(items(of, "a set"))
            ]
        except Bad as problem:
            job.bad(file, reader.number, problem)
            continue
        for place, one in questions:
            yield from job.example((file, reader.number), _convqa, job, image, place, one)


def _convqa(job: Job, image: str, place: str, value: Any) -> Example:
    """place: the number of the set, and of the question in it."""
    of = record(value)
    image_id = name(image, "the image id")
    target = answer_text(of.get("answer"), '"answer"')
    picture = job.images.named(image_id, ".jpg")
    if picture is None and image_id.isdecimal() and len(image_id) <= 12:
        picture = job.images.coco(int(image_id), "")
    return job.made(
        f"{image_id}-{place}",
        text(of, "question"),
        target,
        image_id,
        picture,
        answer_type="yes/no" if target.lower() in ("yes", "no") else "other",
        contrast=job.share(f"{image_id}-{place.partition('-')[0]}"),
    )
