"""Which encoder finds the paraphrase? Recall, speed and size of every encoder that is installed.

    python benchmarks/encoders.py [--quick] [--also NAME ...]

4,000 real question pairs (the test split of the Quora question pairs, positives only): for each first question all
4,000 second questions are ranked by cosine. Chance is 0.03% for recall@1. Half of those questions also occur, in other
pairs, in the training split that the default has seen, so the last recall counts only pairs with two unseen questions
(among the same 4,000). Speed is sentences a second of CPU time on one core, without any cache.
`--also` adds encoders by name, e.g. minilm:FOLDER or skip-thoughts:FOLDER.
"""

from __future__ import annotations

import argparse
import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))  # before numpy
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pfungst.core import PfungstError
from pfungst.text.encoders import AveragedWords, Encoder, WordVectors, get_encoder
from pfungst.text.encoders.base import FloatArray, unit_rows, words
from pfungst.text.encoders.vectors import EMBEDDED
from pfungst.text.encoders.word_vectors import EMBEDDED_COUNTS

DATA = Path(os.environ.get("PFUNGST_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
DEFAULT, TFIDF = "skip-thoughts (the default)", "tfidf (embedded counts)"
GLOVE = DATA / "glove" / "glove100d_subset_f16.npz"


def lines(name: str) -> list[str]:
    return (DATA / "quora" / name).read_text("utf-8").splitlines()


def megabytes(path: Path) -> float:
    files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
    return sum(one.stat().st_size for one in files) / 1e6


def candidates(also: list[str]) -> dict[str, tuple[Callable[[], Encoder], float]]:
    """What to print -> how to get it, and its size in megabytes."""
    found: dict[str, tuple[Callable[[], Encoder], float]] = {
        DEFAULT: (lambda: get_encoder("skip-thoughts"), megabytes(EMBEDDED)),
        "words: averaged GloVe, 100-d": (lambda: AveragedWords(WordVectors.read(GLOVE)), megabytes(GLOVE)),
        TFIDF: (lambda: get_encoder("tfidf"), megabytes(EMBEDDED_COUNTS)),
        "minilm": (lambda: get_encoder("minilm"), 90.9),
    }
    for name in also:
        folder = Path(name.partition(":")[2])
        found[name] = ((lambda name=name: get_encoder(name)), megabytes(folder) if folder.exists() else float("nan"))
    return found


def paraphrase_ranks(one: FloatArray, two: FloatArray, texts: Sequence[str]) -> np.ndarray:
    """Rank (from 1) of the right candidate for each row of `one`, by cosine.

    `one`, `two`: (n, dim), row i of `two` is the paraphrase of row i of `one`. `texts`: the candidates' texts; a
    candidate with the text of the right one is right too. A tie counts against the encoder.
    """
    left, right = unit_rows(one), unit_rows(two)
    names: dict[str, int] = {}
    name = np.array([names.setdefault(text, len(names)) for text in texts])
    ranks = np.zeros(len(one), np.int64)
    for i, vector in enumerate(left):
        scores = right @ vector
        ranks[i] = 1 + np.count_nonzero((scores >= scores[i]) & (name != name[i]))
    return ranks


def recall_at(ranks: np.ndarray, k: int) -> float:
    """Share of sentences whose paraphrase is among the first k, in percent."""
    return float(100 * np.mean(ranks <= k))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="500 pairs instead of 4,000")
    parser.add_argument("--also", action="append", default=[], metavar="NAME")
    arguments = parser.parse_args()
    if not (DATA / "quora").is_dir():
        raise SystemExit(f"No question pairs in {DATA}; set PFUNGST_SHARED_DATA to the folder that holds quora/.")
    pairs = 500 if arguments.quick else 4000
    one, two = lines("test.txt")[:pairs], lines("super_test_2.txt")[:pairs]
    seen = {tuple(words(text)) for name in ("train.txt", "super_train_2.txt") for text in lines(name)}
    unseen = np.array(
        [tuple(words(a)) not in seen and tuple(words(b)) not in seen for a, b in zip(one, two, strict=True)]
    )
    print(f"{pairs} pairs, {unseen.sum()} of them unseen")
    print(
        "| encoder | dim | recall@1 | recall@10 | recall@1, unseen | sentences/s | MB |\n|---|---|---|---|---|---|---|"
    )
    found: dict[str, float] = {}
    for label, (make, size) in candidates(arguments.also).items():
        try:
            encoder = make()
        except PfungstError as error:
            print(f"| {label} | not here: {error} |")
            continue
        encoder.encode(one[:64])
        begun = time.process_time()
        first, second = encoder.encode(one), encoder.encode(two)
        speed = 2 * pairs / (time.process_time() - begun)
        ranks = paraphrase_ranks(first, second, two)
        found[label] = recall_at(ranks, 1)
        recalls = f"{found[label]:.1f}% | {recall_at(ranks, 10):.1f}% | {recall_at(ranks[unseen], 1):.1f}%"
        print(f"| {label} | {encoder.dim} | {recalls} | {speed:,.0f} | {size:.1f} |", flush=True)
    print(f"recall@1 of the default against TF-IDF: {found[DEFAULT] / found[TFIDF]:.2f}x")


if __name__ == "__main__":
    main()
