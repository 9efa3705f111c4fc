"""The WordNet 3.0 tables that travel with the package, the look-up of words in them, and the Wu-Palmer rule.

Built by `scripts/build_wordnet.py`, which says what is stored and why. WordNet is Princeton University's; its licence
lies beside the data in `wordnet_data/LICENSE.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import as_file, files
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

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Name of every synset -> its number."""
        return {self.name(synset): synset for synset in range(len(self.min_depth))}

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


def wu_palmer(
    one: int,
    other: int,
    up_one: int,
    at: int,
    stop: int,
    above: Any,
    depth_one: int,
    min_depth: Any,
    max_depth: Any,
    to_root: Any,
    nouns: int,
) -> float:
    """Wu-Palmer similarity of two synsets, equal to NLTK's `one.wup_similarity(other)` to the last bit.

    Written once: the scalar functions call it as it stands, the batch kernels compile it.

    `above[... : stop]` are the ancestors of `other`, itself included, sorted, each with the distance to it in its
    lowest 8 bits; the first that is an ancestor of `one` too stands at `at`, `up_one` steps above `one`; `at` is `stop`
    where there is none. `depth_one` is the minimal
    depth of `one`. Numbers below `nouns` are nouns. The rule has three turns that a textbook does not mention:

    - Of the common ancestors the one with the greatest *minimal* depth subsumes, ties by name (synsets are numbered in
      that order), but its *maximal* depth enters the formula.
    - `one` itself wins a tie, so the measure is not symmetric: woman to lady is 0.947, lady to woman 0.632.
    - Verbs have no common root, so one is simulated above them all; its name sorts before every verb of depth 0.
    """
    if at < stop:
        best = above[at] >> 8
        if best != one and depth_one == min_depth[best]:
            for later in range(at + 1, stop):
                if above[later] >> 8 == one:
                    best, up_one, at = one, 0, later
                    break
        if best < nouns or min_depth[best] > 0 or best == one:
            depth = max_depth[best] + 1
            return float(2.0 * depth / (up_one + depth + (above[at] & 255) + depth))
    return float(2.0 / (to_root[one] + to_root[other] + 2))
