"""What a study of cycle consistency found, and its tables in the layout of the paper.

Every variant is compared with its base, paired by seed and by question.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import Table
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, kept
from pfungst.experiments.cycle import BEST, JUDGED, MEASURES, VARIANTS, WRITING, CycleResult, CycleStudy
from pfungst.experiments.cycle import run as run_study
from pfungst.experiments.failure import SPLITS
from pfungst.experiments.study import Scores, by_seed, cell, missing_note, over_seeds

if TYPE_CHECKING:
    from pfungst.models import Vocabulary

COLUMNS = ("precision", "recall", "f1", "f1_all", "augrc", "ece")
"""Of Table 4; the F1 of believing every answer, AUGRC and the calibration error are ours."""
LOOKS = "looks"
"""How far a model looks at the same place in another wording, see `pfungst.experiments.cycle_training.looks`."""
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
    consensus = {}
    for k in range(1, 5):
        values, rows = consensus_by_group(held, groups, k)
        consensus[f"CS({k})"] = (values, picture[rows])
        first[rows] = True
    scores = {
        "val": (run["val"].astype(np.float64), run["val_picture"]),
        "ORI": (held[first], picture[first]),
        "REP": (held[~first], picture[~first]),
        **consensus,
    }
    if len(run.get("looks", ())):
        scores[LOOKS] = (run["looks"][~first].astype(np.float64), picture[~first])
    return scores


def scores_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, Scores]:
    """Measure -> the scores of all these runs; measures that one of them lacks are left out."""
    each = [measures(run) for run in runs]
    shared = [name for name in (*MEASURES, LOOKS) if all(name in one for one in each)]
    return {name: Scores(np.stack([one[name][0] for one in each]), each[0][name][1]) for name in shared}


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
        for variant, way in VARIANTS.items():
            mine = by_seed(runs, model=model, variant=variant)
            other = by_seed(runs, model=model, variant=way.against) if way.against else {}
            if mine:
                rows.append(_row(model, variant, mine, base))
                if mine.keys() & other.keys():
                    rows[-1]["control"] = way.against
                    rows[-1].update(_differences(mine, other, "control"))
    return rows


def _row(
    model: str, variant: str, mine: Mapping[int, Mapping[str, Any]], base: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    paired = len(mine.keys() & base.keys()) if variant != "base" else 0
    return {
        "model": model,
        "variant": variant,
        "seeds": len(mine),
        "paired": paired,
        "seconds": float(np.mean([run["seconds"] for run in mine.values()])),
        "gate": _mean([run["gate"] for run in mine.values()]),
        "best_steps": [run.get("best_step") for run in mine.values()],
        **{name: scores.summary() for name, scores in scores_of([*mine.values()]).items()},
        **(_differences(mine, base, "base") if paired else {}),
    }


def _differences(
    mine: Mapping[int, Mapping[str, Any]], base: Mapping[int, Mapping[str, Any]], title: str
) -> dict[str, dict[str, float]]:
    """`MEASURE - TITLE` -> difference of the runs with the same seeds, and its interval."""
    seeds = sorted(mine.keys() & base.keys())
    ours, theirs = (scores_of([runs[seed] for seed in seeds]) for runs in (mine, base))
    return {f"{name} - {title}": (ours[name] - theirs[name]).interval() for name in ours if name in theirs}


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
                mean = {name: _mean([one.get(name) for one in told.values()]) for name in COLUMNS}
                row = {"model": model, "variant": variant, "way": way, "seeds": len(found), **mean}
                gains = [
                    told[seed]["f1"] - plain[seed]["f1"] for seed in shared if _both_right(told[seed], plain[seed])
                ]
                if gains:
                    row["f1 - base"] = over_seeds(gains)
                rows.append(row)
    return rows


def _both_right(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether both have an F1: without a right answer there is none."""
    return one["f1"] is not None and other["f1"] is not None


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


Rows = Sequence[Mapping[str, Any]]
CONSENSUS = ("CS(1)", "CS(2)", "CS(3)", "CS(4)", "ORI", "REP")
STEP = "Every run at its best step on images that are not measured."


def study_tables(result: CycleResult) -> list[Table]:
    """Table 2 first, at the best step where the study looked for it; then Table 1 for every rephraser, variants that
    differ in one thing, Table 3, Table 4, and where models look."""
    if not result.rows:
        return [Table(f"Arrays in {result.prepared}", ("split", "questions"), tuple(result.splits.items()))]
    how = f"In percent. 95% intervals: {result.how}.{missing_note(result.missing)}"
    found = [_parts("Cycle consistency", result.rows, how)]
    if result.best:
        note = "The same runs, each at its best step on images that are not measured."
        found.append(_parts("At the best step", result.best, note))
    shown = {result.rephraser: result.best or result.rows}
    shown |= {name: part["best"] or part["rows"] for name, part in result.others.items()}
    note = STEP if result.best else ""
    for name, rows in shown.items():
        about = f", wordings by {name}" if result.others else ""
        found += [_consensus(rows, about, note), _control(rows, about, note), _looks(rows, about, note)]
    found += [_writing(result.writing), _failures(result.failures)]
    return [table for table in found if table.rows]


def _parts(title: str, rows: Rows, note: str) -> Table:
    """Table 2, and CS(k) beside it."""
    columns = ("model", "variant", "seeds", *MEASURES, "CS(4) - base", "val - base")
    return Table(
        title,
        columns,
        tuple(
            (
                row["model"],
                VARIANTS[row["variant"]].title,
                row["seeds"],
                *(cell(row[m], 2, ends=False) for m in MEASURES),
                *(_gain(row, f"{m} - base") for m in ("CS(4)", "val")),
            )
            for row in rows
        ),
        note,
    )


def _consensus(rows: Rows, about: str, note: str) -> Table:
    """Table 1: each model, and with the whole scheme (CC); below it the difference."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        if row["variant"] in JUDGED:
            lines.append((_scheme(row), *(cell(row[m], 2, ends=False) for m in CONSENSUS)))
            if "CS(4) - base" in row:
                lines.append(("  gain", *(_gain(row, f"{m} - base") for m in CONSENSUS)))
    return Table(f"Consensus{about}", ("model", *CONSENSUS), tuple(lines), note)


def _scheme(row: Mapping[str, Any]) -> str:
    """A model, and with the whole scheme."""
    return str(row["model"]) + (" + CC" if row["variant"] == "gating" else "")


def _control(rows: Rows, about: str, note: str) -> Table:
    """Each variant minus the one from which it differs in one thing."""
    measures = ("CS(4)", "REP", "val")
    lines = tuple(
        (
            row["model"],
            VARIANTS[row["variant"]].title,
            VARIANTS[row["control"]].title,
            *(_gain(row, f"{m} - control") for m in measures),
        )
        for row in rows
        if "control" in row
    )
    return Table(f"One thing changed{about}", ("model", "variant", "minus", *measures), lines, note)


def _looks(rows: Rows, about: str, note: str) -> Table:
    """Figure 4 as a number."""
    lines = tuple(
        (
            row["model"],
            VARIANTS[row["variant"]].title,
            cell(row["looks"], 3, scale=1),
            _gain(row, "looks - base", 3, 1),
        )
        for row in rows
        if "looks" in row and row["variant"] in JUDGED
    )
    told = "The overlap of the attention in another wording with that in the original: 1 where it is the same."
    columns = ("model", "variant", "overlap", "- base")
    return Table(f"Where they look{about}", columns, lines, f"{told} {note}".strip())


def _writing(rows: Rows) -> Table:
    """Table 3."""
    names = list(rows[0]["mean"]) if rows else []
    lines = tuple(
        (
            row["model"],
            "what F attends to" if row["variant"] == "gating" else "the whole image",
            row["seeds"],
            *(f"{row['mean'][name]:.3f}" for name in names),
        )
        for row in rows
    )
    note = "One greedy question for each validation image and its right answer, against the one that was asked."
    return Table("Question generation", ("model", "G is told of", "seeds", *names), lines, note)


def _failures(rows: Rows) -> Table:
    """Table 4."""
    lines = tuple(
        (
            _scheme(row) + (" + FP" if row["way"] == "FP" else ""),
            row["seeds"],
            *(f"{row[name]:.3f}" if row[name] is not None else "" for name in COLUMNS),
            _gain(row, "f1 - base", 3, 1),
        )
        for row in rows
    )
    columns = ("model", "seeds", "precision", "recall", "F1", "F1 if all are believed", "AUGRC", "ECE", "F1 - base")
    note = f"{SPLITS} Means over seeds; the interval is Student's over the seeds."
    return Table("Failure prediction", columns, lines, note)


def _gain(row: Mapping[str, Any], name: str, digits: int = 2, scale: float = 100) -> str:
    """A difference with its interval, in percent; empty where the row has none."""
    return cell(row[name], digits, "+", scale) if name in row else ""


EXPERIMENT = Experiment("cycle", CycleStudy, run_study, study_tables)
