"""The table of a study: every variant against its base, paired by seed and by question."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError
from pfungst.core.files import write_json
from pfungst.training.cycle.config import HIDES, VARIANTS
from pfungst.training.cycle.study import BEST, of_variant, read_runs

DRAWS = 2000
Floats = NDArray[np.float64]

CONTROL = f"base, {HIDES}"
"""What a scheme with hidden words is compared with too."""

MEASURES = ("val", "ORI", "REP", "CS(1)", "CS(2)", "CS(3)", "CS(4)")
"""val: accuracy in training wordings on new pictures; ORI, REP and CS(k) as in Table 1, on held-out wordings."""


def consensus_by_group(correct: Floats, groups: NDArray[np.int64], k: int) -> tuple[Floats, NDArray[np.int64]]:
    """C(c, k) / C(n, k) of every group in the order of its number (NaN where n < k), and its first row."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    sizes = np.bincount(number)
    right = np.bincount(number, weights=correct > 0).astype(np.int64)
    choose = np.array([[math.comb(n, k) for n in range(int(sizes.max(initial=0)) + 1)]], np.float64)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = np.where(sizes >= k, choose[right] / choose[sizes], np.nan)
    return scores, first


def measures(run: Mapping[str, Any]) -> dict[str, tuple[Floats, NDArray[np.int64]]]:
    """Measure -> scores and the picture each belongs to."""
    held, groups, picture = run["heldout"].astype(np.float64), run["group"], run["picture"]
    first = np.zeros(len(held), bool)
    scores = {}
    for k in range(1, 5):
        values, rows = consensus_by_group(held, groups, k)
        scores[f"CS({k})"] = (values, picture[rows])
        first[rows] = True
    return {
        "val": (run["val"].astype(np.float64), run["val_picture"]),
        "ORI": (held[first], picture[first]),
        "REP": (held[~first], picture[~first]),
        **scores,
    }


def interval(scores: Floats, clusters: NDArray[np.int64], seed: int = 0, draws: int = DRAWS) -> dict[str, float]:
    """Mean and 95% interval of (seeds, N) scores: seeds and pictures are both resampled, as both were drawn."""
    known = ~np.isnan(scores).any(0)
    scores, clusters = scores[:, known], clusters[known]
    names, codes = np.unique(clusters, return_inverse=True)
    sums = np.stack([np.bincount(codes, weights=row, minlength=len(names)) for row in scores])
    counts = np.bincount(codes, minlength=len(names)).astype(np.float64)
    mean = float(scores.mean()) if scores.size else math.nan
    if len(names) < 2:
        return {"value": mean, "low": math.nan, "high": math.nan}
    rng = np.random.default_rng(seed)
    weight = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), draws).astype(np.float64)
    by_seed = (weight @ sums.T) / (weight @ counts)[:, None]
    seeds = rng.integers(0, len(sums), (draws, len(sums)))
    means = np.take_along_axis(by_seed, seeds, 1).mean(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return {"value": mean, "low": float(low), "high": float(high)}


def summarise(out: str | Path) -> dict[str, Any]:
    """All rows of the table, each with its difference to the base of the same seeds; also written to OUT/table.json.
    `best`: the same where every run is measured at its best step, if the study looked for it."""
    runs = read_runs(out)
    if not runs:
        raise DataError.at(out, "", "no run of the study has finished yet.")
    result = {
        "rows": _rows(runs),
        "how": f"bootstrap over seeds and pictures, {DRAWS} draws; differences paired by both",
    }
    stopped = [
        {**run, **{name: run[name + BEST] for name in ("val", "heldout")}} for run in runs if "val" + BEST in run
    ]
    if stopped:
        result["best"] = _rows(stopped)
    write_json(Path(out) / "table.json", result)
    return result


def _rows(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for model in dict.fromkeys(run["model"] for run in runs):
        base = of_variant(runs, model, "base")
        control = of_variant(runs, model, CONTROL)
        for variant in VARIANTS:
            found = of_variant(runs, model, variant)
            if found:
                rows.append(_row(model, variant, found, base))
                if variant.endswith(HIDES) and variant != CONTROL and found.keys() & control.keys():
                    rows[-1]["control"] = CONTROL
                    rows[-1].update(_differences(found, control, "control"))
    return rows


def _row(
    model: str, variant: str, found: Mapping[int, Mapping[str, Any]], base: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    shared = found.keys() & base.keys()
    each = {seed: measures(run) for seed, run in found.items()}
    row: dict[str, Any] = {
        "model": model,
        "variant": variant,
        "seeds": len(found),
        "paired": len(shared) if variant != "base" else 0,
        "seconds": float(np.mean([run["seconds"] for run in found.values()])),
        "gate": _mean([run["gate"] for run in found.values()]),
        "best_steps": [run.get("best_step") for run in found.values()],
    }
    for name in MEASURES:
        clusters = next(iter(each.values()))[name][1]
        row[name] = interval(np.stack([one[name][0] for one in each.values()]), clusters)
        row[name]["by_seed"] = [float(np.nanmean(one[name][0])) for one in each.values()]
    return {**row, **_differences(found, base, "base")} if variant != "base" and shared else row


def _differences(
    found: Mapping[int, Mapping[str, Any]], base: Mapping[int, Mapping[str, Any]], title: str
) -> dict[str, dict[str, float]]:
    """`MEASURE - TITLE` -> difference of the runs with the same seeds, and its interval."""
    pairs = [(measures(found[seed]), measures(base[seed])) for seed in sorted(found.keys() & base.keys())]
    return {
        f"{name} - {title}": interval(np.stack([a[name][0] - b[name][0] for a, b in pairs]), pairs[0][0][name][1])
        for name in MEASURES
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and value == value]
    return float(np.mean(known)) if known else None


def as_text(result: Mapping[str, Any]) -> str:
    """The table for a terminal, in percent; differences to the base in brackets with their 95% intervals."""
    lines = _lines(result["rows"])
    if "best" in result:
        lines += ["", "The same runs, every one at its best step on validation pictures that are not measured:", ""]
        lines += _lines(result["best"])
    return "\n".join([*lines, "", f"95% intervals: {result['how']}."])


def _lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        f"{'':26}{'seeds':>6}" + "".join(f"{name:>9}" for name in MEASURES) + "   CS(4) - base          val - base"
    ]
    for row in rows:
        name = row["model"] if row["variant"] == "base" else f"  {row['variant']}"
        line = f"{name:26}{row['seeds']:>6}" + "".join(f"{100 * row[m]['value']:>9.2f}" for m in MEASURES)
        for m in ("CS(4)", "val"):
            gain = row.get(f"{m} - base")
            line += f"   {_signed(gain):<20}" if gain else ""
        lines.append(line.rstrip())
    for row in rows:
        if "control" in row:
            gains = ", ".join(f"{m} {_signed(row[f'{m} - control'])}" for m in ("CS(4)", "REP", "val"))
            lines += ["", f"{row['model']} {row['variant']}, against {row['control']}: {gains}"]
    return lines


def _signed(one: Mapping[str, float]) -> str:
    return f"{100 * one['value']:+.2f} [{100 * one['low']:+.2f}, {100 * one['high']:+.2f}]"
