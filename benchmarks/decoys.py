"""Making decoys at Visual Genome's size, against scikit-learn's neighbour search.

Claims: 1,445,322 triplets (50/20/30% splits, decoys from the same split only, as in the paper) in under 30 minutes on
two cores and 8 GiB; and, at a size both can do, the exact neighbours of all questions faster than
`sklearn.neighbors.NearestNeighbors(algorithm="brute")`.

    python benchmarks/decoys.py            the peer at 40,000 questions, and one slice of the full size extrapolated
    python benchmarks/decoys.py --quick    the same, smaller
    python benchmarks/decoys.py --full     all 1,445,322 triplets, nothing extrapolated

Triplets are those of COCO-QA and VQA v2 (shared data folder, $PFUNGST_SHARED_DATA), tiled with variation: every copy
of a question has some of its content words replaced by other words of the data, so that questions repeat about as
rarely as in the original texts. Questions are averaged GloVe vectors of 100 dimensions.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import numpy as np

from pfungst.core import Example
from pfungst.data import load
from pfungst.probes.decoys import build
from pfungst.probes.decoys.maker import nearest
from pfungst.text import encode, get_encoder
from pfungst.text.encoders.base import unit_rows

TRIPLETS = 1_445_322
SPLITS = (0.5, 0.2, 0.3)
GOAL_SECONDS = 30 * 60
GOAL_BYTES = 8 << 30
QUESTIONS_AN_IMAGE = 14  # Visual Genome's mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true", help="all splits, all triplets")
    arguments = parser.parse_args()
    root = os.environ.get("PFUNGST_SHARED_DATA")
    shared = Path(root) if root else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not shared.is_dir():
        raise SystemExit("No real data here: set PFUNGST_SHARED_DATA to a folder with cocoqa, vqa2 and glove.")
    encoder = get_encoder(f"words:{shared / 'glove' / 'glove100d_subset_f16.npz'}")
    real = [
        (example.question, str(example.target))
        for spec in ("cocoqa#train", "cocoqa#test", "vqa2#train", "vqa2#val")
        for example in load(shared / spec.partition("#")[0], split=spec.partition("#")[2])
        if example.target
    ]
    print(f"{len(real):,} real triplets, {len({question for question, _ in real}):,} distinct questions")
    if not arguments.full:
        against_peer([question for question, _ in real], encoder, 10_000 if arguments.quick else 40_000)
    at_scale(real, encoder, arguments.full, arguments.quick)


def against_peer(questions: list[str], encoder: object, count: int) -> None:
    from sklearn.neighbors import NearestNeighbors

    distinct = list(dict.fromkeys(questions))[:count]
    vectors = unit_rows(encode(distinct, encoder))  # type: ignore[arg-type]
    vectors = vectors[vectors.any(1)]
    queries = np.arange(len(vectors))
    nearest(vectors, queries[:300], 48)  # compiled before the clock starts
    start = time.perf_counter()
    _, ours_similarity = nearest(vectors, queries, 48)
    ours = time.perf_counter() - start
    peer = NearestNeighbors(n_neighbors=48, algorithm="brute", metric="cosine").fit(vectors)
    start = time.perf_counter()
    distance, _ = peer.kneighbors(vectors)
    theirs = time.perf_counter() - start
    worst = float(np.abs((1 - distance) - ours_similarity).max())
    print(f"48 neighbours of {len(vectors):,} questions: ours {ours:.2f} s, scikit-learn {theirs:.2f} s")
    print(f"ratio: {theirs / ours:.2f}x faster than scikit-learn; largest difference of a cosine {worst:.1e}")


def at_scale(real: list[tuple[str, str]], encoder: object, full: bool, quick: bool) -> None:
    import pfungst.probes.decoys.building as building

    examples = tiled(real, TRIPLETS)
    print(f"tiled: {len(examples):,} triplets, {len({e.question for e in examples}):,} distinct questions")
    total, start = np.zeros(2), 0
    for share in SPLITS:
        size = round(share * TRIPLETS)
        part = examples[start : start + size]
        start += size
        if not full:
            seconds = sliced(part, encoder, 2_000 if quick else 8_000)
        else:
            before = clocks()
            made = build(part, encoder=encoder)  # type: ignore[arg-type]
            seconds = clocks() - before
            print(f"  {made.counts('qou')}\n  {made.counts('iou')}")
        total += seconds
        said = f"{seconds[0]:,.0f} s by the clock, {seconds[1]:,.0f} s of processor time"
        print(f"split of {len(part):,}: {said}{'' if full else ' (extrapolated)'}", flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    what = "measured" if full else f"extrapolated from slices, shards of {building.SHARD} questions"
    print(f"{TRIPLETS:,} triplets ({what}): {total[0] / 60:.1f} minutes by the clock, peak {memory / 2**30:.1f} GiB")
    print(f"processor time over two cores, which a busy machine does not stretch: {total[1] / 2 / 60:.1f} minutes")
    fits = memory < GOAL_BYTES
    print(f"goal: 30 minutes, 8 GiB: by the clock {'met' if fits and total[0] < GOAL_SECONDS else 'NOT met'}", end="; ")
    met = fits and total[1] / 2 < GOAL_SECONDS
    print(f"by processor time {'met' if met else 'NOT met'}")
    if not met:
        raise SystemExit(1)


def clocks() -> np.ndarray:
    """Seconds by the clock, and of processor time over all threads."""
    return np.array([time.perf_counter(), time.process_time()])


def sliced(part: list[Example], encoder: object, questions: int) -> np.ndarray:
    """Seconds for a whole split: everything that is done once, and the questions from a slice of them."""
    from pfungst.probes.decoys.filters import WupFilter
    from pfungst.probes.decoys.maker import Maker
    from pfungst.probes.decoys.split import Split

    begin = clocks()
    split = Split.of(part, 0)
    vectors = unit_rows(encode(split.questions, encoder, cache=False))  # type: ignore[arg-type]
    maker = Maker(split, ("qou", "iou"), 3, 0, vectors, 10_000, [WupFilter().prepare(split.book)], True)
    maker.make(np.arange(64))
    once = clocks() - begin
    begin = clocks()
    maker.make(np.arange(64, 64 + questions))
    slice_ = clocks() - begin
    return once + slice_ * len(split.questions) / questions


def tiled(real: list[tuple[str, str]], count: int) -> list[Example]:
    rng = np.random.default_rng(0)
    words = sorted({word for question, _ in real for word in question.lower().split() if len(word) > 4})
    examples = []
    for number in range(count):
        question, target = real[number % len(real)]
        if number >= len(real):
            parts = question.lower().split()
            for at, word in enumerate(parts):
                if len(word) > 4 and rng.random() < 0.5:
                    parts[at] = words[int(rng.integers(len(words)))]
            question = " ".join(parts)
        examples.append(
            Example(
                str(number), question, image_id=f"i{number // QUESTIONS_AN_IMAGE}", answers=(target,), target=target
            )
        )
    order = rng.permutation(count // QUESTIONS_AN_IMAGE + 1)
    # Splits are made of whole images, in a random order.
    by_image = [examples[i * QUESTIONS_AN_IMAGE : (i + 1) * QUESTIONS_AN_IMAGE] for i in order]
    return [example for group in by_image for example in group]


if __name__ == "__main__":
    main()
