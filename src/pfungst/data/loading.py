"""Loading: from a specification, `[format:]place[#split][?option=value&...]`, to a Dataset and the part of it
that is asked about."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
from time import monotonic
from typing import Any

from pfungst.core import DataError, Dataset, Example, PfungstError, UsageError
from pfungst.core.errors import BrokenImage
from pfungst.core.files import exists
from pfungst.core.fingerprint import Fingerprint
from pfungst.core.settings import fit, read_query, read_settings
from pfungst.data.formats import FORMATS, get_format
from pfungst.data.images import ImageFinder, NoImages
from pfungst.data.job import ALONE, LETTERS, BadRecord, Format, Found, Job
from pfungst.rows.answer_key import SAID
from pfungst.rows.files import Listing, list_around, list_place

log = logging.getLogger("pfungst.data")

Images = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

NO_IMAGES = "none"
"""Instead of a folder of images: there are none, on purpose."""
MAX_FILES = 200_000
"""More files with questions than this are refused."""
SAID_EVERY = 10.0
"""Seconds of reading between two lines that say how far it is."""
MAX_SNIFFED = 2_000
"""Files of a folder that are looked into to recognise a format."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed specification."""

    place: str
    format: str = ""
    """Empty: to be recognised from the files."""
    split: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def parse(spec: str | os.PathLike[str]) -> Spec:
    """Take a specification apart. A text that names an existing path is that path, whatever characters it holds."""
    text = os.fspath(spec)
    if not text or text.isspace():
        raise DataError("The data set is not named: give a path, or a format and a path such as vqa:FOLDER.")
    if isinstance(spec, Path) or exists(text):
        return Spec(text)
    names = FORMATS.names()
    bare = text.partition("#")[0].partition("?")[0]
    head, colon, _ = bare.partition(":")
    known = head if head in names and (colon or not get_format(head).reads_files) else ""
    rest = text[len(head) + len(colon) :] if known else text
    if known and exists(rest):
        return Spec(rest, known)
    if colon and not known and len(head) > 1 and "/" not in head and os.sep not in head:
        FORMATS.get(head)  # says which formats there are, and which was probably meant
    place, _, query = rest.partition("?")
    place, mark, split = place.partition("#")
    if "#" in query:
        query, mark, split = query.partition("#")
    return Spec(place, known, split if mark else None, read_query(text, query))


def load(
    spec: str | os.PathLike[str],
    *,
    split: str | None = None,
    images: Images | None = None,
    limit: int | None = None,
    skip_bad: bool = False,
    **options: Any,
) -> Dataset:
    """Read a data set.

    `spec` is a path (folder, file, .gz or .zip), optionally with its format before it and a split behind it:
    `vqa:DIR#val`, `cocoqa:cocoqa.zip#test`, `hf:ID`, `world`. Without a format it is recognised from the files.

    split: the part to read (`train`, `val`, `test` ...), several (`train+val`), or `all`. By default the one best fit
        for an exam: validation before test before training questions; `notes["splits"]` says what was left.
    images: folder(s) or zip archive(s) with the images, where they do not lie with the questions; `none` for questions
        that are asked without images. Also as `SPEC?images=FOLDER`.
    limit: read no more than this many examples, the first ones.
    skip_bad: leave bad records out and count them in `Dataset.skipped`, instead of stopping at the first. Also as
        `SPEC?skip_bad=yes`.
    options: what the format understands, for example `task="multiple-choice"`; also as `SPEC?task=multiple-choice`.

    Raises DataError with the file, the position and what to do.
    """
    if limit is not None and limit < 0:
        raise DataError(f"The limit is {limit}; it must be 0 or more.")
    format_, job = prepare(spec, split=split, images=images, limit=limit, skip_bad=skip_bad, options=options)
    digest = Fingerprint()
    examples: list[Example] = []
    for example, _, _ in collect(format_, job):
        digest.add(example)
        examples.append(example)
    if not examples and limit != 0:
        raise DataError.at(job.place or format_.name, "", "there is no usable question in it.")
    found, repeated = joined(_with_originals(examples))
    if repeated:
        job.notes[REPEATED] = repeated
    splits = job.notes.get("splits", {"left": []})
    if job.split is None and splits["left"]:
        read = "+".join(splits["taken"]), f"{job.good:,}", ", ".join(splits["left"])
        log.info("%s: read the split %s (%s questions); not read: %s. Add #all for everything.", job.place, *read)
    if SAID in job.notes:
        log.info("%s: %s %s.", job.place, SAID, job.notes[SAID])
    if job.skipped:
        log.info("%s: left out %s bad record%s.", job.place, f"{job.skipped:,}", "" if job.skipped == 1 else "s")
    all_choices = bool(examples) and all(example.choices for example in examples)
    return Dataset(
        name=job.name or format_.name,
        examples=tuple(found),
        metric=job.metric or ("choice" if all_choices else format_.metric),
        fingerprint=digest.hex(),
        skipped=job.skipped,
        notes={"format": format_.name, **({"images": NO_IMAGES} if job.text_only else {}), **job.notes},
    )


def _with_originals(examples: list[Example]) -> list[Example]:
    """The examples, an original in the group that is named after it, where only its rephrasings say so."""
    first: dict[str, Example] = {}
    for one in examples:
        if one.group:
            first.setdefault(one.group, one)
    if not first:
        return examples
    found = []
    for one in examples:
        other = None if one.group else first.get(one.id)
        original = other is not None and (other.image_id, other.target) == (one.image_id, one.target)
        found.append(replace(one, group=one.id) if original else one)
    return found


def prepare(
    spec: str | os.PathLike[str],
    *,
    split: str | None,
    images: Images | None,
    limit: int | None,
    skip_bad: bool,
    options: dict[str, Any],
    on_bad: Callable[[BadRecord], None] | None = None,
) -> tuple[Format, Job]:
    """Find the files and the format of a specification."""
    parsed = parse(spec)
    listing, companions, format_ = _recognise(parsed)
    kind = "format" if format_.reads_files else "data set"
    given = {**parsed.options, **options}
    if "images" in given:
        images = given.pop("images") if images is None else images
    if "skip_bad" in given:
        told = fit(given.pop("skip_bad"), bool, False, f"option skip_bad of the {kind} {format_.name}")
        skip_bad = skip_bad or told
    asked = read_settings(format_.options, given, what=f"{kind} {format_.name}", noun="option")
    path = Path(parsed.place)
    text_only = images == NO_IMAGES
    if text_only:
        finder: ImageFinder = NoImages()
    elif images is None:
        finder = ImageFinder(lambda: companions, [path if path.is_dir() else path.parent])
    else:
        places = [images] if isinstance(images, str | os.PathLike) else list(images)
        finder = ImageFinder.under(places)
    return format_, Job(
        place=parsed.place,
        files=listing.files,
        companions=companions.files,
        images=finder,
        split=split if split is not None else parsed.split,
        options=asked,
        limit=None if skip_bad else limit,
        stop_after=limit,
        skip_bad=skip_bad,
        on_bad=on_bad,
        text_only=text_only,
    )


def _recognise(spec: Spec) -> tuple[Listing, Listing, Format]:
    named = get_format(spec.format) if spec.format else None
    if named is not None and not named.reads_files:
        return Listing(), Listing(), named
    if not spec.place:
        raise DataError(f"Name a file or folder after the format, as in {spec.format or 'vqa'}:FOLDER.")
    path = Path(spec.place)
    listing = list_place(path) if exists(path) else None
    if listing is None:
        raise DataError(
            f"There is no file or folder {spec.place!r}. "
            f"Give a path, or a format and what it reads; the formats are: {', '.join(FORMATS.names())}."
        )
    if len(listing.files) > MAX_FILES:
        raise DataError(
            f"{spec.place} holds {len(listing.files):,} files that may be tables of questions; at most {MAX_FILES:,} "
            "are read. Join them, for example into one .jsonl with a line for each question, or name a folder below it."
        )
    if exists(path / "exam.json"):
        raise DataError(
            f"{spec.place} is the folder of a run, not a data set: its tables hold what was asked and answered. Open "
            "it with pfungst.core.Run.open or `pfungst show`, or name the data set that its exam.json names."
        )
    companions = listing
    if path.is_file():
        companions = list_around(path)
        companions.files = list(dict.fromkeys([*listing.files, *companions.files]))
    return listing, companions, named or detect(listing, spec.place)


def detect(listing: Listing, place: str) -> Format:
    """The format that claims the files most surely; of equally sure ones the first registered."""
    formats = list(_loadable())
    if listing.saved:
        return get_format("hf")
    best, sure, trouble = None, 0.0, None
    for file in sorted(listing.files)[:MAX_SNIFFED]:
        try:
            head = file.head()
        except DataError as error:
            head, trouble = "", error
        for format_ in formats:
            if format_.endings is not None and file.suffix not in format_.endings:
                continue
            claim = format_.claims(file, head)
            if claim > sure:
                best, sure = format_, claim
    if best is not None:
        return best
    if trouble is not None:
        raise trouble
    names = ", ".join(sorted(file.name for file in listing.files)[:5]) or "no data files"
    raise DataError.at(
        place,
        "",
        f"no known format was recognised (found: {names}).",
        f"Name the format before the path, FORMAT:{place}; the formats are: {', '.join(FORMATS.names())}.",
    )


def _loadable() -> Iterator[Format]:
    for name in [*FORMATS.builtin, *sorted(set(FORMATS.names()) - set(FORMATS.builtin))]:
        try:
            yield get_format(name)
        except PfungstError:
            if name in FORMATS.builtin:
                raise
            # somebody's broken plug-in must not stand in the way of data that does not need it


def collect(format_: Format, job: Job) -> Iterator[Found]:
    """The examples of a job, every id once, no more than wanted.

    An id (or group) of two splits becomes `SPLIT-ID` in the later one.
    """
    ids: dict[str, str] = {}
    groups: dict[str, str] = {}
    contrasts: dict[str, str] = {}
    if job.stop_after == 0:
        return
    said = monotonic()
    for example, file, number in format_.read(job):
        if monotonic() > said + SAID_EVERY:
            said = monotonic()
            log.info("%s: %s questions read; now in %s.", job.place, f"{job.good:,}", file.name if file else job.place)
        split, id_, group, contrast = job.reading, example.id, example.group, example.contrast
        if contrast and contrasts.setdefault(contrast, split) != split:
            contrast = f"{split}-{contrast}"
        if group and groups.setdefault(group, split) != split:
            group = f"{split}-{group}"
        if ids.get(id_, split) != split or (group != example.group and example.group == id_):
            id_ = f"{split}-{id_}"
        if id_ in ids:
            job.bad(file, number, f"the id {id_!r} appears twice.")
            continue
        ids[id_] = split
        job.good += 1
        if (id_, group, contrast) != (example.id, example.group, example.contrast):
            example = replace(example, id=id_, group=group, contrast=contrast)
        if job.text_only and example.image is not None:
            example = replace(example, image=None)
        if _letters_of_others(example.choices):
            job.count(LETTERS)
        if len(example.choices) == 1:
            job.count(ALONE)
        yield example, file, number
        if len(ids) == job.stop_after:
            return


def _letters_of_others(choices: Sequence[str]) -> bool:
    """Whether an option reads like the letter of another one: `B` as the first of A, B and C."""
    for at, choice in enumerate(choices):
        letter = choice.strip(" .:()").upper() if len(choice) < 9 else ""
        if len(letter) == 1 and ascii_uppercase[: len(choices)].find(letter) not in (-1, at):
            return True
    return False


# --- which examples are asked about, and which are one question under several ids -------------------------------------

REPEATED = "repeated questions"
"""Of a data set, in `Dataset.notes`."""
OFTEN = 0.1
"""Share of the questions above which they are told of. Of COCO-QA 2% stand twice, of DAQUAR 3%, by chance."""
ALIKE = 0.9
"""Without names of images, the same words may be about another image: POPE asks the same 80 questions of 500 images.
Only where at least this share of all questions stand there equally often, they are taken as repetitions."""


def select(data: Dataset, limit: int | None = None, only: Sequence[str] = (), open_questions: bool = False) -> Dataset:
    """The first `limit` questions with all their wordings, or the examples of the ids `only`; with `open_questions`
    without the choices they offer.

    What is left remembers the whole data set, from which pools are drawn.
    """
    if open_questions:
        data = replace(data, examples=[replace(example, choices=()) for example in data.examples])
    examples: Sequence[Example] = data.examples
    if only:
        wanted = set(only)
        examples = [example for example in examples if example.id in wanted]
        missing = wanted - {example.id for example in examples}
        if missing:
            raise PfungstError(f"{data.name} has no example with the id {', '.join(sorted(missing))}.")
    if limit is not None:
        if limit < 1:
            raise UsageError(f"--limit must be at least 1, not {limit}.")
        part = data.subset(examples)
        wanted = {example.id for example in part.originals.examples[:limit]}
        wanted |= {wording.id for wordings in part.wordings if wordings[0].id in wanted for wording in wordings}
        examples = [example for example in examples if example.id in wanted]
    return data if examples is data.examples else data.subset(examples)


def select_again(data: Dataset, about: Mapping[str, Any]) -> Dataset:
    """What a run asked about, from what its exam.json says of the data."""
    how = about.get("only") or (), bool(about.get("open", False))
    part, asked = select(data, about.get("limit"), *how), about["examples"]
    if about.get("limit") is None or len(part) <= asked:
        return part
    whole = select(data, None, *how)  # the limit of earlier versions counted every wording
    return whole.subset(whole.examples[:asked])


def joined(examples: Sequence[Example]) -> tuple[Sequence[Example], str]:
    """The examples, those that are the same question in one cluster, and a sentence on them where they are many.

    The same question has the same words, options, right answer and image. Wordings of a question are none of it.
    """
    asked = [_asked(example) if example.group in ("", example.id) else None for example in examples]
    counts = Counter(key for key in asked if key is not None)
    many = {key: count for key, count in counts.items() if count > 1}
    several = sum(many.values())
    if several <= OFTEN * len(examples):
        return examples, ""
    unnamed = Counter(count for (image, *_), count in counts.items() if not image)
    usual, equal = max(unnamed.items(), key=lambda one: one[1], default=(0, 0))
    sure = 1 < usual < unnamed.total() and equal >= ALIKE * unnamed.total()
    first: dict[object, str] = {}
    found = list(examples)
    for at, (example, key) in enumerate(zip(examples, asked, strict=True)):
        if key in many and not example.image_id and (key[0] or sure):
            found[at] = replace(example, repeats=first.setdefault(key, example.id))
    if not first and not any(image for image, *_ in many):
        return examples, ""
    told = (
        f"{several:,} of {len(examples):,} questions are {len(many):,} that stand there several times under other ids."
    )
    if sure:
        return found, (
            f"{told} They name no image and are taken as repetitions: each is one cluster. If they are about different "
            "images, name those: ?image=COLUMN."
        )
    return found, f"{told} Intervals count each image once, but n counts every one of them."


def _asked(example: Example) -> tuple[str, str, str | None, tuple[str, ...]]:
    image = example.image_id
    if not image and example.image is not None:
        try:
            image = example.image.digest
        except BrokenImage:
            image = example.id
    return image, example.question, example.target, example.choices
