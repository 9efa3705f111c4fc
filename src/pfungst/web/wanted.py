"""Which answers a visitor wants to see: the address of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

PAGE = 40
"""Answers on a page."""
DEEPEST = 5_000
"""Last page that can be asked for: beyond it a filter finds more than leafing does."""
OUTCOMES = {
    "wrong": "wrong",
    "right": "right",
    "partly": "partly right",
    "unread": "could not be read",
    "unknown": "no right answer known",
}
"""Name to words."""
SORTS = {
    "": "as asked",
    "sure": "most confident first",
    "unsure": "least confident first",
    "loss": "largest loss first",
    "long": "longest reply first",
}
"""Name to words."""


CODED = {"probe": "probe", "variant": "variant", "flip": "flip", "kind": "answer_type", "question": "question_type"}
"""Fields of `Wanted` that ask for one value, and their columns."""
_OUTCOMES = {
    "wrong": "score = 0", "right": "score > 0", "partly": "score > 0 AND score < 1", "unread": "unread",
    "unknown": "score IS NULL",
}  # fmt: skip
_SEARCHED = ("question", "reply", "answer", "target", "example_id")


@dataclass(frozen=True)
class Place:
    """Where an answer stands; an example has one answer there."""

    run: str
    probe: str
    example_id: str
    variant: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Place:
        return cls(row["run"], row["probe"], row["example_id"], row["variant"])


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
    def words(self) -> list[str]:
        """What is looked for in texts, in small letters: the text as a whole, or the parts that quotes make of it."""
        text = self.text.lower()
        return [word.strip() for word in (text.split('"') if '"' in text else [text]) if word.strip()]

    @property
    def conditions(self) -> list[tuple[str, list[Any]]]:
        """SQL over the columns of a table of trials, and the values for its marks."""
        found: list[tuple[str, list[Any]]] = [
            (f"{column} = ?", [getattr(self, field)]) for field, column in CODED.items() if getattr(self, field)
        ]
        if self.outcome:
            found.append((_OUTCOMES[self.outcome], []))
        holds = " OR ".join(f"contains(lower({column}), ?)" for column in _SEARCHED)
        return found + [(holds, [word] * len(_SEARCHED)) for word in self.words]

    def query(self, **changes: Any) -> dict[str, str]:
        """The query of the address, with these changes; a change other than of the page leads to the first page."""
        changed = replace(self, **({"page": 1} | changes))
        return {
            name: str(value)
            for name, value in asdict(changed).items()
            if value not in ("", 1 if name == "page" else "")
        }


def is_right(score: float | None) -> bool | None:
    """Right means a score above 0, as in every count of flips; None where the truth is unknown."""
    return None if score is None or math.isnan(score) else score > 0
