"""`build`: decoys for every question of a split (Sect. 4.1 of Being Negative but Constructively).

Balanced decoys (`Groups`) are questions in groups that lend each other their answers, so that answers alone give
nothing away. The paper's third rule, Neutrality, asks that decoys are as likely right as targets. Its procedures come
close, no more: "yes" is right in a quarter of the questions of VQA and a decoy in few; where the fallback fills up, the
ten most frequent targets are nearly always wrong. And even decoys that are wrong exactly as often as they are right
leave a way: where the most frequent answer is not among the options, the next one is right more often than chance,
because all the questions in which the first is right are gone.

What leaves none: k + 1 similar questions (QoU), or questions about one image (IoU), with answers that can be told
apart, become a group, and all of them get the same options. Each option is right once. Whoever sees the options alone
is at chance, exactly, whatever he knows about answers.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pfungst.core import Example, ProbeError, UsageError
from pfungst.core.types import Progress, no_progress
from pfungst.probes import measure
from pfungst.probes.decoys.filters import THRESHOLD, Filter, Prepared, WupFilter, ambiguous
from pfungst.probes.decoys.maker import FREQUENT_TARGET, NONE, OPPOSITE, PROCEDURE, Arrays, Maker, nearest, parse_kind
from pfungst.probes.decoys.sets import DecoySet, Kind
from pfungst.probes.decoys.split import Split

if TYPE_CHECKING:
    from pfungst.compute import Shard
    from pfungst.text.encoders import Encoder

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


K = 3
"""Decoys of each kind (Sect. 5.1)."""
NEIGHBOURS = 10_000
"""Most similar triplets that are walked (Sect. 4.1)."""
SHARD = 8192
"""Distinct questions a shard: about a minute of work at Visual Genome's size."""


def build(
    examples: Sequence[Example],
    kinds: Sequence[str] = ("qou", "iou"),
    k: int = K,
    seed: int = 0,
    *,
    encoder: str | Encoder | None = None,
    neighbours: int = NEIGHBOURS,
    threshold: float = THRESHOLD,
    filters: Sequence[Filter] | None = None,
    avoid_human_answers: bool = True,
    mined: Mapping[str, Sequence[str]] | None = None,
    fallback: str = "frequent",
    balanced: bool = False,
    only: Collection[str] | None = None,
    folder: str | Path | None = None,
    progress: Progress = no_progress,
) -> DecoySet:
    """Make k decoys of each kind for every example that has a target.

    examples: one split. Decoys come from the targets of these examples and from nowhere else.
    kinds: `qou` targets of the most similar questions; `iou` targets of other questions about the same image, in an
        order drawn from the seed; `both` answers that are both (the paper's open problem: they are few); `random`
        targets of any questions, as many as `qou` and `iou` together, the naive baseline; `qou@R` as `qou`, but the
        first R neighbours are passed over, so the decoys are weaker; `mined` the candidates in `mined`.
    encoder: what makes questions vectors whose cosine is compared: `words:FILE` (GloVe, word2vec, npz) averages word
        vectors as the paper does; by default the encoder embedded in the package, a deviation.
    neighbours: how many of the most similar triplets are walked at most.
    threshold: a candidate whose WUPS with the target, or with a decoy chosen before it, is at or above this is
        ambiguous and passed over, as is one that contains the other or is contained in it.
    filters: ambiguity filters in place of the one on WUPS, for example `[WupFilter(), EmbeddingFilter(...)]`.
    avoid_human_answers: pass over what any annotator answered (the paper looks at the target alone).
    mined: example id -> candidates, best first, see `mine`.
    fallback: where a procedure finds too few and the data set has no decoys of its own: `frequent` draws from the ten
        most frequent targets, as the paper does; `neutral` from all targets, each as often as it is right, so that the
        fallback itself gives nothing away.
    balanced: beyond the paper: `qou` and `iou` decoys are those of groups of questions that lend each other their
        answers, each of which is right once, so that answers alone give nothing away (see `groups`). "Yes" and "no" are
        each other's only `qou` decoy. Where there are too few mates the group is filled up with strangers.
    only: ids of the examples that get decoys; the others are there to take decoys from. Balanced kinds ignore it.
    folder: keep finished work there; the same call continues where a killed one stopped. The work is done where
        `pfungst.compute.working` says.

    "Yes" and "no" are each other's decoy in all of `qou`, `iou` and `both`, whatever annotators said, as long as both
    are right somewhere in the split: a yes/no question without the other word among its choices asks nothing.
    Where a procedure finds fewer than k, decoys are drawn from the data set's own, else from its ten most frequent
    targets; first such that pass the filters, then any that are not the same answer. How often is in `.counts`.
    IoU decoys are chosen to differ from the QoU decoys, so that the two can be combined; where the image has too few
    other answers they may be the same, and the combined set is smaller ("yes" has only "no").
    """
    kinds = tuple(dict.fromkeys(kinds))
    for kind in kinds:
        parse_kind(kind)
    if k < 1 or not kinds:
        raise UsageError("Decoys need at least one kind, and k must be at least 1.")
    if "mined" in kinds and mined is None:
        raise ProbeError(
            "Decoys of the kind mined need candidates: give mined=, which pfungst.probes.decoys.mine makes."
        )
    if fallback not in ("frequent", "neutral"):
        raise UsageError(f"The fallback of decoys is frequent or neutral, not {fallback!r}.")
    if neighbours < 1:
        raise UsageError(f"Decoys need at least 1 neighbour to look at, not {neighbours}.")
    filters = [WupFilter(threshold)] if filters is None else list(filters)
    fallback = "neutral" if balanced else fallback
    grouped = [kind for kind in kinds if balanced and kind in ("qou", "iou")]
    split = Split.of(examples, seed, mined)
    vectors, encoder_name = _vectors(split, kinds, encoder, progress)
    prepared = [one.prepare(split.book) for one in filters]
    chosen = None if only is None else np.array([example.id in only for example in split.examples], np.bool_)
    maker = Maker(
        split, kinds, k, seed, vectors, neighbours, prepared, avoid_human_answers, fallback, tuple(grouped), chosen
    )  # fmt: skip
    known = "" if mined is None else _digest([[key, list(mined[key])] for key in sorted(mined)])
    version = _digest(
        [
            "decoys-2", kinds, k, seed, neighbours, [one.fingerprint for one in filters], avoid_human_answers,
            "balanced" if balanced else fallback, encoder_name, _content(split), known,
            None if only is None else sorted(only),
        ]
    )  # fmt: skip
    parts = _run(maker, None if folder is None else Path(folder), version, progress)
    groups = Groups(split, k, seed, prepared, avoid_human_answers) if grouped else None
    own = {kind: groups.kind(kind, vectors, progress) for kind in sorted(grouped, reverse=True)} if groups else {}
    made = {kind: own[kind] if kind in own else _assemble(kind, maker, parts) for kind in kinds}
    about = {
        "kinds": list(kinds), "k": k, "seed": seed, "neighbours": neighbours, "encoder": encoder_name,
        "fallback": fallback, "balanced": balanced, "filters": ["containment", *(one.fingerprint for one in filters)],
        "version": version,
    }  # fmt: skip
    return DecoySet(split, made, k, seed, vectors, about)


def _vectors(split: Split, kinds: Sequence[str], encoder: str | Encoder | None, progress: Progress) -> tuple[Any, str]:
    if not any(parse_kind(kind)[0] in ("qou", "both") for kind in kinds):
        return None, ""
    from pfungst.text import encode, get_encoder
    from pfungst.text.encoders.base import unit_rows

    chosen = get_encoder(encoder)
    rows = encode(split.questions, chosen, progress=lambda done, total: progress("encoding questions", done, total))
    return unit_rows(rows), str(chosen.fingerprint)


def _run(maker: Maker, folder: Path | None, version: str, progress: Progress) -> list[Arrays]:
    from pfungst.compute import make_shards, place_of_work, run_shards, split_range

    count = len(maker.questions)
    payloads = split_range(count, SHARD)
    if folder is None and place_of_work().on == "local":
        parts = []
        for payload in payloads:
            progress("making decoys", payload["start"], count)
            parts.append(_make(maker, payload))
        progress("making decoys", count, count)
        return parts
    with tempfile.TemporaryDirectory() as passing:
        shards = make_shards(payloads, name="decoys-{index:05d}.npz")
        files = run_shards(
            partial(_work, maker=maker), shards, folder or passing, version=version, what="making decoys",
            progress=lambda what, done, total: progress(what, done * count // max(total, 1), count),
        )  # fmt: skip
        return [_read(file) for file in files]


def _make(maker: Maker, payload: Mapping[str, int]) -> Arrays:
    return maker.make(maker.questions[payload["start"] : payload["stop"]])


def _work(shard: Shard, *, maker: Maker) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **_make(maker, shard.payload))
    return buffer.getvalue()


def _read(file: Path) -> Arrays:
    with np.load(file, allow_pickle=False) as stored:
        return dict(stored)


def _assemble(kind: str, maker: Maker, parts: Sequence[Arrays]) -> Kind:
    size = (len(maker.split), maker.size(kind))
    answers, ranks = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
    origins = np.zeros(size, np.uint8)
    for part in parts:
        where = part["triplets"]
        answers[where], ranks[where] = part[f"{kind} answers"], part[f"{kind} ranks"]
        origins[where] = part[f"{kind} origins"]
    reserve = None
    if kind == "iou" and "qou" in maker.kinds:
        reserve = np.full(len(maker.split), -1, np.int32)
        for part in parts:
            reserve[part["triplets"]] = part["iou reserve"]
    return Kind(answers, origins, ranks, reserve)


def _content(split: Split) -> str:
    digest = hashlib.sha256()
    for one in split.examples:
        seen = [one.id, one.question, one.image_id, one.target, one.answers, one.choices]
        digest.update(json.dumps(seen).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode("utf-8", "surrogatepass")).hexdigest()
