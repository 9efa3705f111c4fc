"""What a log says, one record per reply and what stands around them, and what a format must be able to read of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pfungst.core import Answer
from pfungst.rows.source import Source

_TAKE = re.compile(r", epoch [0-9]+$")


def take_name(condition: str, take: int) -> str:
    """The name of a repetition of all questions under a condition; the first is called like the condition."""
    return f"{condition}, epoch {take + 1}" if take else condition


def condition_of(name: str) -> str:
    """The condition that a `take_name` belongs to."""
    return _TAKE.sub("", name)


@dataclass(frozen=True, slots=True)
class Record:
    """One reply of a model, with all that its file says about it."""

    id: str
    """Of the question, as text; empty where the file has none."""
    reply: str | None
    """As it was said; None where the request failed: missing, which is not wrong."""
    where: str = ""
    """Position in the file: `line 3`, `row 3`, `record 3`, or the name of a member."""
    question: str = ""
    """The bare question."""
    prompt: str = ""
    """What was sent, with everything around the question."""
    choices: tuple[str, ...] = ()
    """Texts of the options, without letters."""
    answers: tuple[str, ...] = ()
    """What people answered."""
    target: str | None = None
    """The right answer; of a multiple choice its text, not its letter."""
    image_id: str = ""
    answer_type: str = ""
    question_type: str = ""
    """The file's category."""
    confidence: float | None = None
    scores: tuple[float, ...] | None = None
    """One per choice."""
    thinking: str = ""
    stop: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    take: int = 0
    """Counts repetitions of one question (epochs)."""
    group: str = ""
    """Id of the question that this one varies, where the file says so (circular evaluation)."""
    condition: str = ""
    """How it varies it: `rotation 1`."""
    row_number: bool = False
    """The id is a row number of the data set, counted from 0, and not a name."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """What the other tool made of the reply, under its own names."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Further columns that were asked for, as text."""

    @property
    def asked(self) -> str:
        """What was asked, as far as the file knows: the prompt, else the question."""
        return self.prompt or self.question

    def answer(self) -> Answer:
        """The reply as a player gives it. Only for records that have one."""
        return Answer(
            self.reply or "",
            self.confidence,
            self.scores,
            thinking=self.thinking,
            stop=self.stop,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            seconds=self.seconds,
        )


@dataclass(frozen=True)
class About:
    """What a format reads beside the records."""

    model: str = ""
    data: str = ""
    results: Mapping[str, Any] = field(default_factory=dict)
    """The other tool's own totals, where they were found."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Log:
    """A file of replies."""

    path: str
    format: str
    records: tuple[Record, ...]
    fingerprint: str
    """Of the bytes of the file and the columns that were named."""
    about: About = About()
    notes: tuple[str, ...] = ()
    """What a reader should know, in sentences."""

    @property
    def failed(self) -> int:
        """Requests that failed: records without a reply."""
        return sum(record.reply is None for record in self.records)


class LogFormat:
    """Reads one tool's answer files. A new format is one new class and one line in `pfungst.logs.LOGS`; third parties
    declare an entry point in the group `pfungst.logs`. Where columns do not tell the format, `claims` is written."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    """For messages and lists."""
    options: ClassVar[type | None] = None
    """A dataclass of what may stand behind the question mark; None for nothing."""
    has: ClassVar[frozenset[str]] = frozenset()
    """Columns that all its files have."""
    either: ClassVar[frozenset[str]] = frozenset()
    """Columns of which its files have at least one; empty if that does not matter."""
    sure: ClassVar[float] = 0.0
    """How surely a file with these columns is of this format, 0 to 1."""
    repeats: ClassVar[str] = "refused"
    """A second, different reply to one question is `refused`, or the `last` counts, where a tool appends lines."""

    def __init__(self, **options: Any) -> None:
        self.set = options
        """The options that were given."""

    def claims(self, source: Source) -> float:
        """How surely this is a file of this format, 0 to 1."""
        columns = set(source.columns)
        return self.sure if self.has <= columns and (not self.either or columns & self.either) else 0.0

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record | Sequence[Record] | None:
        """The record of a row, or several where it holds several replies to a question; None for a row that is not a
        reply. Raises `pfungst.rows.fields.Bad`."""
        raise NotImplementedError

    def about(self, source: Source) -> About:
        """What the file, or one beside it, says about the whole."""
        return About()

    def finish(self, records: Sequence[Record]) -> Sequence[Record]:
        """What can be said only when all records are known."""
        return records
