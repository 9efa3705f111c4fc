"""The table of a study: every variant against its base, paired by seed and by question."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core.stats import over_runs
from pfungst.core.types import Progress
from pfungst.experiments.base import kept, span
from pfungst.experiments.cycle import BEST, CONTROL, JUDGED, MEASURES, VARIANTS, WRITING

if TYPE_CHECKING:
    from pfungst.models import Vocabulary

COLUMNS = ("precision", "recall", "f1", "augrc", "ece")
"""Of Table 4; AUGRC and the calibration error are ours."""
LOOKS = "looks"
"""How far a model looks at the same place in another wording, see `pfungst.experiments.cycle_runs.looks`."""
Floats = NDArray[np.float64]


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
    """Measure -> scores and the image each belongs to."""
    held, groups, picture = run["heldout"].astype(np.float64), run["group"], run["picture"]
    first = np.zeros(len(held), bool)
    scores = {}
    for k in range(1, 5):
        values, rows = consensus_by_group(held, groups, k)
        scores[f"CS({k})"] = (values, picture[rows])
        first[rows] = True
    found = {
        "val": (run["val"].astype(np.float64), run["val_picture"]),
        "ORI": (held[first], picture[first]),
        "REP": (held[~first], picture[~first]),
        **scores,
    }
    if len(run.get("looks", ())):
        found[LOOKS] = (run["looks"][~first].astype(np.float64), picture[~first])
    return found


def interval(scores: Floats, clusters: NDArray[np.int64], bounds: tuple[float, float] = (0.0, 1.0)) -> dict[str, float]:
    """Mean and 95% interval of (seeds, N) scores, over seeds and images, as both were drawn."""
    return span(over_runs(scores, clusters, bounds=bounds))


def read_run(path: Path) -> dict[str, Any]:
    """A finished run with its arrays."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files if name != "record"}
        return {**json.loads(str(file["record"])), **arrays}


def summarise(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All rows of the table, each with its difference to the base of the same seeds, and how they were made; `others`
    holds the same for the wordings of other rephrasers."""
    how = "jackknife over seeds and images, Student's t; differences paired by both"
    prefix = "heldout-"
    names = sorted({name[len(prefix) :] for run in runs for name in run if name.startswith(prefix)} - {""})
    others = {name: _both(runs, f"-{name}") for name in names if not name.endswith(BEST)}
    return {**_both(runs), "others": others, "how": how}


def _both(runs: Sequence[Mapping[str, Any]], wordings: str = "") -> dict[str, Any]:
    """`rows` of the last weights, `best` of those of the best step; `looks` are of the weights that count."""
    last = [_about(run, wordings) for run in runs]
    stopped = [_about(run, wordings, BEST) for run in runs if "val" + BEST in run]
    if stopped:
        last = [{name: value for name, value in run.items() if name != "looks"} for run in last]
    return {"rows": _rows(last), "best": _rows(stopped)}


def _about(run: Mapping[str, Any], wordings: str, ending: str = "") -> dict[str, Any]:
    """A run as it was measured on the wordings of one rephraser."""
    told = {name: run[name + wordings] for name in ("group", "picture", "looks") if name + wordings in run}
    plain = {name: value for name, value in run.items() if name not in ("looks", "group", "picture")}
    return {**plain, **told, "val": run["val" + ending], "heldout": run["heldout" + wordings + ending]}


def _rows(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for model in dict.fromkeys(run["model"] for run in runs):
        base = by_seed(runs, model=model, variant="base")
        control = by_seed(runs, model=model, variant=CONTROL)
        for variant in VARIANTS:
            found = by_seed(runs, model=model, variant=variant)
            if found:
                rows.append(_row(model, variant, found, base))
                if VARIANTS[variant].hides and variant != CONTROL and found.keys() & control.keys():
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
    for name in (*MEASURES, LOOKS):
        if any(name not in one for one in each.values()):
            continue
        clusters = next(iter(each.values()))[name][1]
        row[name] = interval(np.stack([one[name][0] for one in each.values()]), clusters, _bounds(name))
        scores = [one[name][0] for one in each.values()]  # NaN where CS(k) has too few wordings, it may be everywhere
        row[name]["by_seed"] = [float(np.nanmean(some)) if np.isfinite(some).any() else math.nan for some in scores]
    return {**row, **_differences(found, base, "base")} if variant != "base" and shared else row


def _differences(
    found: Mapping[int, Mapping[str, Any]], base: Mapping[int, Mapping[str, Any]], title: str
) -> dict[str, dict[str, float]]:
    """`MEASURE - TITLE` -> difference of the runs with the same seeds, and its interval."""
    pairs = [(measures(found[seed]), measures(base[seed])) for seed in sorted(found.keys() & base.keys())]
    return {
        f"{name} - {title}": interval(
            np.stack([a[name][0] - b[name][0] for a, b in pairs]), pairs[0][0][name][1], _bounds(name, 1.0)
        )
        for name in (*MEASURES, LOOKS)
        if all(name in one for pair in pairs for one in pair)
    }


def _bounds(name: str, apart: float = 0.0) -> tuple[float, float]:
    """What a measure can be; apart 1: a difference of two. Looking at the same place is a correlation, from -1 to 1."""
    least = -1.0 if name == LOOKS else 0.0
    return least - apart * (1 - least), 1 + apart * -least


def over_seeds(values: Sequence[float]) -> dict[str, float]:
    """Mean and 95% interval of a value per seed, by Student's t; one seed has none."""
    from scipy.stats import t

    count, mean = len(values), float(np.mean(values))
    if count < 2:
        return {"value": mean, "low": math.nan, "high": math.nan}
    half = float(t.ppf(0.975, count - 1) * np.std(values, ddof=1) / math.sqrt(count))
    return {"value": mean, "low": mean - half, "high": mean + half}


def by_seed(runs: Sequence[Mapping[str, Any]], **about: str) -> dict[int, Mapping[str, Any]]:
    """Seed -> run, of those about which this holds."""
    return {run["seed"]: run for run in runs if about.items() <= run.items()}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and value == value]
    return float(np.mean(known)) if known else None


def failures(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Table 4: for every model, variant and way of telling failures the mean over the seeds of each column, and the F1
    minus that of the base with the same seeds and the same way."""
    rows: list[dict[str, Any]] = []
    known = [run for run in runs if run.get("failure")]
    for model in dict.fromkeys(run["model"] for run in known):
        base = by_seed(known, model=model, variant="base")
        for variant in JUDGED:
            found = by_seed(known, model=model, variant=variant)
            shared = sorted(found.keys() & base.keys()) if variant != "base" else []
            for place, way in enumerate(("confidence", "FP") if found else ()):
                told, plain = ({seed: run["failure"][place] for seed, run in some.items()} for some in (found, base))
                mean = {name: _mean([one[name] for one in told.values()]) for name in COLUMNS}
                row = {"model": model, "variant": variant, "way": way, "seeds": len(found), **mean}
                if shared:
                    row["f1 - base"] = over_seeds([told[seed]["f1"] - plain[seed]["f1"] for seed in shared])
                rows.append(row)
    return rows


def writing(
    runs: Sequence[Mapping[str, Any]], words: Vocabulary, out: Path, meteor: bool, progress: Progress
) -> list[dict[str, Any]]:
    """Table 3: questions that generators wrote, against those that people asked; OUT keeps the scores of each run."""
    wrote = [run for run in runs if "written" in run]
    scores = {}
    for number, run in enumerate(wrote):
        key = run["model"], run["variant"], run["seed"]
        scores[key] = kept(out / f"{'-'.join(map(str, key))}.json", partial(_score, run, words, meteor))
        progress("generated questions", number + 1, len(wrote))
    rows = []
    for model in dict.fromkeys(run["model"] for run in wrote):
        for variant in WRITING:
            found = [scores[model, variant, seed] for seed in sorted(by_seed(wrote, model=model, variant=variant))]
            if found:
                mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
                rows.append({"model": model, "variant": variant, "seeds": len(found), "mean": mean, "by_seed": found})
    return rows


def _score(run: Mapping[str, Any], words: Vocabulary, meteor: bool) -> dict[str, float]:
    from pfungst.scores import generation_scores

    wrote, asked = ([words.decode(row.tolist()) for row in run[name]] for name in ("written", "asked"))
    scores = generation_scores(wrote, [[text] for text in asked], meteor=meteor)
    return {name: value for name, value in scores.items() if name != "METEOR" or meteor}
