"""A damaged answer store: its rows are read page by page, past whatever SQLite needs to find them.

Every row has a checksum, so that nothing is taken for an answer that is none. The layout of a page is that of
https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pfungst.core.errors import PfungstError
from pfungst.core.files import locked
from pfungst.core.store import AnswerStore, checksum, copy_of

STORES = ("answers.sqlite", "judgements.sqlite")
_LEAF = 13
"""First byte of a page with rows of a table."""
_ROW, _REALS = 17, (8, 15)
"""Columns of an answer, and those of them that are real numbers: SQLite keeps 1.0 as the integer 1."""
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Serial type -> bytes."""


@dataclass
class Recovered:
    """What was read of a store."""

    name: str
    damaged: bool
    rows: dict[bytes, tuple[Any, ...]] = field(default_factory=dict)
    """Key -> the other columns of its first answer, without checksum."""
    players: dict[int, str] = field(default_factory=dict)
    from_copy: int = 0
    lost: int = 0
    """Answers that were there, as far as the lists of keys say."""
    cut: bool = False
    """The file is shorter than its header says: the end is missing, and lists of keys with it."""
    kept_as: str = ""
    """Where the damaged file is now."""

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        counts = {"answers": len(self.rows), "from_copy": self.from_copy, "lost": self.lost, "cut": self.cut}
        return {"store": self.name, "damaged": self.damaged, **counts, "kept_as": self.kept_as}

    def __str__(self) -> str:
        if not self.damaged:
            return f"{self.name}: not damaged; all {len(self.rows):,} answers can be read."
        copied = f" ({self.from_copy:,} of them only in the copy)" if self.from_copy else ""
        return (
            f"{self.name}: {len(self.rows):,} answers read{copied}. {self._losses()} The damaged file is kept as "
            f"{self.kept_as}."
        )

    def _losses(self) -> str:
        if self.cut:
            known = f"At least {self.lost:,} are lost" if self.lost else "Some may be lost"
            return f"The end of the file is missing. {known}; the command that asked asks them again."
        return f"{self.lost:,} are lost; the command that asked asks them again." if self.lost else "None is lost."


def recover(run: Path) -> list[Recovered]:
    """Write the stores of a run again, with every answer that can be read in them or in their copies."""
    stores = [run / name for name in STORES if (run / name).exists()]
    if not stores:
        raise PfungstError(f"{run} has no {STORES[0]}: it is no run folder, or nothing was answered.")
    with locked(run):
        return [_recover(path) for path in stores]


def _recover(path: Path) -> Recovered:
    found = Recovered(path.name, damaged=not _whole(path))
    heads = _read(path, found)
    before = len(found.rows)
    if copy_of(path).exists():
        heads |= _read(copy_of(path), found)
    found.from_copy = len(found.rows) - before
    found.lost = len(heads - {key[:8] for key in found.rows})
    found.cut = _Pages(path).cut
    found.damaged |= bool(found.lost or found.from_copy)
    if found.damaged:
        _replace(path, found)
    return found


def _whole(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path)) as db:
            return bool(db.execute("PRAGMA integrity_check").fetchall() == [("ok",)])
    except sqlite3.Error:
        return False


def _read(path: Path, found: Recovered) -> set[bytes]:
    """Add what stands in a file; returns the heads of all keys that it lists."""
    heads: set[bytes] = set()
    numbered: list[tuple[int, tuple[Any, ...]]] = []
    pages = _Pages(path)
    for number, row in pages.rows():
        if len(row) == _ROW and isinstance(row[1], bytes):
            values = tuple(
                float(value) if at in _REALS and isinstance(value, int) else value for at, value in enumerate(row)
            )
            if values[-1] == checksum(values[1:-1]):
                numbered.append((number, values[1:-1]))
        elif len(row) == 2 and isinstance(row[1], str):
            found.players.setdefault(number, row[1])
        elif len(row) == 2 and isinstance(row[1], bytes) and len(row[1]) % 8 == 0:
            heads |= {row[1][at : at + 8] for at in range(0, len(row[1]), 8)}
    for _, values in sorted(numbered, key=lambda item: item[0]):
        found.rows.setdefault(values[0], values[1:])
    return heads


def _replace(path: Path, found: Recovered) -> None:
    kept = path.with_stem(f"{path.stem}-damaged")
    while kept.exists():
        kept = kept.with_stem(f"{kept.stem}-again")
    made = path.with_suffix(".recovered")
    made.unlink(missing_ok=True)
    with AnswerStore(made) as store:
        store.restore(
            [(key, found.players.get(row[0], f"lost player {row[0]}"), *row[1:]) for key, row in found.rows.items()]
        )
    shutil.copy2(path, kept)
    for ending in ("-wal", "-shm"):
        if (beside := Path(f"{path}{ending}")).exists():
            beside.replace(f"{kept}{ending}")
    made.replace(path)
    copy_of(path).unlink(missing_ok=True)  # its rows are in the store now, under other numbers
    found.kept_as = kept.name


class _Pages:
    """The pages of a SQLite file, and those in the log beside it, which are newer."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        size = int.from_bytes(data[16:18], "big")
        self._size = size if size >= 512 and size & (size - 1) == 0 else 4096
        self._pages = {at // self._size + 1: data[at : at + self._size] for at in range(0, len(data), self._size)}
        self._older: list[tuple[int, bytes]] = []
        log = Path(f"{path}-wal")
        frames = log.read_bytes()[32:] if log.exists() else b""
        for at in range(0, len(frames) - self._size - 23, self._size + 24):
            number, page = int.from_bytes(frames[at : at + 4], "big"), frames[at + 24 : at + 24 + self._size]
            if number in self._pages:
                self._older.append((number, self._pages[number]))
            self._pages[number] = page

    @property
    def cut(self) -> bool:
        """Fewer pages than the header counts."""
        whole = sum(len(page) == self._size for page in self._pages.values())
        return whole < int.from_bytes(self._pages.get(1, b"")[28:32], "big")

    def rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """(number, columns) of every row that can be taken apart; what is no row may be among them."""
        for number, page in [*self._older, *self._pages.items()]:
            start = 100 if number == 1 else 0
            if page[start : start + 1] != bytes([_LEAF]):
                continue
            count = int.from_bytes(page[start + 3 : start + 5], "big")
            for at in range(start + 8, min(start + 8 + 2 * count, len(page) - 1), 2):
                try:
                    yield self._row(page, int.from_bytes(page[at : at + 2], "big"))
                except (IndexError, KeyError, ValueError, struct.error):
                    continue  # damaged: what is lost is counted from the lists of keys

    def _row(self, page: bytes, at: int) -> tuple[int, tuple[Any, ...]]:
        length, at = _varint(page, at)
        number, at = _varint(page, at)
        most = self._size - 35
        least = (self._size - 12) * 32 // 255 - 23
        local = length
        if length > most:
            local = least + (length - least) % (self._size - 4)
            local = local if local <= most else least
        payload = page[at : at + local]
        following = int.from_bytes(page[at + local : at + local + 4], "big") if local < length else 0
        parts = [payload]
        known = len(payload)
        while known < length:
            more = self._pages[following]
            parts.append(more[4 : 4 + length - known])
            following, known = int.from_bytes(more[:4], "big"), known + len(parts[-1])
        return number, tuple(_columns(b"".join(parts)))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(9):
        byte = data[at + place]
        if place == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at + place + 1
    raise AssertionError


def _columns(record: bytes) -> Iterator[Any]:
    at, kinds = 0, []
    body, at = _varint(record, at)
    end = body
    while at < end:
        kind, at = _varint(record, at)
        kinds.append(kind)
    for kind in kinds:
        if kind == 0:
            yield None
        elif kind in (8, 9):
            yield kind - 8
        elif kind == 7:
            yield struct.unpack(">d", record[body : body + 8])[0]
            body += 8
        elif kind < 7:
            yield int.from_bytes(record[body : body + _INTEGERS[kind]], "big", signed=True)
            body += _INTEGERS[kind]
        else:
            length = (kind - 12) // 2
            text = record[body : body + length]
            if kind < 12 or len(text) < length:
                raise ValueError("no row")
            yield text.decode() if kind % 2 else text
            body += length
