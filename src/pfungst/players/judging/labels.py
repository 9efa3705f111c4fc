"""What people say about the same answers: a table with an id and right or wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pfungst.core import DataError
from pfungst.rows import cells
from pfungst.rows.fields import Bad
from pfungst.rows.source import open_source

COLUMNS = {
    "id": ("id", "example_id", "question_id"),
    "probe": ("probe",),
    "condition": ("condition", "variant"),
    "right": ("right", "human", "label", "correct"),
    "reply": ("reply", "raw"),
}
"""What is read, and the columns it is read from: also those that `pfungst export --to csv` writes."""
_RIGHT = frozenset(("1", "1.0", "true", "yes", "right", "correct", "y", "t"))
_WRONG = frozenset(("0", "0.0", "false", "no", "wrong", "incorrect", "n", "f"))


@dataclass(frozen=True, slots=True)
class Label:
    """One answer, labelled by a person."""

    id: str
    right: bool
    probe: str = ""
    """Empty: any probe."""
    condition: str = ""
    """Empty: the clean one."""
    reply: str | None = None
    """The reply that the person saw, where the file says."""

    def fits(self, reply: str) -> bool:
        """Whether the person saw this reply. A spreadsheet may have changed its signs, not its words."""
        return self.reply is None or _bare(self.reply) == _bare(reply)


def read_labels(path: Path) -> dict[str, list[Label]]:
    """The labels by id. Rows without a label are left out: a person may have labelled some rows of a table."""
    if not path.is_file():
        raise DataError.at(path, "", "there is no such label file.")
    source = open_source(path)
    for wanted in ("id", "right"):
        if not set(COLUMNS[wanted]) & set(source.columns):
            raise DataError.at(
                path, "", f"there is no column {' or '.join(COLUMNS[wanted])}; the columns are "
                f"{', '.join(source.columns[:30])}.", "Labels need an id and right or wrong."
            )  # fmt: skip
    found: dict[str, list[Label]] = {}
    for label in _labels(path, source.rows):
        found.setdefault(label.id, []).append(label)
    if not found:
        raise DataError.at(path, "", f"no row has a label in the column {COLUMNS['right'][0]}.")
    return found


def _labels(path: Path, rows: Any) -> Iterator[Label]:
    for where, row in rows:
        value = cells.first(row, COLUMNS["right"])
        try:
            word = cells.optional(value, "the label").strip().casefold()
            if not word:
                continue
            if word not in _RIGHT | _WRONG:
                raise Bad(f"the label {word!r} is neither right nor wrong (1 and 0 will do).")
            # In an exported table a text that a spreadsheet would run has an apostrophe in front.
            id_ = re.sub(r"^'(?=[=+@-])", "", cells.identifier(cells.first(row, COLUMNS["id"]), "id"))
            texts = {name: _text(row, name) for name in ("probe", "condition", "reply")}
        except Bad as problem:
            raise DataError.at(path, where, str(problem)) from None
        yield Label(id_, word in _RIGHT, texts["probe"] or "", texts["condition"] or "", texts["reply"])


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = cells.first(row, COLUMNS[name])
    return None if value is None else cells.text(value, name)


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()
