"""The procedures that find decoys, for a block of questions at a time.

First the most similar questions, exactly, block by block. Averaged word vectors all point into one narrow cone (the
50th neighbour of a COCO-QA question has a cosine of 0.96), so that pruning by clusters saves nothing: with 1,024
clusters 82% of the vectors must still be looked at. A matrix product of blocks and a scan that keeps the few largest is
faster than anything clever.

Then decoys are taken from the candidates: the first that are told apart from the target and from each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import UsageError
from pfungst.core.threads import threads
from pfungst.probes.decoys.filters import Prepared, ambiguous
from pfungst.probes.decoys.split import AnswerBook, Ints, Lists, Longs, Split

Floats = npt.NDArray[np.float32]

QUERIES = 384
CANDIDATES = 768
"""A block of similarities is 1.1 MiB: it stays in a core's own cache between the product and the scan."""
STRIDE = 64
"""Candidates whose maximum is compared with what is already known before they are looked at one by one."""
_DEEP_BYTES = 64 << 20
"""Bound on the buffers of a block of deep searches."""


def nearest(vectors: Floats, queries: npt.NDArray[np.int64], count: int) -> tuple[Ints, Floats]:
    """The `count` rows of `vectors` with the largest cosine to each query row, itself included.

    vectors: (n, dim), rows of length 1. queries: numbers of rows. Returns (queries, count) numbers, most similar first,
    and their cosines; -1 and NaN where there are fewer. A row of zeros (no known word) has only itself as neighbour.
    """
    count = min(count, len(vectors))
    found = np.full((len(queries), count), -1, np.int32)
    cosines = np.full((len(queries), count), np.nan, np.float32)
    room = max(4 * count, count + 64) if count <= 1024 else 2 * count
    block = max(8, min(QUERIES, _DEEP_BYTES // (8 * room)))

    def work(start: int) -> None:
        rows = queries[start : start + block]
        _search(vectors, rows, room, found[start : start + block], cosines[start : start + block])

    with threads(None) as workers:
        workers.map(work, range(0, len(queries), block))
    unknown = ~vectors[queries].any(1)
    found[unknown, :], cosines[unknown, :] = -1, np.nan
    found[unknown, 0], cosines[unknown, 0] = queries[unknown], 1.0
    return found, cosines


def _search(vectors: Floats, queries: npt.NDArray[np.int64], room: int, found: Ints, cosines: Floats) -> None:
    """One block of queries against everything; `found` and `cosines` (queries, count) are filled."""
    from pfungst.probes.decoys import kernels

    rows = np.ascontiguousarray(vectors[queries])
    size, count = found.shape
    kept = (
        np.full(size, -np.inf, np.float32),
        np.zeros(size, np.int64),
        np.empty((size, room), np.float32),
        np.empty((size, room), np.int32),
    )
    similarities = np.empty((CANDIDATES, size), np.float32)
    highest = np.empty((CANDIDATES // STRIDE, size), np.float32)
    for offset in range(0, len(vectors), CANDIDATES):
        part = vectors[offset : offset + CANDIDATES]
        np.matmul(part, rows.T, out=similarities[: len(part)])
        similarities[len(part) :] = -np.inf
        similarities.reshape(-1, STRIDE, size).max(axis=1, out=highest)
        kernels.scan(similarities, highest, offset, count, kept)
    kernels.finish(vectors, rows, count, kept, found, cosines)
    # Most similar first, of equal ones the first in the data.
    order = np.lexsort((found, -cosines), axis=1)
    found[:] = np.take_along_axis(found, order, axis=1)
    cosines[:] = np.take_along_axis(cosines, order, axis=1)


def select(
    book: AnswerBook,
    filters: Sequence[Prepared] | None,
    candidates: Ints,
    targets: Ints,
    chosen: Ints,
    want: int,
) -> npt.NDArray[np.int64]:
    """Columns of `candidates` to take, (rows, want), -1 where there are not enough.

    candidates: (rows, C) answer numbers in the order of preference, -1 at the end. chosen: (rows, P) decoys that stand
    already, -1 where none does. A candidate is taken unless it is ambiguous (`filters.ambiguous`) against the target,
    a decoy that stands, or one taken before it. filters=None asks only that answers are not the same.
    """
    clash = book.same if filters is None else partial(ambiguous, book, filters)
    rows, width = candidates.shape
    picks = np.full((rows, want), -1, np.int64)
    taken = np.zeros(rows, np.int64)
    cursor = np.zeros(rows, np.int64)
    answers = np.full((rows, want), -1, np.int32)
    active = np.arange(rows) if width and want else np.zeros(0, np.int64)
    while len(active):
        here = candidates[active, cursor[active]]
        active, here = active[here >= 0], here[here >= 0]
        bad = np.zeros(len(active), np.bool_)
        columns = [targets[active]]
        columns += [chosen[active, column] for column in range(chosen.shape[1])]
        columns += [answers[active, column] for column in range(want)]
        for others in columns:
            test = np.flatnonzero(~bad & (others >= 0))
            if len(test):
                bad[test] = clash(here[test], others[test])
        good = active[~bad]
        picks[good, taken[good]] = cursor[good]
        answers[good, taken[good]] = here[~bad]
        taken[good] += 1
        cursor[active] += 1
        active = active[(taken[active] < want) & (cursor[active] < width)]
    return picks


def taken(values: npt.NDArray[Any], picks: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """`values` (rows, C) at the picked columns, -1 where nothing was picked."""
    if not values.shape[1]:
        return np.full(picks.shape, -1, values.dtype)
    found = np.take_along_axis(values, np.maximum(picks, 0), axis=1)
    return np.asarray(np.where(picks >= 0, found, -1))


def put(
    answers: Ints,
    rows: npt.NDArray[np.int64],
    found: Ints,
    more: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
) -> None:
    """Put what was `found` (rows, n) into the holes (-1) of `answers`, first into first, as long as there are any.

    more: (array like `answers`, values like `found`) that go along.
    """
    for column in range(found.shape[1]):
        hole = (answers[rows] < 0).argmax(1)
        fits = np.flatnonzero((answers[rows, hole] < 0) & (found[:, column] >= 0))
        at = rows[fits], hole[fits]
        answers[at] = found[fits, column]
        for array, values in more:
            array[at] = values[fits, column]


Arrays = dict[str, npt.NDArray[Any]]

PROCEDURE, ORIGINAL, FREQUENT_TARGET, NONE = 0, 1, 2, 3
"""Where a decoy comes from: found by the procedure, or which fallback; NONE: there was no more."""
UNFILTERED = 4
"""Added to a fallback that is only known to be another answer."""
OPPOSITE = 8
"""Instead of any of these: "no" for "yes", or the other way around, which the procedure itself did not come across."""
OPPOSED = ("qou", "iou", "both")
"""Kinds that always hold the opposite of yes and no (Sect. 5.3: "the only valid decoy")."""

FIRST_QUESTIONS, FIRST_CANDIDATES = 48, 12
"""Most questions have their decoys among so many similar questions and candidates."""
NEXT_CANDIDATES = 64
_DEEP = 512
"""Questions of a block of deep searches: bounds its memory."""
_RANDOM_DRAWS = 24
_SALT = {"iou": 11, "qou": 12, "both": 13, "random": 14, "mined": 15}
"""Keeps the random choices of the procedures apart."""


def parse_kind(kind: str) -> tuple[str, int]:
    """`qou@100` is (`qou`, 100): the procedure, and how many neighbours it passes over."""
    name, at, number = kind.partition("@")
    if name not in _SALT or (at and (name != "qou" or not number.isdecimal())):
        raise UsageError(f"There is no kind of decoys {kind!r}. There are qou, iou, both, random, mined and qou@RANK.")
    return name, int(number or 0)


@dataclass(frozen=True, eq=False)
class Maker:
    """Makes the decoys of all triplets that ask some questions."""

    split: Split
    kinds: tuple[str, ...]
    k: int
    seed: int
    vectors: Any
    """Unit vectors (questions, dim), or None where no kind needs them."""
    neighbours: int
    filters: Sequence[Prepared]
    avoid_human_answers: bool
    fallback: str = "frequent"
    elsewhere: tuple[str, ...] = ()
    """Kinds that are not made here."""
    only: npt.NDArray[np.bool_] | None = None
    """(triplets,) Which get decoys, None for all. The others are there to take decoys from."""

    @property
    def questions(self) -> Longs:
        """Numbers of the questions that need decoys."""
        if self.only is None:
            return np.arange(len(self.split.questions))
        return np.unique(self.split.question[self.only]).astype(np.int64)

    def size(self, kind: str) -> int:
        """Decoys a triplet gets of this kind."""
        return self.k * max(1, len({"qou", "iou"} & set(self.kinds))) if kind == "random" else self.k

    def make(self, asked: Longs) -> Arrays:
        """asked: numbers of questions, ascending."""
        inside = np.zeros(len(self.split.questions), np.bool_)
        inside[asked] = True
        wanted = inside[self.split.question]
        triplets = np.flatnonzero(wanted if self.only is None else wanted & self.only)
        result: Arrays = {"triplets": triplets}
        free = np.full((len(triplets), 0), -1, np.int32)
        beside = free
        for kind in sorted(set(self.kinds) - set(self.elsewhere), key=lambda kind: (kind != "qou", kind)):
            standing = beside if kind == "iou" else free
            answers, ranks = self._find(kind, triplets, standing, asked)
            if kind == "iou":
                # Too few that differ from the QoU decoys: one that serves as both is better than a stranger. Not so the
                # opposite, which has a place of its own (`_lead`).
                again, depth = self._find(kind, triplets, self.split.opposite[triplets][:, None], asked)
                self._patch(answers, ranks, triplets, again, depth)
            origins = np.where(answers >= 0, np.where(ranks >= 0, PROCEDURE, OPPOSITE), NONE).astype(np.uint8)
            self._fill(kind, triplets, standing, answers, origins)
            if kind == "iou":
                result["iou reserve"] = self._lead(triplets, answers, ranks, origins)
            result[f"{kind} answers"], result[f"{kind} ranks"], result[f"{kind} origins"] = answers, ranks, origins
            if kind == "qou":
                beside = answers
        return result

    def _lead(self, triplets: Any, answers: Ints, ranks: Ints, origins: npt.NDArray[np.uint8]) -> Ints:
        """Put the opposite, which stands among the QoU decoys, before the IoU decoys too: (triplets,) what gives way.

        IoU alone needs it as much; the decoy that gives way stays for QoU+IoU, which needs the opposite only once.
        """
        book, opposite = self.split.book, self.split.opposite[triplets]
        classes = np.where(answers >= 0, book.classes[answers], -1)
        rows = np.flatnonzero((opposite >= 0) & ~(classes == book.classes[opposite][:, None]).any(1))
        reserve = np.full(len(triplets), -1, np.int32)
        reserve[rows] = answers[rows, -1]
        of_image = self.split.right_about(self.split.image[triplets[rows]], book.classes[opposite[rows]])
        for array, first in (
            (answers, opposite[rows]),
            (ranks, np.where(of_image, 1, -1)),
            (origins, np.where(of_image, PROCEDURE, OPPOSITE)),
        ):
            array[rows, 1:] = array[rows, :-1]
            array[rows, 0] = first
        return reserve

    def _patch(self, answers: Ints, ranks: Ints, triplets: Any, spare: Ints, spare_ranks: Ints) -> None:
        """Fill holes in `answers` from `spare`."""
        short = np.flatnonzero((answers < 0).any(1))
        if len(short):
            picks = self._select(spare[short], triplets[short], answers[short], self.k)
            put(answers, short, taken(spare[short], picks), [(ranks, taken(spare_ranks[short], picks))])

    def _find(self, kind: str, triplets: Any, beside: Ints, asked: Longs) -> tuple[Ints, Ints]:
        name, skip = parse_kind(kind)
        if name == "iou":
            groups = self.split.image[triplets].astype(np.int32)[:, None]
            rows = np.arange(len(triplets))
            return self._walk(kind, triplets, rows, groups, self.split.by_image, beside, len(self.split), 0, 0)
        if name == "random":
            drawn = self._draw(self._salt(kind), triplets, _RANDOM_DRAWS + 4 * self.size(kind))
            return self._take(kind, triplets, beside, drawn)
        if name == "mined":
            return self._take(kind, triplets, beside, self.split.mined.padded(triplets))
        return self._search(kind, triplets, beside, asked, skip)

    def _search(self, kind: str, triplets: Any, beside: Ints, asked: Longs, skip: int) -> tuple[Ints, Ints]:
        """Walk the similar questions, first a few, then for those that need it as many as allowed."""
        answers = np.full((len(triplets), self.k), -1, np.int32)
        ranks = answers.copy()
        short: npt.NDArray[np.bool_] = np.ones(len(triplets), np.bool_)
        limit = self.neighbours + skip
        rows = np.searchsorted(asked, self.split.question[triplets])
        if kind != "both":
            near, _ = nearest(self.vectors, asked, FIRST_QUESTIONS)
            answers, ranks = self._walk(
                kind, triplets, rows, near, self.split.by_question, beside, limit, skip, FIRST_CANDIDATES
            )
            short = np.asarray((answers < 0).any(1))
        open_ = np.unique(rows[short])
        for at in range(0, len(open_), _DEEP):
            block = open_[at : at + _DEEP]
            near, _ = nearest(self.vectors, asked[block], limit)
            for width in (NEXT_CANDIDATES, limit):
                again = np.flatnonzero(short & np.isin(rows, block))
                found, depth = self._walk(
                    kind, triplets[again], np.searchsorted(block, rows[again]), near, self.split.by_question,
                    beside[again], limit, skip, width,
                )  # fmt: skip
                answers[again], ranks[again] = found, depth
                short[again] = (found < 0).any(1)
        return answers, ranks

    def _walk(
        self, kind: str, triplets: Any, rows: Any, near: Ints, groups: Lists, beside: Ints, limit: int, skip: int,
        width: int,
    ) -> tuple[Ints, Ints]:  # fmt: skip
        """Candidates from the groups, nearest first, filtered: (triplets, k) answers and ranks."""
        from pfungst.probes.decoys import kernels

        if kind == "iou":
            width = int((groups.starts[near[:, 0] + 1] - groups.starts[near[:, 0]]).max(initial=1))
        width = max(1, min(width, len(self.split.book)))
        answers = np.full((len(triplets), self.k), -1, np.int32)
        ranks = answers.copy()
        step = max(1, (1 << 22) // width)
        only = self._of_image(triplets) if kind == "both" else None
        for at in range(0, len(triplets), step):
            part = slice(at, at + step)
            found = np.full((len(triplets[part]), width), -1, np.int32)
            depth = found.copy()
            kernels.collect(
                triplets[part], rows[part], near, groups.arrays, self.split.targets, self.split.book.arrays,
                (self.split.humans if self.avoid_human_answers else Lists.none()).arrays,
                (only or Lists.none()).arrays, limit, skip, self._salt(kind), found, depth,
            )  # fmt: skip
            if parse_kind(kind)[0] in OPPOSED:
                found, depth = self._opposite_first(triplets[part], found, depth)
            picks = self._select(found, triplets[part], beside[part], self.k)
            answers[part], ranks[part] = taken(found, picks), taken(depth, picks)
        return answers, ranks

    def _opposite_first(self, triplets: Any, found: Ints, depth: Ints) -> tuple[Ints, Ints]:
        """The candidates with one more before them: the opposite, or the target, which is passed over."""
        opposite = self.split.opposite[triplets]
        there = opposite >= 0
        first = np.where(there, opposite, self.split.targets[triplets]).astype(np.int32)
        classes = self.split.book.classes
        same = (found >= 0) & (classes[found] == classes[first][:, None])
        rank = np.where(there & same.any(1), depth[np.arange(len(depth)), same.argmax(1)], -1).astype(np.int32)
        return np.column_stack([first, found]), np.column_stack([rank, depth])

    def _of_image(self, triplets: Any) -> Lists:
        """The answer classes of each triplet's image; of the other triplets nothing is needed."""
        wanted = np.zeros(len(self.split), np.bool_)
        wanted[triplets] = True
        classes = self.split.book.classes[self.split.targets]
        return Lists.of(
            classes[self.split.by_image[image]].tolist() if asked else ()
            for image, asked in zip(self.split.image, wanted, strict=True)
        )

    def _draw(self, salt: int, triplets: Any, count: int) -> Ints:
        """(triplets, count) targets of any questions, drawn from a salt."""
        from pfungst.probes.decoys import kernels

        draws = kernels.mix_table(salt, triplets, count)
        return np.asarray(self.split.targets[(draws % np.uint64(len(self.split))).astype(np.int64)])

    def _take(self, kind: str, triplets: Any, beside: Ints, candidates: Ints) -> tuple[Ints, Ints]:
        candidates = self._without_humans(candidates, triplets)
        picks = self._select(candidates, triplets, beside, self.size(kind))
        return taken(candidates, picks), np.where(picks >= 0, picks + 1, -1).astype(np.int32)

    def _without_humans(self, candidates: Ints, triplets: Any) -> Ints:
        """The target stands in place of what an annotator said: it is passed over, where a hole would end the row."""
        if not self.avoid_human_answers or not len(self.split.humans.values):
            return candidates
        said = self.split.humans.padded(triplets)
        classes = np.where(candidates >= 0, self.split.book.classes[candidates], -2)
        human = (classes[:, :, None] == said[:, None, :]).any(2)
        return np.where(human, self.split.targets[triplets][:, None], candidates)

    def _select(self, candidates: Ints, triplets: Any, beside: Ints, want: int) -> npt.NDArray[np.int64]:
        return select(self.split.book, self.filters, candidates, self.split.targets[triplets], beside, want)

    def _fill(self, kind: str, triplets: Any, beside: Ints, answers: Ints, origins: npt.NDArray[np.uint8]) -> None:
        """The paper's fallbacks, where a procedure found fewer than wanted: changes `answers` and `origins`."""
        from pfungst.probes.decoys import kernels

        originals = self.split.originals
        free = beside[:, :0]
        for strict, standing in ((True, beside), (True, free), (False, free)):
            short = np.flatnonzero((answers < 0).any(1))
            if not len(short):
                break
            own = originals.padded(triplets[short])
            spare = np.concatenate([own, self._spare_targets(kind, triplets[short])], axis=1)
            # The data set's own decoys come first, each group in a random order; holes go to the end.
            keys = kernels.mix_table(self._salt(kind) + 100, triplets[short], spare.shape[1]) >> np.uint64(2)
            keys[:, own.shape[1] :] += np.uint64(1 << 62)
            keys[spare < 0] = np.uint64(1 << 63)
            order = np.argsort(keys, axis=1, kind="stable")
            spare = np.take_along_axis(spare, order, axis=1)
            picks = select(
                self.split.book,
                self.filters if strict else None,
                self._without_humans(spare, triplets[short]) if strict else spare,
                self.split.targets[triplets[short]],
                np.concatenate([standing[short], answers[short]], axis=1),
                self.size(kind),
            )
            source = np.where(taken(order.astype(np.int32), picks) < own.shape[1], ORIGINAL, FREQUENT_TARGET)
            put(answers, short, taken(spare, picks), [(origins, source + (0 if strict else UNFILTERED))])

    def _spare_targets(self, kind: str, triplets: Any) -> Ints:
        """(triplets, n) targets to fall back on: the most frequent ones, or draws as frequent as they are right."""
        if self.fallback == "frequent":
            return np.broadcast_to(self.split.frequent, (len(triplets), len(self.split.frequent)))
        return self._draw(self._salt(kind) + 200, triplets, _RANDOM_DRAWS)

    def _salt(self, kind: str) -> int:
        name, skip = parse_kind(kind)
        return self.seed * 1_000_003 + _SALT[name] * 1009 + skip
