"""Ways to write the same question differently: one function an edit.

An edit gets a question with its protected parts and returns the new text, or None where it has nothing to do.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pfungst.probes.surface.protection import WORD, Question
from pfungst.probes.surface.words import CONTRACTIONS, KNOWN, NEIGHBOURS, SPELLINGS
from pfungst.scores.exact import levenshtein


class Draws:
    """Whole numbers from a text; the same on every machine and in every version of Python."""

    def __init__(self, seed: str) -> None:
        self._numbers = self._hashed(seed)

    @staticmethod
    def _hashed(seed: str) -> Iterator[int]:
        count = 0
        while True:
            text = f"{seed} {count}".encode("utf-8", "surrogatepass")
            yield int.from_bytes(hashlib.sha256(text).digest()[:8], "little")
            count += 1

    def below(self, count: int) -> int:
        return next(self._numbers) % count


@dataclass(frozen=True)
class Edit:
    """A way to write a question that keeps its meaning."""

    about: str
    """What it does, for tables."""
    make: Callable[[Question, Draws, int], str | None]
    """Question, random numbers and level to the new text; None where there is nothing to do."""
    levels: tuple[int, ...] = (1,)
    """How much of it may be done."""
    english: bool = False
    """Whether it is for English questions alone."""

    def __call__(self, question: Question, draws: Draws, level: int = 1) -> str | None:
        if (self.english and not question.english) or WORD.search(question.text) is None:
            return None
        made = self.make(question, draws, level)
        return None if made is None or made == question.text else made


# --- typos ------------------------------------------------------------------------------------------------------------


LEAST_LETTERS = 4
"""Shorter words are not misspelled: most typos in them make other words."""


def typo(question: Question, draws: Draws, level: int) -> str | None:
    """`level` words with one typo each: a neighbouring key, two letters swapped, one left out, one doubled.

    The first letter stays, and no typo may make another word that is known.
    """
    places = [
        found
        for found in WORD.finditer(question.text)
        if len(found[0]) >= LEAST_LETTERS
        and found[0].isascii()
        and found[0].isalpha()
        and (found[0].islower() or (found.start() == 0 and found[0][1:].islower()))
        and question.free(*found.span())
    ]
    done: dict[tuple[int, int], str] = {}
    while places and len(done) < level:
        found = places.pop(draws.below(len(places)))
        word = misspelled(found[0], draws)
        if word is not None:
            done[found.span()] = word
    return question.replaced(done) if len(done) == level else None


def misspelled(word: str, draws: Draws) -> str | None:
    """The word with one typo; None where twelve draws only made known words."""
    for _ in range(12):
        kind, at = draws.below(4), 1 + draws.below(len(word) - 1)
        if kind == 0:
            keys = NEIGHBOURS[word[at]]
            made = word[:at] + keys[draws.below(len(keys))] + word[at + 1 :]
        elif kind == 1:
            at = min(at, len(word) - 2)
            made = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        elif kind == 2:
            made = word[:at] + word[at + 1 :]
        else:
            made = word[:at] + word[at] + word[at:]
        if made != word and not is_word(made.lower()):
            return made
    return None


@lru_cache(maxsize=1 << 16)
def is_word(text: str) -> bool:
    """Whether this is an English word that we know: WordNet's nouns and verbs, and a list of others."""
    from pfungst.text.wordnet import base_forms

    return text in KNOWN or bool(base_forms(text, "n")) or bool(base_forms(text, "v"))


# --- case and marks ---------------------------------------------------------------------------------------------------


def upper(question: Question, draws: Draws, level: int) -> str | None:
    return None if question.capitals else question.each(str.upper)


def lower(question: Question, draws: Draws, level: int) -> str | None:
    return None if question.capitals else question.each(str.lower)


def unmarked(question: Question, draws: Draws, level: int) -> str | None:
    """Without the mark at the end, where the first word says that it is a question."""
    if not question.asks:
        return None
    start = question.end
    while start and question.text[start - 1] in "?.!":
        start -= 1
    return question.replaced({(start, question.end): ""})


def marks(question: Question, draws: Draws, level: int) -> str | None:
    """Several marks at the end instead of one."""
    mark = question.text[question.end - 1 : question.end]
    if mark not in ("?", "!"):
        return None
    return question.replaced({(question.end - 1, question.end): (mark * 2, mark * 3, f" {mark}")[draws.below(3)]})


# --- words ------------------------------------------------------------------------------------------------------------


_CONTRACTED = re.compile(
    r"\b(" + "|".join(map(re.escape, CONTRACTIONS)) + r")\b(?=\s+(?!(?:been|got|had|happened)\b)\w)", re.IGNORECASE
)  # "who's got" is "who has got"
_SPELLED = re.compile(r"\b(" + "|".join(SPELLINGS) + r")\b", re.IGNORECASE)


def contraction(question: Question, draws: Draws, level: int) -> str | None:
    """`What is` as `What's`, or the other way round. Negations are not touched."""
    return _substituted(question, _CONTRACTED, CONTRACTIONS)


def spelling(question: Question, draws: Draws, level: int) -> str | None:
    """British for American spelling, and American for British."""
    return _substituted(question, _SPELLED, SPELLINGS)


def _substituted(question: Question, pattern: re.Pattern[str], table: Mapping[str, str]) -> str | None:
    text = question.text.replace("\u2019", "'")
    spans = {
        found.span(): _like(found[0], table[found[0].lower()])
        for found in pattern.finditer(text)
        if question.free(*found.span())
    }
    return question.replaced(spans) if spans else None


def _like(model: str, word: str) -> str:
    """The word in the case of another."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


# --- around the question ----------------------------------------------------------------------------------------------


FILLERS = ("Um, ", "Well, ", "So, ", "Okay, so ", "Hmm, ", "Right then, ", "You know, ")
BEFORE = ("Please answer this: ", "Could you please help me with this? ", "Excuse me, one question: ", "Hello! ")
AFTER = (" Please.", " Thank you.", " Thanks a lot!", " Many thanks in advance.")


def filler(question: Question, draws: Draws, level: int) -> str | None:
    return FILLERS[draws.below(len(FILLERS))] + question.begun_small()


def polite(question: Question, draws: Draws, level: int) -> str | None:
    at = draws.below(len(BEFORE) + len(AFTER))
    if at < len(BEFORE):
        return BEFORE[at] + question.text
    return question.text[: question.end] + AFTER[at - len(BEFORE)] + question.text[question.end :]


TYPO = Edit("one typo in each of 1, 2 or 4 words", typo, (1, 2, 4), english=True)
UPPER = Edit("all in capital letters", upper)
LOWER = Edit("all in small letters", lower)
UNMARKED = Edit("no mark at the end", unmarked)
MARKS = Edit("several marks at the end", marks)
CONTRACTION = Edit("contracted (what's), or written out", contraction, english=True)
SPELLING = Edit("British for American spelling, or the other way round", spelling, english=True)
FILLER = Edit("a filler word before it", filler, english=True)
POLITE = Edit("a polite phrase before or after it", polite, english=True)


def touched(first: str, second: str) -> int:
    """Characters that differ: the least number of insertions, deletions and replacements (Levenshtein)."""
    return levenshtein(first, second)
