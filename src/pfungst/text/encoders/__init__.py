"""Sentence encoders with one interface: `encode(sentences) -> float32 array (n, dim)`.

    from pfungst.text import encode
    vectors = encode(["How old is the car?"], "skip-thoughts")

Every name is loaded when it is first used; torch only where an encoder needs it.
"""

from pfungst._lazy import lazy

_HOMES = {
    "AveragedWords": "word_vectors",
    "Encoder": "base",
    "EncoderError": "base",
    "MiniLM": "sentence_transformers",
    "SentenceTransformer": "sentence_transformers",
    "SkipThoughts": "skip_thoughts",
    "TfIdf": "word_vectors",
    "WordVectors": "word_vectors",
    "check_encoder": "base",
    "get_encoder": "vectors",
    "load_published": "skip_thoughts",
}
"""Public name -> module that defines it."""

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy(__name__, _HOMES)
