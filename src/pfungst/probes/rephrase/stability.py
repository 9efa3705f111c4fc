"""Stability as confidence: a player that says the same in all wordings is more often right.

For a black box this is a confidence that costs a few questions and needs no truth: the share of the rephrasings that
get the answer of the original. Beside it stands the player's own confidence, where it states one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pfungst.core import AnsweredTrial, Finding, Table
from pfungst.core.flips import alike
from pfungst.core.stats import Floats, Labels, resampled
from pfungst.probes import measure
from pfungst.scores import risk_coverage
from pfungst.scores.selective import RISKS

DRAWS = 300
"""Of the bootstrap: every draw sorts all answers."""
NAMES = ("AUGRC", *(f"coverage at {risk:.0%} risk" for risk in RISKS))


def stability(trial: AnsweredTrial) -> float:
    """Share of the rephrasings that get the answer of the original; 0 where the original's reply cannot be read."""
    first, *rest = trial.answers
    return sum(alike(first, answer) == 1.0 for answer in rest) / len(rest)


def stability_rows(trials: Sequence[AnsweredTrial], seed: int) -> tuple[Table, tuple[Finding, ...]]:
    """The table, and the findings of the row `stability`: AUGRC, coverage at 1, 5 and 10% risk."""
    known = [one for one in trials if len(one.answers) > 1 and not math.isnan(one.scores[0])]
    correct = np.array([one.scores[0] for one in known], np.float64)
    clusters = measure.clusters(known)
    stable = _measured(np.array([stability(one) for one in known]), correct, clusters, seed, "stability")
    rows: list[tuple[object, ...]] = [("stability", *stable)]
    own = [one.answers[0].confidence for one in known]
    if own and all(value is not None for value in own):
        sure = np.array([value for value in own if value is not None], np.float64)
        rows.append(("its own confidence", *_measured(sure, correct, clusters, seed, "own confidence")))
    rows.append(("none (a coin)", *_measured(np.zeros(len(known)), correct, clusters, seed, "none")))
    table = Table(
        "Stability as confidence",
        ("confidence", *NAMES),
        tuple(rows),
        "Stability: share of the rephrasings that get the original's answer. AUGRC: mean risk of silent failures, "
        "lower is better. Coverage: share of the questions answered when the least sure are left out until no more "
        "than that share of the answers is wrong.",
    )
    return table, stable


def _measured(confidence: Floats, correct: Floats, clusters: Labels, seed: int, condition: str) -> tuple[Finding, ...]:
    found = resampled(lambda rows: _numbers(confidence[rows], correct[rows]), clusters, seed=seed, draws=DRAWS)
    return tuple(measure.finding(name, one, condition) for name, one in zip(NAMES, found, strict=True))


def _numbers(confidence: Floats, correct: Floats) -> list[float]:
    curve = risk_coverage(confidence, correct)
    return [curve.augrc, *(curve.coverage_at(risk) for risk in RISKS)]
