"""From a phrasing and parameter values to a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple

from pfungst.world.questions.template import HELDOUT, SPLITS, TRAIN, Phrasing, Synonyms, Template

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
