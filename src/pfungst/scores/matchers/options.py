"""Options of a multiple choice, and where a text names them: by text, letter or place."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pfungst.scores.matchers.reply import plain, standing
from pfungst.scores.matchers.words import fold, labels, spelled, value_of, without_articles, words

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


Reading = int | None | bool
"""An option, None where nothing is said about the options, False where what is said is no choice of one."""

LONGEST = 80
"""Words up to which a reply without any announcement may be read by the one option it names."""

_OPENERS = re.compile(
    r"\A(?:let me|let's|first,|to (?:determine|answer|find|solve)|looking at|we need|step 1|okay,|alright)", re.I
)
_IF = re.compile(r"(?:\A|[.!?\n]\s*)(?:if|unless|were|had)\b[^.!?\n]*\Z", re.I)
_MARK = re.compile(r"[.!?\n]")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(frozen=True)
class Letters:
    """Patterns for the letters of a number of options."""

    head: re.Pattern[str]
    listed: re.Pattern[str]
    more: re.Pattern[str]
    anywhere: re.Pattern[str]
    ordinal: re.Pattern[str]

    @staticmethod
    @lru_cache(maxsize=32)
    def up_to(count: int) -> Letters:
        last = labels(count)[-1]
        upper, both = f"[A-{last}]", f"[A-{last}a-{last.lower()}]"
        return Letters(
            re.compile(
                rf"(?:(?:the|la|el|die)\s+)?(?:(?:correct|right|best)\s+)?"
                rf"(?P<word>(?:option|choice|letter|answer|opción|opção|opzione)s?\s*[:#]?\s*|"
                rf"选项\s*)?"
                rf"(?P<open>[(\[{{<\"']*)(?P<letter>(?-i:{both}))(?P<close>[)\]}}>\"']*)(?!'?[A-Za-z0-9_\u00c0-\u024f])(?!-\w)",
                re.I,
            ),
            re.compile(rf"^[-•\s]*[(\[]?(?P<letter>{both})[)\].:][)\s]*(?P<rest>.*)$", re.M),
            re.compile(
                rf"\s*(?:,|;|and|or|&|/|\+|、|和|或|及|,\s*(?:and|or))\s*(?:maybe\s+|possibly\s+|perhaps\s+|"
                rf"also\s+)?(?:options?\s+)?[(\[\"']?{upper}(?:[)\]\"'.,;:!?]|\s*\Z|\s+(?:and|or|are|both|is)\b|"
                rf"\s*[,&/])"
            ),
            re.compile(
                rf"(?<![\w.])[(\[](?P<a>{both})[)\]]"
                rf"|\b(?:[Oo]ptions?|[Cc]hoices?|OPTION|[Ll]etter)\s+[(\[\"']?(?P<b>{both})\b(?!['-]\w)"
                rf"|\b(?P<run>{upper}(?:\s*(?:,\s*(?:and\b|or\b)?|and\b|or\b|&|/)\s*{upper}\b)+)(?=\s*(?:[.,;:!?)]|"
                rf"\Z|\s(?:are|both|seem|could|as)\b))"
                rf"|\b(?:is|be|it's|that's|It's|say|think|not|isn't|but|likely|"
                rf"probably)\s+(?P<e>{upper})(?=\s*(?:[.,;:!?)]|\Z|\s(?:because|since|and|or|not|but)\b))"
                rf"|,\s*(?P<f>{upper})(?=[.!]?\s*\Z)"
            ),
            re.compile(
                rf"\b(?:(?P<nth>{'|'.join(_ORDINALS)}|last)\s+(?:option|choice|answer|alternative)|(?:option|"
                rf"choice)\s+(?:number\s+|#\s*)?(?P<number>\d+|one|two|three|four|five|six)\b)",
                re.I,
            ),
        )


def nth(match: re.Match[str], options: Options) -> int | None:
    count = len(options.choices)
    if match["nth"]:
        name = match["nth"].lower()
        if name not in (*_ORDINALS, "last"):  # a long s, or an I of other alphabets, counts as the letter in a pattern
            return None
        index = count - 1 if name == "last" else _ORDINALS.index(name)
    elif options.values:
        # "Option 2" may be the second option or the one that says 2.
        return None
    else:
        number = match["number"].lower()
        names = ["one", "two", "three", "four", "five", "six"]
        if (not number.isdigit() and number not in names) or len(number) > 9:
            return None
        index = (int(number) if number.isdigit() else names.index(number) + 1) - 1
    return index if 0 <= index < count else None


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
