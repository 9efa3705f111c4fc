"""Sentence encoders with one interface: `encode(sentences) -> float32 array (n, dim)`.

    from pfungst.text import encode
    vectors = encode(["How old is the car?"], "skip-thoughts")

Every name is loaded when it is first used; torch only where an encoder needs it.
"""

from pfungst._lazy import lazy

_HOMES = {
    "AveragedWords": "_word_vectors",
    "Encoder": "_base",
    "EncoderError": "_base",
    "MiniLM": "_sentence_transformers",
    "SentenceTransformer": "_sentence_transformers",
    "SkipThoughts": "_skip_thoughts",
    "SkipThoughtsConfig": "_train",
    "TfIdf": "_tfidf",
    "WordVectors": "_word_vectors",
    "check_encoder": "_base",
    "get_encoder": "_registry",
    "list_encoders": "_registry",
    "load_published": "_published",
    "read_corpus": "_corpus",
    "train_skip_thoughts": "_train",
}
"""Public name -> module that defines it."""

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy(__name__, _HOMES)
