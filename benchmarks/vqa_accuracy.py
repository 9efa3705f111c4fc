"""Scoring 100,000 VQA answers, each against ten humans, on one core.

Claim: `vqa_accuracy` takes less than 5 s. Peer, in the same process: a straightforward evaluation that follows the
published procedure word by word for every answer. Both must agree on every single score, to the last bit.

    python benchmarks/vqa_accuracy.py [--quick] [--data FOLDER]

Human answers are those of the real VQA v2 subset in FOLDER (default: $PFUNGST_SHARED_DATA or ../shared/data), repeated
as often as needed; without it, made-up ones. Predictions are answers people gave to this or another question, some
with capitals, articles and punctuation.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import time
from pathlib import Path

from pfungst.scores import vqa_accuracy
from pfungst.scores.vqa import ARTICLES, CONTRACTIONS, NUMBER_WORDS, PUNCTUATION

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 5.0


def straightforward_processing(answer: str) -> str:
    """The published answer processing, mark by mark and word by word."""
    text = answer
    for mark in PUNCTUATION:
        if (f"{mark} " in answer or f" {mark}" in answer) or re.search(r"(\d)(,)(\d)", answer) is not None:
            text = text.replace(mark, "")
        else:
            text = text.replace(mark, " ")
    text = re.compile(r"(?!<=\d)(\.)(?!\d)").sub("", text, count=int(re.UNICODE))
    words = []
    for word in text.lower().split():
        digits = NUMBER_WORDS.get(word, word)
        if digits not in ARTICLES:
            words.append(CONTRACTIONS.get(digits, digits))
    return " ".join(words)


def straightforward_accuracy(prediction: str, human_answers: list[str]) -> float:
    """The published accuracy: leave out each person in turn, count, average."""
    people = [
        {"answer": human.replace("\n", " ").replace("\t", " ").strip(), "id": number}
        for number, human in enumerate(human_answers)
    ]
    answer = prediction.replace("\n", " ").replace("\t", " ").strip()
    if len({person["answer"] for person in people}) > 1:
        for person in people:
            person["answer"] = straightforward_processing(str(person["answer"]))
        answer = straightforward_processing(answer)
    accuracies = []
    for left_out in people:
        others = [person for person in people if person != left_out]
        matching = [person for person in others if person["answer"] == answer]
        accuracies.append(min(1.0, len(matching) / 3))
    return sum(accuracies) / len(accuracies)


def human_answers(folder: Path) -> tuple[str, list[list[str]]]:
    file = folder / "vqa2" / "train_annotations.json.gz"
    if file.is_file():
        with gzip.open(file) as stream:
            annotations = json.load(stream)["annotations"]
        return "real VQA v2", [[person["answer"] for person in one["answers"]] for one in annotations]
    words = ["yes", "no", "2", "two", "a red kite", "don't know", "black & white", "black/white", "3.5", "u.s.a."]
    rng = random.Random(1)
    return "made-up", [rng.choices(words, k=10) for _ in range(2_000)]


def predictions(humans: list[list[str]], rng: random.Random) -> list[str]:
    decorations = ("{}", "{}", "{}", "{}", "{}.", "A {}", "the {}!", "{} ?", " {}\n", "({})")
    made = []
    for people in humans:
        said = rng.choice(people if rng.random() < 0.7 else rng.choice(humans))
        made.append(rng.choice(decorations).format(said.title() if rng.random() < 0.2 else said))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 answers instead of 100,000")
    default = Path(os.environ.get("PFUNGST_SHARED_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default)
    arguments = parser.parse_args()
    count = 10_000 if arguments.quick else 100_000
    source, real = human_answers(arguments.data)
    humans = [real[at % len(real)] for at in range(count)]
    said = predictions(humans, random.Random(0))

    start = time.perf_counter()
    scores = [vqa_accuracy(prediction, people) for prediction, people in zip(said, humans)]
    ours = time.perf_counter() - start

    start = time.perf_counter()
    expected = [straightforward_accuracy(prediction, people) for prediction, people in zip(said, humans)]
    peer = time.perf_counter() - start

    agree = scores == expected
    print(f"{count:,} answers, {source} humans, mean accuracy {sum(scores) / count:.4f}")
    print(f"straightforward  {peer:8.2f} s")
    print(f"vqa_accuracy     {ours:8.2f} s   ratio {peer / ours:.1f}x   scores {'equal' if agree else 'DIFFER'}")
    limit = SECONDS * count / 100_000
    print(f"goal: under {limit:g} s: {'met' if ours < limit else 'NOT met'}")
    if not agree or ours >= limit:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
