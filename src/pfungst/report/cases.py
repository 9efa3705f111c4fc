"""The cases of a report: trials worth a look, sampled where there are too many to show.

A case is a trial, the variants of one example with their answers, named after what became of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pfungst.core import Findings, Run
from pfungst.core.files import jsonable
from pfungst.core.flips import CHANGED, FLIPS, KEPT_WITHOUT, STILL_WRONG

KINDS = FLIPS[: FLIPS.index(STILL_WRONG) + 1]
"""What can be worth a look; the rest of FLIPS stayed as it should."""
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
            sum(min(MOST_WORDS, len(row[name] or "")) for name in ("question", "reply", "answer"))
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


def sample_of(run: Run, per_kind: int = PER_KIND) -> Sample:
    """The cases of a run: of each probe and kind all, or `per_kind` of them.

    A trial is a case once, of the first of KINDS that became of its answer. What the probe itself points at comes
    first, the rest is drawn at random from the seed. Answers that are wrong and stay so are the same in all probes:
    they are taken from the control, or from the probe that asked about most.
    """
    findings = {one.probe: one for one in run.findings}
    told = {name: _Told.of(run, one) for name, one in findings.items()}
    controls = [name for name, one in findings.items() if one.role == "control"]
    base = max(controls or told, key=lambda name: told[name].trials, default="")
    rng = np.random.default_rng(run.config["seed"])
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    chosen: list[tuple[str, str, int, str]] = []
    for probe, one in told.items():
        for kind in KINDS:
            found = list(one.kinds.get(kind, {}).items())
            if not found or (kind == STILL_WRONG and probe != base):
                continue
            order = rng.permutation(len(found))
            picked = sorted(order[:], key=lambda at, found=found: not found[at][1][1])[:per_kind]  # type: ignore[misc]
            chosen += [(probe, kind, found[at][0], found[at][1][0]) for at in sorted(picked)]
            counts[probe, kind] = (len(picked), len(found))
    kept, spent = [], 0
    for case in sorted(_read(run, chosen), key=lambda case: KINDS.index(case.kind)):
        spent += case.size
        if spent > MOST_TEXT:
            shown, total = counts[case.probe, case.kind]
            counts[case.probe, case.kind] = (shown - 1, total)
        else:
            kept.append(case)
    return Sample(tuple(kept), counts)


@dataclass(frozen=True)
class _Told:
    """What became of the answers of a probe."""

    trials: int
    kinds: Mapping[str, Mapping[int, tuple[str, bool]]]
    """Kind -> trial -> the variant that shows it, and whether the probe points at it."""

    @classmethod
    def of(cls, run: Run, finding: Findings) -> _Told:
        named = {(one.example_id, one.variant) for one in finding.failures}
        columns = ("trial", "place", "role", "flip", "example_id", "variant", "score")
        parts = run.table(finding.probe, columns).to_batches()
        rows = (row for part in parts for row in zip(*(column.to_pylist() for column in part.columns), strict=True))
        best: dict[int, tuple[int, str, bool]] = {}
        trials, alone = 0, -1
        for trial, place, role, flip, example_id, variant, score in rows:
            if not place:
                trials += 1
                if score is not None and score <= 0:  # asked once, and wrong
                    best[trial], alone = (KINDS.index(STILL_WRONG), variant, False), trial
                continue
            if alone == trial:
                del best[trial]
                alone = -1
            if flip not in KINDS or (role == "removes" and flip not in (KEPT_WITHOUT, CHANGED)):
                continue
            found = (KINDS.index(flip), variant, (example_id, variant) in named)
            before = best.get(trial)
            # The worst that became of it, and of equals the one that the probe points at.
            if before is None or (found[0], not found[2]) < (before[0], not before[2]):
                best[trial] = found
        kinds: dict[str, dict[int, tuple[str, bool]]] = {}
        for trial, (kind, variant, points) in best.items():
            kinds.setdefault(KINDS[kind], {})[trial] = (variant, points)
        return cls(trials, kinds)


def _read(run: Run, chosen: Sequence[tuple[str, str, int, str]]) -> Iterator[Case]:
    """The chosen trials with all their columns."""
    for probe in dict.fromkeys(name for name, *_ in chosen):
        mine = {trial: (kind, variant) for name, kind, trial, variant in chosen if name == probe}
        for rows in run.trials([("trial", "in", list(mine))], probes=[probe]):
            kind, variant = mine[rows[0]["trial"]]
            told = [{name: value for name, value in jsonable(row).items() if name != "probe"} for row in rows]
            shown = told[:MOST_VARIANTS] + [row for row in told[MOST_VARIANTS:] if row["variant"] == variant]
            yield Case(probe, kind, variant, tuple(shown))
