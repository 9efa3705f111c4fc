"""What is solved: the dictionary, prepared once, and the questions, checked and scaled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pfungst.core.errors import PfungstError
from pfungst.core.threads import Workers
from pfungst.lasso.arrays import Arrays, arrays_of

Exclude = Sequence[int | Iterable[int] | None] | np.ndarray[Any, Any] | None
"""Columns a question must not use: an index, several or None for every question, or a boolean array (n, q)."""


SQUARE = 1 << 15
"""Columns that are multiplied with themselves at a time."""
TURN = 1 << 13
"""Columns that are whitened at a time."""
RANK_NOISE = 1e-12
"""Eigenvalues of AA' below this share of the largest are noise: a few times the rounding of float32, squared."""


@dataclass(frozen=True)
class Whitened:
    """The dictionary in coordinates where its rows are orthonormal up to the ridge: `rows = A' inverse'`."""

    rows: Any
    """(n, d) float32."""
    inverse: Any
    """(d, d) float64: L^-1 where L L' = AA' + ridge I."""


class Dictionary:
    """The columns that every question is written with, prepared for `solve`.

    A: (d, n), NumPy or torch, any real dtype; one column an atom (an embedded basic question). Preparing costs one
    pass over A and one copy of it in float64; keep the object when several calls share a dictionary.

    The columns are used as they are. For the ranking of the papers they have unit norm (`unit_columns`).
    """

    def __init__(self, A: Any, device: str | None = None) -> None:
        A = _matrix(A, "The dictionary")
        arrays = arrays_of(A, device=device)
        if len(A.shape) != 2:
            raise PfungstError(
                f"The dictionary has shape {tuple(A.shape)}, but a matrix (d, n) with one column per atom is needed."
            )
        if A.shape[0] == 0 or A.shape[1] == 0:
            raise PfungstError(
                f"The dictionary is empty (shape {tuple(A.shape)}): there is nothing to rank. Give at least one column."
            )
        self.arrays: Arrays = arrays
        rows = arrays.contiguous(arrays.array(A).T)
        norms = arrays.xp.sqrt((rows * rows).sum(axis=1))
        worst = float(norms.max())
        if not np.isfinite(worst):
            bad = int(np.flatnonzero(~np.isfinite(arrays.host(norms)))[0])
            raise PfungstError(
                f"Column {bad} of the dictionary holds NaN or infinite values: check the embedding of that sentence."
            )
        self.scale: float = worst if worst > 0 else 1.0
        """Largest column norm. Inside, the dictionary is divided by it, so that tolerances mean the same everywhere."""
        if self.scale != 1.0:
            rows = rows / self.scale
        self.rows: Any = rows
        """(n, d) float64, largest norm 1."""
        self._gram: Any = None
        self._whitened: tuple[float, Whitened] | None = None

    def part(self, columns: Any) -> Dictionary:
        """A dictionary of some of the columns, in the same units."""
        part = Dictionary.__new__(Dictionary)
        part.arrays, part.scale, part.rows = self.arrays, self.scale, self.rows[columns]
        part._gram = part._whitened = None
        return part

    @property
    def n(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[0])

    @property
    def d(self) -> int:
        """Length of a column."""
        return int(self.rows.shape[1])

    @property
    def gram(self) -> Any:
        """AA' (d, d) in float64, of the scaled columns."""
        if self._gram is None:
            self.prepare(Workers())
        return self._gram

    @cached_property
    def products(self) -> Any:
        """A'A (n, n) in float64, of the scaled columns: for small dictionaries only."""
        return self.rows @ self.rows.T

    def prepare(self, workers: Workers) -> None:
        """Compute AA' once, divided over `workers`."""

        def square(start: int) -> Any:
            rows = self.rows[start : start + SQUARE]
            return rows.T @ rows

        if self._gram is None:
            # Blocks of one size, added in order: the sum is the same for any number of threads.
            parts = workers.map(square, range(0, self.n, SQUARE))
            self._gram = sum(parts[1:], start=parts[0])

    @cached_property
    def rank(self) -> int:
        """Numerical rank of A: embeddings in float32 often live in fewer dimensions, up to rounding noise."""
        values = self.arrays.host(self.arrays.xp.linalg.eigvalsh(self.gram))
        return int((values > RANK_NOISE * values[-1]).sum())

    def whitened(self, ridge: float, workers: Workers | None = None) -> Whitened:
        """The whitened dictionary for `AA' + ridge I`; the last one asked for is kept."""
        if self._whitened is None or self._whitened[0] != ridge:
            a = self.arrays
            # The floor keeps the factorisation definite where A has less than full rank.
            floor = 1e-11 * float(a.xp.diagonal(self.gram).sum())
            matrix = self.gram + (ridge + floor) * a.eye(self.d)
            lower = a.xp.linalg.cholesky(matrix)
            if a.is_numpy:
                inverse = a.xp.linalg.solve(lower, a.eye(self.d))
            else:
                inverse = a.xp.linalg.solve_triangular(lower, a.eye(self.d), upper=False)
            rows = a.zeros((self.n, self.d), "float32")
            # A GPU splits the rows into two halves later and needs them exact; a CPU saves half the time.
            right = inverse.T if a.is_cuda else a.cast(inverse.T, "float32")

            def turn(start: int) -> None:
                block = self.rows[start : start + TURN]
                left = block if a.is_cuda else a.cast(block, "float32")
                rows[start : start + TURN] = a.cast(left @ right, "float32")

            (workers or Workers()).map(turn, range(0, self.n, TURN))
            self._whitened = (ridge, Whitened(rows, inverse))
        return self._whitened[1]


@dataclass(frozen=True)
class Questions:
    """Right-hand sides, scaled so that the longest has unit norm, and what each may not use."""

    b: Any
    """(q, d) float64."""
    scale: float
    """What they were divided by. One number, so that one lam serves them all."""
    excluded: tuple[Any, Any]
    """Question and column of every pair that must not be used, both int64, sorted by question."""
    count: int

    def some(self, keep: np.ndarray[Any, Any], a: Arrays) -> Questions:
        """The questions at the positions `keep`."""
        question, column = (a.host(part) for part in self.excluded)
        place = np.full(self.count, -1, dtype=np.int64)
        place[keep] = np.arange(len(keep))
        kept = place[question] >= 0 if len(question) else np.zeros(0, dtype=bool)
        order = np.argsort(place[question[kept]], kind="stable")
        where = a.array(keep, "int64")
        return Questions(
            self.b[where],
            self.scale,
            (a.array(place[question[kept]][order], "int64"), a.array(column[kept][order], "int64")),
            len(keep),
        )


def questions(dictionary: Dictionary, B: Any, exclude: Exclude) -> Questions:
    """Check B (d, q) and `exclude` against the dictionary."""
    a = dictionary.arrays
    B = _matrix(B, "The matrix of questions")
    if len(B.shape) == 1:
        B = B[:, None]
    if len(B.shape) != 2 or B.shape[0] != dictionary.d:
        raise PfungstError(
            f"The questions have shape {tuple(B.shape)}, but the dictionary has columns of length {dictionary.d}: "
            f"B must be ({dictionary.d}, q), embedded by the same encoder."
        )
    b = a.contiguous(a.array(B).T)
    norms = a.xp.sqrt((b * b).sum(axis=1))
    finite = np.isfinite(a.host(norms))
    if not finite.all():
        raise PfungstError(
            f"Question {int(np.flatnonzero(~finite)[0])} holds NaN or infinite values: check its embedding."
        )
    scale = float(norms.max()) if len(finite) else 1.0
    scale = scale if scale > 0 else 1.0
    question, column = _pairs(exclude, dictionary.n, len(finite))
    return Questions(b / scale, scale, (a.array(question, "int64"), a.array(column, "int64")), len(finite))


def _matrix(values: Any, what: str) -> Any:
    """`values` as something with a shape that is not sparse; the message names what was wrong with it."""
    if hasattr(values, "toarray"):
        values = values.toarray()
    if hasattr(values, "detach"):
        return values
    try:
        array = np.asarray(values)
        return array if array.dtype.kind == "f" else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise PfungstError(f"{what} cannot be read as an array of numbers ({error}).") from error


def _pairs(exclude: Exclude, n: int, q: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    if exclude is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if hasattr(exclude, "detach"):
        exclude = exclude.detach().cpu().numpy()
    if isinstance(exclude, np.ndarray) and exclude.dtype == bool:
        if exclude.shape != (n, q):
            raise PfungstError(f"The mask of excluded columns has shape {exclude.shape}, but ({n}, {q}) is needed.")
        column, question = np.nonzero(exclude)
        order = np.lexsort((column, question))
        return question[order].astype(np.int64), column[order].astype(np.int64)
    if len(exclude) != q:
        raise PfungstError(
            f"`exclude` names columns for {len(exclude)} questions, but there are {q}: give one entry per question "
            "(an index, a list of indices, or None)."
        )
    pairs = set()
    for i, entry in enumerate(exclude):
        if entry is None:
            continue
        for j in entry if isinstance(entry, Iterable) else (entry,):
            if not -1 < int(j) < n:
                raise PfungstError(f"`exclude` names column {int(j)} for question {i}, but there are {n} columns.")
            pairs.add((i, int(j)))
    table = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def unit_columns(vectors: Any) -> Any:
    """Scale the columns of a matrix (d, n) to unit norm; zero columns stay zero. NumPy or torch."""
    xp = arrays_of(vectors).xp
    if xp is np:
        vectors = np.asarray(vectors)
    norms = xp.sqrt((vectors * vectors).sum(axis=0))
    return vectors / xp.where(norms > 0, norms, xp.ones_like(norms))
