"""JSON and lines of text, read piece by piece: the file is never in memory as a whole, and every record has its number.

The published files are one object around one very long list. Each record is decoded by the standard library's C
scanner from a sliding window of text, so that speed is that of `json.load` and memory that of one record.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NoReturn

from pfungst.core import DataError
from pfungst.rows.fields import Bad
from pfungst.rows.files import File

CHUNK = 1 << 18
MAX_RECORD = 64 << 20
"""Characters of one record, or of one line; more is taken for damage."""

_DECODER = json.JSONDecoder()
_SCAN: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]
_SPACE = re.compile(r"[ \t\n\r]*")
_LONGEST_TOKEN = 16
"""Characters that may be missing at the end of a window before a literal or an escape can be judged."""
_LONGEST_TAIL = 3
"""A number near the end of a window may go on behind it: of `1.5e+7` cut before the 7, `1.5` is read and `e+` left."""


def _not_utf16(data: bytes, label: str) -> bytes:
    """The beginning of a file; refused where it is UTF-16."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError.at(label, "", "the file is UTF-16, not UTF-8.", "Save it as UTF-8.")
    return data


# Bytes that are not UTF-8 become lone surrogates, which a text field then refuses: one bad byte spoils one record, not
# the file.


def lines_and_ends(file: File) -> Iterator[tuple[str, int]]:
    """The lines without their ends and without a byte order mark, each with the byte behind it."""
    number = end = 0
    with file.open() as stream:
        while data := stream.readline(MAX_RECORD + 1):
            number += 1
            if len(data) > MAX_RECORD:
                raise DataError.at(file.label, f"line {number}", f"it is longer than {MAX_RECORD:,} characters.")
            end += len(data)
            if number == 1:
                data = _not_utf16(data, file.label).removeprefix(codecs.BOM_UTF8)
            yield data.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r"), end


def lines(file: File) -> Iterator[str]:
    """The lines of a text file."""
    return (line for line, _ in lines_and_ends(file))


def json_line(line: str) -> Any:
    """The value in a line; a `Bad` where the line is not JSON."""
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        return Bad(f"this is not JSON: {error.msg} at character {error.pos + 1}.")
    except RecursionError:
        return Bad("lists or objects are nested too deeply.")
    except ValueError as error:  # an integer of thousands of digits
        return Bad(f"the line cannot be read: {error}.")


def json_lines(file: File) -> Iterator[tuple[int, Any]]:
    """(line number, value or `Bad`) of every line that is not blank."""
    return ((number, json_line(line)) for number, line in enumerate(lines(file), 1) if line and not line.isspace())


class JsonRecords:
    """The records of one JSON file.

    >>> reader = JsonRecords(file)
    >>> for record in reader.list("questions"):  # {"info": ..., "questions": [record, ...]}
    ...     print(reader.where, record)

    `header` holds the other small values of the outermost object that were met so far.
    """

    def __init__(self, file: File) -> None:
        self.file = file
        self.header: dict[str, Any] = {}
        self.number: int = 0
        """1-based number of the current record."""
        self._text = ""
        self._at = 0
        self._ended = False
        self._stream: BinaryIO | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")

    @property
    def where(self) -> str:
        """Position of the current record, for messages."""
        return f"record {self.number}"

    def list(self, key: str) -> Iterator[Any]:
        """The items of the list `key` of the outermost object; of the file itself, where that is a list."""
        found = False
        with self.file.open() as self._stream:
            first = self._peek()
            if first == "[":
                found = True
                yield from self._items()
            elif first == "{":
                for name in self._names():
                    if name == key and self._peek() == "[":
                        found = True
                        yield from self._items()
                    else:
                        self._remember(name)
            else:
                self._broken("the file is empty." if not first else "expected a list or an object here.")
            self._nothing_left()
        if not found:
            raise DataError.at(self.file.label, "", f'there is no list "{key}" in it.', "Is this the right file?")

    def members(self) -> Iterator[tuple[str, Any]]:
        """The members of the outermost object, one by one."""
        with self.file.open() as self._stream:
            if self._peek() != "{":
                self._broken("the file is empty." if not self._peek() else "expected an object here.")
            for name in self._names():
                self.number += 1
                yield name, self._value()
            self._nothing_left()

    def _names(self) -> Iterator[str]:
        """Walk an object: yields each name with the window standing before its value, which the caller must take."""
        self._at += 1
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            if self._peek() != '"':
                self._broken("expected a name in double quotes here.")
            name = self._value()
            if self._peek() != ":":
                self._broken("expected a colon here.")
            self._at += 1
            self._peek()
            yield name
            if not self._comma("}"):
                return

    def _items(self) -> Iterator[Any]:
        """Walk a list."""
        self._at += 1
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            self.number += 1
            # the window nearly always holds the whole record and the beginning of the next one: one call of the C
            # scanner and no white space to look for; everything else takes the careful way
            text = self._text
            try:
                value, end = _SCAN(text, self._at)
            except (ValueError, StopIteration, RecursionError):
                end = len(text)
            if end + _LONGEST_TAIL < len(text):
                yield value
                if text.startswith(", {", end):
                    self._at = end + 2
                    continue
                if text.startswith(",{", end):
                    self._at = end + 1
                    continue
                self._at = end
            else:
                yield self._value()
            if not self._comma("]"):
                return
            self._peek()

    def _comma(self, closing: str) -> bool:
        mark = self._peek()
        if mark != "," and mark != closing:
            self._broken("expected a comma here." if mark else "the file ends too early.")
        self._at += 1
        return mark == ","

    def _remember(self, name: str) -> None:
        """Keep a small value of the header; walk over a long list without keeping it."""
        if self._peek() == "[":
            number = self.number
            for _ in self._items():
                pass
            self.number = number
        else:
            self.header[name] = self._value()

    def _peek(self) -> str:
        """The next character that is not white space, empty at the end."""
        while True:
            matched = _SPACE.match(self._text, self._at)
            self._at = matched.end() if matched else self._at
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        """Decode the value that begins in the window, reading on as long as it is not whole."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                unfinished = error.msg.startswith("Unterminated string")
                if (unfinished or error.pos >= len(self._text) - _LONGEST_TOKEN) and self._more():
                    continue
                if self._ended and (unfinished or error.pos >= len(self._text)):
                    self._broken("the file ends in the middle of this record.")
                self._broken(f"this is not JSON: {error.msg}.")
            except RecursionError:
                self._broken("lists or objects are nested too deeply.")
            except ValueError as error:  # an integer of thousands of digits
                self._broken(f"this value cannot be read: {error}.")
            if end + _LONGEST_TAIL >= len(self._text) and self._more():
                continue
            self._at = end
            return value

    def _more(self) -> bool:
        """Slide the window on by at least its pending length, so that a long record costs linear time."""
        if self._ended or self._stream is None:
            return False
        pending = len(self._text) - self._at
        if pending > MAX_RECORD:
            self._broken(f"a record is longer than {MAX_RECORD:,} characters.")
        data = self._stream.read(max(CHUNK, pending))
        self._ended = not data
        text = self._decoder.decode(data if self.number else _not_utf16(data, self.file.label), self._ended)
        if not text:
            return not self._ended
        self._text = self._text[self._at :] + text
        self._at = 0
        return True

    def _nothing_left(self) -> None:
        if self._peek():
            self._broken("expected the end of the data here, but more text follows.")

    def _broken(self, problem: str) -> NoReturn:
        where = self.where if self.number else ""
        raise DataError.at(
            self.file.label, where, problem, "The file is damaged or cut short; download it again or repair it."
        )
