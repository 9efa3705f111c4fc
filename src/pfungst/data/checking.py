"""Looking a data set over before it is trusted."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from pfungst.core import DataError, Example, PfungstError, Progress
from pfungst.core.fingerprint import Fingerprint
from pfungst.core.images import as_rgb
from pfungst.core.types import no_progress
from pfungst.data.job import UNREAD, BadRecord, Format, Job
from pfungst.data.loading import Images, collect, prepare

MANY = 10
"""Names shown of a long list."""
MAX_LISTED = 100_000
"""Bad records kept."""
MAX_SHOWN = 20
"""Bad records shown."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What is in a data set, and what is wrong with it."""

    name: str
    format: str
    metric: str
    fingerprint: str
    """The one `load` gives for the same split, if there are no bad records."""
    examples: int
    labelled: int
    """Examples with a right answer."""
    images: int
    """Different images the questions are about."""
    missing_images: int
    """How many of them were not found."""
    missing_image_ids: tuple[str, ...]
    """The first few of those."""
    questions_without_image: int
    duplicate_ids: int
    """Records left out because their id was there before; they are among `bad` too."""
    duplicate_questions: int
    """Examples that ask about an image what an earlier one has asked."""
    groups: int
    """Questions with rephrasings."""
    contrasts: int = 0
    """Groups of questions that look alike but are not answered alike."""
    image_column: str = ""
    """The column of a table that names or holds the images."""
    files: Mapping[str, int] = field(default_factory=dict)
    """Examples read from each file."""
    answer_types: Mapping[str, int] = field(default_factory=dict)
    question_types: Mapping[str, int] = field(default_factory=dict)
    answers_per_question: Mapping[int, int] = field(default_factory=dict)
    choices_per_question: Mapping[int, int] = field(default_factory=dict)
    top_answers: Mapping[str, int] = field(default_factory=dict)
    """The most frequent right answers."""
    bad_records: int = 0
    bad: tuple[BadRecord, ...] = ()
    """Every bad record with its file and position (of more than a hundred thousand the first ones)."""
    error: str | None = None
    """Why reading stopped early, where a file is damaged."""
    skip_bad: bool = False
    decoded: int | None = None
    """Different images that were opened; None: none, as nobody asked for it (`decode`)."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Those that no player can look at: the id of the first question about each -> what is wrong."""
    unread_columns: tuple[str, ...] = ()
    """Columns of a table that nothing was read from."""
    text_only: bool = False
    """No images are wanted (`?images=none`)."""
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether it is fit for an exam: `load` would read it (no damage, and no bad record unless those are to be
        skipped), and if its questions are about images, there are images, unless none are wanted; of those that were
        opened none is broken."""
        readable = self.error is None and self.examples > 0 and (self.skip_bad or not self.bad_records)
        return readable and not self.no_images and not self.broken

    @property
    def no_images(self) -> str:
        """Why no question has an image, though the questions are about images; empty where that is not so."""
        if self.text_only or self.questions_without_image < self.examples or not self.examples:
            return ""
        if column := self.notes.get(UNREAD):
            return f"The column {column} was not understood; if it holds the images, name it: ?image={column}."
        if self.image_column:
            told = f"No image of the column {self.image_column} was found."
        elif self.missing_images:
            told = f"Not one of the {self.missing_images:,} images was found."
        else:
            return ""
        drawn = " or have them drawn from the scenes: ?render=yes," if self.format == "clevr" else ""
        return f"{told} Say where they are: --images FOLDER,{drawn} or ask without them: --images none."

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"ok": self.ok, "no_images": self.no_images, **asdict(self)}

    def __str__(self) -> str:
        return "\n".join(_sentences(self))


def check(
    spec: str | os.PathLike[str],
    *,
    split: str | None = None,
    images: Images | None = None,
    limit: int | None = None,
    skip_bad: bool = False,
    decode: bool = False,
    progress: Progress = no_progress,
    **options: Any,
) -> CheckReport:
    """Read a data set to its end and report what is there. Arguments as for `load`, but every split is read unless
    one is named. Bad records never stop it; a specification that names no data set raises DataError.

    decode: open every image once, and list the broken ones.
    """
    bad: list[BadRecord] = []
    twice = 0

    def note(one: BadRecord) -> None:
        nonlocal twice
        twice += one.problem.startswith("the id ")
        if len(bad) < MAX_LISTED:
            bad.append(one)

    reading = partial(prepare, spec, split=split, images=images, limit=limit, skip_bad=True, options=options)
    format_, job = reading(on_bad=note)
    if job.split is None:
        job.split = "all"
    tally = _Tally()
    error: str | None = None
    try:
        for example, file, _ in collect(format_, job):
            tally.add(example, file.name if file is not None else "")
    except PfungstError as problem:
        error = str(problem)
    opened, broken = _decode(*reading(), job.split, tally.examples, progress) if decode else (None, {})
    counts = tally.counts
    return CheckReport(
        name=job.name or format_.name,
        format=format_.name,
        metric=job.metric or ("choice" if tally.examples and counts["choices"][0] == 0 else format_.metric),
        fingerprint=tally.fingerprint.hex(),
        examples=tally.examples,
        labelled=counts["targets"].total(),
        images=len(counts["images"]),
        missing_images=len(counts["missing"]),
        missing_image_ids=tuple(counts["missing"])[:MANY],
        questions_without_image=tally.without_image,
        duplicate_ids=twice,
        duplicate_questions=tally.repeated,
        groups=_of_several(counts["groups"]),
        contrasts=_of_several(counts["contrasts"]),
        image_column=job.image_column,
        files=dict(counts["files"]),
        answer_types=dict(counts["answer types"].most_common()),
        question_types=dict(counts["question types"].most_common()),
        answers_per_question=dict(sorted(counts["answers"].items())),
        choices_per_question=dict(sorted(counts["choices"].items())),
        top_answers=dict(counts["targets"].most_common(MANY)),
        bad_records=job.skipped,
        bad=tuple(bad),
        error=error,
        skip_bad=skip_bad,
        decoded=opened,
        broken=broken,
        unread_columns=tuple(job.unread_columns),
        text_only=job.text_only,
        notes=dict(job.notes),
    )


def _decode(format_: Format, job: Job, split: str, total: int, progress: Progress) -> tuple[int, dict[str, str]]:
    """Read the data again, and open each image once: how many there are, and what is wrong with the broken ones."""
    job.split = split
    seen: set[str] = set()
    broken: dict[str, str] = {}
    with suppress(PfungstError):  # damage is known from the first reading
        for done, (example, _, _) in enumerate(collect(format_, job), start=1):
            if example.image is not None:
                try:
                    name = example.image.digest
                    if name not in seen:
                        seen.add(name)
                        as_rgb(example.image)
                except DataError as problem:
                    broken[example.id] = str(problem)
            progress("opening images", done, total)
    return len(seen), broken


def _of_several(groups: Counter[str]) -> int:
    """Groups of two or more: the other questions of a group may not be in these data."""
    return sum(count > 1 for count in groups.values())


class _Tally:
    """Counts over examples that are not kept."""

    def __init__(self) -> None:
        self.examples = self.without_image = self.repeated = 0
        self.fingerprint = Fingerprint()
        self.counts: dict[str, Counter[Any]] = defaultdict(Counter)
        """What is counted -> its values -> the examples that have each."""
        self._asked: set[int] = set()

    def add(self, example: Example, file: str) -> None:
        self.examples += 1
        self.without_image += example.image is None
        self.fingerprint.add(example)
        for what, value in (
            ("files", file),
            ("answer types", example.answer_type),
            ("question types", example.question_type),
            ("answers", len(example.answers)),
            ("choices", len(example.choices)),
            ("targets", example.target),
            ("images", example.image_id or None),
            ("missing", (example.image_id or None) if example.image is None else None),
            ("groups", example.group or None),
            ("contrasts", example.contrast or None),
        ):
            if value is not None:
                self.counts[what][value] += 1
        # 64 bits of a pair instead of the pair: a million questions fit in little memory
        asked = hash((example.image_id, example.question))
        self.repeated += asked in self._asked
        self._asked.add(asked)


def _sentences(report: CheckReport) -> Iterator[str]:
    yield f"{report.name} ({report.format}): {report.examples:,} questions on {report.images:,} images."
    yield f"With a right answer: {report.labelled:,}. Judged by: {report.metric}."
    for title, counts in (
        ("Files", report.files),
        ("Answer types", report.answer_types),
        ("Question types", report.question_types),
        ("Answers per question", report.answers_per_question),
        ("Choices per question", report.choices_per_question),
        ("Most frequent answers", report.top_answers),
    ):
        if any(key not in ("", 0) for key in counts):
            shown = [f"{key or 'none'} {count:,}" for key, count in list(counts.items())[:MANY]]
            rest = f" and {len(counts) - MANY} more" if len(counts) > MANY else ""
            yield f"{title}: {', '.join(shown)}{rest}."
    if report.groups:
        yield f"Questions with rephrasings: {report.groups:,}."
    if report.contrasts:
        yield f"Contrast groups: {report.contrasts:,}."
    if report.missing_images and not report.text_only:
        first = ", ".join(report.missing_image_ids)
        yield f"Missing images: {report.missing_images:,} of {report.images:,} ({first} ...)."
    if report.decoded is not None and not report.broken:
        yield f"Images opened: {report.decoded:,}, none of them broken."
    elif report.broken:
        yield f"Broken images: {len(report.broken):,} of {report.decoded:,} opened. The first question about each:"
        yield from (f"  {question}: {problem}" for question, problem in list(report.broken.items())[:MAX_SHOWN])
        if len(report.broken) > MAX_SHOWN:
            yield f"  ... and {len(report.broken) - MAX_SHOWN:,} more. --json lists every one."
    if report.duplicate_questions:
        yield f"The same question on the same image again: {report.duplicate_questions:,}."
    for note, value in report.notes.items():
        if note == "splits":
            left = f"; not read: {', '.join(value['left'])}" if value["left"] else ""
            yield f"Split read: {' + '.join(value['taken'])}{left}."
        else:
            yield f"{note[:1].upper()}{note[1:]}: {value}."
    if report.bad:
        yield f"Bad records: {report.bad_records:,}, {report.duplicate_ids:,} of them with a duplicate id."
        yield from _bad_lines(report)
    if report.error is not None:
        yield f"Reading stopped: {report.error}"
    if report.unread_columns and report.examples and not report.labelled:
        names = ", ".join(report.unread_columns[:MANY])
        yield f"No right answer was found, and nothing was read from the columns {names}. Name it: ?answer=COLUMN."
    elif report.examples and not report.labelled:
        yield "No right answer was found: changes of answers can be counted, but no accuracy."
    if report.no_images:
        yield report.no_images
    if report.ok:
        yield "Fit for use."
    elif replace(report, skip_bad=True).ok:
        yield "Not fit for use as it is: fix the bad records, or leave them out (--skip-bad)."
    elif replace(report, broken={}).ok:
        yield "Not fit for use as it is: replace the broken images, or take out the questions about them."
    else:
        yield "Not fit for use as it is."


def _bad_lines(report: CheckReport) -> Iterator[str]:
    """Each problem once, with the first record that has it."""
    alike: dict[str, list[BadRecord]] = {}
    for one in report.bad:
        alike.setdefault(one.problem, []).append(one)
    for first, *others in list(alike.values())[:MAX_SHOWN]:
        yield f"  {first}" + (f" And {len(others):,} more like it, the next at {others[0].where}." if others else "")
    if len(alike) > MAX_SHOWN:
        yield f"  ... and {len(alike) - MAX_SHOWN:,} other problems."
    if len(alike) > MAX_SHOWN or len(alike) < report.bad_records:
        yield "  --json lists every record."
