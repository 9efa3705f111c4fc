"""What a question template is, once read and checked.

A template is one family of questions: a program with open places (nodes and the parameters they set), constraints on
how these may be filled, and several phrasings of the question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pfungst.world.programs import FUNCTIONS, Signature

TRAIN, HELDOUT = "train", "heldout"
SPLITS = (TRAIN, HELDOUT)

DESCRIPTION = ("size", "color", "material", "shape")
"""The four attributes of a described object, in the order in which templates and English name them."""

COMPOSITES: Mapping[str, Signature] = {
    "filter": Signature(("objects",), DESCRIPTION, "objects"),
    "filter_unique": Signature(("objects",), DESCRIPTION, "object"),
    "filter_count": Signature(("objects",), DESCRIPTION, "integer"),
    "filter_exist": Signature(("objects",), DESCRIPTION, "bool"),
    "relate_filter": Signature(("object",), ("relation", *DESCRIPTION), "objects"),
    "relate_filter_unique": Signature(("object",), ("relation", *DESCRIPTION), "object"),
    "relate_filter_count": Signature(("object",), ("relation", *DESCRIPTION), "integer"),
    "relate_filter_exist": Signature(("object",), ("relation", *DESCRIPTION), "bool"),
}
"""Nodes that only templates have: several functions of a program in one."""

NODES: Mapping[str, Signature] = {**FUNCTIONS, **COMPOSITES}


@dataclass(frozen=True, slots=True)
class Phrasing:
    """One way to word the questions of a family."""

    id: str
    """`KIND/FAMILY/NUMBER`, stable as long as the template files are."""
    text: str
    """With parameters in angle brackets and words that may be left out in square brackets."""
    split: str
    """`train`, or `heldout`: kept back to measure what unseen wording does to a player."""


@dataclass(frozen=True, slots=True)
class TemplateNode:
    """One node of the open program."""

    type: str
    inputs: tuple[int, ...] = ()
    params: tuple[str, ...] = ()
    """The parameters it sets, in the order of its signature."""

    @property
    def signature(self) -> Signature:
        return NODES[self.type]

    @property
    def composite(self) -> bool:
        return self.type in COMPOSITES


@dataclass(frozen=True, slots=True)
class Constraint:
    """What an instance must satisfy besides being answerable.

    - `NULL` (one parameter): it stays unsaid, as the question asks for it
    - `OUT_NEQ` (two nodes): their outputs differ
    - `NEQ` (two parameters): their values differ
    - `APART` (two nodes): neither description contains the other, as in "more cubes than red cubes", whose answer
      needs no image
    """

    type: str
    params: tuple[str | int, ...]


@dataclass(frozen=True)
class Template:
    """One family of questions."""

    file: str
    """Name of the file it stands in."""
    index: int
    """Its place in that file, the published `question_family_index`."""
    nodes: tuple[TemplateNode, ...]
    phrasings: tuple[Phrasing, ...]
    params: Mapping[str, str]
    """Kind of every parameter: `size`, `color`, `material`, `shape` or `relation`."""
    constraints: tuple[Constraint, ...] = ()

    @property
    def kind(self) -> str:
        """The published kind of question: `zero_hop`, `comparison` ..."""
        return self.file.removesuffix(".json")

    @property
    def key(self) -> tuple[str, int]:
        return self.file, self.index

    @property
    def answer_kind(self) -> str:
        """`bool`, `integer` or an attribute."""
        return self.nodes[-1].signature.output

    @cached_property
    def nulls(self) -> frozenset[str]:
        """Parameters that must stay unsaid."""
        return frozenset(str(c.params[0]) for c in self.constraints if c.type == "NULL")

    def of_split(self, split: str) -> tuple[Phrasing, ...]:
        return tuple(one for one in self.phrasings if one.split == split)


@dataclass(frozen=True)
class Synonyms:
    """The words for every value, by split. A value that is not listed is said as it is.

    A word that starts with `+` follows its noun: `+made of metal` gives "a small cube made of metal".
    """

    train: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    heldout: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, value: str, split: str) -> tuple[str, ...]:
        """Words a phrasing of this split may use: held-out phrasings use those of both splits."""
        known = self.train.get(value, (value,))
        return known if split == TRAIN else known + self.heldout.get(value, ())


@dataclass(frozen=True)
class TemplateSet:
    """All families, with the words to say them in."""

    templates: tuple[Template, ...]
    synonyms: Synonyms

    @cached_property
    def fingerprint(self) -> str:
        """Changes whenever a question made from it may change."""
        content = [
            [t.file, t.index, [[p.text, p.split] for p in t.phrasings], [[n.type, n.inputs, n.params] for n in t.nodes],
             [[c.type, c.params] for c in t.constraints]] for t in self.templates
        ]  # fmt: skip
        words = [{k: list(v) for k, v in words.items()} for words in (self.synonyms.train, self.synonyms.heldout)]
        return hashlib.sha256(json.dumps([content, words], sort_keys=True).encode()).hexdigest()

    @cached_property
    def by_key(self) -> Mapping[tuple[str, int], Template]:
        return {template.key: template for template in self.templates}

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(template.kind for template in self.templates))

    def __len__(self) -> int:
        return len(self.templates)
