"""Loading VQA v2 at full size: 214,354 questions with ten human answers each.

Claims: `pfungst.data.load` takes at most 3 times as long as `json.load` of the same two files, and stays below 2 GiB.
The peer runs in the same process; peak memory is that of fresh processes that do nothing else.

    python benchmarks/load_vqa.py [--quick] [--data FOLDER]

The files are made from the real VQA v2 subset of FOLDER (default: $PFUNGST_SHARED_DATA or ../shared/data), tiled
with new ids and varied questions; without it, from a few made-up questions.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FULL = 214_354
TIME_RATIO = 3.0
MEMORY = 2 << 30

PEAK = """
import resource, sys, json
from pathlib import Path
folder = Path(sys.argv[2])
if sys.argv[1] == "load":
    from pfungst.data import load
    data = load(folder)
elif sys.argv[1] == "json":
    data = [json.load(path.open()) for path in sorted(folder.glob("*.json"))]
status = Path("/proc/self/status")
if status.exists():  # ru_maxrss would count what the parent process had, too
    print(int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""


def seeds(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Real questions with their annotations, line by line; made-up ones where there are none."""
    if (folder / "vqa2").is_dir():
        questions: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for split in ("train", "val"):
            with gzip.open(folder / "vqa2" / f"{split}_questions.json.gz") as file:
                questions += json.load(file)["questions"]
            with gzip.open(folder / "vqa2" / f"{split}_annotations.json.gz") as file:
                annotations += json.load(file)["annotations"]
        return questions, annotations
    nouns = ["dog", "clock", "umbrella", "train", "red kite", "café table"]
    questions = [{"image_id": n, "question": f"What is beside the {noun}?"} for n, noun in enumerate(nouns)]
    annotations = [
        {
            "question_type": "what is",
            "answer_type": "other",
            "multiple_choice_answer": noun,
            "answers": [
                {"answer": noun if k % 3 else f"a {noun}", "answer_confidence": "yes", "answer_id": k + 1}
                for k in range(10)
            ],
        }
        for noun in nouns
    ]
    return questions, annotations


def write(folder: Path, size: int, data: Path) -> None:
    """Two files in the published format, a new question id and a slightly different question for every record."""
    questions, annotations = seeds(data)
    header = {"info": {"version": "2.0"}, "license": {}, "data_type": "mscoco", "data_subtype": "val2014"}
    asked, labels = [], []
    for number in range(size):
        seed, lap = number % len(questions), number // len(questions)
        id_, image_id = number * 10 + 3, number // 5
        text = questions[seed]["question"] if not lap else f"{questions[seed]['question'][:-1]} ({lap})?"
        asked.append({"image_id": image_id, "question": text, "question_id": id_})
        labels.append({**annotations[seed], "image_id": image_id, "question_id": id_})
    with open(folder / "v2_OpenEnded_mscoco_val2014_questions.json", "w") as file:
        json.dump({**header, "task_type": "Open-Ended", "questions": asked}, file)
    with open(folder / "v2_mscoco_val2014_annotations.json", "w") as file:
        json.dump({**header, "annotations": labels}, file)


def timed(job: Any, repeats: int) -> float:
    """The best of a few runs, in seconds; the result of each run is dropped before the next begins."""
    best = float("inf")
    for _ in range(repeats):
        gc.collect()
        begin = time.perf_counter()
        result = job()
        best = min(best, time.perf_counter() - begin)
        del result
    return best


def peak(what: str, folder: Path) -> int:
    command = [sys.executable, "-c", PEAK, what, str(folder)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, one run")
    default = Path(os.environ.get("PFUNGST_SHARED_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default)
    arguments = parser.parse_args()
    size, repeats = (FULL // 10, 1) if arguments.quick else (FULL, 2)

    from pfungst.data import load

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, size, arguments.data)
        files = sorted(folder.glob("*.json"))
        megabytes = sum(path.stat().st_size for path in files) / 1e6
        origin = "tiled from real questions" if (arguments.data / "vqa2").is_dir() else "made up"
        print(f"{size:,} questions ({origin}), {megabytes:.0f} MB of JSON")

        def peer() -> list[Any]:
            result = []
            for path in files:
                with open(path) as file:
                    result.append(json.load(file))
            return result

        ours, theirs = timed(lambda: load(folder), repeats), timed(peer, repeats)
        ratio = ours / theirs
        print(f"time:   load {ours:.2f} s, json.load {theirs:.2f} s: ratio {ratio:.2f} (claim: at most {TIME_RATIO})")
        memory, whole = peak("load", folder), peak("json", folder)
        empty = peak("nothing", folder)
        print(
            f"memory: load {memory / 2**20:.0f} MiB, json.load {whole / 2**20:.0f} MiB, bare interpreter "
            f"{empty / 2**20:.0f} MiB (claim: below {MEMORY / 2**20:.0f} MiB)"
        )
    return 0 if ratio <= TIME_RATIO and memory < MEMORY else 1


if __name__ == "__main__":
    sys.exit(main())
