"""Kinds of answers: the words of data sets, mapped to ours."""

from __future__ import annotations

_SYNONYMS = {
    "yes/no": ("yes/no", "yesno", "yes no", "yorn", "y/n", "yn", "binary", "boolean", "bool", "polar", "closed"),
    "number": ("number", "numeric", "numerical", "count", "counting", "integer", "int", "float"),
    "other": ("other", "open", "open-ended", "open ended", "free", "free form", "text", "string"),
}
_KINDS = {word: kind for kind, words in _SYNONYMS.items() for word in words}


def kind_of(word: str) -> str:
    """`yes/no`, `number`, `other`, or empty for anything else, `choice` included: the choices say that."""
    text = " ".join(word.casefold().replace("_", " ").split())
    return _KINDS.get(text) or _KINDS.get(text.replace("-", " "), "")
