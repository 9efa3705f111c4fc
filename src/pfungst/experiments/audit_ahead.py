"""Scorers of the audit that are trained elsewhere: in processes of this machine or on a cluster."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.compute import Shard, make_shards, place_of_work, run_shards
from pfungst.core.types import Progress
from pfungst.experiments import audit_scorers as scorers
from pfungst.experiments.audit_config import ScorerConfig
from pfungst.experiments.audit_scorers import INPUTS, Task, Tasks

Ahead = Mapping[tuple[str, str, int], tuple[npt.NDArray[Any], int]]
"""Choice set, what the scorer sees, number of the training -> its picks, and the epoch it ended in."""


def train_ahead(
    train: Tasks, test: Tasks, variants: Sequence[str], models: Sequence[str], config: ScorerConfig, progress: Progress
) -> Ahead:
    """Train all MLPs where `pfungst.compute.working` says; nothing where that is this process."""
    wanted = [one for one in models if one in INPUTS]
    if place_of_work().on == "local" or not wanted:
        return {}
    tasks = {variant: (train.of(variant)[0], test.of(variant)[0]) for variant in variants}
    keys = [(variant, inputs, number) for variant in variants for inputs in wanted for number in range(config.seeds)]
    shards = make_shards([list(key) for key in keys], name="scorer-{index:05d}.npz")
    with tempfile.TemporaryDirectory() as folder:
        work = partial(_train, tasks=tasks, config=config)
        files = run_shards(work, shards, folder, progress=progress, what="training scorers")
        return {key: _read(file) for key, file in zip(keys, files, strict=True)}


def _train(shard: Shard, *, tasks: Mapping[str, tuple[Task, Task]], config: ScorerConfig) -> bytes:
    variant, inputs, number = shard.payload
    learnt, asked = tasks[variant]
    scorer = scorers.train(learnt, inputs, list(config.each())[number])
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, picks=scorers.picks(scorer, asked), epoch=scorer.epoch)
    return buffer.getvalue()


def _read(file: Path) -> tuple[npt.NDArray[Any], int]:
    with np.load(file, allow_pickle=False) as stored:
        return stored["picks"], int(stored["epoch"])
