"""One load: what a format is given, and what it hands back."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pfungst.core import DataError, Example, Image
from pfungst.data.images import ImageFinder
from pfungst.rows.fields import Bad
from pfungst.rows.files import File
from pfungst.rows.json_records import JsonRecords

T = TypeVar("T")
Found = tuple[Example, File | None, int]
"""An example, the file it came from, and its 1-based number there."""


UNREAD = "image column that was not understood"
"""Note of a data set: the column that speaks of images, where no column could be read as one."""
LETTERS = "questions with an option that is the letter of another one (a reply of just that letter stays unread)"
"""Note of a data set: how many questions offer, say, `A` as the text of their second option."""
FEW = "questions with two or three answers, too few for full marks by `vqa` (`any` counts each of them as right)"
"""Note of a data set, of those that are judged by VQA accuracy."""
ALONE = "questions with a single choice, which every player gets right"
"""Note of a data set: how many questions leave nothing to choose."""
HOPELESS = 100_000
"""So many bad records before the first good one end a load even where bad ones are skipped."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that cannot be used, and where it stands."""

    file: str
    where: str
    """Record, row or line number."""
    problem: str

    def __str__(self) -> str:
        return f"{self.file}, {self.where}: {self.problem}"


@dataclass
class Job:
    """What one load asks of a format. A format reads `files`, and may look for partners among `companions`."""

    place: str
    """The specification without format, split and options: a path, or whatever the format understands."""
    files: list[File]
    companions: list[File]
    images: ImageFinder
    split: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those that were given, with the types of `Format.options`."""
    limit: int | None = None
    """No more examples than this are needed; None also where bad records are skipped and more must be read."""
    stop_after: int | None = None
    """How many examples are wanted."""
    skip_bad: bool = False
    on_bad: Callable[[BadRecord], None] | None = None
    name: str = ""
    metric: str = ""
    text_only: bool = False
    """The user said that no images are wanted."""
    image_column: str = ""
    """The column of a table that names or holds the images."""
    unread_columns: dict[str, None] = field(default_factory=dict)
    """Columns of a table that nothing was read from."""
    reading: str = ""
    """The split that the examples handed on at the moment belong to."""
    notes: dict[str, Any] = field(default_factory=dict)
    skipped: int = 0
    good: int = 0
    """Examples handed on so far."""
    shared: dict[Any, Any] = field(default_factory=dict)
    """Texts that come again and again, and tuples of them, kept once."""

    def bad(self, file: File | None, where: str | int, problem: Bad | str) -> None:
        """Report a bad record: stops the load with one sentence, or counts it where the user said to go on."""
        label, place = self.place_of(file, where)
        if not self.skip_bad:
            raise DataError.at(
                label, place, str(problem), "Fix it, or skip bad records (--skip-bad, or DATA?skip_bad=yes)."
            )
        self.skipped += 1
        if self.skipped >= HOPELESS and not self.good:
            raise DataError.at(
                label,
                place,
                f"none of the first {HOPELESS:,} records can be used: {problem}",
                "Is it in this format?",
            )
        if self.on_bad is not None:
            self.on_bad(BadRecord(label, place, str(problem)))

    def place_of(self, file: File | None, where: str | int) -> tuple[str, str]:
        """How messages name the file and the position of a record."""
        unit = file.unit if file else "record"
        return file.label if file else self.place, f"{unit} {where}" if isinstance(where, int) else where

    def share(self, thing: T) -> T:
        """One copy of a text, or of a tuple of them, that comes again and again; give it checked texts only."""
        shared: T = self.shared.setdefault(thing, thing)
        return shared

    def label(self, of: Mapping[str, Any], key: str, check: Callable[[Mapping[str, Any], str], str]) -> str:
        """A field that has few different values, checked once for each of them."""
        try:
            shared: str = self.shared[of[key]]
        except (KeyError, TypeError):
            return self.share(check(of, key))
        return shared

    def count(self, note: str, by: int = 1) -> None:
        """Count something worth telling in the notes of the data set."""
        self.notes[note] = self.notes.get(note, 0) + by

    def choose(self, available: Sequence[str]) -> list[str]:
        """The splits to read, out of those that are there; the notes say which were taken and which were left."""
        taken = choose_splits(available, self.split, self.place)
        known = set(taken)
        left = [split for split in available if split not in known]
        if any(available):
            self.notes["splits"] = {"taken": taken, "left": left}
        return taken

    def in_turn(self, splits: Sequence[str]) -> Iterator[str]:
        """The splits one after the other, each marked as the one that is being read."""
        for self.reading in splits:
            yield self.reading

    def sorted(self, suffix: str) -> list[File]:
        """The files with this ending, plain copies first."""
        return sorted(file for file in self.files if file.suffix == suffix)

    def made(
        self, id_: str, question: str, target: str | None, image_id: str, image: Image | None, **more: Any
    ) -> Example:
        """The example of a question with one right answer, or none; what comes again and again is kept once."""
        target = None if target is None else self.share(target)
        answers = () if target is None else self.share((target,))
        return Example(
            id=id_,
            question=question,
            image=image,
            image_id=self.share(image_id),
            answers=answers,
            target=target,
            **more,
        )

    def example(self, at: tuple[File, int], make: Callable[..., Example], *of: Any) -> Iterator[Found]:
        """The example that `make(*of)` gives for the record of this number; none where that is bad."""
        file, number = at
        try:
            yield make(*of), file, number
        except Bad as problem:
            self.bad(file, number, problem)

    def each(self, reader: JsonRecords, key: str, make: Callable[[Any], T]) -> Iterator[T]:
        """What `make` gives for every record of the list `key`; bad records are reported and left out."""
        for value in reader.list(key):
            try:
                made = make(value)
            except Bad as problem:
                self.bad(reader.file, reader.where, problem)
            else:
                yield made


@dataclass(frozen=True)
class NoOptions:
    """What a format without options understands."""


class Format(ABC):
    """A way data sets are published. One file defines it, one line of `formats/__init__.py` registers it; third
    parties register theirs under the entry point group `pfungst.datasets`."""

    name: str
    title: str
    expects: str
    """The files it reads, for messages and documentation."""
    metric: str = "exact"
    endings: frozenset[str] | None = None
    """The endings of the files it may claim (`.json`); None where a file may be called anything."""
    reads_files: bool = True
    """False where the specification names something other than a path."""

    @property
    def options(self) -> Callable[..., Any]:
        """The options it understands (`SPEC?name=value`): a dataclass, whose fields say names and types."""
        return NoOptions

    def claims(self, file: File, head: str) -> float:
        """How sure it is, from 0 to 1, that a file (and its first 64 KiB) is of this format."""
        return 0.0

    @abstractmethod
    def read(self, job: Job) -> Iterator[Found]:
        """The examples in published order. Bad records go to `job.bad`; a damaged file raises DataError."""

    def nothing(self, job: Job, problem: str) -> DataError:
        """What is raised where none of its files are there."""
        return DataError.at(job.place, "", problem, f"Expected: {self.expects}.")

    def chosen(
        self, job: Job, splits: Mapping[str, T], problem: str, named: Callable[[str], str] = str
    ) -> Iterator[tuple[str, T]]:
        """The splits to read out of those that are there, one after the other, after which the data set is named."""
        if not splits:
            raise self.nothing(job, problem)
        chosen = job.choose(list(splits))
        job.name = " ".join(filter(None, [self.name, *map(named, chosen)]))
        for split in job.in_turn(chosen):
            yield split, splits[split]


_YEAR = re.compile(r"[-_]?(19|20)\d\d$")
_SPLIT = re.compile(
    r"(?:^|[^a-z])((?:train|valid(?:ation)?|valrep|val|test-?dev|test|eval|dev)(?:(?:19|20)\d\d)?)(?![a-z])"
)
_ALIASES = {
    "validation": "val",
    "valid": "val",
    "valrep": "val",
    "testdev": "test-dev",
    "training": "train",
    "testing": "test",
}
_BEST = ("val", "eval", "dev", "test-dev", "test")
"""An exam wants held-out questions with answers: these first, training questions last."""


def canonical(split: str) -> str:
    """`val2014`, `validation` and `val` are one split."""
    bare = _YEAR.sub("", split.strip().lower())
    return _ALIASES.get(bare, bare)


def choose_splits(available: Sequence[str], asked: str | None, place: str) -> list[str]:
    """The splits to read: those asked for (`train+val`; `all` for every one), else the one best fit for an exam."""
    if not available:
        return []
    if asked == "all":
        return list(available)
    if asked is None:
        return [min(available, key=_worth)]
    names = [asked] if asked in available else asked.split("+")
    return list(dict.fromkeys(_named_split(available, name, place) for name in names))


def _named_split(available: Sequence[str], asked: str, place: str) -> str:
    exact = [split for split in available if split == asked]
    alike = [split for split in available if canonical(split) == canonical(asked)]
    # "eval" is what some releases call their only held-out split, be it validation or test
    held_out = [split for split in available if canonical(split) in ("eval", "val", "test")]
    stands_in = canonical(asked) in ("eval", "val", "test") and "eval" in (canonical(asked), *map(canonical, held_out))
    chosen = exact or alike or (held_out if stands_in and len(held_out) == 1 else [])
    if not chosen:
        there = ", ".join(split or "(one without a name)" for split in available)
        raise DataError.at(place, "", f"there is no split {asked!r} in it.", f"There are: {there}.")
    return chosen[0]


def _worth(split: str) -> int:
    bare = canonical(split)
    if bare in _BEST:
        return _BEST.index(bare)
    return len(_BEST) + (bare == "train")


def split_of(text: str) -> str:
    """The split a file or folder name speaks of (`v2_mscoco_val2014_annotations` -> `val2014`), empty if none."""
    found = _SPLIT.search(text.lower())
    return found[1] if found else ""
