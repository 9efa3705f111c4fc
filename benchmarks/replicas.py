"""Copies of a player: what they bring, and what sending questions to another process costs.

    python benchmarks/replicas.py [--quick]

The player of the first table waits 20 ms for every question, as one does whose GPU is busy: the peer is the same player
in this process. The player of the second answers at once: what is left is the cost of the way there and back, for
questions alone and for questions with an image of 10 KB.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence

from pfungst.core import Answer, Asker, BytesImage, Player, Query
from pfungst.players import resolve
from pfungst.players.replicate import ReplicaSettings, replicate

HERE = f"{__file__}:Waiting"


class Waiting:
    """Answers after so many seconds."""

    name = "waiting"
    fingerprint = "waiting 1"
    batch_size = 16

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        time.sleep(self.seconds * len(queries))
        return [Answer(str(len(query.question))) for query in queries]


def took(player: Player, queries: Sequence[Query]) -> tuple[float, float]:
    """Seconds on the clock, and of this process's processor time."""
    clock, processor = time.perf_counter(), time.process_time()
    Asker(player).answers(queries)
    return time.perf_counter() - clock, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    count = 200 if quick else 2_000
    queries = [Query(f"What is in number {number}?") for number in range(count)]
    alone, _ = took(resolve(HERE, seconds=0.02), queries)
    print(f"{count} questions, 20 ms each. In this process: {alone:.1f} s")
    for copies in (1, 2, 4) if quick else (1, 2, 4, 8):
        player = replicate(HERE, None, {"seconds": 0.02}, ReplicaSettings(copies))
        took(player, queries * (2 if quick else 1))  # all of them have started
        shared, _ = took(player, queries)
        print(f"{copies} copies: {shared:6.1f} s   ratio {alone / shared:4.2f}")
    many = [Query(f"What is in number {number}?") for number in range(20 * count)]
    shown = [Query(f"What is in number {number}?", BytesImage(os.urandom(10_000))) for number in range(count)]
    for what, asked in (("questions", many), ("questions with images", shown)):
        _, here = took(resolve(HERE), asked)
        player = replicate(HERE, None, {}, ReplicaSettings(2))
        took(player, asked[:64])
        _, there = took(player, asked)
        print(
            f"{what}: {1e6 * here / len(asked):5.1f} us of processor time each in this process, "
            f"{1e6 * there / len(asked):5.1f} us with copies   ratio {here / there:4.2f}"
        )


if __name__ == "__main__":
    main()
