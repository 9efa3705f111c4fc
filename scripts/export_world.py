"""Make a world to train the zoo on, small enough to send to another machine.

    python scripts/export_world.py OUT [--scenes 20000] [--questions 10] [--validation 1000] [--workers 2]

Writes OUT/prepared.json, OUT/train and OUT/val: questions, answers, programs and scenes as compressed arrays, pictures
packed (about 1.5 KB each). `scripts/train_zoo.py` reads it with torch and numpy alone. Killed and called again, it goes
on where it was.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from pfungst.core import Dataset
from pfungst.data import load
from pfungst.models import Inputs
from pfungst.training import prepare
from pfungst.world import make


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--scenes", type=int, default=20_000, help="training scenes")
    parser.add_argument("--questions", type=int, default=10, help="questions a scene, without their rephrasings")
    parser.add_argument("--rephrasings", type=int, default=1, help="further wordings of every training question")
    parser.add_argument("--validation", type=int, default=1000, help="validation scenes")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--height", type=int, default=96)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="folder of the world in the published layout [OUT/../OUT-world]")
    given = parser.parse_args()
    began = time.monotonic()
    work = given.work or given.out.with_name(given.out.name + "-world")
    splits: dict[str, Dataset] = {}
    for split, scenes, rephrasings in (("train", given.scenes, given.rephrasings), ("val", given.validation, 1)):
        # Pictures are drawn at the published size, then averaged down: that is what a player's pictures go through.
        made = make(
            work,
            scenes=scenes,
            questions_per_scene=given.questions,
            rephrasings=rephrasings,
            split=split,
            seed=given.seed,
            workers=given.workers,
            on="processes" if given.workers > 1 else "local",
            progress=lambda now, split=split: _say(f"making {split}", now.done, now.total, began),
        )
        print(f"{split}: {made.statistics['scenes']} scenes in {time.monotonic() - began:.0f} s", flush=True)
        splits[split] = load(f"clevr:{work}#{split}")
    prepared = prepare(
        splits,
        given.out,
        inputs=Inputs(width=given.width, height=given.height),
        packed=True,
        workers=given.workers,
        progress=lambda what, done, total: _say(what, done, total, began),
    )
    size = sum(file.stat().st_size for file in given.out.rglob("*") if file.is_file())
    print(f"{given.out}: {dict(prepared.splits)} questions, {size / 1e6:.1f} MB, {time.monotonic() - began:.0f} s")


def _say(what: str, done: int, total: int, began: float) -> None:
    if done == total or done % 1024 < 64:
        print(f"{what}: {done} of {total}, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
