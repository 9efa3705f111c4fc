"""The cases of a report: trials worth a look, sampled where there are too many to show.

A case is a trial, the variants of one example with their answers, named after what became of the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import read_config
from pfungst.core.exam import labelled
from pfungst.core.files import jsonable, reading
from pfungst.core.parquet import READING
from pfungst.report.answers import missing_columns, removing_probes
from pfungst.report.findings import read_findings
from pfungst.report.kinds import KINDS, WRONG, kind_of

PER_KIND = 24
"""Cases of one kind and probe in a report."""
MOST_TEXT = 1_200_000
"""Characters of all cases together; MOST_WORDS of one text in them."""
MOST_WORDS = 4000
MOST_VARIANTS = 40
"""Variants of a case that are shown."""


@dataclass(frozen=True)
class Case:
    """One trial, with all that is known about its answers."""

    probe: str
    kind: str
    """One of KINDS."""
    variant: str
    """The variant that gives the case its kind; the first one where nothing changed."""
    rows: tuple[Mapping[str, Any], ...]
    """The variants as they stand in trials/PROBE.parquet, the clean one first."""

    @property
    def clean(self) -> Mapping[str, Any]:
        return self.rows[0]

    @property
    def disturbed(self) -> Mapping[str, Any]:
        return next((row for row in self.rows if row["variant"] == self.variant), self.rows[0])

    @property
    def example_id(self) -> str:
        return str(self.rows[0]["example_id"])

    @property
    def loss(self) -> float:
        before, after = self.clean["score"], self.disturbed["score"]
        return 0.0 if before is None or after is None else float(before) - float(after)

    @property
    def size(self) -> int:
        """Characters it will take, about."""
        return sum(
            sum(min(MOST_WORDS, len(row[name] or "")) for name in ("question", "raw", "answer"))
            + sum(map(len, row["choices"] or ()))
            for row in self.rows
        )


@dataclass(frozen=True)
class Sample:
    """What a report shows of all there is."""

    cases: tuple[Case, ...]
    counts: Mapping[tuple[str, str], tuple[int, int]]
    """(probe, kind) -> shown, and all there are."""

    @property
    def total(self) -> int:
        return sum(count for _, count in self.counts.values())

    @property
    def complete(self) -> bool:
        return len(self.cases) == self.total


def sample_of(run: Path) -> Sample:
    """The cases that the report of a run will show."""
    findings = read_findings(run)
    removing = removing_probes(run, [one["probe"] for one in findings])
    return sample_cases(run, findings, removing, seed=read_config(run)["seed"])


def sample_cases(
    run: Path,
    findings: Sequence[Mapping[str, Any]],
    removing: frozenset[str] = frozenset(),
    label: str = "",
    seed: int = 0,
    per_kind: int = PER_KIND,
) -> Sample:
    """The cases of a run: of each probe and kind all, or `per_kind` of them.

    What the probe itself points at comes first, the rest is drawn at random from the seed. removing: probes that take
    the evidence away; there it is suspicious to stay right. Answers that are wrong and unchanged are the same in all
    probes: they are taken from the control, or from the probe that asked about most.
    """
    folder = labelled(run / "trials", label)
    light = {one["probe"]: _Light.read(folder / f"{one['probe']}.parquet") for one in findings}
    base = "control" if "control" in light else max(light, key=lambda name: len(light[name].starts), default="")
    rng = np.random.default_rng(seed)
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    chosen: list[tuple[str, str, str, int]] = []
    for one in findings:
        probe = one["probe"]
        named = {(failure["example_id"], failure["variant"]) for failure in one["failures"]}
        kinds: dict[str, list[tuple[int, str, bool]]] = {}
        for at, kind, variant in light[probe].kinds(probe in removing):
            if kind != WRONG or probe == base:
                first = (light[probe].ids[light[probe].starts[at]], variant) in named
                kinds.setdefault(kind, []).append((at, variant, first))
        for kind in sorted(kinds, key=KINDS.index):
            found = kinds[kind]
            order = rng.permutation(len(found))
            picked = sorted(order[:], key=lambda i, found=found: not found[i][2])[:per_kind]  # type: ignore[misc]
            chosen += [(probe, kind, found[i][1], found[i][0]) for i in sorted(picked)]
            counts[probe, kind] = (len(picked), len(found))
    cases = list(_read(folder, light, chosen))
    kept, spent = [], 0
    for case in sorted(cases, key=lambda case: KINDS.index(case.kind)):
        spent += case.size
        if spent > MOST_TEXT:
            shown, total = counts[case.probe, case.kind]
            counts[case.probe, case.kind] = (shown - 1, total)
        else:
            kept.append(case)
    return Sample(tuple(kept), counts)


@dataclass(frozen=True)
class _Light:
    """The columns of a trials file that say what became of the answers."""

    ids: Sequence[str]
    variants: Sequence[str]
    answers: Sequence[str]
    scores: np.ndarray[Any, np.dtype[np.float64]]
    starts: np.ndarray[Any, np.dtype[np.int64]]
    """The first row of each trial."""

    @classmethod
    def read(cls, path: Path) -> _Light:
        import pyarrow.parquet as pq

        if not path.exists():
            return cls([], [], [], np.zeros(0), np.zeros(0, np.int64))
        with reading(path, f"Run `pfungst rescore {path.parent.parent}`."):
            missing_columns(path, pq.ParquetFile(path).schema_arrow.names)
            table = pq.read_table(path, columns=["example_id", "variant", "answer", "score"], **READING)
            ids, variants, answers, scores = (table.column(name).to_pylist() for name in table.column_names)
        # A trial begins with its clean variant.
        starts = [
            at for at in range(len(ids)) if at == 0 or ids[at] != ids[at - 1] or variants[at] == variants[0]
        ]  # fmt: skip
        values = np.array([math.nan if score is None else score for score in scores], np.float64)
        return cls(ids, variants, answers, values, np.array(starts, np.int64))

    def span(self, at: int) -> tuple[int, int]:
        """The rows of a trial."""
        return int(self.starts[at]), int(self.starts[at + 1]) if at + 1 < len(self.starts) else len(self.ids)

    def kinds(self, removes: bool) -> Iterator[tuple[int, str, str]]:
        """Trial, kind and variant of every trial worth a look."""
        for at in range(len(self.starts)):
            start, end = self.span(at)
            found = kind_of(self.scores[start:end].tolist(), self.answers[start:end], removes)
            if found is not None:
                kind, place = found
                yield at, kind, self.variants[start + place]


def _read(folder: Path, light: Mapping[str, _Light], chosen: Sequence[tuple[str, str, str, int]]) -> Iterator[Case]:
    """The chosen trials with all their columns. A file is read once, batch by batch."""
    import pyarrow.parquet as pq

    for probe in dict.fromkeys(name for name, *_ in chosen):
        mine = {at: (kind, variant) for name, kind, variant, at in chosen if name == probe}
        spans = {at: light[probe].span(at) for at in mine}
        wanted = np.concatenate([np.arange(start, end) for start, end in spans.values()])
        wanted.sort()
        rows: dict[int, dict[str, Any]] = {}
        done = 0
        file = folder / f"{probe}.parquet"
        with reading(file, f"Run `pfungst rescore {folder.parent}`."):
            for batch in pq.ParquetFile(file, **READING).iter_batches():
                inside = wanted[(wanted >= done) & (wanted < done + len(batch))]
                rows.update(zip(inside.tolist(), map(jsonable, batch.take(inside - done).to_pylist()), strict=True))
                done += len(batch)
        for at, (kind, variant) in mine.items():
            start, end = spans[at]
            trial = [rows[row] for row in range(start, end)]
            shown = trial[:MOST_VARIANTS] + [row for row in trial[MOST_VARIANTS:] if row["variant"] == variant]
            yield Case(probe, kind, variant, tuple(shown))
