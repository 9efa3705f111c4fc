"""Two runs side by side: the same questions, paired and tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pfungst.core import Answer, PfungstError
from pfungst.core.flips import Flips, alike, count_flips
from pfungst.core.stats import Interval, compare_paired, holm, interval_of
from pfungst.report.pairing import Compared, cluster, read_runs, shared_ids


@dataclass(frozen=True, slots=True)
class Comparison:
    """One variant of one probe, answered by two players."""

    probe: str
    variant: str
    first: Interval
    second: Interval
    difference: Interval
    """First minus second, on the same examples."""
    p: float
    """Of the difference, by its interval."""
    p_holm: float
    """After Holm's correction over all rows of the table."""
    flips: Flips
    """From first to second."""


def compare(first: str | Path, second: str | Path, *, label: str = "") -> list[Comparison]:
    """Compare two runs over the probes, variants and examples that both have.

    label: of a second reading that `pfungst.rescore` wrote, in both runs or in the one that was not judged so at first.
    """
    runs, shared = read_runs([first, second], label)
    rows: list[Comparison] = []
    for probe in shared:
        # The clean answers are the same in every probe: one row, one test.
        rows += _compare_probe(probe, runs, skip="clean" if rows else "")
    if not rows:
        raise PfungstError(f"{first} and {second} have no example in common: are they runs on the same data set?")
    return [replace(row, p_holm=p) for row, p in zip(rows, holm([row.p for row in rows]), strict=True)]


def _repeats(rows: Mapping[str, Mapping[str, Any]], variant: str, ids: Sequence[str]) -> bool:
    """Whether the player said the same when it was asked again: that is the clean row once more, not another test."""
    clean = rows.get("clean", {})
    return variant != "clean" and all(
        key in clean and all(rows[variant][key][part] == clean[key][part] for part in ("answer", "score"))
        for key in ids
    )


def _compare_probe(probe: str, runs: Sequence[Compared], skip: str) -> list[Comparison]:
    first, second = (run.rows(probe) for run in runs)
    rows = []
    for variant in first:
        ids = shared_ids(runs, probe, variant)
        if not ids or variant == skip:
            continue
        if runs[0].is_control(probe, variant) and all(_repeats(one, variant, ids) for one in (first, second)):
            continue
        a, b = [first[variant][key] for key in ids], [second[variant][key] for key in ids]
        clusters = [cluster(both) for both in zip(a, b, strict=True)]
        scores = ([row["score"] for row in a], [row["score"] for row in b])
        said = ([Answer(row["answer"], unread=row["unread"]) for row in some] for some in (a, b))
        difference = compare_paired(*scores, clusters)
        rows.append(
            Comparison(
                probe,
                variant,
                interval_of(scores[0], clusters),
                interval_of(scores[1], clusters),
                difference,
                difference.p,
                difference.p,
                count_flips(*scores, list(map(alike, *said))),
            )
        )
    return rows
