"""The world of the data-limit experiment (Figure 2 of Measuring CLEVRness), and training on a share of its layouts.

Two, three or four objects stand on the 7x7 grid, in every possible way (of four, one stays where it is, as in the
paper). Questions take one reasoning step (*Onehop*: a relation), two (*Twohop*: two relations at once) or are a mixture
(*Mixhop*). A model learns on X% of the layouts and is asked about the others.

The paper does not say what its objects and questions were. Here the objects are small (neighbouring cells leave room),
all different, and never share a cell; a question is one of

    Onehop   Is the red cube left of the blue sphere?            How many things are left of the blue sphere?
    Twohop   Is there a thing left of the blue sphere and behind the green cylinder?    How many things are ...?

with the engine's meaning of a relation.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfungst.core import PfungstError
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.data_limit import HOPS, MODELS, Cell, CellResult, DataLimitConfig
from pfungst.models import Batch, Sizes, Trained, Vocabulary, build, load_shipped
from pfungst.models.programs import encode_program, tokens
from pfungst.training import FitConfig, evaluate, fit
from pfungst.world.constants import DIRECTIONS, RADIUS, RELATION_THRESHOLD, RELATIONS
from pfungst.world.legal import grid_places

_ON_FEATURES: dict[str, tuple[int, ...]] = {"rn": (64, 64), "film": (), "tbd": ()}
"""On features the stem is left out, but for rn, whose pairs grow with the square of the cells."""
_TEST = 4096
"""Layouts asked about at the end, each with one question drawn at random."""

OBJECTS = (
    {"color": "red", "shape": "cube", "material": "rubber"},
    {"color": "blue", "shape": "sphere", "material": "metal"},
    {"color": "green", "shape": "cylinder", "material": "rubber"},
    {"color": "yellow", "shape": "cube", "material": "metal"},
)
"""All small."""
STILL = 24
"""The cell of a fourth object: the middle."""
ANSWERS = ("no", "yes", "0", "1", "2", "3")
_PHRASES = {"left": "left of", "right": "right of", "behind": "behind", "front": "in front of"}
_ACROSS = (("left", "behind"), ("left", "front"), ("right", "behind"), ("right", "front"))

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class LimitQuestion:
    """A question that has an answer on every layout."""

    text: str
    hops: int
    counts: bool
    """Whether it asks how many; otherwise whether there is one."""
    relations: tuple[tuple[str, int], ...]
    """(relation, object): all must hold of what is sought."""
    sought: int | None = None
    """The object sought; None for anything."""

    def program(self) -> list[dict[str, Any]]:
        """The published program."""
        nodes: list[dict[str, Any]] = []

        def add(function: str, inputs: Sequence[int], *values: str) -> int:
            nodes.append({"function": function, "inputs": list(inputs), "value_inputs": list(values)})
            return len(nodes) - 1

        parts = []
        for relation, number in self.relations:
            one = OBJECTS[number]
            at = add("filter_color", [add("scene", [])], one["color"])
            at = add("unique", [add("filter_shape", [at], one["shape"])])
            parts.append(add("relate", [at], relation))
        at = parts[0] if len(parts) == 1 else add("intersect", parts)
        if self.sought is not None:
            one = OBJECTS[self.sought]
            at = add("filter_shape", [add("filter_color", [at], one["color"])], one["shape"])
        add("count" if self.counts else "exist", [at])
        return nodes


@dataclass(frozen=True)
class LimitWorld:
    """All layouts of a few objects, with their questions and answers.

    >>> world = LimitWorld(2)
    >>> world.cells.shape, world.answers("onehop").shape
    ((2352, 2), (2352, 16))
    """

    objects: int
    bins: int = 7

    def __post_init__(self) -> None:
        if not 2 <= self.objects <= len(OBJECTS):
            raise PfungstError(f"The data-limit experiment has 2 to {len(OBJECTS)} objects, not {self.objects}.")

    @property
    def moving(self) -> int:
        """Objects that move: at most three."""
        return min(self.objects, 3)

    @cached_property
    def cells(self) -> Longs:
        """(layouts, objects): every way to give the objects cells of their own."""
        places = self.bins**2
        grid = np.indices((places,) * self.moving).reshape(self.moving, -1).T
        if self.objects > self.moving:
            grid = np.concatenate([grid, np.full((len(grid), 1), STILL)], axis=1)
        apart = [grid[:, i] != grid[:, j] for i, j in combinations(range(self.objects), 2)]
        return np.ascontiguousarray(grid[np.all(apart, axis=0)])

    def scene(self, layout: int) -> dict[str, Any]:
        """One layout as a published scene dictionary."""
        places = grid_places(self.bins)
        radius = RADIUS["small"]
        objects = [
            {**one, "size": "small", "rotation": 0.0, "3d_coords": [*places[cell].tolist(), radius]}
            for one, cell in zip(OBJECTS, self.cells[layout], strict=False)
        ]
        return {"objects": objects, "directions": {name: list(way) for name, way in DIRECTIONS.items()}}

    def questions(self, hops: str) -> tuple[LimitQuestion, ...]:
        """Those of a kind: `onehop`, `twohop` or `mixhop`."""
        if hops not in HOPS:
            raise PfungstError(f"There is no kind of question {hops!r}; there are {', '.join(HOPS)}.")
        return {"onehop": self._one, "twohop": self._two, "mixhop": self._one + self._two}[hops]

    @cached_property
    def _one(self) -> tuple[LimitQuestion, ...]:
        found = [
            LimitQuestion(f"Is the {_name(i)} {_PHRASES[r]} the {_name(j)}?", 1, False, ((r, j),), i)
            for i, j in permutations(range(self.objects), 2)
            for r in RELATIONS
        ]
        found += [
            LimitQuestion(f"How many things are {_PHRASES[r]} the {_name(j)}?", 1, True, ((r, j),))
            for j in range(self.objects)
            for r in RELATIONS
        ]
        return tuple(found)

    @cached_property
    def _two(self) -> tuple[LimitQuestion, ...]:
        found = []
        pairs = [((a, i), (b, i)) for i in range(self.objects) for a, b in _ACROSS]
        if self.objects > 2:  # of two objects, none can stand in relation to both
            apart = combinations(range(self.objects), 2)
            pairs += [((a, i), (b, j)) for i, j in apart for a, b in product(RELATIONS, RELATIONS)]
        for (a, i), (b, j) in pairs:
            where = f"{_PHRASES[a]} the {_name(i)} and {_PHRASES[b]} the {_name(j)}"
            found.append(LimitQuestion(f"Is there a thing {where}?", 2, False, ((a, i), (b, j))))
            found.append(LimitQuestion(f"How many things are {where}?", 2, True, ((a, i), (b, j))))
        return tuple(found)

    @cached_property
    def _holds(self) -> dict[str, NDArray[np.bool_]]:
        """Relation -> (layouts, objects, objects): whether j stands in it to i."""
        where = grid_places(self.bins)[self.cells]
        delta = where[:, None, :, :] - where[:, :, None, :]
        return {
            name: delta[..., 0] * DIRECTIONS[name][0] + delta[..., 1] * DIRECTIONS[name][1] > RELATION_THRESHOLD
            for name in RELATIONS
        }

    def answers(self, hops: str) -> NDArray[np.uint8]:
        """(layouts, questions): number of the right answer in ANSWERS."""
        columns = []
        for question in self.questions(hops):
            sought = np.ones(self.cells.shape, dtype=np.bool_)
            for relation, number in question.relations:
                sought &= self._holds[relation][:, number]
            if question.sought is not None:
                sought = sought[:, question.sought : question.sought + 1]
            count = sought.sum(axis=1)
            columns.append(2 + count if question.counts else count > 0)
        return np.stack(columns, axis=1).astype(np.uint8)


def _name(number: int) -> str:
    return f"{OBJECTS[number]['color']} {OBJECTS[number]['shape']}"


def draw_layouts(
    world: LimitWorld, width: int, height: int, device: str = "cpu", progress: Progress = no_progress
) -> NDArray[np.uint8]:
    """The images of all layouts, uint8 (layouts, 3, height, width)."""
    from pfungst.world import render_batch

    images = np.empty((len(world.cells), 3, height, width), np.uint8)
    chunk = 2048 if device.startswith("cuda") else 128
    for start in range(0, len(images), chunk):
        scenes = [world.scene(i) for i in range(start, min(start + chunk, len(images)))]
        drawn = render_batch(scenes, width, height, device=device if device.startswith("cuda") else None)
        images[start : start + len(scenes)] = drawn.transpose(0, 3, 1, 2)
        progress(f"drawing layouts of {world.objects} objects", start + len(scenes), len(images))
    return images


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
