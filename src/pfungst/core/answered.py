"""The answered trials of a probe, where they are too many to hold.

Their columns are read from the trials file, and statistics take those. Whoever wants the trials themselves gets them
one after the other, each made again from the data and the answer store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import compress, islice
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from pfungst.core.flips import same_answer
from pfungst.core.stats import Floats
from pfungst.core.trials import row_groups
from pfungst.core.types import AnsweredTrial

Places = npt.NDArray[np.signedinteger[Any]]
"""Of rows, of trials."""


class AnsweredTrials(Sequence[AnsweredTrial]):
    """Trials of a file, or those of its trials that stand at some places."""

    def __init__(self, file: TrialsFile, again: Callable[[], Iterator[AnsweredTrial]], places: Places | None = None):
        self._file = file
        self._again = again
        self._places = places

    def __len__(self) -> int:
        return len(self._file.starts) if self._places is None else len(self._places)

    def __iter__(self) -> Iterator[AnsweredTrial]:
        if self._places is None:
            return self._again()
        chosen = np.zeros(len(self._file.starts), bool)
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
        """Numbers for `Example.cluster`."""
        numbers: Places = self._of_all(self._file.clusters)
        return numbers

    def kinds(self, column: str) -> tuple[Places, list[str]]:
        """A column of the file that says what kind of question it is: numbers, and the words they stand for."""
        codes, names = self._file.coded(column)
        return self._of_all(codes), names

    def alike(self, first: str, second: str) -> Floats:
        """1 where two variants, which all of them contain, got the same answer, 0 where they did not, NaN where
        neither reply could be read."""
        return self._file.alike(self._present(first), self._present(second))

    def ids(self, places: Iterable[int]) -> list[str]:
        """The ids of the examples at some places of these trials."""
        rows = self._file.starts[self._of_all(np.arange(len(self._file.starts)))[list(places)]]
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
    """The columns of a trials file, read row group by row group."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.path = path
        self.length = int(pq.read_metadata(path).num_rows)
        self._number = np.int32 if self.length < 1 << 31 else np.int64
        """Of rows and trials: half the memory does for most files."""

    @cached_property
    def starts(self) -> Places:
        """The first row of each trial."""
        firsts = [np.flatnonzero(np.asarray(part["place"]) == 0) + start for start, part in self._parts("place")]
        return np.concatenate([np.zeros(0, self._number), *firsts], dtype=self._number)

    @cached_property
    def scores(self) -> Floats:
        scores = np.empty(self.length)
        for start, part in self._parts("score"):
            scores[start : start + len(part)] = part["score"]
        return scores

    @cached_property
    def clusters(self) -> Places:
        """Numbers in the order in which the clusters come first.

        Names are told apart by 64 bits of their hashes: that two of ten million are the same has a probability of three
        in a million.
        """
        hashes = np.empty(len(self.starts), np.int64)
        for start, part in self._parts("cluster"):
            first, last = np.searchsorted(self.starts, [start, start + len(part)])
            names = part["cluster"].take(self.starts[first:last] - start).to_pylist()
            hashes[first:last] = np.fromiter(map(hash, names), np.int64, last - first)
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        new = np.concatenate([[True], hashes[1:] != hashes[:-1]])
        del hashes
        if new.all():
            return np.arange(len(new), dtype=self._number)
        firsts = order[new]  # of each cluster, in the order of hashes: its first trial
        place = np.empty(len(firsts), self._number)
        place[np.argsort(firsts)] = np.arange(len(firsts), dtype=self._number)
        numbers: Places = np.empty(len(new), self._number)
        numbers[order] = place[np.cumsum(new) - 1]
        return numbers

    def rows(self, variant: str) -> Places:
        """The row of this variant in each trial, -1 where it is missing."""
        known = self._rows.get(variant)
        return np.full(len(self.starts), -1, self._number) if known is None else known

    @cached_property
    def _rows(self) -> dict[str, Places]:
        found: dict[str, Places] = {}
        for start, part in self._parts("variant"):
            coded = part["variant"].combine_chunks().dictionary_encode()
            codes = np.asarray(coded.indices)
            for code, name in enumerate(coded.dictionary.to_pylist()):
                if name not in found:
                    found[name] = np.full(len(self.starts), -1, self._number)
                rows = np.flatnonzero(codes == code)[::-1] + start  # of two of a name the first counts
                found[name][np.searchsorted(self.starts, rows.astype(self._number), "right") - 1] = rows
        return found

    def coded(self, column: str) -> tuple[Places, list[str]]:
        """A column of texts, of the first variant of each trial, as numbers, and the texts."""
        names: dict[str, int] = {}
        codes: Places = np.empty(len(self.starts), np.int32)
        for start, part in self._parts(column):
            first, last = np.searchsorted(self.starts, [start, start + len(part)])
            coded = part[column].combine_chunks().take(self.starts[first:last] - start).dictionary_encode()
            own = np.array([names.setdefault(name, len(names)) for name in coded.dictionary.to_pylist()], np.int32)
            codes[first:last] = own[np.asarray(coded.indices)]
        return codes, list(names)

    def alike(self, first: Places, second: Places) -> Floats:
        import pyarrow.compute as pc

        found = np.full(len(first), np.nan)
        for start, part in self._parts("answer", "unread"):
            inside = np.flatnonzero((first >= start) & (first < start + len(part)))
            one, other = (part.take(rows[inside] - start) for rows in (first, second))
            same = np.asarray(pc.equal(one["answer"], other["answer"]), np.float64)
            changed = np.flatnonzero(same == 0)
            texts = (some["answer"].take(changed).to_pylist() for some in (one, other))
            same[changed] = [same_answer(before, after) for before, after in zip(*texts, strict=True)]
            unread = [np.asarray(some["unread"], bool) for some in (one, other)]
            same[unread[0] | unread[1]] = 0.0
            same[unread[0] & unread[1]] = np.nan
            found[inside] = same
        return found

    def texts(self, column: str, rows: Sequence[int] | Places) -> list[str]:
        """A column of texts at some rows."""
        wanted = np.asarray(rows, np.int64)
        found = [""] * len(wanted)
        for start, part in self._parts(column):
            inside = np.flatnonzero((wanted >= start) & (wanted < start + len(part)))
            for at, text in zip(inside.tolist(), part[column].take(wanted[inside] - start).to_pylist(), strict=True):
                found[at] = text
        return found

    def _parts(self, *columns: str) -> Iterator[tuple[int, Any]]:
        """Some columns, row group by row group, each with its first row."""
        start = 0
        for _, part in row_groups(self.path, columns):
            yield start, part
            start += len(part)
