"""Options that a text names, by letter or by text, and does not deny."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from pfungst.scores.matchers.letters import Letters, nth
from pfungst.scores.matchers.options import Mention, Options
from pfungst.scores.matchers.phrases import standing
from pfungst.scores.matchers.words import labels, words

Reading = int | None | bool
"""An option, None where nothing is said about the options, False where what is said is no choice of one."""

LONGEST = 80
"""Words up to which a reply without any announcement may be read by the one option it names."""

_OPENERS = re.compile(
    r"\A(?:let me|let's|first,|to (?:determine|answer|find|solve)|looking at|we need|step 1|okay,|alright)", re.I
)
_IF = re.compile(r"(?:\A|[.!?\n]\s*)(?:if|unless|were|had)\b[^.!?\n]*\Z", re.I)
_MARK = re.compile(r"[.!?\n]")


def single(found: frozenset[int] | set[int]) -> Reading:
    if not found:
        return None
    return next(iter(found)) if len(found) == 1 else False


def mentioned(text: str, options: Options) -> Reading:
    """The one option that a short text names and does not deny."""
    if len(text) > 16 * LONGEST:
        return None
    count = len(words(text))
    if not count or count > LONGEST or (count > 12 and (_OPENERS.match(text) or text.rstrip()[-1:] not in ".!。\"')")):
        return None
    named = {option for mention in meant_in(text, options) for option in mention.options}
    return single(named)


def meant_in(text: str, options: Options) -> list[Mention]:
    """Mentions by text or letter that are meant, or may be: those denied are left out."""
    mentions = options.mentions(text)
    letters = labels(len(options.choices))
    patterns = Letters.up_to(len(options.choices))
    for match in patterns.anywhere.finditer(text):
        group = next(name for name, value in match.groupdict().items() if value is not None)
        for letter in re.finditer(r"\b[A-Za-z]\b(?!nd|r)", match[group]):
            start = match.start(group) + letter.start()
            mentions.append(Mention(frozenset((letters.index(letter[0].upper()),)), start, start + 1))
    for match in patterns.ordinal.finditer(text):
        index = nth(match, options)
        if index is not None:
            mentions.append(Mention(frozenset((index,)), match.start(), match.end()))
    if not mentions:
        return []
    found = words(text)
    begun, ended = [word.start for word in found], [word.end for word in found]
    mentions.sort(key=lambda mention: (mention.start, -mention.end))
    kept: list[tuple[Mention, int, int]] = []
    for mention in mentions:
        if kept and mention.end <= kept[-1][0].end:
            continue
        first = min(bisect_right(ended, mention.start), len(found) - 1)
        last = max(first, bisect_left(begun, mention.end) - 1)
        kept.append((mention, first, last))
    places = frozenset(first for _, first, _ in kept)
    meant = []
    for mention, first, last in kept:
        stand = standing(found, first, last, text, places - {first})
        question = _asks(text, mention.end) or _supposes(text, mention.start)
        if stand == "unclear" or question:
            # It may be meant: together with another option nothing is certain, and alone neither.
            meant.append(Mention(frozenset((*mention.options, -1)), mention.start, mention.end))
        elif stand == "for":
            meant.append(mention)
    return meant


def _supposes(text: str, start: int) -> bool:
    """Whether the sentence begins with an if."""
    return bool(_IF.search(text[max(0, start - 120) : start]))


def _asks(text: str, end: int) -> bool:
    mark = _MARK.search(text, end)
    return mark is not None and mark[0] == "?"
