"""METEOR, best 21 of a pool of real questions, against pycocoevalcap's jar in the same run.

    python benchmarks/meteor.py [--quick] [--questions FILE.txt[.gz]]

Prints the share of pairs that were aligned in full, pairs per second of both, and their ratio. Goals: at most 1% of the
pairs aligned, 100x. The jar is asked in its own protocol, many pairs at once, which is faster than pycocoevalcap asks
it; its start is not counted. Ours is counted with the preparation of main questions and pool. On a part of the pool
both give the best 21 of all pairs, which must be the same questions in the same order with the same scores.
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from pfungst.core.types import no_progress
from pfungst.text import tokenize, top_pairs
from pfungst.text.meteor import _index, best_pairs
from pfungst.text.meteor.words import JAR, folder

K = 21


def read(path: Path | None) -> list[str]:
    if path is None:
        path = Path(__file__).resolve().parents[2] / "shared" / "data" / "vqa1" / "val2014_questions.txt.gz"
    if path.exists():
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            return sorted(set(file.read().splitlines()))
    rng = random.Random(0)
    words = [f"word{int(rng.paretovariate(0.6)) % 5000}" for _ in range(200_000)]
    return [" ".join(words[i : i + rng.randint(4, 10)]) + "?" for i in range(0, 190_000, 5)]


class Jar:
    """The published program, started and warm."""

    def __init__(self) -> None:
        command = ["java", "-jar", "-Xmx2G", JAR, "-", "-", "-stdio", "-l", "en", "-norm"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=folder(), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def __enter__(self) -> Jar:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()

    def scores(self, main: list[str], pool: list[str]) -> np.ndarray:
        texts = [[" ".join(tokenize(sentence)) for sentence in part] for part in (main, pool)]
        lines = [f"SCORE ||| {one} ||| {two}\n" for one in texts[0] for two in texts[1]]
        facts = self._ask("".join(lines), len(lines))
        found: list[float] = []
        for first in range(0, len(facts), 500):
            some = facts[first : first + 500]
            found += map(float, self._ask("EVAL" + "".join(f" ||| {fact}" for fact in some) + "\n", len(some) + 1)[:-1])
        return np.reshape(found, (len(main), len(pool)))

    def _ask(self, text: str, replies: int) -> list[str]:
        assert self.process.stdin is not None and self.process.stdout is not None

        def write() -> None:
            self.process.stdin.write(text.encode())
            self.process.stdin.flush()

        writer = threading.Thread(target=write)
        writer.start()
        answer = [self.process.stdout.readline().decode().strip() for _ in range(replies)]
        writer.join()
        return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--questions", type=Path)
    options = parser.parse_args()
    questions = read(options.questions)
    random.Random(0).shuffle(questions)
    mains, pool = questions[: 200 if options.quick else 800], questions[1000:]
    few, part = mains[: 3 if options.quick else 8], pool[:1000]
    top_pairs("meteor", mains[:2], pool[:50], K)  # compile, and read the paraphrases

    start = time.perf_counter()
    index = _index(mains, pool, no_progress)
    ready = time.perf_counter()
    _, _, aligned = best_pairs(index, K, [[]] * len(mains), no_progress)
    done = time.perf_counter()
    pairs = len(mains) * len(pool)
    ours = pairs / (done - start)

    print(f"{len(mains)} main questions, pool of {len(pool)}, best {K}")
    print(f"aligned in full           {aligned / pairs:10.3%}   goal <= 1%")
    print(f"ours, pairs/s             {ours:10.0f}   preparation {ready - start:.1f} s, ranking {done - ready:.1f} s")
    if shutil.which("java") is None:
        print("jar                       not measured: there is no Java on this machine")
        return
    with Jar() as jar:
        jar.scores(few[:1], pool[1000:1500])  # start and warm up
        start_jar = time.perf_counter()
        scores = jar.scores(few, part)
        peer = scores.size / (time.perf_counter() - start_jar)

    places, values = top_pairs("meteor", few, part, K)
    expected = np.asarray([sorted(range(len(part)), key=lambda i: (-row[i], i))[:K] for row in scores])
    same = bool((places == expected).all() and (values == np.take_along_axis(scores, expected, 1)).all())
    print(f"jar, pairs/s              {peer:10.0f}   {scores.size} pairs")
    print(f"ratio                     {ours / peer:10.0f}   goal >= 100")
    print(f"same best {K} as the jar on {len(few)} x {len(part)} pairs: {'yes' if same else 'NO'}")
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
