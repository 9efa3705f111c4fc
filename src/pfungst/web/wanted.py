"""Which answers a visitor wants to see: the address of the page, as a condition for the database."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from pfungst.web.reading import SEARCHED

PAGE = 40
"""Answers on a page."""
DEEPEST = 5_000
"""Last page that can be asked for: beyond it a filter finds more than leafing does."""
OUTCOMES = {
    "wrong": ("wrong", "score = 0"),
    "right": ("right", "score > 0"),
    "partly": ("partly right", "score > 0 AND score < 1"),
    "unread": ("could not be read", "unread"),
    "unknown": ("no right answer known", "score IS NULL"),
}
SORTS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "": ("as asked", "", ()),
    "sure": ("most confident first", "ORDER BY confidence DESC NULLS LAST, number", ("confidence",)),
    "unsure": ("least confident first", "ORDER BY confidence ASC NULLS LAST, number", ("confidence",)),
    "loss": ("largest loss first", "ORDER BY clean_score - score DESC NULLS LAST, number", ("score", "clean_score")),
    "long": ("longest reply first", "ORDER BY length(reply) DESC, number", ("reply",)),
}
"""Name to words, SQL, and the columns it needs."""


@dataclass(frozen=True)
class Place:
    """Where an answer stands; an example has one answer there."""

    run: str
    probe: str
    example_id: str
    variant: str


@dataclass(frozen=True)
class Wanted:
    """What the address of a page asks for; an empty field asks for all."""

    probe: str = ""
    variant: str = ""
    outcome: str = ""
    flip: str = ""
    kind: str = ""
    """Answer type."""
    question: str = ""
    """Question type."""
    text: str = ""
    """In the question, the reply, the right answer or the id, upper and lower case alike."""
    tag: str = ""
    sort: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wanted:
        """From the query of an address; what makes no sense asks for nothing."""
        words = {field.name: str(query.get(field.name, ""))[:500] for field in fields(cls) if field.name != "page"}
        number = query.get("page", "1")
        page = int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else 1
        wanted = cls(**words, page=min(max(1, page), DEEPEST))
        return replace(
            wanted,
            outcome=wanted.outcome if wanted.outcome in OUTCOMES else "",
            sort=wanted.sort if wanted.sort in SORTS else "",
        )

    @property
    def order(self) -> str:
        return SORTS[self.sort][1]

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """The columns that the order needs."""
        return SORTS[self.sort][2]

    def query(self, **changes: Any) -> dict[str, str]:
        """The query of the address, with these changes; a change other than of the page leads to the first page."""
        changed = replace(self, **({"page": 1} | changes))
        return {
            name: str(value)
            for name, value in asdict(changed).items()
            if value not in ("", 1 if name == "page" else "")
        }


def condition(wanted: Wanted) -> tuple[str, list[Any]]:
    """An SQL condition with marks for the values: nothing a visitor writes becomes SQL.

    `@asked` and the like stand for the tables of distinct texts that a run has, see `Index`.
    """
    parts, values = ["true"], []
    columns = {"probe": wanted.probe, "variant": wanted.variant, "flip": wanted.flip, "answer_type": wanted.kind,
               "question_type": wanted.question}  # fmt: skip
    for column, value in columns.items():
        if value:
            parts.append(f"{column} = ?")
            values.append(value)
    if wanted.outcome:
        parts.append(f"({OUTCOMES[wanted.outcome][1]})")
    for word in wanted.text.lower().split('"') if '"' in wanted.text else [wanted.text.lower()]:
        if word.strip():
            found = "{0} IN (SELECT hash FROM @{0} WHERE contains(text, ?))"
            parts.append(f"({' OR '.join(found.format(column) for column in SEARCHED)})")
            values += [word.strip()] * len(SEARCHED)
    return " AND ".join(parts), values


def is_right(score: float | None) -> bool | None:
    """Right means a score above 0, as in every count of flips; None where the truth is unknown."""
    return None if score is None or math.isnan(score) else score > 0
