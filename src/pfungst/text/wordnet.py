"""Wu-Palmer similarity of words, and WUPS of answers, over WordNet 3.0.

    >>> wup("dog", "cat")
    0.8571428571428571
    >>> wup("dog.n.01", "cat.n.01")
    0.8571428571428571
    >>> wups("a wooden table", "wooden table")
    1.0

Values are those of NLTK's `wup_similarity`, to the last bit. One exception: NLTK has no value (None) for two verbs both
below restrain.v.01 and inhibit.v.04, which WordNet 3.0 puts above each other; here that circle is cut.

`wup` and `wups` answer one question at a time; `wup_many`, `wup_matrix`, `WupIndex` and `WupsIndex` are compiled; the
last three are more than a thousand times faster than a loop over NLTK.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError
from pfungst.text.index import starts_of
from pfungst.text.wordnet_tables import POS, wordnet, wu_palmer

__all__ = ["WupIndex", "WupsIndex", "base_forms", "senses", "wup", "wup_many", "wup_matrix", "wups"]

Longs = npt.NDArray[np.int64]

DOWN_WEIGHT = 0.1
"""What is left of a similarity below the threshold of WUPS (Malinowski and Fritz, 2014)."""

_ARTICLES = frozenset(("a", "an", "the"))
_CACHED = 1 << 17
_CHUNK = 1 << 18
"""Pairs of answers compared at once: bounds the memory of their elements."""


def wup(one: str, other: str, pos: str = "n") -> float:
    """Wu-Palmer similarity in [0, 1] of two words or synsets, `one.wup_similarity(other)` of NLTK.

    A synset is named as in NLTK (`dog.n.01`, nouns and verbs). Anything else is a word or collocation, in any inflected
    form (`mice`, `tennis rackets`); its value is the maximum over its senses of the parts of speech `pos` (`"n"` as in
    the WUPS script of Malinowski and Fritz, `"v"`, or `"nv"`). Equal words give 1, an unknown word gives 0. The measure
    is not symmetric where senses tie, see `wups` for one that is.
    """
    return _term_wup(_canonical(one), _canonical(other), _checked(pos))


def wups(one: str, other: str, threshold: float = 0.0) -> float:
    """WUPS of two answers, in [0, 1], symmetric: min(prod_a max_b wup(a, b), prod_b max_a wup(b, a)).

    The formula of Malinowski and Fritz (2014) with their down-weighting: similarities below `threshold` count a tenth
    (0.9 for WUPS at 0.9; 0.0 changes nothing). Elements of an answer are separated by commas, as in DAQUAR
    (`"bottle, vase"`). An element of several words is one thing where WordNet knows it (`tennis court`); otherwise its
    words, less a, an, the, are the elements (`a wooden table`: wooden, table), which the published script, made for
    answers of one word, would score 0 unless equal. Case, and blank against underscore, make no difference.
    """
    if _whole(one) == _whole(other):
        return 1.0
    left, right = _elements(one), _elements(other)
    return min(_membership(left, right, threshold), _membership(right, left, threshold))


def wup_many(pairs: Iterable[tuple[str, str]], pos: str = "n") -> npt.NDArray[np.float64]:
    """`wup` of every pair, compiled: an array (pairs,). Looking the strings up takes most of the time; `WupIndex` does
    that once."""
    flat = list(chain.from_iterable(pairs))
    index = WupIndex(dict.fromkeys(flat), pos)
    numbers = index.numbers(flat)
    return index.wup(numbers[0::2], numbers[1::2])


def wup_matrix(ones: Sequence[str], others: Sequence[str], pos: str = "n") -> npt.NDArray[np.float64]:
    """`wup` of every one against every other, compiled: an array (ones, others)."""
    index = WupIndex(chain(ones, others), pos)
    left, right = np.meshgrid(index.numbers(ones), index.numbers(others), indexing="ij")
    return index.wup(left, right)


class WupIndex:
    """Words and synsets prepared for `wup` by the million.

    >>> index = WupIndex(["dog", "cat", "lady.n.01"])
    >>> index.wup([0, 0], [1, 2])
    """

    def __init__(self, terms: Iterable[str], pos: str = "n") -> None:
        self._number, keys = _numbered(terms)
        self._keys = {key: number for number, key in enumerate(keys)}
        self._terms = _terms(keys, pos)

    def numbers(self, terms: Iterable[str]) -> npt.NDArray[np.int64]:
        """Numbers of terms of this index. Terms that WordNet spells alike (`Dog`, `dog`) have the same."""
        asked = list(terms)
        for text in set(asked) - self._number.keys():
            if _canonical(text) not in self._keys:
                raise PfungstError(f"This index has no term {text!r:.80}.")
            self._number[text] = self._keys[_canonical(text)]
        return np.fromiter(map(self._number.__getitem__, asked), np.int64, len(asked))

    def wup(self, ones: npt.ArrayLike, others: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """`wup` of the terms with numbers `ones` to those with numbers `others`: an array like them."""
        left, right = _checked_numbers(ones, others, len(self._terms[2]), "terms")
        return _pairs(self._terms, left.ravel(), right.ravel()).reshape(left.shape)


class WupsIndex:
    """Answers prepared for `wups` by the million.

    >>> index = WupsIndex(["dog", "cat", "black dog"])
    >>> index.wups([0, 0], [1, 2])
    """

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers = tuple(answers)
        elements = [_elements(answer) for answer in self.answers]
        words, keys = _numbered(chain.from_iterable(elements))
        whole, _ = _numbered(_whole(answer) for answer in self.answers)
        self._terms = _terms(keys, "n", names=False)
        self._elements = (
            starts_of([len(one) for one in elements]),
            np.array([words[word] for word in chain.from_iterable(elements)], np.int64),
            np.array([whole[_whole(answer)] for answer in self.answers], np.int64),
        )

    def wups(self, ones: npt.ArrayLike, others: npt.ArrayLike, threshold: float = 0.0) -> npt.NDArray[np.float64]:
        """`wups` of the answers with numbers `ones` against those with numbers `others`: an array like them."""
        from pfungst.text import wordnet_kernels as kernels

        left, right = _checked_numbers(ones, others, len(self.answers), "answers")
        result = np.empty(left.size)
        for at in range(0, left.size, _CHUNK):
            first, second = left.ravel()[at : at + _CHUNK], right.ravel()[at : at + _CHUNK]
            pairs = kernels.element_pairs(self._elements, first, second)
            values = _pairs(self._terms, *pairs)
            result[at : at + _CHUNK] = kernels.combine(
                self._elements, first, second, *pairs, values, float(threshold), DOWN_WEIGHT
            )
        return result.reshape(left.shape)


def senses(word: str, pos: str = "n") -> tuple[str, ...]:
    """Names of the synsets of a word in any inflected form, most frequent sense first: `("dog.n.01", ...)`."""
    return tuple(map(wordnet().name, _synsets(_canonical(word), _checked(pos))))


def base_forms(word: str, pos: str = "n") -> tuple[str, ...]:
    """Lemmas a word may be a form of: `base_forms("axes")` is `("ax", "axis")`."""
    lexicons = wordnet().lexicons
    return tuple(chain.from_iterable(lexicons[one].base_forms(_canonical(word)) for one in _checked(pos)))


def _checked(pos: str) -> str:
    if not pos or set(pos) - set(POS):
        raise PfungstError(f"pos is {pos!r}; Wu-Palmer knows 'n' (nouns), 'v' (verbs) and 'nv' (both).")
    return pos


def _canonical(text: str) -> str:
    """As WordNet spells: lower case, underscores for blanks."""
    return "_".join(text.lower().split())


@lru_cache(maxsize=_CACHED)
def _synsets(word: str, pos: str) -> tuple[int, ...]:
    lexicons = wordnet().lexicons
    return tuple(dict.fromkeys(chain.from_iterable(lexicons[one].synsets(word) for one in pos)))


@lru_cache(maxsize=_CACHED)
def _above(synset: int) -> tuple[list[int], dict[int, int]]:
    """Ancestors of a synset as the rule reads those of the other side, and of the one side."""
    net = wordnet()
    above = net.above[net.starts[synset] : net.starts[synset + 1]].tolist()
    return above, {packed >> 8: packed & 255 for packed in above}


def _best_senses(ones: Sequence[int], others: Sequence[int]) -> float:
    net = wordnet()
    best = 0.0
    for one in ones:
        up = _above(one)[1]
        for other in others:
            above = _above(other)[0]
            stop = len(above)
            at = next((at for at, packed in enumerate(above) if packed >> 8 in up), stop)
            far = up[above[at] >> 8] if at < stop else -1
            best = max(best, wu_palmer(one, other, far, at, stop, above, net.depths[0][one], *net.depths, net.nouns))
    return best


def _term_wup(one: str, other: str, pos: str) -> float:
    net = wordnet()
    synset, counterpart = net.synset(one), net.synset(other)
    if synset is None and counterpart is None:
        return _word_wup(one, other, pos)
    return _best_senses(
        _synsets(one, pos) if synset is None else (synset,),
        _synsets(other, pos) if counterpart is None else (counterpart,),
    )


@lru_cache(maxsize=_CACHED)
def _word_wup(one: str, other: str, pos: str) -> float:
    return 1.0 if one == other else _best_senses(_synsets(one, pos), _synsets(other, pos))


def _items(answer: str) -> list[str]:
    return [item.strip() for item in answer.lower().split(",")]


def _whole(answer: str) -> str:
    """Answers with the same whole are the same answer."""
    return ",".join(_canonical(item) for item in _items(answer))


@lru_cache(maxsize=1 << 14)
def _elements(answer: str) -> tuple[str, ...]:
    elements: list[str] = []
    for item in _items(answer):
        words = item.split()
        if len(words) > 1 and not _synsets("_".join(words), "n"):
            elements.extend([word for word in words if word not in _ARTICLES] or words)
        else:
            elements.append("_".join(words))
    return tuple(elements)


def _membership(ones: Sequence[str], others: Sequence[str], threshold: float) -> float:
    product = 1.0
    for one in ones:
        product *= max(_weighted(one, other, threshold) for other in others)
        if product == 0.0:
            break
    return product


def _weighted(one: str, other: str, threshold: float) -> float:
    similarity = _word_wup(one, other, "n")
    return similarity if one == other or similarity >= threshold else similarity * DOWN_WEIGHT


def _numbered(texts: Iterable[str]) -> tuple[dict[str, int], list[str]]:
    """Number of every text, equal for texts that WordNet spells alike; and the spellings in that order."""
    keys: dict[str, int] = {}
    number = {text: keys.setdefault(_canonical(text), len(keys)) for text in dict.fromkeys(texts)}
    return number, list(keys)


def _terms(keys: Sequence[str], pos: str, names: bool = True) -> tuple[npt.NDArray[Any], ...]:
    """(starts, senses, is_word) of spellings, for the kernels; `names`: a spelling may be the name of a synset."""
    net, pos = wordnet(), _checked(pos)
    known = net.numbers if names else {}
    named = [known[key] if key in known else net.synset(key) if names and "." in key else None for key in keys]
    synsets = [_synsets(key, pos) if name is None else (name,) for key, name in zip(keys, named)]
    flat = np.array(list(chain.from_iterable(synsets)), np.int32)
    return (
        starts_of([len(one) for one in synsets]),
        np.stack([flat, net.starts[flat], net.starts[flat + 1], net.min_depth[flat]], axis=1).astype(np.int32),
        np.array([name is None for name in named], np.bool_),
    )


def _checked_numbers(ones: npt.ArrayLike, others: npt.ArrayLike, size: int, what: str) -> tuple[Longs, Longs]:
    left, right = np.asarray(ones, np.int64), np.asarray(others, np.int64)
    if left.shape != right.shape:
        raise PfungstError(f"Similarity compares equally many {what}, not shapes {left.shape} and {right.shape}.")
    if left.size and not 0 <= min(left.min(), right.min()) <= max(left.max(), right.max()) < size:
        raise PfungstError(f"This index has {size} {what}, and a number given is not one of them.")
    return left, right


def _pairs(terms: tuple[npt.NDArray[Any], ...], ones: Longs, others: Longs) -> npt.NDArray[np.float64]:
    """Similarities of terms by number, on all cores where there are many."""
    from pfungst.text import wordnet_kernels as kernels

    known = wordnet()
    net = known.above, known.min_depth, known.max_depth, known.to_root, known.nouns
    result = np.empty(len(ones))
    size = max(_CHUNK // 4, -(-len(ones) // (4 * (os.cpu_count() or 1))))

    def work(at: int) -> None:
        part = slice(at, at + size)
        kernels.term_pairs(net, terms, ones[part], others[part], result[part])

    if len(ones) <= size:
        work(0)
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(work, range(0, len(ones), size)))
    return result
