"""The answered trials of a probe, where they are too many to hold.

Their columns are read from the trials file, and statistics take those. Whoever wants the trials themselves gets them
one after the other, each made again from the data and the answer store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, compress, islice
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from pfungst.core.stats import Floats
from pfungst.core.types import AnsweredTrial

HELD = 1 << 16
"""Variants of a probe up to which its trials are held in memory."""
Places = npt.NDArray[np.int64]
Alike = Callable[[str, str], bool]


class AnsweredTrials(Sequence[AnsweredTrial]):
    """Trials of a file, or those of its trials that stand at some places."""

    def __init__(self, file: TrialsFile, again: Callable[[], Iterator[AnsweredTrial]], places: Places | None = None):
        self._file = file
        self._again = again
        self._places = places

    def __len__(self) -> int:
        return len(self._file.sizes) if self._places is None else len(self._places)

    def __iter__(self) -> Iterator[AnsweredTrial]:
        if self._places is None:
            return self._again()
        chosen = np.zeros(len(self._file.sizes), bool)
        chosen[self._places] = True
        return compress(self._again(), chosen)

    @overload
    def __getitem__(self, index: int) -> AnsweredTrial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[AnsweredTrial]: ...
    def __getitem__(self, index: int | slice) -> AnsweredTrial | Sequence[AnsweredTrial]:
        if isinstance(index, slice):
            return self._at(np.arange(len(self))[index])
        place = range(len(self))[index]
        return next(islice(iter(self), place, None))

    def having(self, variant: str) -> AnsweredTrials:
        """Those that contain this variant."""
        return self.where(self._rows(variant) >= 0)

    def where(self, mask: npt.NDArray[np.bool_]) -> AnsweredTrials:
        """Those for which the mask, one value a trial, is true."""
        return self if bool(mask.all()) else self._at(np.flatnonzero(mask))

    def scores(self, variant: str) -> Floats:
        """The scores of a variant, which all of them contain."""
        return self._file.scores[self._present(variant)]

    def clusters(self) -> Places:
        """Questions about one image have one number; a question without image name has its own."""
        numbers: Places = self._of_all(self._file.clusters)
        return numbers

    def kinds(self, column: str) -> tuple[Places, list[str]]:
        """A column of the file that says what kind of question it is: numbers, and the words they stand for."""
        codes, names = self._file.coded(column)
        return self._of_all(codes[self._file.starts]), names

    def alike(self, first: str, second: str, rule: Alike) -> Floats:
        """1 where two variants, which all of them contain, got the same answer by the rule, 0 where they did not, NaN
        where neither reply could be read."""
        return self._file.alike(self._present(first), self._present(second), rule)

    def ids(self, places: Iterable[int]) -> list[str]:
        """The ids of the examples at some places of these trials."""
        rows = self._file.starts[self._of_all(np.arange(len(self._file.sizes)))[list(places)]]
        return self._file.texts("example_id", rows)

    def _at(self, places: Places) -> AnsweredTrials:
        return AnsweredTrials(self._file, self._again, places if self._places is None else self._places[places])

    def _of_all(self, values: Any) -> Any:
        return values if self._places is None else values[self._places]

    def _rows(self, variant: str) -> Places:
        """The row of a variant in the file, -1 for trials without it."""
        rows: Places = self._of_all(self._file.rows(variant))
        return rows

    def _present(self, variant: str) -> Places:
        rows = self._rows(variant)
        if (rows < 0).any():
            raise KeyError(variant)
        return rows


class TrialsFile:
    """The columns of a trials file. sizes: variants of each trial, in the order of the file."""

    def __init__(self, path: Path, sizes: npt.NDArray[np.int32]) -> None:
        self.path = path
        self.sizes = sizes
        self._rows: dict[str, Places] = {}

    @cached_property
    def starts(self) -> Places:
        """The first row of each trial."""
        starts: Places = np.cumsum(self.sizes, dtype=np.int64) - self.sizes
        return starts

    @cached_property
    def scores(self) -> Floats:
        return np.concatenate([np.asarray(part["score"], np.float64) for part in self._parts("score")])

    @cached_property
    def clusters(self) -> Places:
        """Numbers in the order in which the clusters come first."""
        import pyarrow as pa
        import pyarrow.compute as pc

        labels = []
        for start, part in zip(self._bounds(), self._parts("example_id", "image_id"), strict=True):
            first, last = np.searchsorted(self.starts, [start, start + len(part)])
            part = part.take(self.starts[first:last] - start)
            labels.append(pc.if_else(pc.equal(part["image_id"], ""), part["example_id"], part["image_id"]))
        coded = (
            pa.chunked_array([chunk for one in labels for chunk in one.chunks]).dictionary_encode().unify_dictionaries()
        )
        return np.concatenate([np.asarray(chunk.indices, np.int64) for chunk in coded.chunks])

    def rows(self, variant: str) -> Places:
        """The row of this variant in each trial, -1 where it is missing."""
        if variant not in self._rows:
            codes, names = self._variants
            found: Places = np.full(len(self.sizes), -1, np.int64)
            if variant in names:
                rows = np.flatnonzero(codes == names.index(variant))[::-1]  # of two of a name the first counts
                found[np.searchsorted(self.starts, rows, "right") - 1] = rows
            self._rows[variant] = found
        return self._rows[variant]

    @cached_property
    def _variants(self) -> tuple[Places, list[str]]:
        return self.coded("variant")

    def coded(self, column: str) -> tuple[Places, list[str]]:
        """A column of texts as numbers, and the texts."""
        names: dict[str, int] = {}
        codes = []
        for part in self._parts(column):
            for chunk in part[column].chunks:
                coded = chunk.dictionary_encode()
                own = [names.setdefault(name, len(names)) for name in coded.dictionary.to_pylist()]
                codes.append(np.array(own, np.int64)[np.asarray(coded.indices)].astype(np.int32))
        return np.concatenate(codes), list(names)

    def alike(self, first: Places, second: Places, rule: Alike) -> Floats:
        import pyarrow.compute as pc

        found = np.full(len(first), np.nan)
        for start, part in zip(self._bounds(), self._parts("answer", "unread"), strict=True):
            inside = np.flatnonzero((first >= start) & (first < start + len(part)))
            one, other = (part.take(rows[inside] - start) for rows in (first, second))
            same = np.asarray(pc.equal(one["answer"], other["answer"]), np.float64)
            changed = np.flatnonzero(same == 0)
            texts = (some["answer"].take(changed).to_pylist() for some in (one, other))
            same[changed] = [rule(before, after) for before, after in zip(*texts, strict=True)]
            unread = [np.asarray(some["unread"], bool) for some in (one, other)]
            same[unread[0] | unread[1]] = 0.0
            same[unread[0] & unread[1]] = np.nan
            found[inside] = same
        return found

    def texts(self, column: str, rows: Sequence[int] | Places) -> list[str]:
        """A column of texts at some rows."""
        wanted = np.asarray(rows, np.int64)
        found = [""] * len(wanted)
        for start, part in zip(self._bounds(), self._parts(column), strict=True):
            inside = np.flatnonzero((wanted >= start) & (wanted < start + len(part)))
            for at, text in zip(inside.tolist(), part[column].take(wanted[inside] - start).to_pylist(), strict=True):
                found[at] = text
        return found

    def _parts(self, *columns: str) -> Iterator[Any]:
        """Some columns, row group by row group."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            for number in range(file.num_row_groups):
                yield file.read_row_group(number, columns=list(columns))

    def _bounds(self) -> list[int]:
        """The first row of each row group."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            many = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        return [0, *accumulate(many[:-1])]
