"""Trains the scorers of the audit; the MLPs here, in processes of this machine or on a cluster.

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
from pfungst.core import PfungstError
from pfungst.core.files import cache_dir
from pfungst.core.stats import Interval, over_runs
from pfungst.core.types import Progress, no_progress
from pfungst.experiments import audit_attention as attention
from pfungst.experiments import audit_scorers as scorers
from pfungst.experiments.audit_config import SEES, Cell, ScorerConfig, row_name
from pfungst.experiments.audit_features import Features, grid_features
from pfungst.experiments.audit_open import Judge
from pfungst.experiments.audit_scorers import INPUTS, Task, Tasks, picks_of
from pfungst.probes.decoys.sets import DecoySet
from pfungst.text import get_encoder

FORMAT = 1
"""Counted up when the same training would give other picks."""

Key = tuple[str, str, int]
"""Choice set, what the scorer sees, number of the training."""
Trained = Mapping[Key, tuple[npt.NDArray[Any], int]]
"""What each scorer picked, and the epoch it ended in."""


def train_scorers(
    made: Sequence[DecoySet],
    variants: Sequence[str],
    models: Sequence[str],
    judge: Judge | None,
    seed: int,
    *,
    encoder: Any,
    features: Features | None,
    config: ScorerConfig,
    progress: Progress,
) -> tuple[list[Cell], dict[str, Interval], list[str]]:
    """The cells of the scorers, what seeing everything gains in each choice set, and what should be known of them."""
    cells: list[Cell] = []
    gains: dict[str, Interval] = {}
    warnings: list[str] = []
    chosen = get_encoder(encoder)
    grids = any(name in attention.NAMES for name in models)
    train, test = (Tasks(part, chosen, features, progress, grids) for part in made)
    if train.images is None or test.images is None:
        dropped = [name for name in models if SEES[name] in ("the image alone", "everything")]
        models = [name for name in models if name not in dropped]
        if dropped:
            lost = train.without_image + test.without_image
            why = f"{lost} images are missing" if features is not None else "no image features were asked for"
            warnings.append(f"Without images {', '.join(map(row_name, dropped))} cannot be trained ({why}).")
    elif grids and (train.grids is None or test.grids is None):
        models = [name for name in models if name not in attention.NAMES]
        warnings.append("HieCoAtt and Attention need feature maps, and these image features are single vectors.")
    elif features is grid_features:
        warnings.append(
            "Image features are colours and edges on a grid, not those of a network: MLP-IA and MLP-IQA see little."
        )
    vectors = encoder.removeprefix("words:") if isinstance(encoder, str) and encoder.startswith("words:") else None
    looking = any(name in attention.NAMES for name in models)
    reading = attention.Reading(train, test, vectors, config.device) if looking else None
    trained = _train_mlps(train, test, variants, models, config, progress)
    done, total = 0, len(variants) * len(models) * config.seeds
    for variant in variants:
        learnt, _ = train.of(variant)
        asked, groups = test.of(variant)
        worth = None if judge is None else test.worth(variant, judge)
        right: dict[str, Any] = {}
        for inputs in models:
            picks, epochs = [], []
            for number, one in enumerate(config.each()):
                if reading is not None and inputs in attention.NAMES:
                    seen = [reading.of(part, task) for part, task in (("train", learnt), ("test", asked))]
                    told = partial(_tell, progress, total, f"{row_name(inputs)} on {variant}", done)
                    model, epoch = attention.train(reading, seen[0], inputs, one, told)
                    picks.append(picks_of(model, seen[1], batch=256))
                else:
                    found, epoch = trained[variant, inputs, number]
                    picks.append(found)
                epochs.append(str(epoch))
                done += 1
                progress("training scorers", done, total)
            right[inputs] = np.stack(picks)[:, :, 0]
            by_vqa = None if worth is None else over_runs([(one * worth).sum(1) for one in picks], groups)
            note = f"sees {SEES[inputs]}; epoch {', '.join(epochs)} of {config.epochs}, hidden {config.hidden}"
            cells.append(Cell(variant, row_name(inputs), over_runs(right[inputs], groups), note, by_vqa))
        without = [inputs for inputs in right if SEES[inputs] != "everything"]
        if without and "IQA" in right:
            best = max(without, key=lambda inputs: float(np.mean(right[inputs])))
            gains[variant] = over_runs(right["IQA"] - right[best], groups, bounds=(-1.0, 1.0))
    return cells, gains, warnings


def _train_mlps(
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
    except PfungstError:
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
