"""How long does one mini-game of ten questions take against a player that sees pixels? The goal is two minutes.

The player is a small convolutional network with fixed random weights over the drawn picture: it answers as a real one
does (picture in, answer out), is easily shaken, and costs what a small model costs. The same mini-game is timed with
its parts: drawing, answering, the rest (rules, learning, store). Then what the answer store and the memory of layouts
save when it is resumed.

    python benchmarks/game_minigame.py [--quick] [--adversary a2c]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from pfungst.core import Answer, Query
from pfungst.probes.game import GameSettings, play
from pfungst.world import embedded


class SmallNetwork:
    """A convolutional network over 160x120 pixels with fixed weights; the question chooses a row of its last layer."""

    name, fingerprint, batch_size = "small network", "small-network-1", 16

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        layers: list[nn.Module] = []
        for before, after in ((3, 16), (16, 32), (32, 64), (64, 64)):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
        self.net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten())
        for value in self.net.parameters():
            value.data.normal_(0, 0.1, generator=generator)
        self.seen = 0
        self.drawing = self.answering = 0.0

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        start = time.perf_counter()
        pictures = [np.asarray(q.image.pil().resize((160, 120)), dtype=np.float32) / 255 for q in queries if q.image]
        middle = time.perf_counter()
        with torch.no_grad():
            features = self.net(torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2))
        features = (features - features.mean(1, keepdim=True)) / features.std(1, keepdim=True)
        said = []
        for query, row in zip(queries, features, strict=True):
            # A fixed direction of the features; the threshold makes changes rare.
            score = float(row[len(query.question) % len(row)] - row[(7 * len(query.question)) % len(row)])
            options = query.choices or ("yes", "no")
            said.append(Answer(options[int(score > 1.5) % len(options)]))
        self.seen += len(queries)
        self.drawing += middle - start
        self.answering += time.perf_counter() - middle
        return said


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--adversary", default="a2c")
    given = parser.parse_args()
    budget = 20 if given.quick else 100
    settings = GameSettings(size=10, seeds=1, adversary=given.adversary, budget=budget, uniform=False)
    data = embedded(scenes=60, seed=2, cache=False)
    from pfungst.world import render

    render(data[0].scene or {})  # compile
    with tempfile.TemporaryDirectory() as folder:
        player = SmallNetwork()
        start, work = time.perf_counter(), time.process_time()
        result = play(player, data, Path(folder), settings)
        first, work = time.perf_counter() - start, time.process_time() - work
        rest = first - player.drawing - player.answering
        print(f"{given.adversary}, 10 questions, {settings.queries_each()} queries each: {player.seen} pictures")
        print(
            f"  {first:6.1f} s  ({player.drawing:.1f} drawing, {player.answering:.1f} answering, {rest:.1f} the rest)"
        )
        print(f"  {work:6.1f} s of processor time: {work / 2:.1f} s on two cores that have nothing else to do")
        print(f"  goal: 120 s, ratio {120 / first:.1f}x; drop {result.average('drop'):.0%}")
        (round_file,) = (Path(folder) / "rounds").glob("*.parquet")
        round_file.unlink()
        again = SmallNetwork()
        start = time.perf_counter()
        play(again, data, Path(folder), settings)
        second = time.perf_counter() - start
        print(f"  {second:6.1f} s  played again from the answer store: {again.seen} pictures, {first / second:.1f}x")


if __name__ == "__main__":
    main()
