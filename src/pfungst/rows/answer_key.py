"""How a data set names the right one of several options: one reading for all its rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any, Literal

from pfungst.core import DataError
from pfungst.rows.cells import LETTER
from pfungst.rows.fields import Bad, answer_text, shown

AnswerIs = Literal["", "text", "letter", "index"]
READINGS = {"text": "the text of an option", "letter": "its letter", "index": "its number, counted from 0"}
SAID = "right answers are read as"
"""Note of a data set: which of the readings it was."""
_NUMBER = re.compile(r"[0-9]{1,3}")


def readings(answer: Any, choices: Sequence[str], numbers: bool = False) -> Mapping[str, str]:
    """The option that an answer names, by the ways to read it; those that name none are left out.

    numbers: the options are numbers, so that an answer which is a number may be one of them.
    """
    count = answer if isinstance(answer, int) and not isinstance(answer, bool) else None
    said = answer_text(answer, "the right answer")
    meant: dict[str, str] = {}
    alike = [choice for choice in choices if choice.strip().casefold() == said.strip().casefold()]
    if count is None or numbers:
        if said in choices or len(alike) == 1:
            meant["text"] = said if said in choices else alike[0]
        letter = LETTER.fullmatch(said)
        if letter and (place := ascii_uppercase.index(letter[1].upper())) < len(choices):
            meant["letter"] = choices[place]
    if count is None and _NUMBER.fullmatch(said.strip()):
        count = int(said)
    if count is not None and 0 <= count < len(choices):
        meant["index"] = choices[count]
    return meant


class AnswerKey:
    """Decides from the rows how right answers are to be read. A reading that fits every row is the data set's; a row
    that two readings understand differently waits until another row rules one of them out.

    given: the reading that the user named.
    """

    def __init__(self, given: AnswerIs = "") -> None:
        self._given = given
        self._fitting = {given} if given else set(READINGS)
        """The readings that fit all rows so far; none where rows differ."""
        self._ways: set[str] = set()
        """All readings that fit some row."""
        self._open: tuple[str, str, Mapping[str, str]] | None = None
        """The first row whose answer depends on the reading: file, position, what it may be."""

    def meant(self, answer: Any, choices: Sequence[str], numbers: bool = False) -> Mapping[str, str]:
        """As `readings`, of the one that was named. Raises `Bad` where the answer names no option."""
        meant = readings(answer, choices, numbers)
        if self._given:
            if self._given not in meant:
                way = f"{READINGS[self._given]} (?answer_is={self._given})"
                raise Bad(f"the right answer {shown(answer)} is not {way}: {shown(list(choices))}.")
            return {self._given: meant[self._given]}
        if not meant and _NUMBER.fullmatch(str(answer)):
            raise Bad(f"the right answer is choice {answer}, but there are {len(choices)} choices, counted from 0.")
        if not meant:
            raise Bad(f"the right answer {shown(answer)} is not among its choices {shown(list(choices))}.")
        return meant

    def add(self, meant: Mapping[str, str], file: str, where: str) -> None:
        """Take a row into account. Raises DataError where rows are read in different ways and one of them is open."""
        self._ways |= set(meant)
        self._fitting &= set(meant)
        if self._open is None and len(set(meant.values())) > 1:
            self._open = file, where, meant
        if not self._fitting and self._open is not None:
            self.refuse(*self._open)

    def decides(self, meant: Mapping[str, str]) -> bool:
        """Whether the readings that fit understand an answer alike."""
        return len(self._options(meant)) < 2

    def right(self, meant: Mapping[str, str]) -> str:
        """The right option, where that is decided."""
        (option,) = self._options(meant)
        return option

    def _options(self, meant: Mapping[str, str]) -> set[str]:
        return {option for reading, option in meant.items() if reading in (self._fitting or meant)}

    def refuse(self, file: str, where: str, meant: Mapping[str, str]) -> None:
        """Raise DataError about a row that stays open."""
        ways = ", or ".join(
            f"{shown(option)} (?answer_is={reading}: {READINGS[reading]})" for reading, option in meant.items()
        )
        why = "no other row decides it" if self._fitting else "rows are read in different ways"
        raise DataError.at(file, where, f"the right answer may be {ways}; {why}.", "Say which it is for all rows.")

    @property
    def sentence(self) -> str:
        """How the answers are read; empty where they are plainly texts."""
        if self._ways <= {"text"}:
            return ""
        if not self._fitting:
            return "what each row says: " + ", ".join(READINGS[way] for way in READINGS if way in self._ways)
        return next(READINGS[way] for way in READINGS if way in self._fitting)
