"""A metric of your own: numbers may be off by one.

    pfungst examine random --metric examples/own_metric.py:close_enough
    python examples/own_metric.py

A metric is a function from an example and an answer to a score from 0 to 1, or NaN where nothing can be said. It also
works on stored answers: `pfungst rescore RUN --metric ...` judges a finished run again without asking.
"""

from __future__ import annotations

import math

import pfungst
from pfungst.core import Answer, Example


def close_enough(example: Example, answer: Answer) -> float:
    """1 for the right answer, 0.5 for a number that is off by one."""
    if example.target is None:
        return math.nan
    said, right = answer.text.strip().lower(), example.target.strip().lower()
    if said == right:
        return 1.0
    return 0.5 if said.isdigit() and right.isdigit() and abs(int(said) - int(right)) == 1 else 0.0


if __name__ == "__main__":
    examined = pfungst.examine("random", "world?scenes=10", probes=["control"], out="runs/metric")
    again = pfungst.rescore("runs/metric", metric="own_metric:close_enough")
    for run in (examined, again):
        print(f"{run.findings[0].clean.value:.3f}  {run.report}")
