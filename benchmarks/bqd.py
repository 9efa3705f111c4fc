"""Writing and reading a basic question dataset of the papers' size: 244,302 main questions x 21 basic questions.

    python benchmarks/bqd.py [--quick]

The peer writes and reads the same rows as JSON with the standard library.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from pfungst.probes.noise.bqd import BasicQuestions, MainQuestion, write_bqd
from pfungst.probes.noise.ranking import Ranking


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    count = 20_000 if parser.parse_args().quick else 244_302
    rng = np.random.default_rng(0)
    pool = [f"What is the number {i} on the {i % 977} thing?" for i in range(186_027)]
    questions = [MainQuestion(f"Is this main question {i}?", str(i), str(i // 3)) for i in range(count)]
    scores = -np.sort(-rng.random((count, 21)))
    ranking = Ranking(rng.integers(0, len(pool), (count, 21)), scores, rng.random(count) * 1e-3, "lasso")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gbqd.parquet"
        start = time.perf_counter()
        write_bqd(path, questions, pool, ranking, {})
        written = time.perf_counter()
        rows = BasicQuestions.read(path).rows
        ours = written - start, time.perf_counter() - written
        assert len(rows) == count
        peer = Path(folder) / "peer.json"
        start = time.perf_counter()
        with peer.open("w") as file:
            json.dump(
                [
                    {"main": q.text, "basic": [[pool[i], s] for i, s in zip(row, values, strict=True)]}
                    for q, row, values in zip(questions, ranking.indices.tolist(), scores.tolist(), strict=True)
                ],
                file,
            )
        written = time.perf_counter()
        with peer.open() as file:
            json.load(file)
        theirs = written - start, time.perf_counter() - written
        sizes = [file.stat().st_size / 1e6 for file in (path, peer)]
        print(f"{count * 21:,} rows   Parquet: {sizes[0]:.0f} MB   JSON: {sizes[1]:.0f} MB")
        for name, a, b in (("write", ours[0], theirs[0]), ("read", ours[1], theirs[1])):
            print(f"{name:6} {a:6.1f} s   json {b:6.1f} s   ratio {b / a:4.1f}")


if __name__ == "__main__":
    main()
