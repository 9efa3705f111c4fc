"""An item: what a worker sees and is asked. Every kind of study describes its items in these words, so that there is
one page, one check of what comes back, and one table."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pfungst.core import PfungstError
from pfungst.core.files import storable
from pfungst.core.settings import restored

ITEM, TRAINING, CHECK = "item", "training", "check"
"""Roles: what counts, what is practised with feedback before, what shows whether somebody is reading."""
LONGEST = 300
"""Characters of a text that a worker writes."""


@dataclass(frozen=True)
class Field:
    """One thing that is asked. Without options it is a text."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...] = ()
    """Value and words of each, in order: 1, 2, 3 ... on the keyboard."""
    listed: bool = False
    """A list to choose from instead of buttons: for many options."""
    when: str = ""
    """`FIELD=VALUE`: asked only if that was chosen."""

    def applies(self, value: Mapping[str, str]) -> bool:
        name, _, wanted = self.when.partition("=")
        return not self.when or value.get(name) == wanted

    def words(self, value: str) -> str:
        return dict(self.options).get(value, value)


@dataclass(frozen=True)
class Content:
    """What the page shows."""

    fields: tuple[Field, ...]
    question: str = ""
    images: tuple[tuple[str, str], ...] = ()
    """Name of the file in the folder `images`, and caption."""
    facts: tuple[tuple[str, str], ...] = ()
    """Title and text: the known answer, the rephrasing, the reply ..."""
    task: str = ""
    """What to do, above the item."""
    explanation: str = ""
    """Shown after a training item."""

    def to_json(self) -> str:
        return storable(json.dumps(asdict(self), ensure_ascii=False))

    @classmethod
    def of(cls, text: str) -> Content:
        found: Content = restored(json.loads(text), cls)
        return found


@dataclass(frozen=True)
class Item:
    """An item before it is in the database."""

    name: str
    """Unique in the study."""
    content: Content
    source: str
    """A worker sees at most one item of a source: one condition of an example, one wording of a question."""
    condition: str = ""
    role: str = ITEM
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the results need to know and no worker sees."""
    gold: Mapping[str, str] = field(default_factory=dict)
    """The right values, of training items and checks."""
    wanted: int | None = None
    """Answers; by default what the study says."""
    stage: int = 1
    author: int | None = None
    """The worker who wrote it, and who may not judge it."""


class BadAnswer(PfungstError):
    """An answer that cannot be taken, with the reason for the worker."""


def read_value(content: Content, given: Mapping[str, Any]) -> dict[str, str]:
    """What a worker sent, checked; BadAnswer with a sentence where something is missing."""
    value: dict[str, str] = {}
    for asked in content.fields:
        if not asked.applies(value):
            continue
        text = given.get(asked.name, "")
        text = _plain(text) if isinstance(text, str) else ""
        if not text:
            raise BadAnswer(f"Please answer this too: {asked.label}")
        if asked.options and text not in dict(asked.options):
            raise BadAnswer(f"This is not one of the options for: {asked.label}")
        if len(text) > LONGEST:
            raise BadAnswer(f"Please use at most {LONGEST} characters: {asked.label}")
        value[asked.name] = text
    return value


def in_words(content: Content, value: Mapping[str, str]) -> str:
    """An answer as the worker said it, for the page that tells what was saved."""
    return "; ".join(one.words(value[one.name]) for one in content.fields if one.name in value)


def is_right(gold: Mapping[str, str], value: Mapping[str, str]) -> bool | None:
    """Whether all that is known was answered right; None where nothing is known."""
    return all(value.get(name) == wanted for name, wanted in gold.items()) if gold else None


def instructed(name: str, fields: tuple[Field, ...], seed: int) -> Item:
    """An attention check: it says itself what to choose. `seed` varies what."""
    gold: dict[str, str] = {}
    told = []
    for number, one in enumerate(fields):
        if one.options and one.applies(gold):
            value, words = one.options[(seed + number) % len(one.options)]
            gold[one.name] = value
            told.append(f"choose “{words}” for “{one.label}”")
    task = f"This item checks that you are reading. Please {' and '.join(told)}."
    return Item(name, Content(fields, task=task), name, role=CHECK, gold=gold)


def _plain(text: str) -> str:
    """One line, without control signs: what is written by strangers is shown to others and put into files."""
    kept = (" " if unicodedata.category(sign)[0] == "Z" or sign in "\t\r\n" else sign for sign in storable(text))
    return " ".join("".join(sign for sign in kept if unicodedata.category(sign) not in ("Cc", "Cf", "Cs")).split())
