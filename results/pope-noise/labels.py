"""Right answers for the 8,910 POPE questions: python results/pope-noise/labels.py FOLDER > runs/pope8910.jsonl

FOLDER holds the published questions (llava_pope_test.jsonl.gz: number, image, category) and the right answers of each
category (labels8910_coco_pope_CATEGORY.json). They are joined by category, image and question.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path


def main() -> None:
    folder = Path(sys.argv[1])
    right = {}
    for file in sorted(folder.glob("labels8910_coco_pope_*.json")):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            right[file.stem.rpartition("_")[2], row["image"], row["text"]] = row["label"]
    for line in gzip.decompress((folder / "llava_pope_test.jsonl.gz").read_bytes()).decode().splitlines():
        row = json.loads(line)
        question = row["text"].split("\n")[0]
        answer = right[row["category"], row["image"], question]
        about = {"id": row["question_id"], "question": question, "image_id": row["image"], "answer": answer}
        print(json.dumps({**about, "answer_type": "yes/no", "question_type": row["category"]}))


main()
