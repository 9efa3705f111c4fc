"""TF-IDF, as dense vectors of a chosen size.

A sentence is first a long sparse vector: for each of its words and pairs of neighbouring words, (1 + ln tf) * idf with
idf = ln((1 + n) / (1 + df)) + 1, scaled to length 1. Two ways lead from there to `dim` numbers:

- hashing (no corpus needed for it): every feature goes to 4 of the `dim` places, chosen with their signs by a hash of
  its letters (a count sketch). Cosines are kept up to about 1/sqrt(dim).
- svd (`fit(..., projection="svd")`): the `dim` leading right singular vectors of the corpus (latent semantic analysis).
"""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.text.encoders.base import EncoderError, FloatArray, check_sentences, unit_rows
from pfungst.text.encoders.tokens import words

DEFAULT_DIM = 2048
PLACES = 4
EMBEDDED_COUNTS = Path(__file__).parent / "weights" / "question_counts.tsv.gz"
"""Features of real questions and the number of questions that have them; made with the embedded encoder."""


def features(sentence: str) -> list[str]:
    """Words, and pairs of neighbouring words."""
    found = words(sentence)
    return found + [f"{one} {two}" for one, two in pairwise(found)]


@dataclass(frozen=True, eq=False)
class TfIdf:
    """TF-IDF with documented projection. `TfIdf.fit(corpus)` learns the frequencies."""

    counts: Mapping[str, int]
    """feature -> sentences of the corpus that have it. A feature that is not here counts as one seen once."""
    documents: int
    dim: int = DEFAULT_DIM
    basis: FloatArray | None = None
    """(features, dim), rows in the order of `counts`, for `svd`; None means hashing."""
    name: str = "tfidf"

    @cached_property
    def fingerprint(self) -> str:
        content = hashlib.sha256(f"{self.documents} {self.dim} {self.basis is not None}".encode())
        for feature in sorted(self.counts):
            content.update(f"\n{feature}\t{self.counts[feature]}".encode("utf-8", "surrogatepass"))
        return f"tfidf-1:{content.hexdigest()[:16]}"

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {feature: row for row, feature in enumerate(self.counts)}

    @classmethod
    def fit(cls, corpus: Sequence[str], *, dim: int = DEFAULT_DIM, projection: str = "hashing") -> TfIdf:
        """Count features in `corpus`; `projection` is `hashing` or `svd`."""
        counts: Counter[str] = Counter()
        sentences = check_sentences(corpus)
        for sentence in sentences:
            counts.update(sorted(set(features(sentence))))
        encoder = cls(dict(sorted(counts.items())), len(sentences), dim)
        if projection == "hashing":
            return encoder
        if projection != "svd":
            raise EncoderError(f"The projection of TF-IDF is `hashing` or `svd`, not {projection!r}.")
        return replace(encoder, basis=encoder._leading(sentences))

    def _leading(self, sentences: Sequence[str]) -> FloatArray:
        import scipy.sparse.linalg

        matrix, _ = self._sparse(sentences, self._rows)
        if min(matrix.shape) <= self.dim:
            raise EncoderError(
                f"{self.dim} singular vectors need a corpus of more than {self.dim} sentences and features; this one "
                f"has {matrix.shape[0]} and {matrix.shape[1]}. Choose a smaller dim."
            )
        start = np.random.default_rng(0).standard_normal(min(matrix.shape))
        _, values, right = scipy.sparse.linalg.svds(matrix, k=self.dim, v0=start, solver="arpack")
        order = np.argsort(-values)
        basis = right[order].T
        # A singular vector has no sign of its own; this choice makes it the same everywhere.
        signs = np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(self.dim)])
        return np.ascontiguousarray(basis * signs, dtype=np.float32)

    def _weights(self, sentence: str) -> dict[str, float]:
        found = Counter(features(sentence))
        weights = {
            feature: (1 + math.log(times)) * (math.log((1 + self.documents) / (1 + self.counts.get(feature, 1))) + 1)
            for feature, times in found.items()
        }
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        return {feature: weight / length for feature, weight in weights.items()}

    def _sparse(self, sentences: Sequence[str], rows: Mapping[str, int] | None = None) -> tuple[Any, list[str]]:
        """Sparse matrix (sentences, features) and its features: those of `rows`, or else all that occur."""
        import scipy.sparse

        columns: dict[str, int] = dict(rows) if rows is not None else {}
        starts, indices, values = [0], array("q"), array("d")
        for sentence in sentences:
            for feature, weight in self._weights(sentence).items():
                column = columns.get(feature) if rows is not None else columns.setdefault(feature, len(columns))
                if column is not None:
                    indices.append(column)
                    values.append(weight)
            starts.append(len(indices))
        shape = (len(sentences), len(columns))
        return scipy.sparse.csr_matrix((np.array(values), np.array(indices), starts), shape=shape), list(columns)

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        """Vectors (sentences, dim) of length 1."""
        import scipy.sparse

        checked = check_sentences(sentences)
        if self.basis is not None:
            matrix, _ = self._sparse(checked, self._rows)
            return unit_rows(np.asarray(matrix @ self.basis, dtype=np.float32))
        matrix, found = self._sparse(checked)
        if not found:
            return np.zeros((len(checked), self.dim), np.float32)
        places, signs = sketch(found, self.dim)
        starts = np.arange(0, PLACES * len(found) + 1, PLACES)
        projection = scipy.sparse.csr_matrix((signs.ravel(), places.ravel(), starts), shape=(len(found), self.dim))
        return unit_rows((matrix @ projection).toarray().astype(np.float32))


def sketch(found: Sequence[str], dim: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Places (features, 4) in 0..dim-1 and signs (features, 4), by a hash of the letters."""
    places = np.zeros((len(found), PLACES), np.int64)
    signs = np.zeros((len(found), PLACES))
    for row, feature in enumerate(found):
        digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8 * PLACES).digest()
        for place, value in enumerate(struct.unpack(f"<{PLACES}Q", digest)):
            places[row, place] = (value >> 1) % dim
            signs[row, place] = 1.0 if value & 1 else -1.0
    return places, signs


def load_counts(path: Path = EMBEDDED_COUNTS, *, dim: int = DEFAULT_DIM) -> TfIdf:
    """TF-IDF with counts from a file that `save_counts` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        documents = int(file.readline())
        counts = {feature: int(times) for feature, times in (line.rstrip("\n").split("\t") for line in file)}
    return TfIdf(counts, documents, dim)


def save_counts(encoder: TfIdf, path: Path, *, at_least: int = 1) -> None:
    """Write the counts that are `at_least` so high; the file is the same bytes for the same counts."""
    lines = [f"{feature}\t{times}\n" for feature, times in sorted(encoder.counts.items()) if times >= at_least]
    text = f"{encoder.documents}\n{''.join(lines)}".encode("utf-8", "replace")
    path.write_bytes(gzip.compress(text, 9, mtime=0))
