"""What is sent to the machine that plays: questions, legal layouts, what hides what."""

from __future__ import annotations

import gzip
import json
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import Example
from pfungst.probes.game.board import Board, Floats, boards_of
from pfungst.probes.game.rules import rules_of

RULES = rules_of("paper")
SIZE = (320, 240)
TEST, TRAIN = "test", "train"


def prepare(given: Namespace) -> None:
    """Choose questions and draw legal layouts; the folder EXPORT is all that `play` needs besides the package."""
    from pfungst.data import load

    given.export.mkdir(parents=True, exist_ok=True)
    questions = choose(load(str(given.world)), given)
    for split, examples in questions.items():
        scenes = {one.image_id: one.scene for one in examples}
        records = [{**asdict(replace(one, scene=None, image=None)), "answers": list(one.answers)} for one in examples]
        known = {"world": str(given.world.resolve()), "scenes": scenes, "questions": records}
        write_json_gz(given.export / f"{split}.json.gz", known)
    began = time.monotonic()
    if not (given.export / "sights.npz").exists():
        _save(given.export / "sights.npz", _sights(questions[TEST]))
        print(f"what hides what, {time.monotonic() - began:.0f} s", flush=True)
    for split, count in ((TEST, given.test_candidates), (TRAIN, given.candidates)):
        folder = given.export / f"{split}-pools"
        folder.mkdir(exist_ok=True)
        for start in range(0, len(questions[split]), 50):
            path = folder / f"{start:05d}.npz"
            if path.exists():
                continue
            pools = _pools(questions[split][start : start + 50], start, count, split == TEST, given.seed)
            _save(path, pools)
            print(f"{split}: layouts of {start + len(pools)} questions, {time.monotonic() - began:.0f} s", flush=True)
    size = sum(file.stat().st_size for file in given.export.rglob("*") if file.is_file())
    counts = {split: len(some) for split, some in questions.items()}
    print(f"{given.export}: {counts} questions, {size / 1e6:.1f} MB, {time.monotonic() - began:.0f} s")


def choose(data: Sequence[Example], given: Namespace) -> dict[str, list[Example]]:
    """Open questions, two a scene, in their first wording; the scenes of both splits are different ones."""
    by_scene: dict[str, list[Example]] = {}
    for one in data:
        # The players were measured on open questions: none is offered choices.
        if one.id == one.group or not one.group:
            by_scene.setdefault(one.image_id, []).append(replace(one, choices=()))
    rng = np.random.default_rng(given.seed)
    names = sorted(by_scene)
    chosen: dict[str, list[Example]] = {TEST: [], TRAIN: []}
    for scene in (names[i] for i in rng.permutation(len(names))):
        split = TEST if len(chosen[TEST]) < given.test else TRAIN
        some = [by_scene[scene][i] for i in rng.permutation(len(by_scene[scene]))[: given.each]]
        chosen[split] += [board.example for board in boards_of(some, RULES)[0]]
    return {TEST: chosen[TEST][: given.test], TRAIN: chosen[TRAIN][: given.train]}


def _pools(examples: Sequence[Example], first: int, count: int, uniform: bool, seed: int) -> dict[str, Any]:
    """Legal layouts by the question's id, as cells (layouts, objects)."""
    from pfungst.probes.game.enforcers import Enforcers
    from pfungst.probes.game.layouts import fair_layouts

    boards, enforcers = boards_of(examples, RULES)[0], Enforcers.of(RULES)
    arrays: dict[str, Any] = {}
    for at, board in enumerate(boards):
        # What hides what is the same for all questions about a scene.
        if at and boards[at - 1].example.image_id == board.example.image_id:
            board.share_sight(boards[at - 1])
        rng = np.random.default_rng([seed, first + at, uniform])
        arrays[board.example.id] = _cells(board, fair_layouts(board, enforcers, rng, count, uniform=uniform))
    return arrays


def _cells(board: Board, positions: Floats) -> npt.NDArray[np.uint8]:
    same = (positions[:, :, None, :] == board.places[None]).all(axis=3)
    assert same.any(axis=2).all()
    return np.asarray(same.argmax(axis=2), dtype=np.uint8)


def _sights(examples: Sequence[Example]) -> dict[str, npt.NDArray[Any]]:
    """What hides what, for every scene; few pairs hide anything, so only those are kept."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for example in {one.image_id: one for one in examples}.values():
        alone, hidden = Board.of(example, RULES).sight(*SIZE).table
        where = np.flatnonzero(hidden)
        arrays[f"{example.image_id} alone"] = alone.astype(np.uint16)
        arrays[f"{example.image_id} where"] = where.astype(np.uint32)
        arrays[f"{example.image_id} hidden"] = hidden.ravel()[where].astype(np.uint16)
    return arrays


def read_examples(export: Path, split: str) -> list[Example]:
    """The questions of a split, with their scenes."""
    known = read_json_gz(export / f"{split}.json.gz")
    return [
        Example(**{**one, "scene": known["scenes"][one["image_id"]], "answers": tuple(one["answers"]), "choices": ()})
        for one in known["questions"]
    ]


class Exported:
    """The folder that `prepare` left.

    share: of the questions of each split, for a dry run.
    """

    def __init__(self, folder: Path, share: float = 1.0) -> None:
        self.folder = folder
        self.boards: dict[str, Board] = {}
        """By the question's id, with their legal layouts."""
        self.splits: dict[str, list[str]] = {}
        for split in (TEST, TRAIN):
            examples = read_examples(folder, split)
            boards, unfit = boards_of(examples[: max(10, int(share * len(examples)))], RULES)
            assert not unfit
            pools = self._read_pools(split)
            boards = [
                replace(one, pool=one.positions(pools[one.example.id])) for one in boards if one.example.id in pools
            ]
            self.splits[split] = [one.example.id for one in boards]
            self.boards |= {one.example.id: one for one in boards}
        self._take_sights()

    def _read_pools(self, split: str) -> dict[str, Any]:
        pools: dict[str, Any] = {}
        for path in sorted((self.folder / f"{split}-pools").glob("?????.npz")):
            with np.load(path) as arrays:
                pools |= {name: arrays[name] for name in arrays.files}
        return pools

    def _take_sights(self) -> None:
        for name in self.splits[TRAIN]:
            pool = self.boards[name].pool
            assert pool is not None
            self.boards[name].sight(*SIZE).trust(pool)
        with np.load(self.folder / "sights.npz") as arrays:
            for name in self.splits[TEST]:
                board = self.boards[name]
                image = board.example.image_id
                alone = arrays[f"{image} alone"].astype(np.int32)
                hidden = np.zeros((*alone.shape, *alone.shape), np.int32)
                hidden.ravel()[arrays[f"{image} where"]] = arrays[f"{image} hidden"]
                board.sight(*SIZE).take((alone, hidden))


def _save(path: Path, arrays: dict[str, Any]) -> None:
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(partial, **arrays)
    partial.rename(path)


def write_json_gz(path: Path, value: Any) -> None:
    partial = path.with_suffix(".partial")
    with gzip.open(partial, "wt", encoding="utf-8") as file:
        json.dump(value, file)
    partial.rename(path)


def read_json_gz(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)
