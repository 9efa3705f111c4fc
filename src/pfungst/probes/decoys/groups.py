"""Balanced decoys: questions in groups that lend each other their answers, so that answers alone give nothing away.

The paper's third rule, Neutrality, asks that decoys are as likely right as targets. Its procedures come close, no more:
"yes" is right in a quarter of the questions of VQA and a decoy in few; where the fallback fills up, the ten most
frequent targets are nearly always wrong. And even decoys that are wrong exactly as often as they are right leave a way:
where the most frequent answer is not among the options, the next one is right more often than chance, because all the
questions in which the first is right are gone.

What leaves none: k + 1 similar questions (QoU), or questions about one image (IoU), with answers that can be told
apart, become a group, and all of them get the same options. Each option is right once. Whoever sees the options alone
is at chance, exactly, whatever he knows about answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core.types import Progress
from pfungst.probes import measure
from pfungst.probes.decoys.filters import Prepared, ambiguous
from pfungst.probes.decoys.maker import FREQUENT_TARGET, NONE, OPPOSITE, PROCEDURE
from pfungst.probes.decoys.neighbours import nearest
from pfungst.probes.decoys.sets import Kind
from pfungst.probes.decoys.split import Split

NEAR = 48
"""Similar questions that are looked at in a round."""
ROUNDS = 6
"""Rounds over those that are still alone; each finds mates for most of them."""
_TRIES = 300
"""Strangers that are tried before a group stays small."""
Parted = tuple[list[list[int]], list[list[int]]]
"""The groups that became complete, and the units that are left."""


class Groups:
    """Grows groups of triplets whose answers can be told apart."""

    def __init__(self, split: Split, k: int, seed: int, filters: Sequence[Prepared], avoid_humans: bool) -> None:
        self.split, self.size, self.rng = split, k + 1, np.random.default_rng([seed, 991])
        self._filters, self._known = filters, dict[tuple[int, int], bool]()
        self._targets = split.targets.tolist()
        self._classes = split.book.classes.tolist()
        starts = split.humans.starts
        some = np.flatnonzero(np.diff(starts)).tolist() if avoid_humans and len(starts) else []
        self._not = {one: frozenset(split.humans[one].tolist()) for one in some}
        self.polar: Any = (split.opposite >= 0).tolist()

    def kind(self, kind: str, vectors: Any, progress: Progress) -> Kind:
        alone = self.rng.permutation(len(self.split)).tolist()
        done, units = self._by_image(alone) if kind == "iou" else self._by_question(alone, vectors, progress)
        unit_of = {one: number for number, unit in enumerate([*done, *units]) for one in unit}
        # Who is left over when every "no" has its "yes" is asked among the same two, not among strangers.
        left = [unit for unit in units if kind == "qou" and self.polar[unit[0]]]
        strangers = [unit for unit in units if not (kind == "qou" and self.polar[unit[0]])]
        return self._assemble([*done, *self._merge(strangers)], unit_of, [unit[0] for unit in left])

    def fits(self, one: int, others: Iterable[int]) -> bool:
        """Whether a triplet's answer can be told from those of others, and no human gave it there, nor theirs here."""
        a, said = self._targets[one], self._not.get(one, frozenset())
        for other in others:
            b = self._targets[other]
            if self._classes[b] in said or self._classes[a] in self._not.get(other, frozenset()):
                return False
            pair = (a, b) if a < b else (b, a)
            if pair not in self._known:
                book, left, right = self.split.book, np.array([pair[0]]), np.array([pair[1]])
                self._known[pair] = bool(ambiguous(book, self._filters, left, right)[0])
            if self._known[pair]:
                return False
        return True

    def _by_image(self, alone: list[int]) -> Parted:
        images = measure.grouped(alone, lambda one: int(self.split.image[one]))
        groups = [group for members in images.values() for group in self._partition(members)]
        return [g for g in groups if len(g) == self.size], [g for g in groups if len(g) < self.size]

    def _partition(self, members: list[int]) -> list[list[int]]:
        groups: list[list[int]] = []
        for one in members:
            home = next((g for g in groups if len(g) < self.size and self.fits(one, g)), None)
            if home is None:
                groups.append([one])
            else:
                home.append(one)
        return groups

    def _by_question(self, alone: list[int], vectors: Any, progress: Progress) -> Parted:
        done: list[list[int]] = []
        for number in range(ROUNDS):
            groups, alone = self._round(alone, vectors)
            done += groups
            progress("grouping questions", number + 1, ROUNDS)
            if not groups or len(alone) < self.size:
                break
        return done, [[one] for one in alone]

    def _round(self, alone: list[int], vectors: Any) -> tuple[list[list[int]], list[int]]:
        """Groups of similar questions among those alone, and who stays alone. "Yes" is paired with "no" only."""
        asked, rows = np.unique(self.split.question[alone], return_inverse=True)
        near, _ = nearest(np.ascontiguousarray(vectors[asked]), np.arange(len(asked)), NEAR)
        by_question: list[list[int]] = [[] for _ in asked]
        for one, row in zip(alone, rows.tolist()):
            by_question[row].append(one)
        taken: set[int] = set()
        groups = []
        for one, row in zip(alone, rows.tolist()):
            if one in taken:
                continue
            size = 2 if self.polar[one] else self.size
            group = [one]
            for other in self._walk(near[row], by_question, taken):
                if other != one and self.polar[other] == self.polar[one] and self.fits(other, group):
                    group.append(other)
                    if len(group) == size:
                        break
            if len(group) == size:
                groups.append(group)
                taken.update(group)
        return groups, [one for one in alone if one not in taken]

    @staticmethod
    def _walk(near: npt.NDArray[np.int32], by_question: list[list[int]], taken: set[int]) -> Iterator[int]:
        for row in near.tolist():
            if row >= 0:
                members = by_question[row]
                if members and any(one in taken for one in members):
                    members = by_question[row] = [one for one in members if one not in taken]
                yield from members

    def _merge(self, units: list[list[int]]) -> list[list[int]]:
        """Groups of strangers: what is left keeps the rule that each option is right once.

        They are dealt out like cards, the largest first, then frequent answers first, so that equal answers come into
        different groups. What does not fit as it stands is taken apart.
        """
        often = np.bincount(self.split.targets)
        units = [units[at] for at in self.rng.permutation(len(units)).tolist()]
        units.sort(key=lambda unit: (-len(unit), -int(often[self._targets[unit[0]]]), self._targets[unit[0]]))
        groups: list[list[int]] = [[] for _ in range(-(-sum(map(len, units)) // self.size))]
        queue, rest, at = deque(units), list[list[int]](), 0
        while queue:
            unit = queue.popleft()
            for turn in range(min(_TRIES, len(groups))):
                group = groups[(at + turn) % len(groups)]
                if len(group) + len(unit) <= self.size and all(self.fits(one, group) for one in unit):
                    group += unit
                    at += turn + 1
                    break
            else:
                if len(unit) > 1:
                    queue.extend([one] for one in unit)
                else:
                    rest.append(unit)
        return [*(group for group in groups if group), *rest]

    def _assemble(self, groups: list[list[int]], unit_of: dict[int, int], left: list[int]) -> Kind:
        shape = (len(self.split), self.size - 1)
        answers, ranks = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32)
        origins = np.full(shape, NONE, np.uint8)
        full = [group for group in groups if len(group) > 1]
        for group in groups:
            for one in group:
                mates = [other for other in group if other != one]
                if not mates and full:
                    mates = self._borrowed(one, full)
                for at, other in enumerate(mates):
                    answers[one, at], ranks[one, at] = self._targets[other], at + 1
                    origins[one, at] = PROCEDURE if unit_of[one] == unit_of[other] else FREQUENT_TARGET
        answers[left, 0], origins[left, 0] = self.split.opposite[left], OPPOSITE
        return Kind(answers, origins, ranks)

    def _borrowed(self, one: int, groups: list[list[int]]) -> list[int]:
        """The options of a group for a question that none could take: the one thing here that is not balanced."""
        start, best = int(self.rng.integers(len(groups))), list[int]()
        for turn in range(min(_TRIES, len(groups))):
            group = groups[(start + turn) % len(groups)]
            mates = [other for other in group if self.fits(one, [other])]
            if len(mates) > len(best):
                best = mates
            if len(best) >= self.size - 1:
                break
        return best[: self.size - 1]
