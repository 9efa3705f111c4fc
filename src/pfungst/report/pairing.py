"""Several runs on the same questions: what may be compared, and the rows that are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pfungst.core import Findings, PfungstError, Run
from pfungst.core.files import file_name
from pfungst.core.flips import same_answer
from pfungst.core.spec import labelled
from pfungst.report.card import join_words
from pfungst.scores.matchers import MATCHERS

COLUMNS = (
    "trial", "place", "role", "example_id", "image_id", "cluster", "variant", "question", "answer", "unread", "score",
    "clean_score", "target",
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """A run that is compared with others."""

    run: Run
    name: str
    """Of its player; with the folder's where several runs are of one player."""
    _kept: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def path(self) -> Path:
        return self.run.path

    @property
    def probes(self) -> list[str]:
        return self.run.probes

    @cached_property
    def findings(self) -> Mapping[str, Findings]:
        return {one.probe: one for one in self.run.findings}

    def rows(self, probe: str) -> dict[str, dict[str, Any]]:
        """variant -> key -> row, of a probe; an unknown score is NaN. The key is the example's id, with a + more for
        each further trial of the example."""
        if probe not in self._kept:
            found: dict[str, dict[str, Any]] = {}
            keys: dict[int, str] = {}
            taken: set[str] = set()
            for row in self.run.table(probe, COLUMNS).to_pylist():
                if (key := keys.get(row["trial"])) is None:
                    key = row["example_id"]
                    while key in taken:
                        key += " +"
                    keys[row["trial"]] = key
                    taken.add(key)
                row.update({name: math.nan if row[name] is None else row[name] for name in ("score", "clean_score")})
                found.setdefault(row["variant"], {})[key] = row
            self._kept[probe] = found
        return self._kept[probe]

    def is_control(self, probe: str, variant: str) -> bool:
        """Whether a variant asks the question as it stands once more."""
        return bool(next(iter(self.rows(probe)[variant].values()))["role"] == "control")


def read_runs(paths: Sequence[str | Path], label: str = "") -> tuple[list[Compared], list[str]]:
    """The runs, and the probes that all of them have. PfungstError where they cannot be compared.

    label: of a second reading that `pfungst.rescore` wrote; a run that was itself judged so needs none.
    Runs of exams must be on the same data set. Imported runs bring their questions with them, each its own: there the
    questions are told by their ids, and those with the same right answer are compared.
    """
    folders = [Path(path) for path in paths]
    if len(folders) < 2:
        raise PfungstError("Name two or more runs to compare.")
    for folder, count in Counter(folder.resolve() for folder in folders).items():
        if count > 1:
            raise PfungstError(f"{folder} is named {count} times: compare it with other runs.")
    found = [Run.open(folder) for folder in folders]
    names = [run.config["player"]["name"] for run in found]
    named = [
        name if names.count(name) == 1 else f"{name} ({folder.name})"
        for name, folder in zip(names, folders, strict=True)
    ]
    if len(set(named)) < len(named):
        named = [f"{name} ({folder})" for name, folder in zip(names, folders, strict=True)]
    runs = [Compared(_reading(run, label), name) for run, name in zip(found, named, strict=True)]
    first = runs[0]
    for other in runs[1:]:
        _check(first, other, label)
    shared = [probe for probe in first.probes if all(probe in other.probes for other in runs[1:])]
    if not shared:
        raise PfungstError(f"{' and '.join(str(folder) for folder in folders)} have no probe in common.")
    return runs, shared


def _reading(run: Run, label: str) -> Run:
    """The reading that is wanted, which may be the run's own."""
    if not label:
        return run
    if labelled(run.path / "trials", label).is_dir():
        return replace(run, label=label)
    metric, matcher = (file_name(name) for name in (run.config["data"]["metric"], run.config.get("matcher") or ""))
    if label in (metric, matcher, f"{metric}-{matcher}"):
        return run
    raise PfungstError(
        f"{run.path} has no reading {label!r}. Make it: `pfungst rescore {run.path} --metric METRIC`, or --matcher "
        "MATCHER."
    )


def _check(first: Compared, other: Compared, label: str) -> None:
    ours, theirs = first.run.config["data"], other.run.config["data"]
    if ours["metric"] != theirs["metric"] and (not label or label in MATCHERS.names()):
        metric = ours["metric"]
        raise PfungstError(
            f"The runs were scored by different metrics ({metric}, {theirs['metric']}). Judge both by one: `pfungst "
            f"rescore {other.path} --metric {metric}`, then compare with --label {file_name(metric)}."
        )
    imported = "logs" in first.run.config or "logs" in other.run.config
    if ours["fingerprint"] != theirs["fingerprint"] and not imported:
        raise PfungstError(
            f"The runs are on different data sets ({_described(ours)}; {_described(theirs)}): only answers to the same "
            "questions can be compared."
        )


def matchers_differ(runs: Sequence[Compared]) -> str:
    """That replies were read in different ways, in a sentence; empty where they were not, or need no reading."""
    named = dict.fromkeys(run.run.config.get("matcher") or "" for run in runs if run.run.label not in MATCHERS.names())
    names = [name for name in named if name]
    if len(names) < 2:
        return ""
    return (
        f"The replies were read by different matchers ({', '.join(names)}), which alone can make a difference. Read "
        f"all by one: `pfungst rescore RUN --matcher {names[0]}`, then compare with --label {names[0]}."
    )


def _described(data: Mapping[str, Any]) -> str:
    return f"{data.get('spec') or data['name']}, fingerprint {data['fingerprint'][:8]}"


def shared_ids(runs: Sequence[Compared], probe: str, variant: str) -> list[str]:
    """The examples that all runs have in a variant, with the same right answer. PfungstError where most of those with
    the same id have another one: then they are other questions."""
    rows = [run.rows(probe).get(variant, {}) for run in runs]
    both = [key for key in rows[0] if all(key in other for other in rows[1:])]
    ids = [key for key in both if _same([one[key]["target"] for one in rows])]
    if 2 * len(ids) < len(both):
        raise PfungstError(
            f"{runs[0].path} and the other runs are on different data sets: of {len(both):,} questions with the same "
            f"id {len(both) - len(ids):,} have another right answer."
        )
    return ids


def left_out(runs: Sequence[Compared], probe: str, variant: str) -> str:
    """How many questions are not compared, and why, in a sentence; empty where all are."""
    rows = [run.rows(probe).get(variant, {}) for run in runs]
    every, common = set().union(*rows), set(rows[0]).intersection(*rows[1:])
    compared = len(shared_ids(runs, probe, variant))
    why = [
        *([f"{len(every) - len(common):,} are not in all runs"] if len(common) < len(every) else []),
        *([f"{len(common) - compared:,} have another right answer in one of them"] if compared < len(common) else []),
    ]
    return f"{compared:,} of {len(every):,} questions are compared: {join_words(why)}." if why else ""


def cluster(rows: Sequence[Mapping[str, Any]]) -> str:
    """What one example belongs to, by the first run that names its image: not every log does."""
    return str(next((row["cluster"] for row in rows if row["image_id"]), rows[0]["cluster"]))


def _same(targets: Iterable[str | None]) -> bool:
    known = [target for target in targets if target is not None]
    return all(target == known[0] or same_answer(target, known[0]) for target in known[1:])
