"""Two ways to cut a sentence into words."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable

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
