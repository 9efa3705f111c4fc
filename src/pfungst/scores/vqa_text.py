"""Answer processing of the published VQA evaluation, reproduced to the letter, its slips included.

Before answers are compared, punctuation goes, number words become digits, articles go, and apostrophes that were left
out come back. What looks like a mistake below is one that the published script makes.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pfungst.core.flips import DIGITS

PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
"""Replaced one after the other, in this order."""

NUMBER_WORDS = {"none": "0"} | {word: str(value) for value, word in enumerate(DIGITS)}
ARTICLES = frozenset(("a", "an", "the"))

_RESTORED = """
ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd he'd've
he's how'd how'll how's I'd've I'm I've isn't it'd it'd've it'll ma'am mightn't mightn't've might've mustn't must've
needn't not've o'clock oughtn't 'ow's'at shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll
somebody's someone'd someone'd've someone'll someone's something'd something'd've something'll that's there'd
there'd've there're there's they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll
what're what's what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're why's won't
would've wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're you've
"""


def _contractions() -> dict[str, str]:
    """The published table: every way to leave out one apostrophe, and three entries that are slips.

    Two of those map a word to itself, and one takes an apostrophe away. Entries with a capital I can never match,
    because words are lower-cased first; they are kept so that the table is the published one.
    """
    table = {"let's": "let's", "she's": "she's", "somebody'd": "somebodyd"}
    for word in _RESTORED.split():
        table |= {word[:at] + word[at + 1 :]: word for at, letter in enumerate(word) if letter == "'"}
    return table


CONTRACTIONS = _contractions()

PUBLISHED_PERIODS = 32
"""The published script passes `re.UNICODE`, which is 32, where the greatest number of replacements belongs."""

_PERIOD = re.compile(r"\.(?!\d)")
_DIGIT_COMMA = re.compile(r"\d,\d")
_MARKS = frozenset(PUNCTUATION)


def tidy(answer: str) -> str:
    """Newlines and tabs become blanks, the ends are stripped: done to every answer, always."""
    return answer.replace("\n", " ").replace("\t", " ").strip()


@lru_cache(maxsize=1 << 16)
def process(answer: str, periods: int = 0) -> str:
    """The processed form of a tidied answer. At most `periods` periods are removed, all if 0."""
    # The published pattern means to spare the point of a decimal, but its look-behind is misspelt and never matches:
    # "3." loses its period, "3.5" keeps it because a digit follows.
    return _words(_PERIOD.sub("", without_marks(answer), count=periods))


def without_marks(answer: str) -> str:
    """The answer without its punctuation but periods: marks vanish beside a blank and become one elsewhere."""
    text = answer
    if not _MARKS.isdisjoint(answer):
        # A digit, a comma, a digit anywhere (1,000) makes all marks vanish instead of becoming blanks.
        thousands = _DIGIT_COMMA.search(answer) is not None
        for mark in PUNCTUATION:
            if mark in answer:
                vanishes = thousands or mark + " " in answer or " " + mark in answer
                text = text.replace(mark, "" if vanishes else " ")
    return text


def _words(text: str) -> str:
    words = (NUMBER_WORDS.get(word, word) for word in text.lower().split())
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ARTICLES)
