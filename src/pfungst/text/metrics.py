"""BLEU-1..4, ROUGE-L, CIDEr and METEOR for all pairs of main questions and pool questions.

The main question is the reference, the pool question the hypothesis (BLEU and ROUGE-L are not symmetric). Values equal
those of pycocoevalcap within 1e-9; they are computed from inverted lists of n-grams (BLEU, CIDEr) and a bit-parallel
longest common subsequence (ROUGE-L) for one main question against the whole pool at once.

CIDEr needs document frequencies: they are taken over the pool, each question once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError, Progress
from pfungst.core.types import no_progress
from pfungst.text.index import ORDERS, Corpus, Postings, count_grams, starts_of

Floats = npt.NDArray[np.float64]
Rows = Callable[[int, int], Floats]
"""Scores (rows, pool) of the main questions from first to last."""

METRICS = ("bleu1", "bleu2", "bleu3", "bleu4", "rouge", "cider", "meteor")
BLOCK = 32_000_000
"""Scores computed at once: 256 MB."""
ROUGE_BETA = 1.2
ROUGE_LARGEST = 1 << 27
"""Numbers in the table of scores by lengths: a gigabyte."""
CIDER_SIGMA = 6.0


def pairwise(metric: str, main: Sequence[str], pool: Sequence[str]) -> Floats:
    """Scores (main, pool) of every pair.

    metric: bleu1, bleu2, bleu3, bleu4, rouge, cider or meteor (which needs the extra `meteor`).
    """
    rows = _prepare(metric, main, pool)
    if not main or not pool:
        return np.zeros((len(main), len(pool)))
    return rows(0, len(main))


def top_pairs(
    metric: str,
    main: Sequence[str],
    pool: Sequence[str],
    k: int,
    *,
    excluded: Sequence[Sequence[int]] | None = None,
    progress: Progress = no_progress,
) -> tuple[npt.NDArray[np.int64], Floats]:
    """The k pool questions with the best scores for every main question: places (main, k) and scores, best first.

    Ties go to the smaller place. excluded[i] are the pool places that main question i must not get.
    """
    hidden = [list(places) for places in excluded or [()] * len(main)]
    available = len(pool) - max(map(len, hidden), default=0)
    if not 1 <= k <= available:
        raise PfungstError(f"{k} best of {available} questions cannot be given.")
    if metric == "meteor":
        from pfungst.text.meteor import meteor_top

        _check_questions(main, pool)
        return meteor_top(main, pool, k, hidden, progress)
    places, scores = np.empty((len(main), k), dtype=np.int64), np.empty((len(main), k))
    rows, step = _prepare(metric, main, pool), max(1, BLOCK // len(pool))
    for first in range(0, len(main), step):
        last = min(first + step, len(main))
        for row, values in enumerate(rows(first, last), start=first):
            values[hidden[row]] = -np.inf
            places[row] = best(values, k)
            scores[row] = values[places[row]]
        progress("ranking", last, len(main))
    return places, scores


def best(values: npt.NDArray[Any], k: int) -> npt.NDArray[np.int64]:
    """Places of the k largest values, largest first, ties by the smaller place."""
    if k < len(values):
        border = np.partition(values, len(values) - k)[len(values) - k]
        candidates = np.flatnonzero(values >= border)
    else:
        candidates = np.arange(len(values))
    order = np.lexsort((candidates, -values[candidates]))[:k]
    return np.asarray(candidates[order], dtype=np.int64)


def ngram_precision(matches: Any, guesses: Any) -> Any:
    """BLEU: the share of n-grams that match, never quite 0 nor a division by 0."""
    return (matches + 1e-15) / (guesses + 1e-9)


def brevity_penalty(length: Any, reference: Any) -> Floats:
    """BLEU: exp(1 - 1/ratio) where the hypothesis is shorter than the reference, else 1."""
    ratio = (np.asarray(length) + 1e-15) / (np.asarray(reference) + 1e-9)
    # A hypothesis without words has ratio about 0: the penalty underflows to 0, as it does in the published code.
    with np.errstate(over="ignore"):
        return np.where(ratio < 1, np.exp(1 - 1 / ratio), 1.0)


def f_of_subsequence(precision: Any, recall: Any) -> Floats:
    """ROUGE-L: (1 + beta^2) P R / (R + beta^2 P), beta = 1.2; 0 where nothing is common."""
    beta = ROUGE_BETA**2
    below = np.asarray(recall + beta * precision)
    return np.where(below > 0, (1 + beta) * precision * recall / np.where(below > 0, below, 1.0), 0.0)


def inverse_frequency(documents: int, frequency: Any) -> Floats:
    """CIDEr: log N - log max(1, df)."""
    return np.asarray(np.log(float(max(1, documents))) - np.log(np.maximum(1.0, frequency)))


def length_penalty(difference: Any) -> Floats:
    """CIDEr-D: Gaussian of the difference of two lengths."""
    return np.asarray(np.exp(-(np.asarray(difference, dtype=np.float64) ** 2) / (2 * CIDER_SIGMA**2)))


def _check_questions(main: Sequence[str], pool: Sequence[str]) -> None:
    for name, sentences in (("main", main), ("pool", pool)):
        if isinstance(sentences, str):
            raise PfungstError(f"The {name} questions must be a list, not one string.")
        for place, sentence in enumerate(sentences):
            if not isinstance(sentence, str):
                raise PfungstError(f"{name.capitalize()} question {place} is {type(sentence).__name__}, not text.")


def _prepare(metric: str, main: Sequence[str], pool: Sequence[str]) -> Rows:
    _check_questions(main, pool)
    if metric == "meteor":
        from pfungst.text.meteor import meteor_rows

        return meteor_rows(main, pool)
    if metric not in METRICS:
        raise PfungstError(f"There is no text metric {metric!r}. There are: {', '.join(METRICS)}.")
    vocabulary: dict[str, int] = {}
    hypotheses, references = Corpus.of(pool, vocabulary), Corpus.of(main, vocabulary)
    if metric == "rouge":
        return _rouge(references, hypotheses, len(vocabulary))
    if metric == "cider":
        return _cider(references, hypotheses)
    return _bleu(references, hypotheses, int(metric[-1]))


def _bleu(references: Corpus, hypotheses: Corpus, orders: int) -> Rows:
    """Sentence BLEU: the product of the precisions to the 1/n, times the brevity penalty."""
    from pfungst.text.metric_kernels import bleu_rows

    numbers: dict[tuple[int, ...], int] = {}
    pool, main = count_grams(hypotheses, numbers, orders), count_grams(references, numbers, orders)
    postings = Postings.of(pool, len(numbers))
    lengths = hypotheses.lengths
    longest = int(lengths.max(initial=0))
    if longest > 255:
        raise PfungstError(f"A pool question has {longest} words; BLEU takes at most 255.")
    guesses = np.maximum(0, np.arange(longest + 1)[None, None, :] - np.arange(orders)[:, None, None])
    precision = ngram_precision(np.arange(longest + 1)[None, :, None], guesses) ** (1.0 / orders)
    brevity = brevity_penalty(np.arange(longest + 1)[None, :], references.lengths[:, None])

    def rows(first: int, last: int) -> Floats:
        out = np.empty((last - first, len(hypotheses)))
        bleu_rows(
            main.number, main.count, main.order, main.starts[first : last + 1], postings.sentence, postings.count,
            postings.starts, precision, brevity[first:last], lengths, orders, out,
        )  # fmt: skip
        return out

    return rows


def _rouge(references: Corpus, hypotheses: Corpus, vocabulary: int) -> Rows:
    """F of the longest common subsequence."""
    from pfungst.text.metric_kernels import LONGEST, rouge_long_rows, rouge_rows

    sentences = [tuple(hypotheses.words[a:b].tolist()) for a, b in zip(hypotheses.starts, hypotheses.starts[1:])]
    order = np.asarray(sorted(range(len(sentences)), key=sentences.__getitem__), dtype=np.int64)
    shared = np.zeros(len(order), dtype=np.int64)
    for place in range(1, len(order)):
        a, b = sentences[order[place - 1]], sentences[order[place]]
        common = 0
        while common < min(len(a), len(b)) and a[common] == b[common]:
            common += 1
        shared[place] = common
    counts = hypotheses.lengths[order]
    new_starts = starts_of(counts - shared)
    new_words = np.asarray(
        [word for place, kept in zip(order, shared) for word in sentences[place][kept:]], dtype=np.int32
    )
    deepest = int(hypotheses.lengths.max(initial=0))
    score = _rouge_table(deepest, int(references.lengths.max(initial=0)))

    def rows(first: int, last: int) -> Floats:
        out = np.empty((last - first, len(hypotheses)))
        starts = references.starts[first : last + 1]
        rouge_rows(
            references.words,
            starts,
            new_words,
            new_starts,
            shared,
            counts,
            order,
            max(1, vocabulary),
            score,
            deepest,
            out,
        )
        long = np.flatnonzero(np.diff(starts) > LONGEST)
        if len(long):
            rouge_long_rows(long, references.words, starts, hypotheses.words, hypotheses.starts, score, out)
        return out

    return rows


def _rouge_table(longest_hypothesis: int, longest_reference: int) -> Floats:
    if longest_hypothesis * longest_reference * min(longest_hypothesis, longest_reference) > ROUGE_LARGEST:
        raise PfungstError(
            f"A main question has {longest_reference} words and a pool question {longest_hypothesis}: together they "
            "are too long for ROUGE, which takes about 500 words of each."
        )
    common, hypothesis, reference = np.ix_(
        np.arange(min(longest_hypothesis, longest_reference) + 1),
        np.arange(longest_hypothesis + 1),
        np.arange(longest_reference + 1),
    )
    # The published code splits "" into one empty word: two empty sentences agree, one matches nothing.
    table = f_of_subsequence(common / np.maximum(hypothesis, 1), common / np.maximum(reference, 1))
    table[0, 0, 0] = 1.0
    return table


def _cider(references: Corpus, hypotheses: Corpus) -> Rows:
    """CIDEr-D: clipped tf-idf cosine of each order, Gaussian length penalty over bigram counts, mean times ten."""
    from pfungst.text.metric_kernels import cider_rows

    numbers: dict[tuple[int, ...], int] = {}
    pool, main = count_grams(hypotheses, numbers), count_grams(references, numbers)
    frequency = np.bincount(pool.number, minlength=len(numbers))
    idf = inverse_frequency(len(hypotheses), frequency)
    pool_weight, main_weight = pool.count * idf[pool.number], main.count * idf[main.number]
    postings = Postings.of(pool, len(numbers))
    post_weight = pool_weight[np.argsort(pool.number, kind="stable")]
    pool_norm, main_norm = _norms(pool, pool_weight, len(hypotheses)), _norms(main, main_weight, len(references))
    inverse = np.divide(1.0, pool_norm, out=np.ones_like(pool_norm), where=pool_norm != 0)
    bigrams = [np.maximum(corpus.lengths - 1, 0) for corpus in (references, hypotheses)]
    farthest = int(max(part.max(initial=0) for part in bigrams))
    penalty = length_penalty(np.arange(farthest + 1.0))

    def rows(first: int, last: int) -> Floats:
        out = np.empty((last - first, len(hypotheses)))
        cider_rows(
            main.number, main_weight, main.order, main.starts[first : last + 1],
            np.ascontiguousarray(main_norm[:, first:last]),
            bigrams[0][first:last], postings.sentence, post_weight, postings.starts, inverse, bigrams[1], penalty, out,
        )  # fmt: skip
        return out

    return rows


def _norms(grams: Any, weight: Floats, size: int) -> Floats:
    """Euclidean norm of each sentence's weights, (order, sentence)."""
    sentence = np.repeat(np.arange(size), np.diff(grams.starts))
    squares = np.bincount(grams.order.astype(np.int64) * size + sentence, weights=weight**2, minlength=ORDERS * size)
    return np.asarray(np.sqrt(squares.reshape(ORDERS, size)))
