"""`build`: decoys for every question of a split (Sect. 4.1 of Being Negative but Constructively)."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import Example, ProbeError, UsageError
from pfungst.core.types import Progress, no_progress
from pfungst.probes.decoys.filters import THRESHOLD, Filter, WupFilter
from pfungst.probes.decoys.groups import Groups
from pfungst.probes.decoys.maker import Arrays, Maker, parse_kind
from pfungst.probes.decoys.sets import DecoySet, Kind
from pfungst.probes.decoys.split import Split

if TYPE_CHECKING:
    from pfungst.compute import Shard
    from pfungst.text.encoders import Encoder

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
