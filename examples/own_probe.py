"""A probe of your own in thirty lines: does it matter whether a question ends with "Think step by step."?

    python examples/own_probe.py

To use it on the command line as `--probe steps`, name it in the package it lives in:

    [project.entry-points."pfungst.probes"]
    steps = "my_package:Steps"

`pfungst check probe steps` then tells whether it keeps the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pfungst
from pfungst.core import AnsweredTrial, Dataset, Findings, Trial, Variant
from pfungst.probes import measure


@dataclass(frozen=True)
class Steps:
    """Appends an instruction that must not change the answer."""

    words: str = "Think step by step."
    name: str = "steps"

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        for example in data:
            clean = measure.clean_query(example)
            longer = replace(clean, question=f"{clean.question} {self.words}")
            yield Trial(
                example.id, (Variant("clean", clean), Variant("longer", longer)), "the answer: nothing else is asked"
            )

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        clean, longer = (measure.accuracy(trials, name, seed) for name in ("clean", "longer"))
        drop = measure.drop(trials, "clean", "longer", seed)
        verdict = f"The instruction costs {measure.with_interval(drop)}."
        return Findings(self.name, (clean, longer, drop), verdict, clean, longer, drop)


if __name__ == "__main__":
    run = pfungst.examine("rn-state", "world?scenes=10&rephrasings=0", probes=["control", Steps()], out="runs/steps")
    print(run.findings[1].verdict)
