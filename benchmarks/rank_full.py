"""A basic question dataset of the papers' size from end to end, and where the time goes.

    python benchmarks/rank_full.py --main MAIN.txt.gz --pool POOL.txt.gz --device cuda     # 244,302 x 186,027
    python benchmarks/rank_full.py --quick                                                 # a small one, anywhere

Reads the texts, encodes them with the embedded encoder (d = 512), ranks by the certified LASSO and writes the Parquet
file, as `pfungst rank` does. Without files, questions are made from the words of a grammar; real questions, one a line,
say more: how long the solver takes depends on how the vectors lie. The solver's own time is the peer: the goal is that
everything around it costs less.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

MAIN, POOL = 244_302, 186_027

spent: dict[str, float] = {}


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; the time inside it, less that of timed functions it calls, is added to `spent`."""

    def call(*arguments: Any, **options: Any) -> Any:
        before, start = sum(spent.values()), time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            inside = sum(spent.values()) - before
            spent[name] = spent.get(name, 0.0) + time.perf_counter() - start - inside

    return call


def watch() -> None:
    """Time the stops of `pfungst rank`."""
    from pfungst import lasso
    from pfungst.probes.noise import bqd, rankers, ranking

    bqd.read_source = timed("read texts", bqd.read_source)
    bqd.write_bqd = timed("write", bqd.write_bqd)
    ranking.Pool.of = timed("clean the pool", ranking.Pool.of)  # type: ignore[method-assign]
    rankers._Embedded.unit = timed("encode", rankers._Embedded.unit)  # type: ignore[method-assign]
    lasso.Dictionary.__init__ = timed("move the dictionary", lasso.Dictionary.__init__)  # type: ignore[method-assign]
    lasso.solve = timed("solve", lasso.solve)
    lasso.top_k = timed("pick the top", lasso.top_k)


def made(count: int, seed: int) -> list[str]:
    """Distinct questions of a grammar, in random order."""
    kinds = [
        "What colour is",
        "How many of",
        "Is there",
        "Where is",
        "What is behind",
        "Who holds",
        "Can you see",
        "What shape is",
    ]
    things = [
        "dog",
        "cat",
        "horse",
        "man",
        "woman",
        "child",
        "car",
        "bus",
        "bike",
        "boat",
        "plate",
        "cup",
        "pizza",
        "sign",
        "tree",
        "house",
        "cloud",
        "ball",
        "phone",
    ]
    sizes = ["small", "large", "old", "new", "wet", "dirty", "shiny", "empty", "broken", "wooden", "striped", "tall"]
    others = [f"{size} {thing}" for size, thing in product(sizes, things)]
    places = ["near", "beside", "behind", "above", "under"]
    every = product(kinds, sizes, things, places, others)
    texts = [f"{kind} the {size} {thing} {place} the {other}?" for kind, size, thing, place, other in every]
    order = np.random.default_rng(seed).permutation(len(texts))[:count]
    return [texts[i] for i in order]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small problem, to see that it runs")
    parser.add_argument("--main", type=Path, help="main questions, one a line (.txt or .txt.gz)")
    parser.add_argument("--pool", type=Path, help="pool, one a line")
    parser.add_argument("--device", help="where it is solved and encoded [the CPU, with NumPy]")
    parser.add_argument("--limit", type=int, help="only the first N main questions")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--out", type=Path, help="folder to keep the file in")
    options = parser.parse_args()
    count, size = (24, 600) if options.quick else (MAIN, POOL)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PFUNGST_CACHE"] = f"{folder}/cache"  # nothing from before
        files = {"main": options.main, "pool": options.pool}
        for number, (name, amount) in enumerate((("main", count), ("pool", size))):
            if files[name] is None:
                files[name] = Path(folder) / f"{name}.txt"
                files[name].write_text("\n".join(made(amount, number)) + "\n")
        if options.device and options.device.startswith("cuda"):
            import torch

            torch.zeros(1, device=options.device)  # the start of CUDA is no part of the work
            print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}")
        watch()
        from pfungst.probes.noise import bqd
        from pfungst.probes.noise.ranking import RankSettings

        start = time.perf_counter()
        asked = bqd.read_source(str(files["main"]), limit=options.limit)
        pool = bqd.read_source(str(files["pool"]))
        settings = RankSettings(tol=options.tol)
        out = (options.out or Path(folder)) / "bqd.parquet"
        told = [start]

        def tell(what: str, done: int, total: int) -> None:
            if time.perf_counter() - told[-1] > 10:
                told.append(time.perf_counter())
                print(f"  {told[-1] - start:6.1f} s  {what} {done:,} of {total:,}", flush=True)

        bqd.build(out, asked.questions, pool.texts, settings, tell, device=options.device)
        whole = time.perf_counter() - start
        distinct = len({one.text for one in asked.questions})
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{len(asked.questions):,} main questions ({distinct:,} distinct) x {len(set(pool.texts)):,} in the pool, "
            f"tol {options.tol:g}: {whole:.1f} s, {out.stat().st_size / 1e6:.0f} MB written, {peak:.1f} GiB at most"
        )
        spent["everything else"] = whole - sum(spent.values())
        for name, seconds in spent.items():
            print(f"{name:20} {seconds:8.2f} s  {seconds / whole:6.1%}")
        solver = spent["solve"]
        print(f"around the solver / solver: ratio {(whole - solver) / solver:.2f} (goal: below 1)")


if __name__ == "__main__":
    main()
