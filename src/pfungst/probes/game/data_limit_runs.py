"""Training the models of the data-limit experiment, each on its share of the layouts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import PfungstError
from pfungst.core.files import write_json
from pfungst.probes.game.data_limit import ANSWERS, LimitWorld, draw_layouts
from pfungst.probes.game.data_limit_plan import MODELS, Cell, CellResult, LimitPlan, claim, read_cells

if TYPE_CHECKING:
    import torch

_ON_FEATURES: dict[str, tuple[int, ...]] = {"rn": (64, 64), "film": (), "tbd": ()}
"""On features the stem is left out, but for rn, whose pairs grow with the square of the cells."""
_TEST = 4096
"""Unseen layouts asked about at the end, each with one question of every kind drawn at random."""


class Eyes:
    """What the models look at: the pixels, or the features of the world's own CNN."""

    def __init__(self, plan: LimitPlan, device: str) -> None:
        self.size, self.shape = (plan.width, plan.height), (3, plan.height, plan.width)
        self._cnn: Any = None
        self._device = device
        if plan.sees != "pixels":
            from pfungst.models import Trained, load_shipped

            place = plan.sees.partition(":")[2]
            trained = Trained.load(place) if place else load_shipped("world-cnn")
            if not hasattr(trained.model, "features"):
                raise PfungstError(f"{plan.sees} is a {trained.name}; it must be a world-cnn.")
            self._cnn = trained.model.eval().to(device)
            self.size, self.shape = (trained.inputs.width, trained.inputs.height), self._cnn.shape

    def see(self, pictures: Any) -> torch.Tensor:
        """uint8 (layouts, 3, height, width) -> what the models are given, on the device."""
        import torch

        if self._cnn is None:
            return torch.from_numpy(np.asarray(pictures)).to(self._device)
        seen = torch.empty((len(pictures), *self.shape), dtype=torch.float16, device=self._device)
        with torch.inference_mode():
            for start in range(0, len(pictures), 256):
                part = torch.from_numpy(np.asarray(pictures[start : start + 256])).to(self._device)
                seen[start : start + 256] = self._cnn.features(part).half()
        return seen


class LimitData:
    """Pictures, questions and answers of one world on a device."""

    def __init__(self, plan: LimitPlan, objects: int, device: str, pictures: Any | None = None) -> None:
        import torch

        from pfungst.models import Vocabulary
        from pfungst.models.programs import encode_program

        self.world, self.device, self.eyes = LimitWorld(objects), device, Eyes(plan, device)
        if pictures is None:
            pictures = draw_layouts(self.world, *self.eyes.size, _drawer(device))
        self.pictures = self.eyes.see(pictures)
        texts = [question.text for question in self.world.questions("mixhop")]
        self.vocabulary = Vocabulary.build(texts, ANSWERS)
        order = [self.vocabulary.answer_number(answer) for answer in ANSWERS]
        self.questions: dict[str, torch.Tensor] = {}
        self.programs: dict[str, torch.Tensor] = {}
        self.answers: dict[str, torch.Tensor] = {}
        length = max(len(text.split()) for text in texts) + 1
        for hops in plan.hops:
            asked = self.world.questions(hops)
            tokens = self.vocabulary.encode([one.text for one in asked], length).astype(np.int64)
            self.questions[hops] = torch.from_numpy(tokens).to(device)
            programs = np.stack([encode_program(one.program()) for one in asked]).astype(np.int64)
            self.programs[hops] = torch.from_numpy(programs).to(device)
            answers = np.asarray(order, np.int64)[self.world.answers(hops)]
            self.answers[hops] = torch.from_numpy(answers.astype(np.int16)).to(device)

    def batch(self, hops: str, layouts: torch.Tensor, questions: torch.Tensor, program: bool) -> Any:
        import torch

        from pfungst.models import Batch

        image = self.pictures[layouts]
        return Batch(
            self.questions[hops][questions],
            image=image if image.dtype == torch.uint8 else image.float(),
            program=self.programs[hops][questions] if program else None,
            answer=self.answers[hops][layouts, questions].long(),
        )


def train_cell(
    plan: LimitPlan, cell: Cell, data: LimitData, progress: Callable[[int], None] | None = None
) -> CellResult:
    """Train one model on its share of the layouts and ask it about the others; `progress` hears of every step."""
    import torch

    from pfungst.models import Sizes, build
    from pfungst.models.programs import tokens

    began = time.monotonic()
    layouts = len(data.world.cells)
    # The same trial takes the same layouts for all models and kinds of questions; a larger share contains a smaller.
    order = np.random.default_rng([plan.seed, cell.objects, cell.trial]).permutation(layouts)
    count = min(max(1, round(layouts * cell.percent / 100)), layouts - 1)
    seen, unseen = torch.from_numpy(order[:count]), torch.from_numpy(order[count:])
    sizes = Sizes(data.vocabulary.size, len(data.vocabulary.answers), data.eyes.shape, 0, len(tokens()))
    config = MODELS[cell.model] | ({} if plan.sees == "pixels" else {"stem": _ON_FEATURES[cell.model]})
    seed = int(np.random.SeedSequence([plan.seed, cell.trial, cell.objects]).generate_state(1)[0])
    with torch.random.fork_rng(devices=[]):
        model = build(cell.model, sizes, config, seed=seed).to(data.device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=plan.rate, weight_decay=1e-4)
    draw = torch.Generator().manual_seed(seed)
    programs = "program" in model.learns_from
    asked = len(data.questions[cell.hops])
    warm = max(1, plan.steps // 20)
    model.train()
    for step in range(plan.steps):
        share = min(1.0, (step + 1) / warm) * (0.5 + 0.5 * math.cos(math.pi * step / plan.steps))
        for group in optimiser.param_groups:
            group["lr"] = plan.rate * max(share, 0.01)
        rows = seen[torch.randint(open_layouts(plan, step, layouts, count), (plan.batch,), generator=draw)]
        which = torch.randint(asked, (plan.batch,), generator=draw)
        batch = data.batch(cell.hops, rows.to(data.device), which.to(data.device), programs)
        with torch.autocast(data.device.partition(":")[0], torch.bfloat16, enabled=data.device.startswith("cuda")):
            loss = torch.stack(list(model.losses(batch, model(batch)).values())).sum()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()
        if progress is not None:
            progress(step + 1)
    right_seen = _accuracy(model, data, cell.hops, seen, draw)
    right_unseen = _accuracy(model, data, cell.hops, unseen, draw)
    answers = data.answers[cell.hops]
    most = torch.stack([(answers == number).float().mean(0) for number in range(len(data.vocabulary.answers))])
    majority = float(most.max(0).values.mean())
    return CellResult(cell, right_seen, right_unseen, majority, layouts, time.monotonic() - began)


def open_layouts(plan: LimitPlan, step: int, layouts: int, count: int) -> int:
    """How many of the `count` layouts that may be seen are drawn from at a step."""
    few = max(1, round(layouts * plan.begin / 100))
    if not plan.begin or few >= count:
        return count
    return round(float(few * (count / few) ** min(1.0, 2 * step / plan.steps)))


def _accuracy(model: Any, data: LimitData, hops: str, layouts: torch.Tensor, draw: torch.Generator) -> float:
    """Accuracy on up to 4,096 of these layouts, with a random question each."""
    import torch

    chosen = layouts[torch.randperm(len(layouts), generator=draw)[:_TEST]]
    which = torch.randint(len(data.questions[hops]), (len(chosen),), generator=draw)
    model.eval()
    right = 0.0
    with torch.inference_mode():
        for start in range(0, len(chosen), 512):
            part = slice(start, start + 512)
            batch = data.batch(hops, chosen[part].to(data.device), which[part].to(data.device), False)
            right += float((model(batch).logits.argmax(-1) == batch.answer).float().sum())
    return right / len(chosen)


def run_plan(
    plan: LimitPlan,
    out: str | Path,
    device: str = "cpu",
    *,
    part: int = 0,
    parts: int = 1,
    seconds: float = 0.0,
    work: str | Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[CellResult]:
    """Train every cell that OUT/cells does not have yet, and return all that are there.

    Several processes may share the work: each takes every parts-th cell. `seconds` stops between two cells; the same
    call goes on. `work` is a folder where the pictures are kept, so that they are drawn once (gigabytes for three
    objects and more).
    """
    folder = Path(out) / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    claim(Path(out), plan)
    began, done = time.monotonic(), 0
    mine = [cell for number, cell in enumerate(plan.cells()) if number % parts == part]
    data: LimitData | None = None
    for cell in mine:
        before, done = done * plan.steps, done + 1
        path = folder / f"{cell.name}.json"
        if path.exists():
            continue
        if seconds and time.monotonic() - began > seconds:
            break
        if data is None or data.world.objects != cell.objects:
            data = None  # one world at a time fits into memory
            kept = None if work is None else keep_pictures(plan, cell.objects, work, device)
            data = LimitData(plan, cell.objects, device, kept)

        def told(step: int, before: int = before, name: str = cell.name) -> None:
            if progress is not None and (step % 10 == 0 or step == plan.steps):
                progress(f"training steps · {name}", before + step, len(mine) * plan.steps)

        write_json(path, asdict(train_cell(plan, cell, data, told)))
    return read_cells(plan, out)


def keep_pictures(plan: LimitPlan, objects: int, work: str | Path, device: str) -> Any:
    """The pictures of a world from the folder `work`, drawn into it first where they are not there."""
    width, height = Eyes(plan, "cpu").size
    path = Path(work) / f"layouts-{objects}-{width}x{height}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn = draw_layouts(LimitWorld(objects), width, height, _drawer(device))
        half = path.with_suffix(".part.npy")
        np.save(half, drawn)
        half.replace(path)
    return np.load(path)


def _drawer(device: str) -> str | None:
    """On a GPU the pictures are drawn there; elsewhere the compiled renderer is quicker."""
    return device if device.startswith("cuda") else None
