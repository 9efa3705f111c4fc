"""How often the interval of the probe protocol holds the truth: simulated exams with a known spread over harnesses.

    python benchmarks/harness_interval.py [--quick]

A question is right with its own probability, shifted by the harness; seven of ten answers are drawn alike for all 16
harnesses of a question, three anew. Prints, for each size of the effect and number of questions, the share of exams
whose interval holds the true standard deviation: of the whole, and of the factor that matters most.
"""

from __future__ import annotations

import sys

import numpy as np

from pfungst.probes.protocol.split import crossed, split

DESIGN = crossed({name: [f"{name}{at}" for at in range(4 if name in "abc" else 2)] for name in "abcde"})
LEVELS = {name: [row[name] for row in DESIGN] for name in "abcde"}
FIRST = np.array([{"a0": 1.2, "a1": -1.0, "a2": 0.3, "a3": -0.5}[one] for one in LEVELS["a"]])
FOURTH = np.array([0.5 if one == "d0" else -0.5 for one in LEVELS["d"]])


def main() -> None:
    exams = 40 if "--quick" in sys.argv else 200
    print("effect  questions  true spread  whole held  factor held  called an effect (p < 0.05)")
    for size in (0.0, 0.02, 0.05):
        for questions in (60, 300):
            first = size * (FIRST - FIRST.mean())
            effect = first + size * FOURTH
            whole = factor = sure = 0
            for seed in range(exams):
                rng = np.random.default_rng(seed)
                base, shared = 0.2 + 0.6 * rng.random(questions), rng.random(questions)
                anew = rng.random((16, questions)) < 0.3
                drawn = np.where(anew, rng.random((16, questions)), shared)
                right = (drawn < np.clip(base + effect[:, None], 0, 1)).astype(np.float64)
                found = split(right, list(range(questions)), LEVELS, seed=seed, draws=500)
                whole += found.total.low <= effect.std() <= found.total.high
                factor += found.parts[0].low <= first.std() <= found.parts[0].high
                sure += found.total.p < 0.05
            shares = (f"{100 * count / exams:.1f}%" for count in (whole, factor, sure))
            print(f"{size:6.2f}  {questions:9}  {effect.std():11.4f}  " + "  ".join(f"{one:>11}" for one in shares))


if __name__ == "__main__":
    main()
