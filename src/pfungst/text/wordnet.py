"""Wu-Palmer similarity of words, and WUPS of answers, over WordNet 3.0.

    >>> wup("dog", "cat")
    0.8571428571428571
    >>> wup("dog.n.01", "cat.n.01")
    0.8571428571428571
    >>> wups("a wooden table", "wooden table")
    1.0

Values are those of NLTK's `wup_similarity`, to the last bit. One exception: NLTK has no value (None) for two verbs both
below restrain.v.01 and inhibit.v.04, which WordNet 3.0 puts above each other; here that circle is cut.

The tables travel with the package; `scripts/build_wordnet.py` of commit 66de31a made them from Princeton's files.
Synsets are numbered in the order in which NLTK prefers them as subsumers (greatest minimal depth first, then by name),
so the subsumer of two is the first number that their sorted ancestors share; the distance stored with an ancestor is
the one NLTK uses, the shortest path over any common ancestor. WordNet is Princeton University's; its licence lies
beside the data in `wordnet_data/LICENSE.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import as_file, files
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError
from pfungst.text.index import starts_of

POS = "nv"

DETACHMENT = {
    "n": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "v": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
}
"""Suffix -> ending, from the morphology of WordNet (morphy), in the order NLTK applies them."""

_SYNSET_NAME = re.compile(r"(.+)\.([a-z])\.(\d+)", re.DOTALL)


@dataclass(frozen=True)
class Lexicon:
    """The words of one part of speech."""

    pos: str
    words: dict[str, int]
    """Lemma (lower case, underscores) -> its number, in alphabetical order."""
    starts: npt.NDArray[np.int64]
    """Where the senses of a lemma start in `senses`; one more entry than lemmas."""
    senses: npt.NDArray[np.int32]
    """Synset numbers, most frequent sense of a lemma first."""
    exceptions: dict[str, list[str]]
    """Irregular form -> lemmas."""

    def base_forms(self, word: str) -> Iterator[str]:
        """The lemmas a form may belong to, itself first (NLTK's morphy: exceptions, else every suffix rule once)."""
        candidates = self.exceptions.get(word)
        if candidates is None:
            rules = DETACHMENT[self.pos]
            candidates = [word[: -len(suffix)] + ending for suffix, ending in rules if word.endswith(suffix)]
        seen = set()
        for form in (word, *candidates):
            if form in self.words and form not in seen:
                seen.add(form)
                yield form

    def synsets(self, word: str) -> list[int]:
        """Numbers of the synsets of a word in any inflected form."""
        found: list[int] = []
        for form in self.base_forms(word):
            at = self.words[form]
            found.extend(self.senses[self.starts[at] : self.starts[at + 1]].tolist())
        return found


@dataclass(frozen=True)
class WordNet:
    """Nouns and verbs in one numbering, nouns first. All arrays are indexed by synset number."""

    nouns: int
    """How many synsets are nouns."""
    lexicons: dict[str, Lexicon]
    starts: npt.NDArray[np.int64]
    """Where the ancestors of a synset start; one more entry than synsets."""
    above: npt.NDArray[np.int32]
    """The ancestors, sorted, each shifted by 8 bits, with the distance to it in the bits thus free."""
    min_depth: npt.NDArray[np.uint8]
    max_depth: npt.NDArray[np.uint8]
    to_root: npt.NDArray[np.uint8]
    """Distance to the simulated root."""
    name_lemma: npt.NDArray[np.int32]
    name_sense: npt.NDArray[np.uint8]

    @cached_property
    def depths(self) -> tuple[list[int], list[int], list[int]]:
        """Minimal depth, maximal depth, distance to the root as lists: single look-ups are faster there."""
        return self.min_depth.tolist(), self.max_depth.tolist(), self.to_root.tolist()

    def name(self, synset: int) -> str:
        """Name of a synset as NLTK writes it: `dog.n.01`."""
        lexicon = self.lexicons["n" if synset < self.nouns else "v"]
        return f"{self._lemmas[lexicon.pos][self.name_lemma[synset]]}.{lexicon.pos}.{self.name_sense[synset]:02d}"

    @cached_property
    def _lemmas(self) -> dict[str, list[str]]:
        return {pos: list(lexicon.words) for pos, lexicon in self.lexicons.items()}

    def synset(self, name: str) -> int | None:
        """Number of the synset with that name; None if the text is not the name of a synset but a word."""
        parts = _SYNSET_NAME.fullmatch(name.lower())
        if parts is None:
            return None
        lemma, pos, sense = parts[1], parts[2], int(parts[3])
        if pos not in POS:
            if pos not in "ars":
                return None
            raise PfungstError(f"{name!r} is an adjective or adverb; WordNet has a taxonomy of nouns and verbs only.")
        lexicon = self.lexicons[pos]
        at = lexicon.words.get(lemma)
        if at is None or not 1 <= sense <= lexicon.starts[at + 1] - lexicon.starts[at]:
            raise PfungstError(f"WordNet 3.0 has no synset {name!r}; see pfungst.text.wordnet.senses(word) for those.")
        return int(lexicon.senses[lexicon.starts[at] + sense - 1])


@lru_cache(maxsize=1)
def wordnet() -> WordNet:
    """The tables, read on first use (about 0.1 s)."""
    with as_file(files("pfungst.text") / "wordnet_data" / "wordnet30.npz") as path, np.load(path) as archive:
        columns: dict[str, npt.NDArray[Any]] = dict(archive)
    nouns = len(columns["n_min_depth"])

    def joined(name: str) -> npt.NDArray[Any]:
        return np.concatenate([columns[f"{pos}_{name}"] for pos in POS])

    return WordNet(
        nouns=nouns,
        lexicons={pos: _lexicon(pos, columns, shift) for pos, shift in zip(POS, (0, nouns))},
        starts=starts_of(joined("ancestor_counts")),
        above=np.concatenate([columns["n_ancestors"], columns["v_ancestors"] + np.int32(nouns)]) << 8
        | joined("distances"),
        min_depth=joined("min_depth"),
        max_depth=joined("max_depth"),
        to_root=joined("to_root"),
        name_lemma=joined("name_lemma"),
        name_sense=joined("name_sense"),
    )


def _lexicon(pos: str, columns: dict[str, npt.NDArray[Any]], shift: int) -> Lexicon:
    lemmas = columns[f"{pos}_lemmas"].tobytes().decode().split("\n")
    exceptions = (line.split() for line in columns[f"{pos}_exceptions"].tobytes().decode().split("\n"))
    return Lexicon(
        pos=pos,
        words=dict(zip(lemmas, range(len(lemmas)))),
        starts=starts_of(columns[f"{pos}_sense_counts"]),
        senses=columns[f"{pos}_senses"] + np.int32(shift),
        exceptions={form: bases for form, *bases in exceptions},
    )


DOWN_WEIGHT = 0.1
"""What is left of a similarity below the threshold of WUPS (Malinowski and Fritz, 2014)."""

_ARTICLES = frozenset(("a", "an", "the"))
_CACHED = 1 << 17


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
def _above(synset: int) -> dict[int, int]:
    """The ancestors of a synset, itself included, sorted, with the distance to each."""
    net = wordnet()
    packed = net.above[net.starts[synset] : net.starts[synset + 1]].tolist()
    return {one >> 8: one & 255 for one in packed}


def _synset_wup(one: int, other: int) -> float:
    """Wu-Palmer similarity of two synsets, equal to NLTK's `one.wup_similarity(other)` to the last bit.

    The rule has three turns that a textbook does not mention:

    - Of the common ancestors the one with the greatest *minimal* depth subsumes, ties by name (synsets are numbered in
      that order), but its *maximal* depth enters the formula.
    - `one` itself wins a tie, so the measure is not symmetric: woman to lady is 0.947, lady to woman 0.632.
    - Verbs have no common root, so one is simulated above them all; its name sorts before every verb of depth 0.
    """
    net = wordnet()
    min_depth, max_depth, to_root = net.depths
    up, down = _above(one), _above(other)
    best = next((ancestor for ancestor in down if ancestor in up), None)
    if best is not None:
        if one in down and min_depth[one] == min_depth[best]:
            best = one
        if best < net.nouns or min_depth[best] > 0 or best == one:
            depth = max_depth[best] + 1
            return 2.0 * depth / (up[best] + depth + down[best] + depth)
    return 2.0 / (to_root[one] + to_root[other] + 2)


def _best_senses(ones: Sequence[int], others: Sequence[int]) -> float:
    return max((_synset_wup(one, other) for one in ones for other in others), default=0.0)


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
