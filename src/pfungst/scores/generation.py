"""How good generated questions are: the columns of Table 3 of Cycle-Consistency for Robust VQA.

Scores of a whole corpus as pycocoevalcap gives them, with one or more references per example: BLEU adds up counts over
the corpus (closest reference length), ROUGE-L and CIDEr-D are means over the examples. The formulas are those of
`pfungst.text.metrics`, which scores all pairs of sentences.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from pfungst.core import MissingExtra, PfungstError
from pfungst.text.index import ORDERS
from pfungst.text.metrics import (
    brevity_penalty,
    f_of_subsequence,
    inverse_frequency,
    length_penalty,
    ngram_precision,
)
from pfungst.text.words import tokenize

COLUMNS = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "METEOR", "CIDEr")
_METEOR_AT_ONCE = 64

Words = Sequence[str]
Grams = Counter[tuple[str, ...]]


def generation_scores(
    written: Sequence[str], wanted: Sequence[Sequence[str]], *, meteor: bool = True
) -> Mapping[str, float]:
    """Column -> score of a corpus: one generated question per example, and its references.

    METEOR is the mean over the examples of METEOR 1.5 with the best reference (pycocoevalcap's program pools its
    statistics over the corpus instead); NaN where its word lists are not installed (extra `meteor`),
    or where it is not wanted: reading them takes seconds.
    """
    if len(written) != len(wanted) or not written or not all(wanted):
        raise PfungstError(
            f"{len(written)} generated questions and {len(wanted)} lists of references: every question needs at least "
            "one reference."
        )
    said = [tokenize(text) for text in written]
    refs = [[tokenize(text) for text in texts] for texts in wanted]
    return {
        **{f"BLEU-{n}": value for n, value in enumerate(corpus_bleu(said, refs), 1)},
        "ROUGE-L": sum(map(rouge_l, said, refs)) / len(said),
        "METEOR": _meteor(written, wanted) if meteor else math.nan,
        "CIDEr": corpus_cider(said, refs),
    }


def corpus_bleu(said: Sequence[Words], wanted: Sequence[Sequence[Words]]) -> list[float]:
    """BLEU-1 to BLEU-4."""
    hits, guesses = [0] * ORDERS, [0] * ORDERS
    length = reference = 0
    for words, refs in zip(said, wanted, strict=True):
        length += len(words)
        reference += min((abs(len(ref) - len(words)), len(ref)) for ref in refs)[1]
        grams = _grams(words)
        most: Grams = Counter()
        for ref in refs:
            most |= _grams(ref)
        for gram, count in grams.items():
            hits[len(gram) - 1] += min(count, most[gram])
        for n in range(ORDERS):
            guesses[n] += max(0, len(words) - n)
    precision = np.cumprod(ngram_precision(np.asarray(hits), np.asarray(guesses)))
    scores = precision ** (1 / np.arange(1, ORDERS + 1)) * brevity_penalty(length, reference)
    return [float(score) for score in scores]


def rouge_l(words: Words, refs: Sequence[Words]) -> float:
    """F of the longest common subsequence: the best precision and the best recall over the references."""
    from pfungst.text.metric_kernels import subsequence

    vocabulary: dict[str, int] = {}
    numbers, *others = (
        np.asarray([vocabulary.setdefault(word, len(vocabulary)) for word in text], dtype=np.int32)
        for text in (words, *refs)
    )
    common = [subsequence(numbers, other) for other in others]
    precision = max(c / max(1, len(words)) for c in common)
    recall = max(c / max(1, len(ref)) for c, ref in zip(common, refs, strict=True))
    return float(f_of_subsequence(precision, recall))


def corpus_cider(said: Sequence[Words], wanted: Sequence[Sequence[Words]]) -> float:
    """CIDEr-D; document frequencies are those of the references."""
    documents: Grams = Counter()
    for refs in wanted:
        documents.update({gram for ref in refs for gram in _grams(ref)})
    total = 0.0
    for words, refs in zip(said, wanted, strict=True):
        own, norms, length = _weighed(words, documents, len(wanted))
        score = 0.0
        for ref in refs:
            other, other_norms, other_length = _weighed(ref, documents, len(wanted))
            penalty = float(length_penalty(length - other_length))
            for n in range(ORDERS):
                both = sum(
                    min(weight, other[n].get(gram, 0.0)) * other[n].get(gram, 0.0) for gram, weight in own[n].items()
                )
                scale = norms[n] * other_norms[n]
                score += penalty * (both / scale if scale else both) / ORDERS
        total += 10 * score / len(refs)
    return total / len(said)


def _weighed(words: Words, documents: Grams, size: int) -> tuple[list[dict[tuple[str, ...], float]], list[float], int]:
    """The tf-idf weights of the n-grams of each order, their norms, and the number of bigrams."""
    vectors: list[dict[tuple[str, ...], float]] = [{} for _ in range(ORDERS)]
    counts = _grams(words)
    frequencies = inverse_frequency(size, np.asarray([documents[gram] for gram in counts], dtype=np.float64))
    for (gram, count), weight in zip(counts.items(), frequencies.tolist(), strict=True):
        vectors[len(gram) - 1][gram] = count * weight
    norms = [math.sqrt(sum(weight**2 for weight in vector.values())) for vector in vectors]
    return vectors, norms, max(0, len(words) - 1)


def _grams(words: Words) -> Grams:
    return Counter(tuple(words[i : i + n]) for n in range(1, ORDERS + 1) for i in range(len(words) - n + 1))


def _meteor(written: Sequence[str], wanted: Sequence[Sequence[str]]) -> float:
    from pfungst.text import pairwise

    pairs = [(i, text) for i, texts in enumerate(wanted) for text in texts]
    best = [0.0] * len(written)
    try:
        for start in range(0, len(pairs), _METEOR_AT_ONCE):
            part = pairs[start : start + _METEOR_AT_ONCE]
            scores = pairwise("meteor", [text for _, text in part], [written[i] for i, _ in part])
            for place, (i, _) in enumerate(part):
                best[i] = max(best[i], float(scores[place, place]))
    except MissingExtra:
        return math.nan
    return sum(best) / len(written)
