"""Encoders by name: `skip-thoughts`, `minilm`, `words:FILE`, ... and those of other packages."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from pfungst.core.registry import Registry
from pfungst.text.encoders.base import Encoder, EncoderError, best_device

DEFAULT = "skip-thoughts"
EMBEDDED = Path(__file__).parent / "weights" / "questions.safetensors"


def _skip_thoughts(argument: str) -> Encoder:
    from pfungst.text.encoders.published import load_published
    from pfungst.text.encoders.skip_thoughts import SkipThoughts

    path = Path(argument) if argument else EMBEDDED
    return load_published(path) if path.is_dir() else SkipThoughts.load(path)


def _minilm(argument: str) -> Encoder:
    from pfungst.text.encoders.sentence_transformers import minilm

    return minilm(argument, device=best_device())


def _sentence_transformers(argument: str) -> Encoder:
    from pfungst.text.encoders.sentence_transformers import SentenceTransformer

    return SentenceTransformer(_required("sentence-transformers", argument, "NAME"), best_device())


def _words(argument: str) -> Encoder:
    from pfungst.text.encoders.word_vectors import AveragedWords, WordVectors

    return AveragedWords(WordVectors.read(_required("words", argument, "FILE")))


def _tfidf(argument: str) -> Encoder:
    from pfungst.text.encoders.tfidf import TfIdf, load_counts

    if not argument:
        return load_counts()
    try:
        lines = Path(argument).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EncoderError(f"{argument}: the corpus of TF-IDF cannot be read ({error}).") from error
    return TfIdf.fit([line for line in lines if line.strip()])


def _required(name: str, argument: str, what: str) -> str:
    if not argument:
        raise EncoderError(f"The encoder {name} needs to know which: {name}:{what}.")
    return argument


_BUILTIN: dict[str, Callable[[str], Encoder]] = {
    "skip-thoughts": _skip_thoughts,
    "minilm": _minilm,
    "sentence-transformers": _sentence_transformers,
    "words": _words,
    "tfidf": _tfidf,
}
"""name -> factory, called with what follows the colon (empty if nothing does)."""
ENCODERS = Registry("encoder", "pfungst.encoders", _BUILTIN, EncoderError)


def get_encoder(name: str | Encoder | None = DEFAULT) -> Encoder:
    """An encoder by name; the default where the name is empty or None. An object is checked and given back.

    | name | what |
    |---|---|
    | `skip-thoughts` | the embedded default, see docs/reference/encoders.md |
    | `skip-thoughts:FILE` | one that `train_skip_thoughts` made (safetensors) |
    | `skip-thoughts:FOLDER` | the published 4800-dimensional one |
    | `minilm`, `minilm:FOLDER` | all-MiniLM-L6-v2, 384 dimensions |
    | `sentence-transformers:NAME` | any model of that library |
    | `words:FILE` | averaged word vectors (word2vec, GloVe, npz) |
    | `tfidf`, `tfidf:FILE` | TF-IDF; frequencies of real questions, or of the lines of FILE |

    Other packages add theirs as entry points of the group `pfungst.encoders`: a callable that takes what follows the
    colon and returns an `Encoder`.
    """
    if name is not None and not isinstance(name, str):
        if not isinstance(name, Encoder):
            raise EncoderError(f"{type(name).__name__} is no encoder: one has name, fingerprint, dim and encode.")
        return name
    name = name or DEFAULT
    argument = name.partition(":")[2]
    stamp = None
    with contextlib.suppress(OSError, ValueError):
        if argument:
            status = Path(argument).stat()
            stamp = status.st_mtime_ns, status.st_size
    return _load(name, stamp)


@lru_cache(maxsize=4)
def _load(name: str, stamp: tuple[int, int] | None) -> Encoder:
    """Loaded once, and again when its file (`stamp`) has changed."""
    kind, _, argument = name.partition(":")
    encoder = ENCODERS.get(kind)(argument)
    if not isinstance(encoder, Encoder):
        raise EncoderError(f"What makes the encoder {kind} returned none (name, fingerprint, dim, encode).")
    return encoder


def list_encoders() -> list[str]:
    """Names for `get_encoder`, those of other packages included."""
    return ENCODERS.names()
