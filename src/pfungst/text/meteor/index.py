"""Questions as arrays for METEOR: words, their keys, synonyms and paraphrases, as far as these questions need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError
from pfungst.text.index import Ints, Longs, group, starts_of
from pfungst.text.meteor.words import Lists, Paraphrases, java_hash, stem, words_of
from pfungst.text.words import tokenize

LONGEST = (1 << 14) - 1
"""Words of a sentence; places are packed into 14 bits."""
MASK = 64
"""Words of a sentence that are bits of a machine word."""
LONGEST_PHRASE = 7
"""Words of a paraphrase; lengths are packed into 3 bits."""


class Words(NamedTuple):
    """One entry a distinct word. Lists of lists are flat: list i is `values[starts[i]:starts[i + 1]]`."""

    exact: Ints
    """Words of the same number are the same word to METEOR."""
    stem: Ints
    function: npt.NDArray[np.bool_]
    exact_starts: Longs
    exact_words: Ints
    """Words of each `exact` number."""
    stem_starts: Longs
    stem_words: Ints
    synonym_starts: Longs
    synonym_words: Ints
    """Synonyms of each word, in increasing order."""
    phrase: Ints
    """The word as a phrase of the paraphrase table, -1 if it is none."""


class Sentences(NamedTuple):
    """Sentence i has the words `words[starts[i]:starts[i + 1]]`, and phrases of two or more words likewise."""

    words: Ints
    starts: Longs
    phrase_starts: Longs
    phrase_place: Ints
    """First word of the phrase, counted in its sentence."""
    phrase: Ints
    total: Longs
    """Weight of all words, in twentieths: 15 of a content word, 5 of a function word."""
    function: npt.NDArray[np.uint64]
    """Which of the first MASK words are function words, a bit each."""


class Links(NamedTuple):
    """Phrase p of a main question may be said as phrase `other[l]` of the pool, l in `starts[p]:starts[p + 1]`."""

    starts: Longs
    other: Ints
    entry: Ints
    """Place in the paraphrase table, which decides the order among equal matches."""
    reverse: npt.NDArray[np.bool_]
    """Whether the table has it from the pool's phrase to the main question's."""
    length: Ints
    """Words of each phrase."""
    word: Ints
    """The word of a phrase of one word, -1 for longer ones."""


class Index(NamedTuple):
    words: Words
    main: Sentences
    pool: Sentences
    links: Links


def build(main: Sequence[str], pool: Sequence[str], lists: Lists, table: Paraphrases) -> Index:
    vocabulary: dict[str, int] = {}
    texts = [_number(sentences, vocabulary, lists, name) for sentences, name in ((main, "Main"), (pool, "Pool"))]
    known = np.asarray([table.vocabulary.get(word, -1) for word in vocabulary], dtype=np.int32)
    found = _Found(known, table)
    occurrences = [found.of(*text) for text in texts]
    single = found.single()
    links, number = _link(table, [phrase for _, _, phrase in occurrences], single)
    own = np.where(single >= 0, number[single], -1).astype(np.int32)
    known_words = _words(vocabulary, lists, own)
    main_sentences, pool_sentences = (
        _sentences(words, starts, place, sentence, number[phrase], links.length, known_words.function)
        for (words, starts), (sentence, place, phrase) in zip(texts, occurrences, strict=True)
    )
    return Index(known_words, main_sentences, pool_sentences, links)


def _number(sentences: Sequence[str], vocabulary: dict[str, int], lists: Lists, name: str) -> tuple[Ints, Longs]:
    numbers: list[int] = []
    starts = np.zeros(len(sentences) + 1, dtype=np.int64)
    for place, sentence in enumerate(sentences):
        words = words_of(tokenize(sentence), lists.prefixes)
        if len(words) > LONGEST:
            raise PfungstError(f"{name} question {place} has {len(words)} words; METEOR takes at most {LONGEST}.")
        numbers.extend([vocabulary.setdefault(word, len(vocabulary)) for word in words])
        starts[place + 1] = len(numbers)
    return np.asarray(numbers, dtype=np.int32), starts


def _words(vocabulary: dict[str, int], lists: Lists, phrase: Ints) -> Words:
    keys = []
    for codes in ([java_hash(word) for word in vocabulary], [java_hash(stem(word)) for word in vocabulary]):
        keys.append(np.unique(np.asarray(codes, dtype=np.int64), return_inverse=True)[1].astype(np.int32).reshape(-1))
    members = [group(key, int(key.max(initial=-1)) + 1) for key in keys]
    function = np.asarray([word in lists.function_words for word in vocabulary], dtype=np.bool_)
    return Words(
        keys[0], keys[1], function, *members[0], *members[1], *_synonyms(vocabulary, lists, keys[0].tolist()), phrase
    )  # fmt: skip


def _synonyms(vocabulary: dict[str, int], lists: Lists, exact: Sequence[int]) -> tuple[Longs, Ints]:
    sets = [lists.synsets_of(word) for word in vocabulary]
    members: dict[int, list[int]] = {}
    for number, synsets in enumerate(sets):
        for synset in synsets:
            members.setdefault(synset, []).append(number)
    starts, values = np.zeros(len(vocabulary) + 1, dtype=np.int64), []
    for number, synsets in enumerate(sets):
        others = {other for synset in synsets for other in members[synset] if exact[other] != exact[number]}
        values.extend(sorted(others))
        starts[number + 1] = len(values)
    return starts, np.asarray(values, dtype=np.int32)


class _Found:
    """The phrases of the table that consist of known words, as a tree that all places walk at once, word by word."""

    def __init__(self, known: Ints, table: Paraphrases) -> None:
        """known: number of each word in the table, -1 if it is not there."""
        self.known, self.size = known, int(known.max(initial=-1)) + 1
        inside = np.zeros(int(table.words.max(initial=0)) + 1, dtype=np.bool_)
        inside[known[known >= 0]] = True
        lengths = np.diff(table.starts)
        if int(lengths.max(initial=0)) > LONGEST_PHRASE:
            raise PfungstError(f"The paraphrase table has a phrase of more than {LONGEST_PHRASE} words.")
        whole = np.flatnonzero(np.minimum.reduceat(inside[table.words], table.starts[:-1]))
        node = table.words[table.starts[whole]].astype(np.int64)
        self.levels: list[tuple[Longs, Ints]] = []
        for depth in range(1, LONGEST_PHRASE + 1):
            if depth > 1:
                long = lengths[whole] >= depth
                whole, node = whole[long], node[long]
                node = node * self.size + table.words[table.starts[whole] + depth - 1]
            keys, node = np.unique(node, return_inverse=True)
            node = node.reshape(-1)
            phrase = np.full(len(keys), -1, dtype=np.int32)
            ends = lengths[whole] == depth
            phrase[node[ends]] = whole[ends]
            self.levels.append((keys, phrase))

    def single(self) -> Ints:
        """Phrase of each word alone, -1 if none."""
        node = self._step(0, self.known.astype(np.int64))
        return np.where(node >= 0, self._phrases(0)[node], -1).astype(np.int32)

    def of(self, words: Ints, starts: Longs) -> tuple[Longs, Ints, Ints]:
        """All phrases of the sentences: sentence, first word, phrase; in that order, shorter ones first."""
        sentence = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        left = starts[1:][sentence] - np.arange(len(words))
        place = np.arange(len(words))
        node = np.asarray(self.known[words], dtype=np.int64)
        parts: list[tuple[Longs, Ints]] = []
        for depth in range(LONGEST_PHRASE):
            if depth:
                open_ = left[place] > depth
                place, node = place[open_], node[open_]
                following = self.known[words[place + depth]]
                node = np.where(following >= 0, node * self.size + following, -1)
            node = self._step(depth, node)
            place, node = place[node >= 0], node[node >= 0]
            phrase = self._phrases(depth)[node]
            parts.append((place[phrase >= 0], phrase[phrase >= 0]))
        places, phrases = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        order = np.argsort(places, kind="stable")
        places, phrases = places[order], phrases[order]
        return sentence[places], (places - starts[sentence[places]]).astype(np.int32), phrases

    def _phrases(self, depth: int) -> Ints:
        phrase = self.levels[depth][1]
        return phrase if len(phrase) else np.full(1, -1, dtype=np.int32)

    def _step(self, depth: int, node: Longs) -> Longs:
        keys = self.levels[depth][0]
        if not len(keys):
            return np.full(len(node), -1, dtype=np.int64)
        where = np.minimum(np.searchsorted(keys, node), len(keys) - 1)
        return np.where(keys[where] == node, where, -1)


def _link(table: Paraphrases, phrases: Sequence[Ints], single: Ints) -> tuple[Links, Ints]:
    """Pairs of the table between a phrase of the main questions and one of the pool; the new number of each phrase."""
    size = len(table.starts) - 1
    in_main, in_pool = (np.bincount(some, minlength=size) > 0 for some in phrases)
    mine, others, entries, reverse = [], [], [], []
    for one, two, back in ((table.phrase_from, table.phrase_to, False), (table.phrase_to, table.phrase_from, True)):
        kept = np.flatnonzero(in_main[one] & in_pool[two])
        mine.append(one[kept])
        others.append(two[kept])
        entries.append(kept)
        reverse.append(np.full(len(kept), back))
    left, right, entry, backwards = (np.concatenate(part) for part in (mine, others, entries, reverse))
    used = np.unique(np.concatenate([left, right]))
    number = np.full(size + 1, -1, dtype=np.int32)
    number[used] = np.arange(len(used))
    starts, order = group(number[left], len(used))
    length = np.diff(table.starts)[used].astype(np.int32)
    word = np.full(len(used) + 1, -1, dtype=np.int32)
    word[number[single]] = np.arange(len(single))  # where a word is no phrase, that is the place behind the last
    return Links(
        starts, number[right][order], entry[order].astype(np.int32), backwards[order], length, word[:-1]
    ), number


def _sentences(
    words: Ints,
    starts: Longs,
    place: Ints,
    sentence: Longs,
    phrase: Ints,
    length: Ints,
    function: npt.NDArray[np.bool_],
) -> Sentences:
    kept = phrase >= 0
    kept[kept] = length[phrase[kept]] > 1
    phrase_starts = starts_of(np.bincount(sentence[kept], minlength=len(starts) - 1))
    at = np.arange(len(words)) - np.repeat(starts[:-1], np.diff(starts))
    bits = np.uint64(1) << np.minimum(at, MASK - 1).astype(np.uint64)
    bits[~function[words] | (at >= MASK)] = 0
    total, functions = _sums(np.where(function[words], 5, 15), starts), _sums(bits, starts)
    return Sentences(words, starts, phrase_starts, place[kept], phrase[kept], total, functions)


def _sums(values: npt.NDArray[Any], starts: Longs) -> npt.NDArray[Any]:
    """The sum of each sentence's values."""
    return np.diff(np.concatenate([np.zeros(1, values.dtype), np.cumsum(values)])[starts])
