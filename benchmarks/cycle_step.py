"""A step of cycle-consistent training against a step of the base model: at most 2.5 times as long.

    python benchmarks/cycle_step.py [--quick] [--device cuda] [--models butd pythia ban]

Both train on the same batches in this process, a block of steps in turn; the median step of each is compared, in
seconds of the CPU (so that other work on the machine does not count) or, on a GPU, of the clock. The cycle is
complete from the first step on: question generator, generated questions, second pass, gate.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time

import numpy as np
import torch

from pfungst.models import Sizes, build
from pfungst.training import ArrayData, FitConfig, fit, model_losses
from pfungst.training.cycle import Cycle, CycleConfig

CLAIM = 2.5
SHAPE = (96, 12, 16)
"""Features of the world's CNN."""
WORDS, ANSWERS = 120, 28
LENGTHS = (8, 30)
"""Words of a question of the world."""


def data(count: int) -> ArrayData:
    rng = np.random.default_rng(0)
    question = rng.integers(4, WORDS, (count, 50)).astype(np.uint8)
    question[np.arange(50)[None] >= rng.integers(*LENGTHS, count)[:, None]] = 0
    return ArrayData(
        {
            "question": question,
            "answer": rng.integers(0, ANSWERS, count).astype(np.int32),
            "picture": np.arange(count, dtype=np.int32),
            "pictures": rng.standard_normal((count, *SHAPE)).astype(np.float16),
        },
        ANSWERS,
    )


def times(name: str, batch: int, steps: int, blocks: int, feedback: str, device: str) -> tuple[float, float]:
    """Median seconds of a base step and of a cycle step."""
    arrays = data(2 * batch)
    spent: dict[str, list[float]] = {"base": [], "cycle": []}
    for _ in range(blocks):
        for kind in spent:
            model = build(name, Sizes(WORDS, ANSWERS, SHAPE), "features")
            used = arrays.for_model(model).to(device)
            losses, modules = [model_losses], {}
            if kind == "cycle":
                cycle = Cycle.of(model.to(device), used, CycleConfig(start=0, feedback=feedback), steps)
                losses, modules = [model_losses, cycle], cycle.modules
            marks: list[float] = []

            def note(what: str, done: int, total: int, marks: list[float] = marks) -> None:
                if device.startswith("cuda"):
                    torch.cuda.synchronize()
                marks.append(time.process_time() if device == "cpu" else time.perf_counter())

            config = FitConfig(steps=steps, batch=batch, log_every=steps)
            fit(model, used, config=config, losses=losses, modules=modules, device=device, progress=note)
            spent[kind] += [b - a for a, b in itertools.pairwise(marks)]
    return statistics.median(spent["base"]), statistics.median(spent["cycle"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--models", nargs="+", default=["butd", "pythia", "ban"])
    parser.add_argument("--feedback", nargs="+", default=["forced"], help="how Q' is written: forced, sample, greedy")
    given = parser.parse_args()
    batch, steps, blocks = (32, 6, 2) if given.quick else (64, 12, 3)
    worst = 0.0
    for name in given.models:
        for feedback in given.feedback:
            base, cycle = times(name, batch, steps, blocks, feedback, given.device)
            worst = max(worst, cycle / base)
            print(f"{name}, {feedback}: base {1e3 * base:.1f} ms, cycle {1e3 * cycle:.1f} ms, {cycle / base:.2f} times")
    print(f"worst ratio {worst:.2f} (claim: at most {CLAIM})")
    return 0 if worst <= CLAIM else 1


if __name__ == "__main__":
    sys.exit(main())
