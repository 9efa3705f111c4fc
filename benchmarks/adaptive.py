"""How many questions `pfungst examine --precision` saves on answers that models really gave, and whether it is right.

For every model and condition in a folder of recorded answers: images in 20 random orders, asked in the rounds of the
exam until the drop is known to plus or minus the precision. Three numbers, as means over models, conditions and orders:

    asked    share of the images that were asked (asking everything is 1); the saving is the rest
    fixed    the share that a normal 95% interval of this width needs, for whoever knew the spread beforehand
    covered  share of the stops whose interval holds the drop over all images

    python benchmarks/adaptive.py ANSWERS      # with the folders blind_faith_in_text and vlmevalkit/gpt41
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pfungst.core.adaptive import FIRST_ROUND, GROWTH
from pfungst.core.anytime import ConfidenceSequence
from pfungst.importing import import_logs
from pfungst.report.compare import Compared

ORDERS = 20
PRECISIONS = (0.02, 0.03, 0.05, 0.1)


def drops(answers: Path) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Source, model and condition, and of each image the sum of its differences and how many they are."""
    sources = {
        "texts": sorted(folder for folder in (answers / "blind_faith_in_text").iterdir() if folder.is_dir()),
        "rotation": [answers / "vlmevalkit" / "gpt41"],
    }
    wanted = {
        "texts": ("base", "text_irrelevant", "text_contradict", "text_support"),
        "rotation": tuple(f"gpt-4.1-2025-04-14_tdbench_rot{degrees}" for degrees in (0, 90, 180, 270)),
    }
    for source, folders in sources.items():
        for folder in folders:
            files = [next(folder.glob(f"{name}.*")) for name in wanted[source]]
            with tempfile.TemporaryDirectory() as out:
                run = import_logs(files, out, name=folder.name)
                rows = Compared(run, folder.name).rows("conditions")
            clean, *others = rows
            for other in others:
                images: dict[str, list[float]] = {}
                for key, row in rows[other].items():
                    lost = rows[clean][key]["score"] - row["score"] if key in rows[clean] else float("nan")
                    if lost == lost:
                        images.setdefault(row["image_id"] or key, []).append(lost)
                sums, sizes = [sum(some) for some in images.values()], [len(some) for some in images.values()]
                yield source, f"{folder.name} {other}", np.array(sums), np.array(sizes, np.float64)


def stop(sums: np.ndarray, sizes: np.ndarray, largest: float, precision: float) -> tuple[int, float, float]:
    """Images asked, and the interval of the drop after them."""
    asked = 0
    while True:
        asked = min(len(sums), asked + max(FIRST_ROUND, asked // GROWTH))
        found = ConfidenceSequence(sums[:asked], sizes[:asked], largest, precision).interval()
        if asked == len(sums) or (found.high - found.low) / 2 <= precision:
            return asked, found.low, found.high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path)
    found: dict[tuple[str, float], list[tuple[float, float, float]]] = {}
    for source, name, sums, sizes in drops(parser.parse_args().answers):
        mean = sums.sum() / sizes.sum()
        spread = float(np.std(sums - mean * sizes) / sizes.mean())
        print(f"{source:9} {name:58} {len(sums):5} images  drop {mean:6.1%}  sd {spread:.2f}", flush=True)
        for precision in PRECISIONS:
            fixed = min(1.0, (1.96 * spread / precision) ** 2 / len(sums))
            for seed in range(ORDERS):
                order = np.random.default_rng(seed).permutation(len(sums))
                asked, low, high = stop(sums[order], sizes[order], float(sizes.max()), precision)
                found.setdefault((source, precision), []).append((asked / len(sums), fixed, low <= mean <= high))
    print("\nsource    precision  asked  fixed  covered")
    for (source, precision), rows in found.items():
        asked, fixed, covered = np.mean(rows, axis=0)
        print(f"{source:9} {precision:8.0%} {asked:7.0%} {fixed:6.0%} {covered:8.1%}")


if __name__ == "__main__":
    main()
