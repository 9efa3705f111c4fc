"""Words and sentences: WordNet similarity, text metrics, sentence encoders.

Every name is loaded when it is first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "encode": "pfungst.text._encode",
    "get_encoder": "pfungst.text.encoders",
    "pairwise": "pfungst.text.metrics",
    "tokenize": "pfungst.text.ptb",
    "top_pairs": "pfungst.text.metrics",
    "wup": "pfungst.text.wordnet",
    "wup_many": "pfungst.text.wordnet",
    "wup_matrix": "pfungst.text.wordnet",
    "wups": "pfungst.text.wordnet",
}
"""Public name -> module that defines it."""

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
