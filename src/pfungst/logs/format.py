"""What a format of answer files must be able to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pfungst.logs.records import About, Record
from pfungst.logs.source import Source


class LogFormat:
    """Reads one tool's answer files. A new format is one new file and one line in `pfungst.logs.LOGS`; third parties
    declare an entry point in the group `pfungst.logs`."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    """For messages and lists."""
    options: ClassVar[type | None] = None
    """A dataclass of what may stand behind the question mark; None for nothing."""
    repeats: ClassVar[str] = "refused"
    """A second, different reply to one question is `refused`, or the `last` counts, where a tool appends lines."""

    def __init__(self, **options: Any) -> None:
        self.set = options
        """The options that were given."""

    def claims(self, source: Source) -> float:
        """How surely this is a file of this format, 0 to 1."""
        raise NotImplementedError

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record | None:
        """The record of a row; None for a row that is not a reply. Raises `pfungst.data.fields.Bad`."""
        raise NotImplementedError

    def about(self, source: Source) -> About:
        """What the file, or one beside it, says about the whole."""
        return About()

    def finish(self, records: Sequence[Record]) -> Sequence[Record]:
        """What can be said only when all records are known."""
        return records
