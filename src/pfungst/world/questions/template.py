"""What a question template is, once read and checked, and how a phrasing of it becomes a sentence.

A template is one family of questions: a program with open places (nodes and the parameters they set), constraints on
how these may be filled, and several phrasings of the question.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from random import Random
from typing import NamedTuple

from pfungst.world.programs import FUNCTIONS, Signature

TRAIN, HELDOUT = "train", "heldout"
SPLITS = (TRAIN, HELDOUT)
FORMS = "forms"
"""New sentences made of nothing but words of the train phrasings: what a player loses there it loses by the form."""

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
    """`train`, or kept back to measure what unseen wording does to a player: `heldout`, in new words, too; `forms`."""


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
        return known if split != HELDOUT else known + self.heldout.get(value, ())


@dataclass(frozen=True)
class TemplateSet:
    """All families, with the words to say them in."""

    templates: tuple[Template, ...]
    synonyms: Synonyms

    @cached_property
    def fingerprint(self) -> str:
        """Changes whenever a question made from it may change. Worlds are made without `forms`."""
        content = [
            [t.file, t.index, [[p.text, p.split] for p in t.phrasings if p.split != FORMS],
             [[n.type, n.inputs, n.params] for n in t.nodes], [[c.type, c.params] for c in t.constraints]]
            for t in self.templates
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


MIXED = "mixed"
SOURCES = (*SPLITS, MIXED)
"""Where rephrasings may be drawn from."""

Values = Mapping[str, str | None]
"""Parameter -> value; None where the question does not say it."""

_OPTIONAL = re.compile(r"\[([^\]]*)\]")
_PLACE = re.compile(r"(<\w+>)(s\b)?")
_ARTICLE = re.compile(r"(?:^|(?<=\s))([Aa])n?(\s+)$")
_OTHER = re.compile(r"\bother ")
_ANOTHER = re.compile(r"\b([Aa])nother ")


class _Piece(NamedTuple):
    """A stretch of literal text, then perhaps a parameter."""

    literal: str
    article: str
    """`a` or `A` where the literal ends in an article that must agree with what follows."""
    name: str
    plural: bool
    before_noun: bool
    """Whether the next thing said is the shape, so that a word with `+` can wait for it."""


@lru_cache(maxsize=1 << 14)
def _pieces(text: str, nouns: frozenset[str]) -> tuple[_Piece, ...]:
    found = list(_PLACE.finditer(text))
    pieces: list[_Piece] = []
    end = 0
    for number, place in enumerate(found):
        literal = text[end : place.start()]
        article = _ARTICLE.search(literal)
        following = found[number + 1] if number + 1 < len(found) else None
        before_noun = (
            following is not None and following.group(1) in nouns and not text[place.end() : following.start()].strip()
        )
        pieces.append(
            _Piece(
                literal[: article.start()] if article else literal,
                article.group(1) if article else "",
                place.group(1),
                place.group(2) is not None,
                before_noun,
            )
        )
        end = place.end()
    pieces.append(_Piece(text[end:], "", "", False, False))
    return tuple(pieces)


def _plural(word: str) -> str:
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


def say(template: Template, phrasing: Phrasing, values: Values, synonyms: Synonyms, rng: Random) -> str:
    """The question: optional words kept or dropped by a coin, every value in one of its words.

    Articles agree ("an object", "a red object"), plurals are formed, and "other" is dropped where the two descriptions
    contradict each other ("other cubes ... as the sphere").
    """
    text = _OPTIONAL.sub(lambda found: found.group(1) if rng.random() < 0.5 else "", phrasing.text)
    if "other " in text and _contradict(template, values):
        text = _OTHER.sub("", _ANOTHER.sub(r"\1 ", text))
    nouns = frozenset(name for name, kind in template.params.items() if kind == "shape")
    said: list[str] = []
    article = waiting = ""
    for piece in _pieces(text, nouns):
        said.append(piece.literal)
        article = piece.article or ("" if piece.literal.strip() else article)
        if not piece.name:
            break
        value = values[piece.name]
        word = ""
        if value is None and piece.name in nouns:
            value = "thing"
        if value is not None:
            choices = synonyms.of(value, phrasing.split)
            word = choices[int(rng.random() * len(choices))]
            if word.startswith("+"):
                if piece.before_noun:
                    waiting, word = f" {word[1:]}", ""
                else:
                    word = next(one for one in choices if not one.startswith("+"))
        if word and piece.plural:
            word = _plural(word)
        if word and article:
            said.append(f"{article}{'n' if word[0] in 'aeiouAEIOU' else ''} ")
            article = ""
        said.append(word)
        if piece.name in nouns and waiting:
            said.append(waiting)
            waiting = ""
    sentence = " ".join("".join(said).split())
    return sentence[:1].upper() + sentence[1:]


def _contradict(template: Template, values: Values) -> bool:
    """Whether an object "of the same ..." is described as something its model is not."""
    for node in template.nodes:
        if not node.composite or not template.nodes[node.inputs[0]].type.startswith("same_"):
            continue
        model = template.nodes[template.nodes[node.inputs[0]].inputs[0]]
        pairs = zip(model.params[-4:], node.params[-4:], strict=False)
        if any(values[one] != values[two] and values[one] and values[two] for one, two in pairs):
            return True
    return False


def wordings(
    template: Template,
    values: Values,
    synonyms: Synonyms,
    rng: Random,
    count: int,
    source: str,
    taken: Sequence[tuple[Phrasing, str]] = (),
) -> list[tuple[Phrasing, str]]:
    """Up to `count` sentences that differ from each other and from those `taken`.

    Phrasings are used up before one is used again in other words. `mixed` takes turns between the splits. Fewer come
    back only where the template has no more ways to say it.
    """
    seen = {text for _, text in taken}
    used = {phrasing.id for phrasing, _ in taken}
    found: list[tuple[Phrasing, str]] = []
    order = sorted(_order(template, rng, source), key=lambda one: one.id in used)
    for _ in range(4):
        for phrasing in order:
            if len(found) == count:
                return found
            text = say(template, phrasing, values, synonyms, rng)
            if text not in seen:
                seen.add(text)
                found.append((phrasing, text))
    return found


def _order(template: Template, rng: Random, source: str) -> Iterator[Phrasing]:
    splits = [TRAIN, HELDOUT] if source == MIXED else [source]
    rng.shuffle(splits)
    columns = [list(template.of_split(split)) for split in splits]
    for column in columns:
        rng.shuffle(column)
    for row in range(max(len(column) for column in columns)):
        for column in columns:
            if row < len(column):
                yield column[row]
