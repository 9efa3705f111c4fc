"""The tables and the figure of the hardening matrix, from the scores of every question."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError, Figure, Run, Series, Table
from pfungst.experiments.base import ENDS, Experiment, in_percent
from pfungst.experiments.cycle_table import by_seed, interval
from pfungst.experiments.matrix import AGAINST, BEFORE, NONE, WAYS, MatrixConfig, run

LEAST = 10
"""Questions below which a probe says nothing about a model."""
Row = Mapping[str, Any]
Floats = NDArray[np.float64]


def _disturbed(rows: Sequence[Row]) -> float:
    """The mean over all disturbed variants; the first is the clean one."""
    return float(np.mean([row["score"] for row in rows[1:]])) if len(rows) > 1 else math.nan


def _of(*names: str) -> Callable[[Sequence[Row]], float]:
    """The score of the first of these variants that there is."""

    def read(rows: Sequence[Row]) -> float:
        found = {row["variant"]: float(row["score"]) for row in rows}
        return next((found[name] for name in names if name in found), math.nan)

    return read


@dataclass(frozen=True)
class Measure:
    """A column of the matrix."""

    probe: str
    read: Callable[[Sequence[Row]], float]
    """The score of one question, from the rows of its trial."""
    about: str
    keeps: bool = True
    """Whether a higher score is better; without the image it is not: it says how much is guessed."""


MEASURES = {
    "clean": Measure("control", _of("clean"), "unchanged questions"),
    "noise": Measure("noise", _disturbed, "basic questions appended, mean of seven levels"),
    "rephrase": Measure("rephrase", _disturbed, "in other words"),
    "surface": Measure("surface", _disturbed, "typed differently, mean of all edits"),
    "decoys": Measure("decoys", _of("QoU+IoU"), "among decoys of QoU and IoU"),
    "picture": Measure("picture", _disturbed, "images disturbed at severity 3, mean of all operations"),
    "game": Measure("game", _of("moved"), "after random legal scenes were tried"),
    "contrast": Measure("contrast", lambda rows: float(min(row["score"] for row in rows)), "all of a contrast group"),
    "blind": Measure(
        "blind", _of("question only"), "without the image, where a higher score means better guessing", False
    ),
}
"""Accuracies, each of the questions of one probe."""


def measured(name: str, folder: Path) -> dict[str, Any] | None:
    """Ids, images and scores of one measure, from a run; None where its probe did not run."""
    measure, read = MEASURES[name], Run(folder)
    if not folder.is_dir() or measure.probe not in read.probes:
        return None
    groups: dict[str, list[Row]] = {}
    columns = ("example_id", "image_id", "variant", "score")
    for row in read.table(measure.probe, columns).to_pylist():
        row["score"] = math.nan if row["score"] is None else row["score"]
        groups.setdefault(row["example_id"], []).append(row)
    scores = {key: measure.read(rows) for key, rows in groups.items()}
    known = [key for key, score in scores.items() if not math.isnan(score)]
    return {
        "ids": known,
        "images": [groups[key][0]["image_id"] for key in known],
        "scores": [round(scores[key], 6) for key in known],
    }


def summarise(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All rows of the matrix: accuracies, and differences to plain further training with the same seeds."""
    rows = []
    for model in dict.fromkeys(cell["model"] for cell in cells):
        plain = by_seed(cells, model=model, way=NONE)
        for way in (BEFORE, *WAYS):
            found = by_seed(cells, model=model, way=way)
            if found:
                rows.append(_row(model, way, found, plain if way not in (BEFORE, NONE) else {}))
    return {"rows": rows}


def _row(
    model: str, way: str, found: Mapping[int, Mapping[str, Any]], plain: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    first = next(iter(found.values()))
    shared = sorted(found.keys() & plain.keys())
    row: dict[str, Any] = {"model": model, "way": way, "seeds": len(found), "paired": len(shared)}
    row["accuracy"], row["gain"], row["n"] = {}, {}, {}
    row["gates"] = [cell["gate"] for cell in found.values() if "gate" in cell]
    for name in first["scores"]:
        scores, images = _matrix([cell["scores"][name] for cell in found.values()], model, name)
        if scores.shape[1] < LEAST:
            continue
        row["accuracy"][name] = {**interval(scores, images), "by_seed": scores.mean(1).tolist()}
        row["n"][name] = scores.shape[1]
        if shared:
            mine, _ = _matrix([found[seed]["scores"][name] for seed in shared], model, name)
            other, _ = _matrix([plain[seed]["scores"][name] for seed in shared], model, name)
            if mine.shape != other.shape:
                raise DataError(f"The trainings of {model} were asked different questions by the probe {name}.")
            row["gain"][name] = {
                **interval(mine - other, images, (-1.0, 1.0)),
                "by_seed": (mine - other).mean(1).tolist(),
            }
    return row


def _matrix(parts: Sequence[Mapping[str, Any]], model: str, name: str) -> tuple[Floats, NDArray[np.int64]]:
    """Scores (seeds, questions) and the number of each question's image."""
    if any(part["ids"] != parts[0]["ids"] for part in parts):
        raise DataError(f"The trainings of {model} were asked different questions by the probe {name}.")
    _, images = np.unique(parts[0]["images"], return_inverse=True)
    return np.asarray([part["scores"] for part in parts], np.float64), images.astype(np.int64)


def matrix_tables(result: Mapping[str, Any]) -> list[Table]:
    """What each way gains over plain further training, what it has, and whether the gain passes on."""
    rows = result["rows"]
    if not rows:
        return [Table("Prepared", ("model",), tuple((name,) for name in result.get("prepared", ())))]
    names = [name for name in MEASURES if any(name in row["accuracy"] for row in rows)]
    gains, sure, told = [], 0, 0
    for row in rows:
        if row["way"] == NONE:
            cells = [_percent(row["accuracy"].get(name)) for name in names]
            gains.append((row["model"], f"{WAYS[NONE]} (accuracy)", row["seeds"], *cells))
        elif row["gain"]:
            told += len(row["gain"])
            sure += sum(_sign(one) != 0 for one in row["gain"].values())
            cells = [_points(row["gain"].get(name)) for name in names]
            gains.append((row["model"], WAYS[row["way"]], row["paired"], *cells))
    missing = f" {result['missing']} trainings are missing: run the same command again." if result["missing"] else ""
    about = "; ".join(f"{name}: {MEASURES[name].about}" for name in names)
    note = (
        "Points of accuracy gained over plain further training with the same steps, on the same questions and with the "
        f"same seeds; 95% intervals over seeds and images. {sure} of {told} intervals exclude 0; without any "
        f"effect about {0.05 * told:.0f} would. – : the data do not support this probe, or for fewer than {LEAST} "
        f"questions. Columns: {about}.{missing}"
    )
    absolute = [
        (
            row["model"],
            WAYS.get(row["way"], "as it came"),
            row["seeds"],
            *(_percent(row["accuracy"].get(n)) for n in names),
        )
        for row in rows
    ]
    return [
        Table("What hardening gains", ("model", "way", "seeds", *names), tuple(gains), note),
        _passed_on(rows),
        Table(
            "Accuracies behind it", ("model", "way", "seeds", *names), tuple(absolute), "In percent, means over seeds."
        ),
    ]


def _passed_on(rows: Sequence[Mapping[str, Any]]) -> Table:
    """For each way: the gain against its own disturbance, and against which others it helps or hurts."""
    lines = []
    for row in rows:
        if not row["gain"]:
            continue
        own = AGAINST[row["way"]]
        others = {
            name: _sign(one) for name, one in row["gain"].items() if name not in ("clean", own) and MEASURES[name].keeps
        }
        lines.append(
            (
                row["model"], WAYS[row["way"]], _points(row["gain"].get(own)) if own else "–",
                _points(row["gain"].get("clean")),
                ", ".join(name for name, sign in others.items() if sign > 0) or "none",
                ", ".join(name for name, sign in others.items() if sign < 0) or "none",
                sum(sign == 0 for sign in others.values()),
            )
        )  # fmt: skip
    columns = ("model", "way", "own probe", "clean", "other probes it helps", "it hurts", "not shown")
    note = "Helps, hurts: the interval of the gain lies above or below 0. Own probe: whose disturbance was trained on."
    return Table("Does it pass on?", columns, tuple(lines), note)


def matrix_figures(result: Mapping[str, Any]) -> list[Figure]:
    """The gains of one model each, by probe and way; without `blind`, where more is not better."""
    found = []
    for model in dict.fromkeys(row["model"] for row in result["rows"]):
        series = []
        for row in result["rows"]:
            gains = row["gain"] if row["model"] == model else {}
            if gains:
                names = [name for name, measure in MEASURES.items() if measure.keeps and name in gains]
                ends = [tuple(gains[name][end] for name in names) for end in ENDS]
                series.append(Series(WAYS[row["way"]], tuple(names), *ends))
        if series:
            title = f"{model}: gain over plain further training"
            found.append(Figure(title, "bar", tuple(series), "probe", "accuracy gained"))
    return found


def _sign(one: Mapping[str, float]) -> int:
    return 1 if one["low"] > 0 else -1 if one["high"] < 0 else 0


def _percent(one: Mapping[str, float] | None) -> str:
    return "–" if one is None else f"{100 * one['value']:.1f}"


def _points(one: Mapping[str, float] | None) -> str:
    if one is None:
        return "–"
    if one["value"] == one["low"] == one["high"] == 0:
        return "0.0 (all the same)"
    return in_percent(one, "+")


EXPERIMENT = Experiment("matrix", MatrixConfig, run, matrix_tables, matrix_figures)
