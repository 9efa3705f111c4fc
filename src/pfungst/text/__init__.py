"""Words and sentences: WordNet similarity, text metrics, sentence encoders.

Every name is loaded when it is first used, so that importing the package costs nothing.
"""

from pfungst._lazy import lazy

_HOMES = {
    "encode": "encoders.vectors",
    "get_encoder": "encoders",
    "pairwise": "metrics",
    "tokenize": "words",
    "top_pairs": "metrics",
    "wup": "wordnet",
    "wups": "wordnet",
}
"""Public name -> module that defines it."""

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy(__name__, _HOMES)
