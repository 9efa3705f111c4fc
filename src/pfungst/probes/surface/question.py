"""What of a question may not be touched: words that carry the answer or the options, and what is no plain English.

- words of the right answer, the human answers and the choices, in any inflection that begins alike
- words around an "or": what may be chosen
- negations and numbers
- quotations, formulas, placeholders such as <image 1>, addresses; all that follows the first line (options, as a rule)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pfungst.core import Example

WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_KEPT = re.compile(
    r"""" [^"]* " | “[^”]*” | (?<!\w)'[^']*'(?!\w) | «[^»]*» | `[^`]*` | \$[^$]*\$ | <[^<>]*> | \\\w+ | \{[^{}]*\}
      | (?:https?://|www\.)\S+ | \S{1,64}@\S+ | \w*\d\w* | \n[\s\S]*""",
    re.VERBOSE,
)
_NO = "not no never none nothing nobody nowhere neither nor without cannot except but only unless hardly"
_NEGATIONS = frozenset(_NO.split())
_PLAIN = "a an the of in on at to is are it and or with by for be this that as yes no there"
_EVERYDAY = frozenset(_PLAIN.split())
"""Words of answers that say nothing by themselves."""
_COMMON = "the is are what how does there this which where who of and was were has have why"
_ENGLISH = frozenset(_COMMON.split())
"""A question with none of these counts as no English one."""
_FIRST = (
    "what what's which who who's whose whom where where's when why how how's is are was were am do does did has have "
    "had can could will would should may might must"
)
_ASKING = frozenset(_FIRST.split())
AROUND_OR = 3
"""Words before and after an "or" that may be what is offered."""


@dataclass(frozen=True)
class Question:
    """A question and the parts of it that stay."""

    text: str
    kept: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, example: Example) -> Question:
        carried = {
            word.casefold()
            for text in (*example.answers, example.target or "", *example.choices)
            for word in _TOKEN.findall(text)
        } - _EVERYDAY
        return cls(example.question, tuple(_spans(example.question, carried)))

    @property
    def end(self) -> int:
        """Past the last character of the first line that is no blank."""
        line = self.text.find("\n", len(self.text) - len(self.text.lstrip()))
        return len((self.text if line < 0 else self.text[:line]).rstrip())

    @property
    def capitals(self) -> bool:
        """Whether case may carry meaning: a capital letter after the first one (US, Polish, point A), I left out."""
        start = len(self.text) - len(self.text.lstrip())
        rest = re.sub(r"\bI\b", "", self.text[start + 1 :])
        return any(letter.isupper() for letter in rest)

    @property
    def english(self) -> bool:
        """Whether the question is an English one, as far as its commonest words tell."""
        return any(found[0].casefold() in _ENGLISH for found in WORD.finditer(self.text[: self.end]))

    @property
    def asks(self) -> bool:
        """Whether its first word says that it is a question, so that it stays one without its mark."""
        first = WORD.match(self.text.lstrip())
        return first is not None and first[0].casefold().replace("\u2019", "'") in _ASKING

    def free(self, start: int, end: int) -> bool:
        return not any(start < stop and begin < end for begin, stop in self.kept)

    def replaced(self, spans: Mapping[tuple[int, int], str]) -> str:
        """The text with other words at these places."""
        text = self.text
        for (start, end), word in sorted(spans.items(), reverse=True):
            text = text[:start] + word + text[end:]
        return text

    def each(self, change: Callable[[str], str]) -> str:
        """The text with every word that is not kept changed."""
        words = [found for found in WORD.finditer(self.text) if self.free(*found.span())]
        return self.replaced({found.span(): change(found[0]) for found in words})

    def begun_small(self) -> str:
        """The text as it would stand inside a sentence."""
        first = WORD.match(self.text)
        if first is None or first[0] == "I" or first[0][:2] == "I'" or not self.free(*first.span()):
            return self.text
        return self.text if first[0][1:] != first[0][1:].lower() else self.text[0].lower() + self.text[1:]


def _spans(text: str, carried: Iterable[str]) -> list[tuple[int, int]]:
    spans = [found.span() for found in _KEPT.finditer(text)]
    words = list(_TOKEN.finditer(text))
    stems = {_stem(word) for word in carried}
    for at, found in enumerate(words):
        word = found[0].casefold().replace("\u2019", "'")
        if word == "or":
            near = words[max(0, at - AROUND_OR) : at + AROUND_OR + 1]
            spans += [one.span() for one in near]
        if _stem(word) in stems or word in _NEGATIONS or word.endswith("n't"):
            spans.append(found.span())
    return sorted(set(spans))


def _stem(word: str) -> str:
    """Inflected forms of a word begin alike: dog, dogs; paint, painted. Good enough to protect too much."""
    for ending in ("'s", "ing", "es", "ed", "s", "er", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
