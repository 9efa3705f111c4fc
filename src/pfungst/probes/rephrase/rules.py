"""Rule-based rephrasings of wh- and yes/no questions, without a parser.

Three tiers, the boldest first: other constructions ("What color is the car?" -> "What is the color of the car?"), other
function words ("what kind of" -> "what type of"), and frames around the unchanged question ("Looking at the picture,
..."). A rule applies only where its pattern is sure of the parts it moves; every content word of the question must be
in the result, and nothing but the rule's own words may be added.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from pfungst.core import Example
from pfungst.probes.rephrase.generators import Gate, gated

_DETERMINER = r"(?:the|this|that|these|those|his|her|their|its|my|your|our|each|every|most|both|it|he|she|they)"
_ATTRIBUTE = r"(?:colou?r|size|shape|material|name|age|height|length|weight|price|brand|temperature|width)"
_THING = rf"{_DETERMINER}\b.+"
_PLACE = r"(?:in|on|at|under|near|behind|inside|around|outside|next to)"
_MOVED = r"(?:colou?r|size|shape|material|brand)"
_NOUNS = (
    r"(?:\w*building|ceiling|clothing|evening|icing|king|living|morning|\w*painting|parking|ring|\w*string|\w*thing|"
    "wedding|wing)"
)
_COMPOUND = r"(?:area|board|gear|lot|machine|meter|pool|room|strip|table)"
_DOING = rf"(?!{_NOUNS}\b)\w+ing\b(?! {_COMPOUND}\b)"
"""A word in -ing that is a verb: neither "building" nor "dining room"."""
_INSIDE = rf"(?!{_DOING}|(?:is|are|was|were)\b)[\w'-]+"
_SUBJECT = (
    rf"{_DETERMINER}(?: {_INSIDE})*? "
    rf"(?!(?:an?|and|or|of|with|to|from|by|{_DETERMINER}|{_PLACE})\b|[\w-]+'s? ){_INSIDE}"
)
_ACT = rf"{_DOING}(?!.* (?:{_DOING}|or\b)|(?: [\w'-]+){{2}} an? ).*"
"""What somebody does. Of two verbs or objects the first may belong to the subject: "is the man riding a bike waving".
With an "or" a choice would become a yes or no.
"""
_UNCOUNTED = r"(?:of|more|fewer|less)\b"


class Construction(NamedTuple):
    """A way to ask, and other ways to ask the same."""

    pattern: str
    """Of the whole question: lower case at its start, no mark at its end."""
    texts: tuple[str, ...]
    """With the groups of the pattern; {be} and {do} fit the thing {x}, {verb} is {v} in small letters, {thing}
    fits {v}."""
    clause: tuple[str, ...] | None = None
    """Instead, where the thing asked about seems to hold a clause of its own. None: the same."""


CONSTRUCTIONS = (
    Construction(
        rf"(?:what|which) (?P<a>{_ATTRIBUTE}) (?P<v>is|are) (?P<x>{_THING})",
        ("what is the {a} of {x}?", "tell me the {a} of {x}.", "i would like to know what the {a} of {x} is."),
        ("which {a} {v} {x}?",),
    ),
    Construction(
        rf"what(?:'s| is) the (?P<a>{_MOVED}) of (?P<x>{_THING})",
        ("what {a} {be} {x}?", "tell me the {a} of {x}.", "which {a} {do} {x} have?"),
        ("tell me the {a} of {x}.",),
    ),
    Construction(
        rf"how many (?P<x>(?!{_UNCOUNTED}).+?) are there(?P<p> {_PLACE} .+)?",
        ("what is the number of {x}{p}?", "count the {x}{p}.", "how many {x} can you see{p}?"),
    ),
    Construction(
        rf"how many (?P<x>(?!{_UNCOUNTED})[\w' -]+?) are (?P<p>{_PLACE} .+)",
        ("what is the number of {x} {p}?", "count the {x} {p}.", "how many {x} are there {p}?"),
    ),
    Construction(
        rf"how many (?P<x>(?!{_UNCOUNTED})[\w' -]+?) (?:do you see|can you see|can be seen|are visible|are shown)",
        ("how many {x} are there?", "what is the number of {x}?", "count the {x}."),
    ),
    Construction(
        r"(?P<v>is|are) there (?P<x>(?:an?|any|some|one)\b.+)",
        (
            "can you see {x}?",
            "do you see {x}?",
            "does the picture show {x}?",
            "tell me whether there {verb} {x}.",
        ),
    ),
    Construction(r"(?:do|can) you see (?P<x>(?-i:any|some)\b.+)", ("are there {x}?", "does the picture show {x}?")),
    Construction(r"(?:do|can) you see (?P<x>(?:an?|any|some)\b.+)", ("is there {x}?", "does the picture show {x}?")),
    Construction(
        rf"(?P<w>what|who|where) (?P<v>is|are|was|were) (?P<x>{_SUBJECT}) (?P<r>{_ACT})",
        ("tell me {w} {x} {v} {r}.", "i would like to know {w} {x} {v} {r}."),
    ),
    Construction(
        rf"(?P<v>is|are|was|were) (?P<x>{_SUBJECT}) (?P<r>{_ACT})",
        ("tell me whether {x} {v} {r}.", "would you say that {x} {v} {r}?", "is it true that {x} {v} {r}?"),
    ),
    Construction(
        rf"where (?P<v>is|are) (?P<x>{_DETERMINER}(?: [\w'-]+){{1,3}})",
        ("tell me where {x} {v}.", "what is the location of {x}?", "i would like to know where {x} {v}."),
        (),
    ),
    Construction(
        rf"what (?P<v>is|are) (?P<p>on|in|under|behind|above|below|near|beside|next to|in front of) (?P<x>{_THING})",
        ("which {thing} {v} {p} {x}?", "tell me what {v} {p} {x}.", "what can be seen {p} {x}?"),
    ),
    Construction(rf"who is (?P<r>{_DOING}.*)", ("which person is {r}?", "tell me who is {r}.")),
    Construction(r"(?P<v>do|does) (?P<x>you think) (?P<r>.+)", ("would you say {r}?", "is it your view that {r}?")),
)
"""The first whose pattern fits counts."""

WORDS: tuple[tuple[str, str], ...] = (
    (r"\bwhat kind of\b", "what type of"),
    (r"\bwhat type of\b", "what kind of"),
    (r"\bwhat sort of\b", "what kind of"),
    (rf"\bhow many\b(?! {_UNCOUNTED})", "what number of"),
    (r"\bwhat number of\b", "how many"),
    (r"\bin (?:the|this) (?:picture|photo|image|photograph)\b", "in the scene shown"),
    (r"^what's\b", "what is"),
    (r"^what is\b", "what's"),
    (r"\bwhat time of day is it\b", "which time of day is it"),
    (rf"^what ({_ATTRIBUTE})\b", r"which \1"),
    (rf"^which ({_ATTRIBUTE})\b", r"what \1"),
)

FRAMES = (
    "looking at the picture, {}",
    "in this image, {}",
    "judging by what you see, {}",
    "have a look: {}",
    "please answer this: {}",
    "here is my question: {}",
)
_SHOWN = re.compile(r"\b(?:picture|photo|image|photograph|scene)s?\b")

_OWN = """
    a an the is are was were be do does did can could would say tell me you see show shows shown what which who
    where how many number of count whether there it that have has any some one true your view please answer this
    here my question i like to know looking at in image picture judging by look type kind sort location person
    thing things scene seen visible time and to color colour
"""
_OWN_WORDS = frozenset(_OWN.split())
"""Words that rules may add or drop."""


@dataclass(frozen=True)
class RuleRephraser:
    """Grammatical rules for wh- and yes/no questions, with a check of the meaning."""

    least: float = 0.7
    """Smallest cosine of the sentence vectors. With the embedded encoder 19 of 20 pairs of unrelated VQA questions lie
    below 0.73, and 98 of 100 rephrasings by these rules above 0.7."""
    encoder: str = "skip-thoughts"
    name: str = "rules"

    @property
    def keeps(self) -> str:
        return (
            "the answer: grammatical rules reorder or frame the question, every content word of it stays and none is "
            f"added, and the sentence vectors ({self.encoder}) have a cosine of at least {self.least:g}"
        )

    def rephrase(self, examples: Sequence[Example], count: int, seed: int) -> list[tuple[str, ...]]:
        questions = [one.question for one in examples]
        return gated(
            questions, [list(_candidates(text, seed)) for text in questions], count, Gate(self.least, self.encoder)
        )


def _candidates(question: str, seed: int) -> Iterator[str]:
    """All that the rules make of a question; tiers in order, each in an order of its own drawn from the seed."""
    first, _, rest = question.partition("?")
    if not re.search(r"\w", rest):  # what follows the question, such as options, stays
        first, rest = question, ""
    text = " ".join(first.split())
    mark = "." if text.endswith(".") else "?"
    body = text.rstrip("?.! ").strip()
    if not body:
        return
    body = _lower_first(body)
    rng = Random(hashlib.sha256(f"{seed} {question}".encode("utf-8", "replace")).digest())
    tiers = [list(_constructed(body)), list(_reworded(body, mark)), [f"{frame.format(body)}{mark}" for frame in FRAMES]]
    shown = _SHOWN.search(body.lower())
    for tier in tiers:
        rng.shuffle(tier)
        for one in tier:
            # A question that names the picture must not name it twice.
            if keeps_content(body, one) and not (shown and len(_SHOWN.findall(one)) > 1):
                yield one[:1].upper() + one[1:] + rest


def _constructed(body: str) -> Iterator[str]:
    for construction in CONSTRUCTIONS:
        found = re.fullmatch(construction.pattern, body, re.IGNORECASE)
        if found is not None:
            said = found.groupdict("")
            thing = said.get("x", "")
            whole = construction.clause is None or not _has_verb(thing)
            verb = said.get("v", "").lower()
            said |= {"verb": verb, "thing": "things" if verb == "are" else "thing"}
            said |= _PLURAL if _plural(thing) else _SINGULAR
            yield from (text.format(**said) for text in (construction.texts if whole else construction.clause or ()))
            return


def _reworded(body: str, mark: str) -> Iterator[str]:
    for pattern, other in WORDS:
        changed, times = re.subn(pattern, other, body, count=1, flags=re.IGNORECASE)
        if times:
            yield f"{changed}{mark}"


def keeps_content(question: str, other: str) -> bool:
    """Whether both say the same content words, as often, and the same words of number and negation."""
    return _content(question) == _content(other)


def _content(text: str) -> list[str]:
    return sorted(word for word in re.findall(r"\w+", text.lower().replace("'s", "")) if word not in _OWN_WORDS)


def _has_verb(thing: str) -> bool:
    """Whether a phrase seems to hold a clause of its own, or is only half a phrase ("the most common"): then its end is
    not the thing asked about."""
    clause = r"\b(?:is|are|was|were|has|have|does|do|\w+ing|\w+ed|or|and)\b|\bthe (?:most|least) \S+$"
    return bool(re.search(clause, thing.lower()))


_SINGULAR, _PLURAL = {"be": "is", "do": "does"}, {"be": "are", "do": "do"}


def _plural(thing: str) -> bool:
    return bool(re.match(r"(?:these|those|they|both|most|\w+ (?:two|three|four|five|six))\b", thing)) or bool(
        re.fullmatch(r"\w+ \w+[^s']s", thing)
    )


def _lower_first(text: str) -> str:
    """The first letter in lower case, unless the word is a name or an abbreviation."""
    first = text.split()[0]
    return text if first == "I" or (first.isupper() and len(first) > 1) else text[:1].lower() + text[1:]
