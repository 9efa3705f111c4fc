"""Train the encoder that is embedded in the package, from public questions.

    python scripts/train_default_encoder.py --data FOLDER --out FILE.safetensors [--variant NAME] [--device cuda]

FOLDER holds the questions in their published formats (see src/pfungst/text/encoders/weights/README.md). Neighbours are:
questions about one image (VQA v1, VQA v2, COCO-QA, DAQUAR) and paraphrases (the training split of Quora question pairs,
without its last 4,000 pairs, on which variants are compared). Needs torch, numpy and safetensors alone.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from pfungst.text.encoders import SkipThoughts, SkipThoughtsConfig, WordVectors, train_skip_thoughts
from pfungst.text.encoders.retrieval import paraphrase_ranks, recall_at
from pfungst.text.encoders.tfidf import TfIdf, save_counts
from pfungst.text.encoders.training import TrainingStep

HELD_OUT = 4000

BASE = SkipThoughtsConfig(
    uni=256,
    bi=256,
    word_size=128,
    vocabulary=8000,
    grams=8192,
    batch=1024,
    rate=2e-3,
    contrast=1.0,
    half_precision=True,
)
VARIANTS = {
    "both": replace(BASE, epochs=4),
    "contrast": replace(BASE, decode=0.0, epochs=7),
    "decode": replace(BASE, contrast=0.0, epochs=5),
}
"""Each was given the same time on one GPU; `both` is the embedded one."""


def grouped(pairs: list[tuple[str, str]]) -> list[list[str]]:
    """Questions of one image, in the order they come."""
    groups: dict[str, list[str]] = {}
    for image, question in pairs:
        groups.setdefault(image, []).append(question)
    return list(groups.values())


def read_questions(data: Path) -> list[list[str]]:
    """Sequences of questions that stand side by side, those about images first."""
    with gzip.open(data / "vqa2" / "train_questions.json.gz") as file:
        rows = sorted(json.load(file)["questions"], key=lambda row: row["question_id"])
    sequences = grouped([(str(row["image_id"]), row["question"]) for row in rows])
    with gzip.open(data / "vqa1" / "val2014_questions.txt.gz", "rt") as lines:
        # Three questions an image, in the order of the published file.
        rest = (line.strip() for line in lines)
        while three := list(islice(rest, 3)):
            sequences.append(three)
    images = (data / "cocoqa" / "train" / "img_ids.txt").read_text().splitlines()
    questions = (data / "cocoqa" / "train" / "questions.txt").read_text().splitlines()
    sequences += grouped(list(zip(images, questions, strict=True)))
    with open(data / "daquar" / "data_train.csv", newline="") as file:
        sequences += grouped([(row["image_id"], row["question"]) for row in csv.DictReader(file)])
    return sequences


def read_paraphrases(data: Path) -> list[tuple[str, str]]:
    one = (data / "quora" / "train.txt").read_text("utf-8").splitlines()
    two = (data / "quora" / "super_train_2.txt").read_text("utf-8").splitlines()
    return list(zip(one, two, strict=True))


def show(encoder: SkipThoughts, pairs: list[tuple[str, str]], what: str) -> None:
    one, two = zip(*pairs, strict=True)
    ranks = paraphrase_ranks(encoder.encode(one), encoder.encode(two), two)
    print(f"{what}: recall@1 {recall_at(ranks, 1):.1f}%, recall@10 {recall_at(ranks, 10):.1f}%", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--variant", choices=sorted(VARIANTS), default="both")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, help="instead of the variant's")
    parser.add_argument("--seconds", type=float, help="as many epochs as fit in this time")
    parser.add_argument("--counts", type=Path, help="write the counts of TF-IDF to this file and do nothing else")
    arguments = parser.parse_args()
    sequences, paraphrases = read_questions(arguments.data), read_paraphrases(arguments.data)
    learnt, held_out = paraphrases[:-HELD_OUT], paraphrases[-HELD_OUT:]
    sequences += [list(pair) for pair in learnt]
    if arguments.counts:
        save_counts(TfIdf.fit([one for group in sequences for one in group]), arguments.counts, at_least=3)
        return
    config = VARIANTS[arguments.variant]
    vectors = arguments.data / "glove" / "glove100d_subset_f16.npz"
    train = partial(
        train_skip_thoughts,
        sequences,
        device=arguments.device,
        word_vectors=WordVectors.read(vectors) if vectors.is_file() else None,
        save_every=10_000,
    )
    if arguments.seconds:
        config = replace(config, epochs=epochs_within(arguments.seconds, train, config, arguments.out))
    config = replace(config, epochs=arguments.epochs or config.epochs)
    begun = time.monotonic()

    def tell(state: TrainingStep) -> None:
        print(
            f"step {state.step} of {state.steps}, loss {state.loss:.3f}, {time.monotonic() - begun:.0f} s", flush=True
        )

    encoder = train(arguments.out, config, progress=tell, report_every=250)
    show(encoder, held_out, f"{arguments.variant}, {config.epochs} epochs, {HELD_OUT} held-out paraphrases")


def epochs_within(seconds: float, train: Callable[..., SkipThoughts], config: SkipThoughtsConfig, out: Path) -> int:
    """How many epochs fit, by trying some steps."""
    begun = time.monotonic()
    times: dict[int, tuple[float, int]] = {}

    def note(state: TrainingStep) -> None:
        times[state.step] = (time.monotonic(), state.steps)

    trial = out.with_name(f"{out.name}.trial")
    train(trial, config, progress=note, report_every=1, stop_after=80)
    trial.with_name(f"{trial.name}.state").unlink(missing_ok=True)
    a_step = (times[80][0] - times[30][0]) / 50
    left = seconds - 2 * (times[1][0] - begun) - (times[80][0] - begun)
    epochs = max(1, int(left / (1.1 * a_step * times[80][1] / config.epochs)))
    print(f"{1000 * a_step:.1f} ms a step, {epochs} epochs", flush=True)
    return min(epochs, 20)


if __name__ == "__main__":
    main()
