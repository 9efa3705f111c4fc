"""Two runs side by side: the same questions, paired and tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pfungst.core import PfungstError, read_config
from pfungst.core.stats import Flips, Interval, bootstrap, compare_paired, count_flips, holm
from pfungst.scores import same_answer


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
    """After Holm's correction over all rows of the table."""
    test: str
    flips: Flips
    """From first to second."""


def compare(first: str | Path, second: str | Path, *, seed: int = 0) -> list[Comparison]:
    """Compare two runs over the probes, variants and examples that both have."""
    runs = [Path(first), Path(second)]
    configs = [read_config(run) for run in runs]
    if configs[0]["data"]["metric"] != configs[1]["data"]["metric"]:
        raise PfungstError(
            f"The runs were scored by different metrics ({configs[0]['data']['metric']}, "
            f"{configs[1]['data']['metric']}). Rescore one of them first."
        )
    if configs[0]["data"]["fingerprint"] != configs[1]["data"]["fingerprint"]:
        raise PfungstError(
            f"The runs are on different data sets ({configs[0]['data']['name']}, {configs[1]['data']['name']}): "
            "only answers to the same questions can be compared."
        )
    shared = [one["name"] for one in configs[0]["probes"] if one["name"] in [b["name"] for b in configs[1]["probes"]]]
    if not shared:
        raise PfungstError(f"{first} and {second} have no probe in common.")
    rows: list[Comparison] = []
    for probe in shared:
        # The clean answers are the same in every probe: one row, one test.
        rows += _compare_probe(probe, _read(runs[0], probe), _read(runs[1], probe), seed, skip="clean" if rows else "")
    if not rows:
        raise PfungstError(f"{first} and {second} have no example in common: are they runs on the same data set?")
    return [replace(row, p=p) for row, p in zip(rows, holm([row.p for row in rows]), strict=True)]


def _compare_probe(
    probe: str, first: dict[str, dict[str, Any]], second: dict[str, dict[str, Any]], seed: int, skip: str
) -> list[Comparison]:
    rows = []
    for variant in first:
        ids = [key for key in first[variant] if key in second.get(variant, {})]
        if not ids or variant == skip:
            continue
        a, b = [first[variant][key] for key in ids], [second[variant][key] for key in ids]
        clusters = [row["image_id"] or row["example_id"] for row in a]
        scores = ([row["score"] for row in a], [row["score"] for row in b])
        texts = ([row["answer"] for row in a], [row["answer"] for row in b])
        paired = compare_paired(*scores, clusters, seed=seed)
        rows.append(
            Comparison(
                probe,
                variant,
                bootstrap(scores[0], clusters, seed=seed),
                bootstrap(scores[1], clusters, seed=seed),
                paired.difference,
                paired.p,
                f"{paired.how}, Holm",
                count_flips(*scores, [same_answer(*said) for said in zip(*texts, strict=True)]),
            )
        )
    return rows


def _read(run: Path, probe: str) -> dict[str, dict[str, Any]]:
    """variant -> example id -> row."""
    import pyarrow.parquet as pq

    path = run / "trials" / f"{probe}.parquet"
    if not path.exists():
        raise PfungstError(f"{run} has no trials of the probe {probe}: run the exam to its end.")
    found: dict[str, dict[str, Any]] = {}
    rows: Sequence[dict[str, Any]] = pq.read_table(
        path, columns=["example_id", "image_id", "variant", "answer", "score"]
    ).to_pylist()
    for row in rows:
        row["score"] = float("nan") if row["score"] is None else row["score"]
        found.setdefault(row["variant"], {})[row["example_id"]] = row
    return found
