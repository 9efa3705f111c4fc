"""Ways to write the same question differently: one function an edit.

An edit gets a question with its protected parts and returns the new text, or None where it has nothing to do.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pfungst.core import Example
from pfungst.scores.metrics import levenshtein

# --- what may not be touched ------------------------------------------------------------------------------------------


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
    """A question and the parts of it that stay: words that carry the answer or the options, and no plain English.

    - words of the right answer, the human answers and the choices, in any inflection that begins alike
    - words around an "or": what may be chosen
    - negations and numbers
    - quotations, formulas, placeholders such as <image 1>, addresses; all that follows the first line (as a rule, the
      options)
    """

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


# --- tables: keys side by side, contractions, British and American spellings, more known words -----------------------


_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def _neighbours() -> dict[str, str]:
    """Letters whose keys touch on a QWERTY keyboard, rows shifted by a quarter and three quarters of a key."""
    places = {
        letter: (column + (0.0, 0.25, 0.75)[row], row)
        for row, keys in enumerate(_ROWS)
        for column, letter in enumerate(keys)
    }
    return {
        one: "".join(
            other
            for other, (x, y) in places.items()
            if other != one and abs(y - places[one][1]) <= 1 and abs(x - places[one][0]) <= 1
        )
        for one in places
    }


NEIGHBOURS = _neighbours()


def _both_ways(pairs: str) -> dict[str, str]:
    table: dict[str, str] = {}
    for pair in pairs.split():
        one, other = pair.split("/")
        table[one], table[other] = other, one
    return table


SPELLINGS = _both_ways(
    "color/colour colors/colours colored/coloured coloring/colouring colorful/colourful gray/grey grays/greys "
    "center/centre centers/centres centered/centred theater/theatre theaters/theatres fiber/fibre fibers/fibres "
    "favorite/favourite favorites/favourites flavor/flavour flavors/flavours flavored/flavoured harbor/harbour "
    "harbors/harbours neighbor/neighbour neighbors/neighbours neighborhood/neighbourhood humor/humour labor/labour "
    "behavior/behaviour odor/odour armor/armour parlor/parlour vapor/vapour rumor/rumour "
    "airplane/aeroplane airplanes/aeroplanes aluminum/aluminium jewelry/jewellery mustache/moustache "
    "mustaches/moustaches pajamas/pyjamas plow/plough plows/ploughs skeptical/sceptical catalog/catalogue "
    "traveler/traveller travelers/travellers traveling/travelling traveled/travelled labeled/labelled "
    "labeling/labelling canceled/cancelled canceling/cancelling modeling/modelling modeled/modelled "
    "leveled/levelled signaling/signalling paneled/panelled organized/organised organizing/organising "
    "recognize/recognise recognized/recognised realize/realise realized/realised "
    "defense/defence offense/offence license/licence gluing/glueing woolen/woollen molded/moulded molding/moulding "
    "moldy/mouldy smolder/smoulder donut/doughnut donuts/doughnuts omelet/omelette artifact/artefact "
    "artifacts/artefacts cozy/cosy sulfur/sulphur yogurt/yoghurt"
)
"""Words that are spelled in two ways and mean the same in both. Tire/tyre, curb/kerb, check/cheque, story/storey and
meter/metre are not here: one of the spellings has a second meaning."""

CONTRACTIONS = {
    "what is": "what's", "where is": "where's", "who is": "who's", "how is": "how's", "there is": "there's",
    "that is": "that's", "i am": "i'm", "you are": "you're", "they are": "they're", "we are": "we're",
}  # fmt: skip
CONTRACTIONS |= {"what's": "what is", "where's": "where is", "who's": "who is", "how's": "how is"}
"""Both ways where the way back is sure: `there's` may be `there has`. Negations are not touched."""

_MORE = """
    about above across after again against ahead alike almost alone along already also although always among another
    any around aside away awake aware back backward bare basic because been before behind being below beneath beside
    besides best better between beyond bigger blank blind blond bold both brave brief bright broad busy calm cheap
    clean clear close cold cool could crisp cruel curly damp dark dead deaf dear deep dense dirty double down dried
    drunk dull each early easy either else empty enough equal even ever every exact extra fair faint fake false fast
    fatter few fewer fifth final fine first firm flat fond foreign former forth found fourth free fresh from front
    full further giant given glad gone good grand great gross half hanging happy hard harsh heavy hence here hers
    high his hollow hot huge hungry idle inner inside instead into its itself just keen kind large larger last late
    later lazy lean least left less level like likely little live lone lonely long longer loose loud lower lucky
    made main major many maybe mean mere middle might mild minor mixed moist more most much must naked narrow nasty
    near nearly neat never new next nice noisy none odd often older once only onto open orange other ours out outer
    outside oval over own pale past perhaps plain polite poor pretty prior proper proud pure quick quiet quite rare
    rather raw ready real rear rich right ripe rough round rude sacred safe same scary second several shall shallow
    sharp sheer shiny short should shut shy sick silent silly simple since single sixth slender slim slow small
    smart smooth snowy soft solid some soon sore sour spare stable stale steady steep stiff still stout straight
    strange strict striped strong such sudden sunny super sure sweet swift tall tame tender than that their theirs
    them then there these they thick thin third this those though thought through thus tidy tight tiny tired
    together too tough toward true twice ugly under until unto upon upper upright upward used usual vague vain vast
    very vivid warm weak wealthy weird well went were what when where whether which while white whole whose wide
    wild wise with within would wrong yellow young your yours
    able all and apt big but for her him how mad nor not our per sad she the thee thy via whom wry yet you
"""
KNOWN = frozenset(_MORE.split())
"""Words of three letters or more that a slip may make of others and that are neither nouns nor verbs in WordNet."""


# --- edits ----------------------------------------------------------------------------------------------------------


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


# --- typos ----------------------------------------------------------------------------------------------------------


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


# --- case and marks -------------------------------------------------------------------------------------------------


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


# --- words ----------------------------------------------------------------------------------------------------------


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


# --- around the question --------------------------------------------------------------------------------------------


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
