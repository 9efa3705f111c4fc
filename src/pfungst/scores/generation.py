"""How good generated questions are: the columns of Table 3 of 003_43f488cf6d651ec9.txt.

Scores of a whole corpus as pycocoevalcap gives them, with one or several references an example: BLEU adds up counts
over the corpus (closest reference length), ROUGE-L (beta 1.2) and CIDEr-D are means over the examples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from pfungst.core import MissingExtra, PfungstError

COLUMNS = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "METEOR", "CIDEr")
_ORDERS = 4
_TINY, _SMALL = 1e-15, 1e-9
_BETA = 1.2
_SIGMA = 6.0
_METEOR_AT_ONCE = 64

Words = Sequence[str]
Grams = Counter[tuple[str, ...]]


def generation_scores(
    written: Sequence[str], wanted: Sequence[Sequence[str]], *, meteor: bool = True
) -> Mapping[str, float]:
    """Column -> score of a corpus: one written question an example, and the questions it could have been.

    METEOR is the mean over the examples of METEOR 1.5 with the best reference (pycocoevalcap's program pools its
    statistics over the corpus instead); NaN where its word lists are not installed (extra `meteor`),
    or where it is not wanted: reading them takes seconds.
    """
    if len(written) != len(wanted) or not written or not all(wanted):
        raise PfungstError(
            f"{len(written)} generated questions and {len(wanted)} lists of references: every question needs at least "
            "one reference."
        )
    from pfungst.text import tokenize

    known: dict[str, Words] = {}

    def words(text: str) -> Words:
        if text not in known:
            known[text] = tokenize(text)
        return known[text]

    said = [words(text) for text in written]
    refs = [[words(text) for text in texts] for texts in wanted]
    bleu = corpus_bleu(said, refs)
    return {
        **{f"BLEU-{n + 1}": value for n, value in enumerate(bleu)},
        "ROUGE-L": sum(map(rouge_l, said, refs)) / len(said),
        "METEOR": _meteor(written, wanted) if meteor else math.nan,
        "CIDEr": corpus_cider(said, refs),
    }


def corpus_bleu(said: Sequence[Words], wanted: Sequence[Sequence[Words]]) -> list[float]:
    """BLEU-1 to BLEU-4."""
    hits, guesses = [0] * _ORDERS, [0] * _ORDERS
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
        for n in range(_ORDERS):
            guesses[n] += max(0, len(words) - n)
    scores, product = [], 1.0
    ratio = (length + _TINY) / (reference + _SMALL)
    for n in range(_ORDERS):
        product *= (hits[n] + _TINY) / (guesses[n] + _SMALL)
        scores.append(product ** (1 / (n + 1)) * (math.exp(1 - 1 / ratio) if ratio < 1 else 1.0))
    return scores


def rouge_l(words: Words, refs: Sequence[Words]) -> float:
    """F of the longest common subsequence: the best precision and the best recall over the references."""
    common = [_lcs(words, ref) for ref in refs]
    precision = max(c / len(words) if words else 0.0 for c in common)
    recall = max(c / len(ref) if ref else 0.0 for c, ref in zip(common, refs, strict=True))
    if not precision or not recall:
        return 0.0
    return (1 + _BETA**2) * precision * recall / (recall + _BETA**2 * precision)


def corpus_cider(said: Sequence[Words], wanted: Sequence[Sequence[Words]]) -> float:
    """CIDEr-D; document frequencies are those of the references."""
    documents: Grams = Counter()
    for refs in wanted:
        documents.update({gram for ref in refs for gram in _grams(ref)})
    size = math.log(len(wanted))
    total = 0.0
    for words, refs in zip(said, wanted, strict=True):
        own, norms, length = _weighed(words, documents, size)
        score = 0.0
        for ref in refs:
            other, other_norms, other_length = _weighed(ref, documents, size)
            penalty = math.exp(-((length - other_length) ** 2) / (2 * _SIGMA**2))
            for n in range(_ORDERS):
                both = sum(
                    min(weight, other[n].get(gram, 0.0)) * other[n].get(gram, 0.0) for gram, weight in own[n].items()
                )
                scale = norms[n] * other_norms[n]
                score += penalty * (both / scale if scale else both) / _ORDERS
        total += 10 * score / len(refs)
    return total / len(said)


def _weighed(
    words: Words, documents: Grams, size: float
) -> tuple[list[dict[tuple[str, ...], float]], list[float], int]:
    vectors: list[dict[tuple[str, ...], float]] = [{} for _ in range(_ORDERS)]
    for gram, count in _grams(words).items():
        vectors[len(gram) - 1][gram] = count * (size - math.log(max(1, documents[gram])))
    norms = [math.sqrt(sum(value**2 for value in one.values())) for one in vectors]
    return vectors, norms, max(0, len(words) - 1)


def _grams(words: Words) -> Grams:
    return Counter(tuple(words[i : i + n]) for n in range(1, _ORDERS + 1) for i in range(len(words) - n + 1))


def _lcs(one: Words, other: Words) -> int:
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for j, target in enumerate(other, 1):
            before, row[j] = row[j], before + 1 if word == target else max(row[j], row[j - 1])
    return row[-1]


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
