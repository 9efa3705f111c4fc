"""Consensus scores CS(1..4) of 200,000 groups of rephrasings.

Claim: one CS(k) takes less than a second. Peer, in the same process: all subsets of size k of every group, as Eq. 2
and 3 of 003_43f488cf6d651ec9.txt define it, on fewer groups, per group.

    python benchmarks/consensus.py [--quick]
"""

from __future__ import annotations

import argparse
import random
import time
from itertools import combinations

from pfungst.scores import consensus

SECONDS = 1.0


def by_subsets(groups: list[list[bool]], k: int) -> float:
    shares = []
    for group in groups:
        subsets = [all(subset) for subset in combinations(group, k)]
        shares.append(sum(subsets) / len(subsets))
    return sum(shares) / len(shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20,000 groups instead of 200,000")
    count = 20_000 if parser.parse_args().quick else 200_000
    rng = random.Random(0)
    met = True
    for size, k in ((4, 1), (4, 2), (4, 4), (12, 6)):
        groups = [[rng.random() < 0.6 for _ in range(size)] for _ in range(count)]
        start = time.perf_counter()
        score = consensus(groups, k)
        ours = time.perf_counter() - start
        few = groups[: count // 100]
        start = time.perf_counter()
        expected = by_subsets(few, k)
        peer = (time.perf_counter() - start) * count / len(few)
        met &= ours < SECONDS and abs(consensus(few, k) - expected) < 1e-12
        print(
            f"{count:,} groups of {size:2d}, CS({k}) = {score:.4f}: {ours:.3f} s, all subsets {peer:7.2f} s "
            f"(from {len(few):,} groups), ratio {peer / ours:,.1f}x"
        )
    print(f"goal: under {SECONDS:g} s each, equal to all subsets: {'met' if met else 'NOT met'}")
    if not met:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
