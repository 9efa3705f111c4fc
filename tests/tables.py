"""Run folders made of answers that are known, written by the exam's own writer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pfungst.core import Answer, AnsweredTrial, Example, Findings, Query, Trial, Variant
from pfungst.core.files import write_json
from pfungst.core.trials import recording
from pfungst.probes import measure


def answered(
    example: Example | str, said: Sequence[tuple[object, float]], names: Sequence[str] = (), roles: Sequence[str] = ()
) -> AnsweredTrial:
    """A trial with an answer (a text, or an Answer) and a score for every variant."""
    if isinstance(example, str):
        example = Example(example, "?")
    names = names or ["clean", *(f"v{place}" for place in range(1, len(said)))]
    variants = tuple(
        Variant(name, Query(example.question, take=place), role=role)
        for place, (name, role) in enumerate(zip(names, roles or [""] * len(said), strict=True))
    )
    answers = tuple(one if isinstance(one, Answer) else Answer(str(one)) for one, _ in said)
    return AnsweredTrial(Trial(example.id, variants, "the answer"), example, answers, tuple(score for _, score in said))


def _headline(name: str, trials: Sequence[AnsweredTrial], role: str) -> Findings:
    clean = np.array([one.scores[0] for one in trials])
    several = np.array([len(one.scores) > 1 for one in trials])
    after = np.array([np.mean(one.scores[1:]) if len(one.scores) > 1 else np.nan for one in trials])
    groups = [one.example.cluster for one in trials]
    before, disturbed = (measure.mean("accuracy", some, groups, 0) for some in (clean, after))
    drop = measure.difference("drop", clean, after, groups, 0) if several.any() else None
    return Findings(name, (before,), "v", before, disturbed if several.any() else None, drop, role=role)


def write_run(run: Path, probes: Mapping[str, Sequence[AnsweredTrial]], roles: Mapping[str, str] | None = None) -> Path:
    """The folder of a finished run. Its headlines: the first variant's accuracy, and the mean over all others."""
    findings = []
    for name, trials in probes.items():
        role = (roles or {}).get(name, "keeps")
        with recording(run / "trials" / f"{name}.parquet", role) as file:
            file.add(trials, [tuple(v.query.key("f") for v in one.trial.variants) for one in trials])
        findings.append(_headline(name, trials, role))
    write_json(run / "findings.json", {"findings": findings})
    config = {
        "player": {"name": "p", "fingerprint": "f"}, "seed": 0,
        "probes": [{"name": name, "settings": {}} for name in probes],
        "data": {"name": "d", "metric": "exact", "fingerprint": "x", "examples": 10},
    }  # fmt: skip
    write_json(run / "exam.json", config)
    return run
