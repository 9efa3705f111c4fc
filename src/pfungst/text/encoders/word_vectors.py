"""Encoders without a network: averaged word vectors from the usual files, and TF-IDF as dense vectors.

TF-IDF: a sentence is first a long sparse vector: for each of its words and pairs of neighbouring words, (1 + ln tf) *
idf with idf = ln((1 + n) / (1 + df)) + 1, scaled to length 1. Then every feature goes to 4 of `dim` places, chosen with
their signs by a hash of its letters (a count sketch). Cosines are kept up to about 1/sqrt(dim).
"""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import zipfile
import zlib
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError
from pfungst.core.files import DAMAGE, exists
from pfungst.text.encoders.base import FloatArray, check_sentences, unit_rows, words


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and their vectors, in the order of the file (most frequent first, by custom)."""

    words: tuple[str, ...]
    vectors: FloatArray
    """(words, dim)"""
    fingerprint: str

    @cached_property
    def rows(self) -> dict[str, int]:
        """word -> row; the first of two equal words counts, as it is the more frequent one."""
        return {word: row for row, word in reversed(list(enumerate(self.words)))}

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])

    def of(self, chosen: Sequence[str]) -> FloatArray:
        """Vectors (len(chosen), dim) of words that are all known."""
        rows: FloatArray = self.vectors[[self.rows[word] for word in chosen]]
        return rows

    @classmethod
    def read(cls, path: str | Path) -> WordVectors:
        """Read word2vec binary (`.bin`), GloVe or word2vec text (`.txt`, `.vec`), or `.npz` with `words` and `vectors`.

        Text and binary files may be gzipped.
        """
        file = Path(path)
        kind = file.with_suffix("").suffix if file.suffix == ".gz" else file.suffix
        if not exists(file) or not file.is_file():
            raise DataError.at(file, "", "there is no such word vector file.")
        try:
            if kind == ".npz":
                found, rows = _read_npz(file)
            else:
                with _open(file) as stream:
                    found, rows = _read_binary(stream, file) if kind == ".bin" else _read_text(stream, file)
        except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise DataError.at(file, "", f"the file cannot be read ({error}).") from error
        if not found:
            raise DataError.at(file, "", "the file holds no word vectors.")
        if not np.isfinite(rows).all():
            bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise DataError.at(file, f"word {bad} ({found[bad]!r})", "its vector holds NaN or infinity.")
        content = hashlib.sha256("\n".join(found).encode("utf-8", "surrogatepass"))
        content.update(np.ascontiguousarray(rows).data)
        return cls(tuple(found), rows, content.hexdigest()[:16])


def _open(file: Path) -> IO[bytes]:
    return gzip.open(file) if file.suffix == ".gz" else open(file, "rb")  # type: ignore[return-value]


def _read_npz(file: Path) -> tuple[list[str], FloatArray]:
    try:
        with np.load(file, allow_pickle=False) as archive:
            # A member that does not begin as an array does comes as bytes.
            found, rows = np.asarray(archive["words"]), np.asarray(archive["vectors"])
    except DAMAGE as error:
        raise DataError.at(
            file, "", f"an .npz of word vectors holds the arrays `words` and `vectors` ({error})."
        ) from error
    if found.ndim != 1 or found.dtype.kind != "U" or rows.ndim != 2 or len(found) != len(rows):
        raise DataError.at(file, "", "`words` must be n strings and `vectors` an array (n, dim).")
    return [str(word) for word in found], rows.astype(np.float32)


def _read_text(stream: IO[bytes], file: Path) -> tuple[list[str], FloatArray]:
    found: list[str] = []
    rows: list[FloatArray] = []
    size = 0
    for number, raw in enumerate(stream, start=1):
        pieces = raw.decode("utf-8", "replace").rstrip().split(" ")
        if number == 1 and len(pieces) == 2 and all(piece.isdecimal() for piece in pieces):
            size = int(pieces[1])
            continue
        size = size or len(pieces) - 1
        if not size:
            raise DataError.at(file, f"line {number}", "not a word and its numbers, with blanks between them.")
        # Some published files have words with spaces in them, so the vector is counted from the end.
        word, row = " ".join(pieces[:-size]), _numbers(pieces[-size:])
        too_long = len(pieces) > size + 1 and _numbers([pieces[-size - 1]]) is not None
        if row is None or not word or len(row) != size or too_long:
            raise DataError.at(file, f"line {number}", f"not a word and {size} numbers.")
        found.append(word)
        rows.append(row)
    return found, np.stack(rows) if rows else np.zeros((0, 0), np.float32)


def _numbers(pieces: list[str]) -> FloatArray | None:
    try:
        return np.array(pieces, dtype=np.float32)
    except ValueError:
        return None


def _read_binary(stream: IO[bytes], file: Path) -> tuple[list[str], FloatArray]:
    header = stream.readline(100).split()
    if len(header) != 2 or not all(piece.isdigit() for piece in header) or int(header[1]) == 0:
        raise DataError.at(file, "line 1", "a word2vec file begins with the number of words and the dimension.")
    count, size = int(header[0]), int(header[1])
    found: list[str] = []
    blocks: list[bytes] = []
    for number in range(count):
        letters = bytearray()
        while (letter := stream.read(1)) not in (b" ", b""):
            if letter != b"\n":  # Some writers end each vector with a newline, some do not.
                letters += letter
            if len(letters) > 10_000:
                raise DataError.at(file, f"word {number}", "its name has no end; this is not a word2vec file.")
        block = stream.read(4 * size)
        if len(block) != 4 * size:
            raise DataError.at(file, f"word {number} of {count}", "the file ends before its vector does.")
        found.append(letters.decode("utf-8", "replace"))
        blocks.append(block)
    return found, np.frombuffer(b"".join(blocks), "<f4").reshape(len(found), size).astype(np.float32)


@dataclass(frozen=True, eq=False)
class AveragedWords:
    """The mean of the vectors of a sentence's words. Unknown words are left out; none known gives zeros."""

    vectors: WordVectors
    name: str = "words"

    @property
    def dim(self) -> int:
        return self.vectors.dim

    @property
    def fingerprint(self) -> str:
        return f"averaged-words-1:{self.vectors.fingerprint}"

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        rows = self.vectors.rows
        result = np.zeros((len(sentences), self.dim), np.float32)
        for position, sentence in enumerate(check_sentences(sentences)):
            known = [rows[word] for word in words(sentence) if word in rows]
            if known:
                result[position] = self.vectors.vectors[known].mean(axis=0)
        return result


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
    """TF-IDF, hashed to `dim` numbers. `TfIdf.fit(corpus)` learns the frequencies."""

    counts: Mapping[str, int]
    """feature -> sentences of the corpus that have it. A feature that is not here counts as one seen once."""
    documents: int
    dim: int = DEFAULT_DIM
    name: str = "tfidf"

    @cached_property
    def fingerprint(self) -> str:
        content = hashlib.sha256(f"{self.documents} {self.dim} False".encode())  # as vectors in caches are named
        for feature in sorted(self.counts):
            content.update(f"\n{feature}\t{self.counts[feature]}".encode("utf-8", "surrogatepass"))
        return f"tfidf-1:{content.hexdigest()[:16]}"

    @classmethod
    def fit(cls, corpus: Sequence[str], *, dim: int = DEFAULT_DIM) -> TfIdf:
        """Count features in `corpus`."""
        counts: Counter[str] = Counter()
        sentences = check_sentences(corpus)
        for sentence in sentences:
            counts.update(sorted(set(features(sentence))))
        return cls(dict(sorted(counts.items())), len(sentences), dim)

    def _weights(self, sentence: str) -> dict[str, float]:
        found = Counter(features(sentence))
        weights = {
            feature: (1 + math.log(times)) * (math.log((1 + self.documents) / (1 + self.counts.get(feature, 1))) + 1)
            for feature, times in found.items()
        }
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        return {feature: weight / length for feature, weight in weights.items()}

    def _sparse(self, sentences: Sequence[str]) -> tuple[Any, list[str]]:
        """Sparse matrix (sentences, features), and the features."""
        import scipy.sparse

        columns: dict[str, int] = {}
        starts, indices, values = [0], array("q"), array("d")
        for sentence in sentences:
            for feature, weight in self._weights(sentence).items():
                indices.append(columns.setdefault(feature, len(columns)))
                values.append(weight)
            starts.append(len(indices))
        shape = (len(sentences), len(columns))
        return scipy.sparse.csr_matrix((np.array(values), np.array(indices), starts), shape=shape), list(columns)

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        """Vectors (sentences, dim) of length 1."""
        import scipy.sparse

        checked = check_sentences(sentences)
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
    """TF-IDF with counts from a file: how many sentences, then a feature and its count a line."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        documents = int(file.readline())
        counts = {feature: int(times) for feature, times in (line.rstrip("\n").split("\t") for line in file)}
    return TfIdf(counts, documents, dim)
