"""Run folders made of answers that are known, written by the exam's own writer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pfungst.core import Answer, AnsweredTrial, Example, Finding, Findings, Query, Trial, Variant
from pfungst.core.files import write_json
from pfungst.core.trials import recording


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


def write_run(run: Path, probes: Mapping[str, Sequence[AnsweredTrial]], roles: Mapping[str, str] | None = None) -> Path:
    """The folder of a finished run."""
    number = Finding("accuracy", 0.5, 10)
    findings = []
    for name, trials in probes.items():
        role = (roles or {}).get(name, "keeps")
        with recording(run / "trials" / f"{name}.parquet", role) as file:
            file.add(trials, [tuple(v.query.key("f") for v in one.trial.variants) for one in trials])
        findings.append(Findings(name, (number,), "v", number, number, number, role=role))
    write_json(run / "findings.json", {"findings": findings})
    config = {
        "player": {"name": "p", "fingerprint": "f"}, "seed": 0,
        "probes": [{"name": name, "settings": {}} for name in probes],
        "data": {"name": "d", "metric": "exact", "fingerprint": "x", "examples": 10},
    }  # fmt: skip
    write_json(run / "exam.json", config)
    return run
