"""Training the models of the data-limit experiment, each on its share of the layouts."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfungst.core import PfungstError
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.data_limit import MODELS, Cell, CellResult, DataLimitConfig
from pfungst.experiments.data_limit_world import ANSWERS, LimitWorld, draw_layouts
from pfungst.models import Batch, Sizes, Trained, Vocabulary, build, load_shipped
from pfungst.models.programs import encode_program, tokens
from pfungst.training import FitConfig, evaluate, fit

_ON_FEATURES: dict[str, tuple[int, ...]] = {"rn": (64, 64), "film": (), "tbd": ()}
"""On features the stem is left out, but for rn, whose pairs grow with the square of the cells."""
_TEST = 4096
"""Layouts asked about at the end, each with one question drawn at random."""

Longs = NDArray[np.int64]


class Eyes:
    """What the models look at: the pixels, or the features of the world's own CNN."""

    def __init__(self, config: DataLimitConfig, device: str) -> None:
        self.size, self.shape = (config.width, config.height), (3, config.height, config.width)
        self._cnn: Any = None
        self._device = device
        if config.sees != "pixels":
            place = config.sees.partition(":")[2]
            trained = Trained.load(place) if place else load_shipped("world-cnn")
            if not hasattr(trained.model, "features"):
                raise PfungstError(f"{config.sees} is a {trained.name}; it must be a world-cnn.")
            self._cnn = trained.model.eval().to(device)
            self.size, self.shape = (trained.inputs.width, trained.inputs.height), self._cnn.shape

    def see(self, images: Any) -> Tensor:
        """uint8 (layouts, 3, height, width) -> what the models are given, on the device."""
        if self._cnn is None:
            return torch.from_numpy(np.asarray(images)).to(self._device)
        seen = torch.empty((len(images), *self.shape), dtype=torch.float16, device=self._device)
        with torch.inference_mode():
            for start in range(0, len(images), 256):
                part = torch.from_numpy(np.asarray(images[start : start + 256])).to(self._device)
                seen[start : start + 256] = self._cnn.features(part).half()
        return seen


class LimitData:
    """Images, questions and answers of one world on a device."""

    def __init__(self, config: DataLimitConfig, objects: int, images: Any) -> None:
        self.world, self.device, self.eyes = LimitWorld(objects), config.device, Eyes(config, config.device)
        self.images: Tensor = self.eyes.see(images)
        texts = [question.text for question in self.world.questions("mixhop")]
        self.vocabulary = Vocabulary.build(texts, ANSWERS)
        order = [self.vocabulary.answer_number(answer) for answer in ANSWERS]
        self.questions: dict[str, Tensor] = {}
        self.programs: dict[str, Tensor] = {}
        self.answers: dict[str, Tensor] = {}
        length = max(len(text.split()) for text in texts) + 1
        for hops in config.hops:
            asked = self.world.questions(hops)
            words = self.vocabulary.encode([question.text for question in asked], length).astype(np.int64)
            self.questions[hops] = torch.from_numpy(words).to(self.device)
            programs = np.stack([encode_program(question.program()) for question in asked]).astype(np.int64)
            self.programs[hops] = torch.from_numpy(programs).to(self.device)
            answers = np.asarray(order, np.int64)[self.world.answers(hops)]
            self.answers[hops] = torch.from_numpy(answers.astype(np.int16)).to(self.device)


@dataclass(frozen=True)
class Asked:
    """Every question about some layouts: row r asks question r % Q about layout r // Q, with Q questions."""

    data: LimitData
    hops: str
    layouts: Longs
    rows: Longs | None = None
    """The rows that are asked; None for all of them, to learn from."""

    @property
    def questions(self) -> int:
        return len(self.data.questions[self.hops])

    def __len__(self) -> int:
        return len(self.layouts) * self.questions if self.rows is None else len(self.rows)

    def batch(self, rows: Longs) -> Batch:
        rows = rows if self.rows is None else self.rows[rows]
        layouts = torch.from_numpy(self.layouts[rows // self.questions]).to(self.data.device)
        questions = torch.from_numpy(rows % self.questions).to(self.data.device)
        image = self.data.images[layouts]
        return Batch(
            self.data.questions[self.hops][questions],
            image=image if image.dtype == torch.uint8 else image.float(),
            # Programs are learnt from; who is asked gets none.
            program=self.data.programs[self.hops][questions] if self.rows is None else None,
            answer=self.data.answers[self.hops][layouts, questions].long(),
        )

    def some(self, rng: np.random.Generator) -> Asked:
        """Up to 4,096 of the layouts, with a random question each."""
        chosen = rng.permutation(len(self.layouts))[:_TEST]
        return replace(self, rows=chosen * self.questions + rng.integers(self.questions, size=len(chosen)))


def train_cell(config: DataLimitConfig, cell: Cell, data: LimitData, progress: Progress = no_progress) -> CellResult:
    """Train one model on its share of the layouts and ask it about the others."""
    began = time.monotonic()
    layouts = len(data.world.cells)
    # The same trial takes the same layouts for all models and kinds of questions; a larger share contains a smaller.
    order = np.random.default_rng([config.seed, cell.objects, cell.trial]).permutation(layouts)
    count = min(max(1, round(layouts * cell.percent / 100)), layouts - 1)
    seen, unseen = (Asked(data, cell.hops, part) for part in (order[:count], order[count:]))
    sizes = Sizes(data.vocabulary.size, len(data.vocabulary.answers), data.eyes.shape, 0, len(tokens()))
    changes = MODELS[cell.model] | ({} if config.sees == "pixels" else {"stem": _ON_FEATURES[cell.model]})
    seed = int(np.random.SeedSequence([config.seed, cell.trial, cell.objects]).generate_state(1)[0])
    model = build(cell.model, sizes, changes, seed=seed)
    on_gpu = config.device.startswith("cuda")
    how = FitConfig(
        steps=config.steps, batch=config.batch, rate=config.rate, warmup=0.05, precision="bf16" if on_gpu else "fp32",
        log_every=100, seed=seed,
    )  # fmt: skip

    def rows(step: int) -> Longs:
        rng = np.random.default_rng([seed, step])
        drawn = rng.integers(open_layouts(config, step, layouts, count), size=config.batch)
        return drawn * seen.questions + rng.integers(seen.questions, size=config.batch)

    def told(what: str, done: int, total: int) -> None:
        if done % 10 == 0 or done == total:
            progress(cell.file.removesuffix(".json"), done, total)

    fit(model, seen, config=how, rows=rows, device=config.device, progress=told)
    rng = np.random.default_rng([seed, config.steps])
    on_seen, on_unseen = (evaluate(model, part.some(rng), 512, config.device).accuracy for part in (seen, unseen))
    answers = data.answers[cell.hops]
    shares = torch.stack([(answers == number).float().mean(0) for number in range(len(data.vocabulary.answers))])
    majority = float(shares.max(0).values.mean())
    return CellResult(cell, on_seen, on_unseen, majority, layouts, time.monotonic() - began)


def open_layouts(config: DataLimitConfig, step: int, layouts: int, count: int) -> int:
    """How many of the `count` layouts that may be seen are drawn from at a step."""
    few = max(1, round(layouts * config.begin / 100))
    if not config.begin or few >= count:
        return count
    return round(float(few * (count / few) ** min(1.0, 2 * step / config.steps)))


@lru_cache(maxsize=1)  # One world at a time fits into memory; all its runs share it.
def load_data(config: DataLimitConfig, objects: int, folder: Path) -> LimitData:
    """The data of a world on the device."""
    return LimitData(config, objects, np.load(_file(config, objects, folder)))


def keep_images(config: DataLimitConfig, objects: int, folder: Path, progress: Progress = no_progress) -> None:
    """Draw the images of a world into a folder, unless they are there: gigabytes for three objects and more."""
    path = _file(config, objects, folder)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn = draw_layouts(LimitWorld(objects), *Eyes(config, "cpu").size, config.device, progress)
        half = path.with_suffix(".part.npy")
        np.save(half, drawn)
        half.replace(path)


def _file(config: DataLimitConfig, objects: int, folder: Path) -> Path:
    width, height = Eyes(config, "cpu").size
    return folder / f"layouts-{objects}-{width}x{height}.npy"
