"""POPE's questions with the labels of POPE and of RePOPE: python results/pope-repope/labels.py ANSWERS FOLDER

ANSWERS holds the folders `pope` and `repope`. Questions that RePOPE left out as ambiguous are left out of both, so that
the files differ in nothing but the right answers: FOLDER/pope-SET.jsonl and FOLDER/repope-SET.jsonl, where SET is
random, popular or adversarial (3,000 questions each) or 8910. Counts go to the terminal.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

SETS = ("random", "popular", "adversarial")


def read(file: Path) -> list[dict[str, Any]]:
    data = file.read_bytes()
    text = gzip.decompress(data) if file.suffix == ".gz" else data
    return [json.loads(line) for line in text.decode().splitlines()]


def main() -> None:
    answers, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    again = {
        name: {
            (row["image"], row["text"]): row["label"] for row in read(answers / f"repope/coco_repope_{name}.json.gz")
        }
        for name in SETS
    }
    asked = {}
    labels = {}
    for name in SETS:
        asked[name] = [{**row, "category": name} for row in read(answers / f"pope/labels_coco_pope_{name}.json")]
        for row in read(answers / f"pope/labels8910_coco_pope_{name}.json"):
            labels[name, row["image"], row["text"]] = row["label"]
    asked["8910"] = []
    for row in read(answers / "pope/llava_pope_test.jsonl.gz"):
        text = row["text"].split("\n")[0]
        asked["8910"].append({**row, "text": text, "label": labels[row["category"], row["image"], text]})
    for name, rows in asked.items():
        kept = [row for row in rows if (row["image"], row["text"]) in again[row["category"]]]
        changed: Counter[str] = Counter()
        with (out / f"pope-{name}.jsonl").open("w") as old, (out / f"repope-{name}.jsonl").open("w") as new:
            for row in kept:
                label = again[row["category"]][row["image"], row["text"]]
                changed[f"{row['label']} to {label}"] += row["label"] != label
                about = {"id": row["question_id"], "question": row["text"], "image_id": row["image"]}
                more = {"answer_type": "yes/no", "question_type": row["category"]}
                for file, answer in ((old, row["label"]), (new, label)):
                    file.write(json.dumps({**about, "answer": answer, **more}) + "\n")
        print(name, len(rows), "questions,", len(rows) - len(kept), "left out,", dict(+changed))


main()
