"""What an encoder is, which sentences it takes, and how it cuts them into words."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError, PfungstError

FloatArray = NDArray[np.float32]

MAX_WORDS = 1000
"""Recurrent encoders read this many words of a sentence and no more."""


class EncoderError(PfungstError):
    """An encoder that cannot be found, loaded or believed."""


@runtime_checkable
class Encoder(Protocol):
    """Turns sentences into vectors. One row depends on its own sentence alone."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors may change: weights, settings, version. Names the vectors in the cache."""
        ...

    @property
    def dim(self) -> int: ...

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        """float32 array (sentences, dim). A sentence without words gives a row of zeros."""
        ...


def check_sentences(sentences: Sequence[str]) -> list[str]:
    """The sentences as a list, or an error that says which one is not text."""
    if isinstance(sentences, str | bytes):
        raise DataError("Sentences come as a list; a single string was given. Put it in a list of one.")
    checked = list(sentences)
    for position, sentence in enumerate(checked):
        if not isinstance(sentence, str):
            raise DataError(
                f"Sentence {position} is {_short(sentence)} of type {type(sentence).__name__}, but only text can be "
                "encoded. Convert it, or leave it out."
            )
    return checked


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def unit_rows(rows: FloatArray) -> FloatArray:
    """Rows scaled to length 1, contiguous; rows of zeros stay."""
    scaled = np.array(rows, np.float32, order="C")
    for start in range(0, len(scaled), 1 << 16):  # bounds the memory of the squares
        part = scaled[start : start + (1 << 16)]
        length = np.linalg.norm(part, axis=1, keepdims=True)
        np.divide(part, length, out=part, where=length > 0)
    return scaled


def best_device() -> str:
    """`cuda` where torch has one, else `cpu`, and `numpy` where there is no torch."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return "numpy"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def check_encoder(encoder: Encoder) -> None:
    """Try anybody's encoder on hard sentences. Raises EncoderError with a sentence for what is wrong."""
    sentences = [
        "How old is the car?",
        "",
        "Is the man smiling?",
        "Ist das Auto rot?",
        "word " * 2000,
        "How old is the car?",
    ]
    for attribute, kind in (("name", str), ("fingerprint", str), ("dim", int)):
        if not isinstance(getattr(encoder, attribute, None), kind):
            raise EncoderError(f"{type(encoder).__name__}.{attribute} must be of type {kind.__name__}.")
    rows = encoder.encode(sentences)
    problems = {
        f"must return an array of shape ({len(sentences)}, {encoder.dim})": np.shape(rows)
        != (len(sentences), encoder.dim),
        "must return float32": getattr(rows, "dtype", None) != np.float32,
    }
    _raise_first(encoder, problems)
    alone = np.concatenate([encoder.encode([sentence]) for sentence in sentences])
    problems = {
        "returned NaN or infinity": not np.isfinite(rows).all(),
        "must give zeros for a sentence without words": bool(rows[1].any()),
        "gave two vectors for one sentence": not np.allclose(rows[0], rows[5], atol=1e-5),
        "gave one vector for different sentences": np.allclose(rows[0], rows[2], atol=1e-5),
        "gives a sentence another vector when it is encoded alone": not np.allclose(rows, alone, atol=1e-4),
        "must return an empty array for no sentences": np.shape(encoder.encode([])) != (0, encoder.dim),
    }
    _raise_first(encoder, problems)


def _raise_first(encoder: Encoder, problems: dict[str, bool]) -> None:
    for sentence, wrong in problems.items():
        if wrong:
            raise EncoderError(f"The encoder {encoder.name} {sentence}.")


_WORD = re.compile(r"n't|'[a-z]+|[^\W_]+")
_NOT = re.compile(r"n't\b")


def words(sentence: str) -> list[str]:
    """Lower-case words without punctuation; `isn't` is `is n't`, `man's` is `man 's`.

    The words of our own models: whether a question ends with a question mark must not change its vector.
    """
    text = unicodedata.normalize("NFKC", sentence).lower().replace("’", "'")
    return _WORD.findall(_NOT.sub(" n't", text))


_SENTENCE_END = re.compile(r"""(?<=[.?!])["')\]]*\s+(?=["'(\[]*[A-Z0-9])""")
_PENN_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r'^"', r"`` "),
        (r'(?<=[ (\[{<])"', r"`` "),
        (r"''|\"", r" '' "),
        (r"[“”‘’«»–—]", r" \g<0> "),
        (r"(?i)(?:^|(?<=[ (\[{<]))'(?=\w)(?!(?:[smdtn]|re|ve|ll)\b)", r"' "),
        (r"([:,])(?=\D|$)", r" \1 "),
        (r"\.{2,}", r" \g<0> "),
        (r"[;@#$%&?!*]", r" \g<0> "),
        (r"(?<![.])\.(?=[\])}>\"' ]*$)", r" . "),
        (r"(?<=[^' ])'(?= |$)", r" ' "),
        (r"[\][(){}<>]", r" \g<0> "),
        (r"--", r" -- "),
        (r"(?i)'(?:[sdm]|ll|re|ve)(?= |$)", r" \g<0>"),
        (r"(?i)n't(?= |$)", r" \g<0>"),
        (r"(?i)\b(can)(not)\b", r"\1 \2"),
        (r"(?i)\b(gim|lem)(me)\b", r"\1 \2"),
        (r"(?i)\b(gon|wan)(na)\b", r"\1 \2"),
        (r"(?i)\b(got)(ta)\b", r"\1 \2"),
    )
)


def penn(sentence: str) -> list[str]:
    """Penn Treebank tokens, case kept: what the published skip-thoughts were trained on.

    The release cuts with NLTK's sentence splitter and word tokenizer; this follows the same conventions and agrees
    with that tokenizer on more than 99.9% of real questions (tests/real/test_encoders_real.py).
    """
    tokens: list[str] = []
    for part in _SENTENCE_END.split(sentence):
        text = part.strip()
        for pattern, replacement in _PENN_RULES:
            text = pattern.sub(replacement, text)
        tokens += text.split()
    return tokens


TOKENIZERS: dict[str, Callable[[str], list[str]]] = {"words": words, "penn": penn}

_LONGEST = 32
"""Characters of a word that are looked at; nobody's word is longer, and a data set may hold anything."""


def gram_buckets(word: str, buckets: int) -> list[int]:
    """Buckets of the letter 3-grams and 4-grams of a word and of the word itself, as in fastText.

    Two spellings of a word share most of them, which is how a word that was never seen gets a vector.
    """
    framed = f"<{word[:_LONGEST]}>"
    grams = [framed]
    for size in (3, 4):
        grams += [framed[i : i + size] for i in range(len(framed) - size + 1)]
    return [zlib.crc32(gram.encode("utf-8", "surrogatepass")) % buckets for gram in grams]
