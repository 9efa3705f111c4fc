"""How often the interval of an accuracy that was corrected for a judge's errors holds the truth, and how wide it is.

Ours (`pfungst.scores.agreement.corrected_accuracy`) and the closed form of Lang and Reiczigel (Confidence limits for
prevalence of disease adjusted for estimated sensitivity and specificity, 2014, Eq. 16), on the same simulated judges,
answers and labels. Both claim 95%.

    python benchmarks/judge_interval.py [--quick]
"""

from __future__ import annotations

import argparse
import math
from itertools import product

import numpy as np

from pfungst.core.stats import Interval
from pfungst.scores.agreement import Agreement, corrected_accuracy, proportion

Z = 1.959963984540054
UNKNOWN = Interval(math.nan, math.nan, math.nan, 0, 0, "")


def lang_reiczigel(hits: int, n: int, judge: Agreement) -> tuple[float, float]:
    """The closed form. Everything where its denominator is not positive."""
    size = n + Z * Z
    measured = (hits + Z * Z / 2) / size
    sensitivity = (judge.right_called_right + 1) / (judge.right + 2)
    specificity = (judge.wrong_called_wrong + 1) / (judge.wrong + 2)
    youden = sensitivity + specificity - 1
    if youden <= 0:
        return 0.0, 1.0
    value = (measured + specificity - 1) / youden
    of_right = sensitivity * (1 - sensitivity) / (judge.right + 2)
    of_wrong = specificity * (1 - specificity) / (judge.wrong + 2)
    shift = 2 * Z * Z * (value * of_right - (1 - value) * of_wrong)
    spread = math.sqrt(measured * (1 - measured) / size + value**2 * of_right + (1 - value) ** 2 * of_wrong) / youden
    return max(0.0, value + shift - Z * spread), min(1.0, value + shift + Z * spread)


def ours(hits: int, n: int, judge: Agreement) -> tuple[float, float]:
    """Everything where nothing is corrected."""
    found = corrected_accuracy([1.0] * hits + [0.0] * (n - hits), range(n), judge)
    return (0.0, 1.0) if math.isnan(found.value) else (found.low, found.high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer judges and tries")
    quick = parser.parse_args().quick
    tries = 100 if quick else 400
    rights = (0.3, 0.9) if quick else (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
    judges = ((0.95, 0.9), (0.8, 0.7)) if quick else ((0.99, 0.98), (0.95, 0.9), (0.9, 0.95), (0.8, 0.7))
    sizes = ((200, 100),) if quick else ((50, 50), (50, 200), (500, 50), (500, 200))
    rng = np.random.default_rng(0)
    methods = {"ours": ours, "Lang-Reiczigel": lang_reiczigel}
    coverage: dict[str, list[float]] = {name: [] for name in methods}
    width: dict[str, list[float]] = {name: [] for name in methods}
    refused = 0
    for right, (sensitivity, specificity), (n, labels) in product(rights, judges, sizes):
        hit, wide = dict.fromkeys(methods, 0), dict.fromkeys(methods, 0.0)
        for _ in range(tries):
            hits = int(rng.binomial(n, right * sensitivity + (1 - right) * (1 - specificity)))
            known = int(rng.binomial(labels, right))
            a, d = int(rng.binomial(known, sensitivity)), int(rng.binomial(labels - known, specificity))
            judge = Agreement(
                a, known - a, labels - known - d, d, UNKNOWN, UNKNOWN, proportion(a, known),
                proportion(d, labels - known),
            )  # fmt: skip
            for name, method in methods.items():
                low, high = method(hits, n, judge)
                hit[name] += low <= right <= high
                wide[name] += high - low
                refused += name == "ours" and (low, high) == (0.0, 1.0)
        for name in methods:
            coverage[name].append(hit[name] / tries)
            width[name].append(wide[name] / tries)
    print(f"{len(coverage['ours'])} judges, {tries} tries each; nominal 95%")
    for name in methods:
        least, mean = min(coverage[name]), float(np.mean(coverage[name]))
        below = sum(share < 0.93 for share in coverage[name])
        print(
            f"{name}: coverage {100 * mean:.1f}% on average, {100 * least:.1f}% at least, below 93% for {below}; "
            f"mean width {np.mean(width[name]):.3f}"
        )
    print(f"ours refuses to correct, or says everything from 0 to 1, in {refused / tries / len(width['ours']):.1%}")
    ratio = float(np.mean(width["ours"])) / float(np.mean(width["Lang-Reiczigel"]))
    print(f"width, ours over Lang-Reiczigel: {ratio:.2f}")


if __name__ == "__main__":
    main()
