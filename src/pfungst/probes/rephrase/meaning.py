"""Whether two questions mean the same, as far as their words can tell."""

from __future__ import annotations

import re

KINDS = (
    ("count", r"\bhow many\b|\bnumber of\b|\bcount\b"),
    ("amount", r"\bhow much\b"),
    ("place", r"\bwhere\b|\blocation\b"),
    ("person", r"\bwho(?:se|m)?\b|\b(?:which|what) person\b"),
    ("time", r"\bwhen\b|\b(?:what|which) (?:time|day|year|season|month)\b"),
    ("reason", r"\bwhy\b|\breason\b"),
    ("manner", r"\bhow\b"),
    ("thing", r"\bwhat(?:'s)?\b|\bwhich\b"),
)
"""What a question asks for; the first that fits. All others are yes/no questions."""
_FREE = """
    a an the this that these those is are be being do does can could would you i we me see seen tell show shows shown
    visible what what's which who whose whom where when why how of whether there it have has any some kind type sort
    please
"""
FREE = frozenset(_FREE.split())
"""Words that may come and go. Prepositions may not, what is on a table is not under it, nor may the past."""
_COUNTING = frozenset({"many", "number", "count"})
"""So may these, where it is asked how many there are."""
_SHOWN = re.compile(r"\b(?:in|on) (?:the|this) (?:picture|image|photo|photograph)\b")


def keeps_meaning(question: str, other: str) -> bool:
    """Whether both say the same content words, as often, and ask for the same kind of thing."""
    return content(question) == content(other) and kind_of(question) == kind_of(other)


def content(question: str) -> list[str]:
    """The words that must stay, in the order of the alphabet."""
    text = _SHOWN.sub(" ", question.lower()).replace("colour", "color")
    free = FREE | _COUNTING if kind_of(question) == "count" else FREE
    return sorted(word for word in re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text) if word not in free)


def kind_of(question: str) -> str:
    """What a question asks for."""
    text = question.lower()
    return next((kind for kind, pattern in KINDS if re.search(pattern, text)), "yes/no")
