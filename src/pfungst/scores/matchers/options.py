"""Options of a multiple choice, and where a text names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pfungst.scores.matchers.numbers import spelled, value_of
from pfungst.scores.matchers.reply import plain
from pfungst.scores.matchers.words import fold, labels, without_articles, words

_EDGES = " \t\n\"'`.,;:!?()[]{}"
_NONE = re.compile(
    r"\A(?:none|neither)(?: of (?:the |these |them|those )*(?:above|these|them|those|options|choices|answers|"
    r"given)*(?: options| choices| answers)?)?"
    r"(?: (?:is|are) (?:correct|right))?\Z"
)
_UNKNOWN = re.compile(
    r"\b(?:(?:can ?not|can't|could not|unable to) (?:be )?(?:determined?|tell|answered|say|known|inferred|judged)|"
    r"not (?:enough|sufficient) info(?:rmation)?|insufficient info(?:rmation)?|unanswerable|undetermined|not sure|"
    r"(?:i )?(?:don't|do not) know|unknown|uncertain|impossible to (?:tell|say|determine)|not possible to (?:tell|"
    r"determine|say))\b"
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A place where a text names an option; several options where they cannot be told apart."""

    options: frozenset[int]
    start: int
    end: int


@dataclass(frozen=True)
class Options:
    """The choices of one question, prepared for reading. Blank ones can never be meant."""

    choices: tuple[str, ...]
    by_text: dict[str, frozenset[int]] = field(repr=False)
    """Loose form of the text to the options that have it."""
    phrases: dict[str, list[tuple[tuple[str, ...], frozenset[int]]]] = field(repr=False)
    """First word to word sequences, longest first."""
    values: dict[float, int] = field(repr=False)
    """Value to option, where all options are different numbers."""
    longest: int
    """Characters of the longest option."""
    unsafe: frozenset[int] = frozenset()
    """Options that are the letter of another one: "B" cannot be told from B."""
    none: int | None = None
    """The option that says none of the above."""
    unknown: int | None = None
    """The option that says it cannot be told."""

    @staticmethod
    @lru_cache(maxsize=512)
    def of(choices: tuple[str, ...]) -> Options:
        by_text: dict[str, set[int]] = {}
        by_words: dict[tuple[str, ...], set[int]] = {}
        letters = labels(len(choices))
        named: dict[str, set[int]] = {}
        for index, choice in enumerate(choices):
            if not choice.strip():
                continue
            by_text.setdefault(loose(choice), set()).add(index)
            if keys := tuple(keyed(plain(choice))):
                by_words.setdefault(keys, set()).add(index)
            letter = fold(choice).strip(_EDGES).upper()
            if letter in letters:
                named.setdefault(letter, set()).add(index)
        phrases: dict[str, list[tuple[tuple[str, ...], frozenset[int]]]] = {}
        for keys, indices in by_words.items():
            # A single sign of a script without blanks stands inside too many words, a single letter is a label.
            if len(keys) > 1 or len(keys[0]) > 1 or keys[0].isdigit():
                phrases.setdefault(keys[0], []).append((keys, frozenset(indices)))
        for listed in phrases.values():
            listed.sort(key=lambda pair: -len(pair[0]))
        return Options(
            choices,
            {text: frozenset(indices) for text, indices in by_text.items()},
            phrases,
            _values(choices),
            max(map(len, choices), default=0),
            frozenset(
                index for letter, having in named.items() if having != {letters.index(letter)} for index in having
            ),
            _only(index for index, choice in enumerate(choices) if _NONE.match(loose(choice))),
            _only(index for index, choice in enumerate(choices) if _UNKNOWN.search(loose(choice))),
        )

    def equal(self, text: str) -> frozenset[int]:
        """Options whose whole text this is; case, outer marks and a leading article make no difference."""
        if any(choice.strip() == text for choice in self.choices if choice.strip()):
            return frozenset(index for index, choice in enumerate(self.choices) if choice.strip() == text)
        if len(text) > self.longest + 60:
            return frozenset()
        return self.by_text.get(loose(text)) or frozenset()

    def mentions(self, text: str) -> list[Mention]:
        """Places where the words of an option stand, the longest at each place."""
        kept = without_articles(words(text), text)
        keys = [spelled(kept, at, text) for at in range(len(kept))]
        mentions = []
        at = 0
        while at < len(kept):
            for phrase, indices in self.phrases.get(keys[at], ()):
                if tuple(keys[at : at + len(phrase)]) == phrase:
                    mentions.append(Mention(indices, kept[at].start, kept[at + len(phrase) - 1].end))
                    at += len(phrase) - 1
                    break
            at += 1
        return mentions


def keyed(text: str) -> list[str]:
    """The words of a text for comparison: no articles, number words in digits."""
    kept = without_articles(words(text), text)
    return [spelled(kept, at, text) for at in range(len(kept))]


def loose(text: str) -> str:
    """A text without case, outer marks, leading article and repeated blanks."""
    folded = " ".join(fold(plain(text)).replace("’", "'").split()).strip(_EDGES)
    return re.sub(r"\A(?:an?|the) (?=\S)", "", folded) or folded or text.strip()


def _values(choices: Sequence[str]) -> dict[float, int]:
    values: dict[float, int] = {}
    for index, choice in enumerate(choices):
        value = value_of(choice)
        if value is None or value in values:
            return {}
        values[value] = index
    return values


def _only(found: Iterable[int]) -> int | None:
    indices = list(found)
    return indices[0] if len(indices) == 1 else None


def says_none(text: str) -> bool:
    """Whether a text says that none of the options is right."""
    return bool(_NONE.match(loose(text))) or bool(
        re.search(r"\b(?:none|neither) of (?:the|these|those|them)\b", text[:400], re.I)
    )
