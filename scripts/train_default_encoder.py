"""Train the encoder that is embedded in the package, from public questions.

    python scripts/train_default_encoder.py --data FOLDER --out FILE.safetensors [--device cuda]

FOLDER holds the questions in their published formats (see src/pfungst/text/encoders/weights/README.md). Neighbours are:
questions about one image (VQA v1, VQA v2, COCO-QA, DAQUAR) and paraphrases (the training split of Quora question pairs,
without its last 4,000 pairs, on which its settings were chosen). Needs torch, numpy and safetensors alone.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from itertools import islice
from pathlib import Path

from pfungst.text.encoders import SkipThoughtsConfig, WordVectors, train_skip_thoughts
from pfungst.text.encoders.word_vectors import TfIdf, save_counts

HELD_OUT = 4000

CONFIG = SkipThoughtsConfig(
    uni=256,
    bi=256,
    word_size=128,
    vocabulary=8000,
    grams=8192,
    batch=1024,
    rate=2e-3,
    contrast=1.0,
    half_precision=True,
    epochs=4,
)


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


def read_paraphrases(data: Path) -> list[list[str]]:
    one = (data / "quora" / "train.txt").read_text("utf-8").splitlines()
    two = (data / "quora" / "super_train_2.txt").read_text("utf-8").splitlines()
    return [list(pair) for pair in zip(one, two, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--counts", type=Path, help="write the counts of TF-IDF to this file and do nothing else")
    arguments = parser.parse_args()
    sequences = read_questions(arguments.data) + read_paraphrases(arguments.data)[:-HELD_OUT]
    if arguments.counts:
        save_counts(TfIdf.fit([one for group in sequences for one in group]), arguments.counts, at_least=3)
        return
    vectors = arguments.data / "glove" / "glove100d_subset_f16.npz"
    train_skip_thoughts(
        sequences,
        arguments.out,
        CONFIG,
        device=arguments.device,
        word_vectors=WordVectors.read(vectors) if vectors.is_file() else None,
        save_every=10_000,
        report_every=250,
        progress=lambda state: print(f"step {state.step} of {state.steps}, loss {state.loss:.3f}", flush=True),
    )


if __name__ == "__main__":
    main()
