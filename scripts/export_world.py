"""Make a world to train the zoo on, small enough to send to another machine.

    python scripts/export_world.py OUT [--scenes 60000] [--questions 10] [--validation 1500] [--workers 2]

Writes OUT/prepared.json and, for the splits `train`, `val` (new scenes, wordings of the training split) and `heldout`
(the scenes of `val`, every question in four wordings, three of them never seen in training), OUT/SPLIT/arrays.npz:
questions, answers, programs, scenes and what it takes to draw them. `scripts/train_zoo.py` draws the pictures where it
trains, with torch and numpy alone. Killed and called again, it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.models import Inputs, Vocabulary
from pfungst.models.programs import encode_program
from pfungst.models.scene import encode_scenes
from pfungst.training import Prepared
from pfungst.world import make
from pfungst.world.constants import LAMPS


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--scenes", type=int, default=60_000, help="training scenes")
    parser.add_argument("--questions", type=int, default=10, help="questions a scene, without their rephrasings")
    parser.add_argument("--validation", type=int, default=1500, help="validation scenes")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="the embedded world has seed 0: this one is another")
    parser.add_argument("--work", type=Path, help="folder of the world in the published layout [OUT/../OUT-world]")
    given = parser.parse_args()
    began = time.monotonic()
    work = given.work or given.out.with_name(given.out.name + "-world")
    vocabulary: Vocabulary | None = None
    counts: dict[str, int] = {}
    notes: dict[str, Any] = {}
    # All answers of the world are single words.
    inputs = Inputs(picture="world", width=192, height=144, choice_length=1)
    for name, scenes, rephrasings, phrasings in (
        ("train", given.scenes, 1, "train"),
        ("val", given.validation, 1, "train"),
        ("heldout", given.validation, 3, "heldout"),
    ):
        # The split's name decides the scenes: `heldout` asks about those of `val`, in a folder of its own.
        split = "train" if name == "train" else "val"
        made = make(
            work / name,
            scenes=scenes,
            questions_per_scene=given.questions if name != "heldout" else max(1, given.questions // 3),
            rephrasings=rephrasings,
            split=split,
            phrasings=phrasings,
            seed=given.seed,
            images=False,
            workers=given.workers,
            on="processes" if given.workers > 1 else "local",
            progress=lambda now, name=name: _say(f"making {name}", now.done, now.total, began),
        )
        folder = work / name
        questions = list(_lines(folder / f"questions/CLEVR_{split}_questions.json", "questions"))
        if vocabulary is None:
            vocabulary = Vocabulary.build(
                (q["question"] for q in questions),
                (q["answer"] for q in questions),
                choices=(choice for q in questions for choice in q["choices"]),
            )
        scenes_made = list(_lines(folder / f"scenes/CLEVR_{split}_scenes.json", "scenes"))
        arrays = encode(questions, scenes_made, vocabulary, inputs)
        place = given.out / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        np.savez_compressed(place / "arrays.npz", **arrays)
        counts[name] = len(questions)
        notes[name] = {"name": f"world {name}, {scenes} scenes", "fingerprint": _digest(made.files)}
        print(f"{name}: {len(questions)} questions, {time.monotonic() - began:.0f} s", flush=True)
    assert vocabulary is not None
    Prepared(given.out, vocabulary, inputs, counts, {"data": notes, "picture_shape": None, "regions": None}).save()
    size = sum(file.stat().st_size for file in given.out.rglob("*") if file.is_file())
    print(f"{given.out}: {counts} questions, {size / 1e6:.1f} MB, {time.monotonic() - began:.0f} s")


def encode(
    questions: list[Mapping[str, Any]], scenes: list[Mapping[str, Any]], vocabulary: Vocabulary, inputs: Inputs
) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays of a split: those of `pfungst.training.ArrayData`, and rotation, camera and lamps of every scene."""
    rows = {scene["image_filename"]: i for i, scene in enumerate(scenes)}
    small = np.uint8 if vocabulary.size <= 256 else np.uint16
    arrays: dict[str, np.ndarray[Any, Any]] = dict(encode_scenes(scenes, inputs.objects))
    arrays["rotation"] = np.zeros(arrays["positions"].shape[:2], np.float32)
    for i, scene in enumerate(scenes):
        arrays["rotation"][i, : len(scene["objects"])] = [one["rotation"] for one in scene["objects"]]
    arrays["camera"] = np.array([scene["camera"] for scene in scenes], np.float32)
    arrays["lamps"] = np.array([[scene["lamps"][name] for name in LAMPS] for scene in scenes], np.float32)
    programs: dict[int, np.ndarray[Any, Any]] = {}
    for one in questions:
        # Rephrasings share the program of their original.
        if one["group"] not in programs:
            programs[one["group"]] = encode_program(one["program"], where=f"Question {one['question_index']}")
    groups = {group: i for i, group in enumerate(programs)}
    arrays["group"] = np.array([groups[one["group"]] for one in questions], np.int32)
    arrays["program"] = np.stack([programs[one["group"]] for one in questions])
    arrays["question"] = vocabulary.encode([one["question"] for one in questions], inputs.question_length).astype(small)
    arrays["answer"] = np.array([vocabulary.answer_number(one["answer"]) for one in questions], np.int16)
    offered = sorted({tuple(one["choices"]) for one in questions})
    words = np.zeros((len(offered), max(map(len, offered)), 1), small)
    for i, choices in enumerate(offered):
        words[i, : len(choices)] = vocabulary.encode(choices, 1)
    which = {choices: i for i, choices in enumerate(offered)}
    arrays["choices"] = words[[which[tuple(one["choices"])] for one in questions]]
    arrays["right_choice"] = np.array([one["choices"].index(one["answer"]) for one in questions], np.int16)
    arrays["picture"] = np.array([rows[one["image_filename"]] for one in questions], np.int32)
    return arrays


def _lines(path: Path, name: str) -> Iterator[dict[str, Any]]:
    yield from json.loads(path.read_bytes())[name]


def _digest(files: Mapping[str, Mapping[str, Any]]) -> str:
    return str(next(one["sha256"] for name, one in files.items() if "questions" in name))


def _say(what: str, done: int, total: int, began: float) -> None:
    if done == total or done % 20 == 0:
        print(f"{what}: {done} of {total}, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
