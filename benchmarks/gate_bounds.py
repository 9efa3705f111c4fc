"""How often `pfungst gate` passes a model that is just not good enough.

The true accuracy (or drop) lies exactly at the threshold, so every pass is one by luck; a one-sided 95% bound should
allow 5%. Two questions per image; in three of ten images both answers share their fate.

    python benchmarks/gate_bounds.py [--trials 1000]
"""

from __future__ import annotations

import argparse

import numpy as np

from pfungst.core.stats import interval_of


def scores(rng: np.random.Generator, images: int, share: float) -> np.ndarray:
    """Right or wrong, (images, 2)."""
    together = rng.random((images, 1)) < 0.3
    return np.where(together, rng.random((images, 1)) < share, rng.random((images, 2)) < share).astype(float)


def passed(rng: np.random.Generator, images: int, truth: float, trials: int, at_most: bool) -> float:
    """Share of the runs that meet `>= truth` (accuracy), or `<= truth` (drop)."""
    clusters = np.repeat(np.arange(images), 2).tolist()
    lucky = 0
    for _ in range(trials):
        found = interval_of(scores(rng, images, truth).ravel(), clusters)
        lucky += found.at_most <= truth if at_most else found.at_least >= truth
    return lucky / trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="50 trials")
    options = parser.parse_args()
    trials = 50 if options.quick else options.trials
    rng = np.random.default_rng(0)
    print("images  accuracy>=50%  accuracy>=80%  accuracy>=95%  drop<=5%   (passed by luck; 5% is meant)")
    for images in (10, 30, 100, 300, 1000):
        shares = [passed(rng, images, truth, trials, False) for truth in (0.5, 0.8, 0.95)]
        shares.append(passed(rng, images, 0.05, trials, True))
        print(f"{images:6}" + "".join(f"{share:15.1%}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
