"""Trains the MLPs of the audit: here, in processes of this machine or on a cluster.

What a scorer picked is kept in the cache folder under everything it depends on, so that an audit that was killed goes
on with the next scorer, and the same audit trains nothing again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pfungst import __version__
from pfungst.compute import Shard, make_shards, place_of_work, run_shards
from pfungst.core.files import cache_dir
from pfungst.core.types import Progress, no_progress
from pfungst.experiments import audit_scorers as scorers
from pfungst.experiments.audit_config import ScorerConfig, row_name
from pfungst.experiments.audit_scorers import INPUTS, Task, Tasks

FORMAT = 1
"""Counted up when the same training would give other picks."""

Key = tuple[str, str, int]
"""Choice set, what the scorer sees, number of the training."""
Trained = Mapping[Key, tuple[npt.NDArray[Any], int]]
"""What each scorer picked, and the epoch it ended in."""


def train_mlps(
    train: Tasks, test: Tasks, variants: Sequence[str], models: Sequence[str], config: ScorerConfig, progress: Progress
) -> Trained:
    """Train where `pfungst.compute.working` says."""
    wanted = [one for one in models if one in INPUTS]
    if not wanted:
        return {}
    tasks = {variant: (train.of(variant)[0], test.of(variant)[0]) for variant in variants}
    keys: list[Key] = [(v, inputs, number) for v in variants for inputs in wanted for number in range(config.seeds)]
    shards = make_shards([list(key) for key in keys], name="scorer-{index:05d}.npz")
    # Steps are told by the process that trains, and only this one is heard.
    told = partial(_tell, progress, len(keys)) if place_of_work().on == "local" else None
    work = partial(_train, tasks=tasks, config=config, told=told)
    with _folder(_digest(tasks, wanted, config)) as folder:
        files = run_shards(work, shards, folder, progress=progress, what="training scorers")
        return {key: _read(file) for key, file in zip(keys, files, strict=True)}


@contextlib.contextmanager
def _folder(name: str) -> Iterator[Path]:
    """Where the picks are kept; a passing one where the cache folder cannot be written."""
    try:
        folder = cache_dir("scorers") / name
    except OSError:
        with tempfile.TemporaryDirectory() as passing:
            yield Path(passing)
    else:
        yield folder


def _train(
    shard: Shard, *, tasks: Mapping[str, tuple[Task, Task]], config: ScorerConfig, told: partial[None] | None
) -> bytes:
    variant, inputs, number = shard.payload
    learnt, asked = tasks[variant]
    heard = no_progress if told is None else partial(told, f"{row_name(inputs)} on {variant}", shard.index)
    scorer = scorers.train(learnt, inputs, list(config.each())[number], progress=heard)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, picks=scorers.picks(scorer, asked), epoch=scorer.epoch)
    return buffer.getvalue()


def _tell(progress: Progress, total: int, name: str, done: int, what: str, step: int, steps: int) -> None:
    progress(f"training scorers · {name}, step {step:,} of {steps:,}", done, total)


def _read(file: Path) -> tuple[npt.NDArray[Any], int]:
    with np.load(file, allow_pickle=False) as stored:
        return stored["picks"], int(stored["epoch"])


def _digest(tasks: Mapping[str, tuple[Task, Task]], models: Sequence[str], config: ScorerConfig) -> str:
    digest = hashlib.sha256(repr((FORMAT, __version__, torch.__version__, models, asdict(config))).encode())
    seen: set[int] = set()
    for variant, pair in tasks.items():
        digest.update(variant.encode())
        for array in (array for task in pair for array in vars(task).values() if array is not None):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            if id(array) not in seen:  # vectors and features are shared by the choice sets
                seen.add(id(array))
                digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:24]
