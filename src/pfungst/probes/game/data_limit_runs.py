"""The runs of the data-limit experiment: models, shares of layouts, trials; and the figure over them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import Figure, PfungstError, Series, Table
from pfungst.core.files import write_json
from pfungst.core.stats import bootstrap
from pfungst.probes.game.data_limit import ANSWERS, HOPS, LimitWorld, draw_layouts
from pfungst.probes.measure import finding

if TYPE_CHECKING:
    import torch

MODELS: dict[str, dict[str, Any]] = {
    "rn": {"word_size": 32, "hidden": 64, "relation": (128, 128, 128), "classifier": (128, 128), "dropout": 0.0,
           "stem": (24, 32, 32, 32)},
    "film": {"word_size": 32, "hidden": 96, "channels": 48, "blocks": 3, "projection": 96, "classifier": 96,
             "stem": (24, 32, 48)},
    "tbd": {"word_size": 32, "hidden": 96, "layers": 1, "channels": 32, "dilations": (1, 2, 4, 1), "projection": 24,
            "classifier": 96, "stem": (24, 32, 32)},
}  # fmt: skip
"""The paper's three players, small: their worlds have two to four objects. On features the stem is left out, but for
rn, whose pairs grow with the square of the cells."""
_ON_FEATURES: dict[str, tuple[int, ...]] = {"rn": (64,), "film": (), "tbd": ()}
PERCENTS = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 75.0)
_TEST = 4096
"""Unseen layouts asked about at the end, each with one question of every kind drawn at random."""


@dataclass(frozen=True)
class LimitPlan:
    """What is run."""

    objects: tuple[int, ...] = (2, 3, 4)
    hops: tuple[str, ...] = HOPS
    percents: tuple[float, ...] = PERCENTS
    """X: share of the layouts that are seen in training."""
    models: tuple[str, ...] = tuple(MODELS)
    trials: int = 10
    steps: int = 2000
    batch: int = 256
    rate: float = 1e-3
    width: int = 96
    height: int = 72
    sees: str = "pixels"
    """`pixels`: each model learns to see as well. `world`: all look at features of the world's own CNN, which comes
    with the package, fixed (pictures then have its size), as the paper's FiLM and TbD look at those of a ResNet;
    `world:FOLDER` takes another one."""
    begin: float = 1.0
    """Training begins with this percentage of all layouts and takes in more of its share until half of the steps are
    done: thousands of layouts from the first step on leave RN and TbD at the most frequent answer. 0: all at once."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sees != "pixels" and self.sees.partition(":")[0] != "world":
            raise PfungstError(f"The models of the data-limit experiment see pixels or world, not {self.sees!r}.")
        for name in self.models:
            if name not in MODELS:
                raise PfungstError(f"The data-limit experiment has the models {', '.join(MODELS)}, not {name!r}.")
        if not self.percents or not all(0 < one < 100 for one in self.percents):
            raise PfungstError("The shares of layouts seen lie between 0 and 100%, both excluded.")
        for name in ("trials", "steps", "batch"):
            if getattr(self, name) < 1:
                raise PfungstError(f"The data-limit experiment needs at least 1 {name.rstrip('s')}.")

    def cells(self) -> Iterator[Cell]:
        """Every run, those of one world together; first trials of all come first."""
        for count in self.objects:
            for trial in range(self.trials):
                for hops in self.hops:
                    for percent in self.percents:
                        for model in self.models:
                            yield Cell(count, hops, percent, model, trial)


@dataclass(frozen=True)
class Cell:
    """One training run."""

    objects: int
    hops: str
    percent: float
    model: str
    trial: int

    @property
    def name(self) -> str:
        return f"{self.objects}-{self.hops}-{self.percent:g}-{self.model}-{self.trial}"


@dataclass(frozen=True)
class CellResult:
    """How it ended."""

    cell: Cell
    seen: float
    """Accuracy on layouts it was trained on."""
    unseen: float
    """Accuracy on all others."""
    majority: float
    """Of always giving the most frequent answer of each question."""
    layouts: int
    seconds: float


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


def train_cell(plan: LimitPlan, cell: Cell, data: LimitData) -> CellResult:
    """Train one model on its share of the layouts and ask it about the others."""
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
        rows = seen[torch.randint(_open(plan, step, layouts, count), (plan.batch,), generator=draw)]
        which = torch.randint(asked, (plan.batch,), generator=draw)
        batch = data.batch(cell.hops, rows.to(data.device), which.to(data.device), programs)
        with torch.autocast(data.device.partition(":")[0], torch.bfloat16, enabled=data.device.startswith("cuda")):
            loss = torch.stack(list(model.losses(batch, model(batch)).values())).sum()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()
    right_seen = _accuracy(model, data, cell.hops, seen, draw)
    right_unseen = _accuracy(model, data, cell.hops, unseen, draw)
    answers = data.answers[cell.hops]
    most = torch.stack([(answers == number).float().mean(0) for number in range(len(data.vocabulary.answers))])
    majority = float(most.max(0).values.mean())
    return CellResult(cell, right_seen, right_unseen, majority, layouts, time.monotonic() - began)


def _open(plan: LimitPlan, step: int, layouts: int, count: int) -> int:
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
    _claim(Path(out), plan)
    began, done = time.monotonic(), 0
    mine = [cell for number, cell in enumerate(plan.cells()) if number % parts == part]
    data: LimitData | None = None
    for cell in mine:
        done += 1
        path = folder / f"{cell.name}.json"
        if path.exists():
            continue
        if seconds and time.monotonic() - began > seconds:
            break
        if data is None or data.world.objects != cell.objects:
            data = None  # one world at a time fits into memory
            kept = None if work is None else keep_pictures(plan, cell.objects, work, device)
            data = LimitData(plan, cell.objects, device, kept)
        write_json(path, asdict(train_cell(plan, cell, data)))
        if progress is not None:
            progress("training runs", done, len(mine))
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


def _claim(out: Path, plan: LimitPlan) -> None:
    """Note how cells are trained, or refuse to mix them with others. What is run may grow."""
    names = ("steps", "batch", "rate", "width", "height", "sees", "begin", "seed")
    known = {name: getattr(plan, name) for name in names}
    path = out / "plan.json"
    if path.exists():
        before = json.loads(path.read_text("utf-8"))
        for name, value in known.items():
            if before.get(name) != value:
                raise PfungstError(
                    f"{out} was begun with {name} = {before.get(name)!r}, now it is {value!r}. Choose another folder."
                )
    write_json(path, known)


def read_cells(plan: LimitPlan, out: str | Path) -> list[CellResult]:
    """The finished cells of a plan."""
    found = []
    for cell in plan.cells():
        path = Path(out) / "cells" / f"{cell.name}.json"
        if path.exists():
            record = json.loads(path.read_text("utf-8"))
            found.append(CellResult(**{**record, "cell": Cell(**record["cell"])}))
    return found


@dataclass(frozen=True)
class LimitResult:
    """Figure 2 as numbers."""

    results: tuple[CellResult, ...]
    models: tuple[str, ...] = field(default=tuple(MODELS))

    def groups(self) -> dict[tuple[int, str, float], list[CellResult]]:
        """(objects, hops, percent) -> all models and trials: the paper reports their joint average."""
        found: dict[tuple[int, str, float], list[CellResult]] = {}
        for one in self.results:
            found.setdefault((one.cell.objects, one.cell.hops, one.cell.percent), []).append(one)
        return dict(sorted(found.items(), key=lambda item: (item[0][0], HOPS.index(item[0][1]), item[0][2])))

    def figure(self) -> Figure:
        """Accuracy on unseen layouts over the share of layouts seen, one line for objects and kind of question."""
        lines: dict[str, list[tuple[float, float, float, float]]] = {}
        for (objects, hops, percent), some in self.groups().items():
            span = bootstrap([one.unseen for one in some], [one.cell.trial for one in some], draws=1000)
            lines.setdefault(f"{objects} objects, {hops}", []).append((percent, span.value, span.low, span.high))
        series = tuple(
            Series(name, *(tuple(column) for column in zip(*points, strict=True))) for name, points in lines.items()
        )
        return Figure(
            "Limits of data-driven reasoning (Figure 2)", "line", series, "% of all layouts seen in training",
            "accuracy on unseen layouts",
        )  # fmt: skip

    def table(self) -> Table:
        rows = []
        for (objects, hops, percent), some in self.groups().items():
            joint = finding("unseen", bootstrap([one.unseen for one in some], [one.cell.trial for one in some]))
            each = []
            for model in self.models:
                mine = [one.unseen for one in some if one.cell.model == model]
                each.append(float(np.mean(mine)) if mine else math.nan)
            seen = float(np.mean([one.seen for one in some]))
            shown = ["" if math.isnan(one) else f"{100 * one:.1f}%" for one in each]
            majority = float(np.mean([one.majority for one in some]))
            rows.append((objects, hops, f"{percent:g}%", joint, *shown, f"{100 * seen:.1f}%", f"{100 * majority:.1f}%"))
        columns = ("objects", "questions", "seen", "unseen, all models", *self.models, "on seen layouts", "majority")
        return Table("Accuracy on unseen layouts", columns, tuple(rows), "Intervals over trials.")


def summarise(plan: LimitPlan, results: Sequence[CellResult]) -> LimitResult:
    """The figure and table of finished cells; PfungstError where there is none."""
    if not results:
        raise PfungstError("No training run is finished yet.")
    return LimitResult(tuple(results), plan.models)
