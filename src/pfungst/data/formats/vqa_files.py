"""Which files of a folder belong together, in the naming of VQA v1 and v2."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pfungst.core import DataError
from pfungst.data.job import Job, split_of
from pfungst.rows.files import File

_QUESTIONS = re.compile(r"(v2_)?(?:(openended|multiplechoice)_)?(?:(.*?)[-_.])?questions", re.IGNORECASE)
_ANNOTATIONS = re.compile(r"(v2_)?(?:(.*?)[-_.])?annotations", re.IGNORECASE)
_PAIRS = re.compile(r"(v2_)?(?:(.*?)[-_.])?complementary_pairs", re.IGNORECASE)


@dataclass(frozen=True)
class VqaOptions:
    """Which of several releases in one folder is read."""

    task: str = ""
    """`open-ended` (the default) or `multiple-choice`."""
    version: Literal["1", "2"] | None = None
    """Version of the questions: VQA v1 or v2."""
    annotations: str = ""
    """An annotations file in another place or with another name."""


@dataclass(frozen=True, slots=True)
class Part:
    """The files of one split of one release."""

    questions: File
    annotations: File | None
    split: str
    """As the file says it: `val2014`, `test-dev2015`, `train`; empty if it says nothing."""
    version: str
    """`1` or `2`; empty where the name does not tell."""
    task: str
    """`open-ended` or `multiple-choice`."""
    pairs: File | None = None
    """Complementary pairs of VQA v2: one question on two images, with two answers."""


def is_questions(file: File) -> bool:
    return file.suffix == ".json" and _QUESTIONS.fullmatch(file.stem) is not None


def is_published_name(file: File) -> bool:
    """`v2_OpenEnded_mscoco_val2014_questions.json` and its kin."""
    name = _QUESTIONS.fullmatch(file.stem)
    return file.suffix == ".json" and name is not None and name[2] is not None


def find_parts(job: Job) -> list[Part]:
    """The splits that are there, with their annotations, narrowed by the options `task` and `version`."""
    files = [file for file in job.files if file.suffix == ".json"]
    named = [file for file in files if is_questions(file)]
    if not named and len(files) == 1:
        named = files
    if not named:
        return []
    beside = [file for file in job.companions if file.suffix == ".json"]
    parts = [_part(job, file, beside) for file in named]
    version, task = job.options.get("version"), _task(job.options.get("task", ""))
    parts = [part for part in parts if not version or part.version in ("", version)]
    if not task:
        task = "open-ended" if any(part.task == "open-ended" for part in parts) else "multiple-choice"
    parts = [part for part in parts if part.task == task]
    if not parts:
        raise DataError.at(job.place, "", f"there are no {task} questions of that version in it.")
    return sorted(parts, key=lambda part: (part.split, part.questions.preference, part.questions))


def only(parts: list[Part], job: Job) -> Part:
    """The one part of a split; copies of one file (plain, .gz, .zip) count as one."""
    names = sorted({part.questions.name for part in parts})
    folders = {part.questions.folder for part in parts if part.questions.preference == parts[0].questions.preference}
    if len(names) > 1 or len(folders) > 1:
        raise DataError.at(
            job.place,
            "",
            f"there are several files of this split: {', '.join(sorted(part.questions.label for part in parts))}.",
            "Name one of them, or choose with ?version=2.",
        )
    return parts[0]


def _part(job: Job, file: File, beside: list[File]) -> Part:
    name = _QUESTIONS.fullmatch(file.stem)
    version, task, rest = (name[1], name[2], name[3] or "") if name else (None, None, file.stem)
    split = split_of(rest) or split_of(file.folder.rpartition("/")[2])
    if given := job.options.get("annotations"):
        annotations: File | None = _given(given, job)
    else:
        annotations = _partner(file, version or "", rest, split, beside, _ANNOTATIONS)
    return Part(
        questions=file,
        annotations=annotations,
        split=split,
        version="2" if version else ("1" if task else ""),
        task="multiple-choice" if (task or "").lower() == "multiplechoice" else "open-ended",
        pairs=_partner(file, version or "", rest, split, beside, _PAIRS),
    )


def _partner(
    file: File, version: str, rest: str, split: str, beside: list[File], pattern: re.Pattern[str]
) -> File | None:
    """The annotations (or pairs) that belong to a file of questions, by name; never those of another split."""
    ranked: list[tuple[int, int, File]] = []
    partners = [(other, name) for other in beside if (name := pattern.fullmatch(other.stem))]
    for other, name in partners:
        if (name[1] or "").lower() != version.lower():
            continue
        other_split = split_of(name[2] or "") or split_of(other.folder.rpartition("/")[2])
        same_folder = other.folder == file.folder
        if (name[2] or "").lower() == rest.lower() and split == other_split:
            ranked.append((0 if same_folder else 1, other.preference, other))
        elif same_folder and len(partners) == 1 and (not split or not other_split):
            ranked.append((2, other.preference, other))
    return min(ranked)[2] if ranked else None


def _given(path: str, job: Job) -> File:
    for file in job.companions:
        if path in (file.name, file.label, str(file.path)):
            return file
    if not Path(path).is_file():
        raise DataError.at(path, "", "there is no such annotations file.")
    return File(Path(path))


def _task(asked: str) -> str:
    known = {"": "", "open-ended": "open-ended", "openended": "open-ended"}
    known |= {"multiple-choice": "multiple-choice", "multiplechoice": "multiple-choice", "mc": "multiple-choice"}
    if asked.lower() not in known:
        raise DataError(f"There is no task {asked!r}; the tasks are open-ended and multiple-choice.")
    return known[asked.lower()]
