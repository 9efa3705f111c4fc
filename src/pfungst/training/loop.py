"""The one training loop."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pfungst.core import DataError, PfungstError
from pfungst.core.files import claim
from pfungst.core.types import Progress, no_progress
from pfungst.models import Batch, Model, Output, load_tensors, save_tensors
from pfungst.training.checkpoint import BEST, CHECKPOINT, Curves, State, deferred, load_checkpoint, save_checkpoint
from pfungst.training.config import FitConfig
from pfungst.training.data import Data
from pfungst.training.numerics import autocast, evaluate, make_optimizer, usable

SETTINGS = "fit.json"


@dataclass(frozen=True)
class Moment:
    """What a loss is told: one step of training."""

    model: Model
    batch: Batch
    output: Output
    """The model's, with gradients."""
    step: int
    """Counted from 0."""
    rows: NDArray[np.int64]
    """The examples' numbers in the data."""


Loss = Callable[[Moment], Mapping[str, Tensor]]
"""A part of what is minimised: scalars by name, which are added up. Names become curves."""
Rows = Callable[[int], NDArray[np.int64]]
"""The numbers of the examples of a step (counted from 0): a function of the step alone, so nothing must be restored."""
Transform = Callable[[Batch, int], Batch]
"""Changes a training batch (augmentation): `transform(batch, seed of the step)`."""


@dataclass(frozen=True)
class Fitted:
    """How a training run ended."""

    steps: int
    why: str
    """`steps`, `patience` or `seconds`; only a run stopped by `seconds` can be resumed."""
    accuracy: float
    """Best on the validation data; NaN without them."""
    best_step: int
    seconds: float
    """Of all runs together."""
    precision: str = "fp32"
    """What was computed with: fp32 where the device cannot do what the configuration asks for."""


def model_losses(moment: Moment) -> Mapping[str, Tensor]:
    """The losses of the model's own paper."""
    return moment.model.losses(moment.batch, moment.output)


def fit(
    model: Model,
    data: Data,
    *,
    validation: Data | None = None,
    config: FitConfig | None = None,
    out: str | Path | None = None,
    losses: Sequence[Loss] = (model_losses,),
    modules: Mapping[str, nn.Module] | None = None,
    transforms: Sequence[Transform] = (),
    check: Callable[[Model], Mapping[str, float]] | None = None,
    rows: Rows | None = None,
    device: torch.device | str = "cpu",
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    tensorboard: bool = True,
) -> Fitted:
    """Train a model in place; it ends with the weights that were best on the validation data (the last without them).

    Deterministic: the same model, data and configuration give the same curve, whether the run was killed and called
    again or not. With a folder `out`, checkpoints, curves and settings lie there, and a second call resumes where the
    first was stopped.

    Parameters
    ----------
    losses : what is minimised, the sum of all parts; by default the model's own losses
    modules : other networks to train with the model (a question generator, a critic), by name; losses refer to them
    transforms : augmentation of training batches
    check : measures more in every check, into the curves; `accuracy` in it decides which weights are best
    rows : which examples a step takes (a curriculum); by default every pass takes all, in an order of its own
    settings : what else must be the same to resume in a folder, such as the fingerprint of the data
    """
    config = config or FitConfig()
    folder = Path(out) if out else None
    run = _Run(model, data, config, folder, modules or {}, device, settings or {}, tensorboard)
    run.draw = rows
    measure = check
    if measure is None and validation is not None:
        held: Data = validation
        measure = lambda now: {"accuracy": evaluate(now, held, config.batch, device, config.precision).accuracy}  # noqa: E731
    return run.go(losses, transforms, measure, progress or no_progress)


class _Run:
    """A run in progress."""

    def __init__(
        self,
        model: Model,
        data: Data,
        config: FitConfig,
        folder: Path | None,
        modules: Mapping[str, nn.Module],
        device: torch.device | str,
        settings: Mapping[str, Any],
        tensorboard: bool,
    ) -> None:
        if not len(data):
            raise DataError("There is nothing to learn from: the data is empty.")
        if reserved := {"model", "optimizer", "average"} & modules.keys():
            raise PfungstError(f"A module cannot be called {min(reserved)}: the loop uses that name.")
        self.model, self.data, self.config, self.folder = model.to(device), data, config, folder
        self.device = torch.device(device)
        self.modules = {"model": model, **{name: module.to(device) for name, module in modules.items()}}
        self.optimizer = make_optimizer(list(self.modules.values()), config)
        self.precision = usable(config.precision, device, self.modules.values())
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "fp16")
        self.average = {k: v.detach().clone() for k, v in model.state_dict().items()} if config.average else {}
        self.total = config.total(len(data))
        self.state = State()
        if folder is not None:
            wanted = {**asdict(config), "examples": len(data), **settings}
            later = {"images": settings.get("images")}  # runs of earlier versions did not note it
            claim(folder / SETTINGS, wanted, defaults=later, free=("seconds",))  # how long it may take changes nothing
            if (folder / CHECKPOINT).exists():
                self.state = load_checkpoint(folder / CHECKPOINT, self.modules, self.optimizer, self.average)
                if self.state.scaler:
                    self.scaler.load_state_dict(self.state.scaler)
        self.curves = Curves(folder, self.state.step, tensorboard)
        # Apple's GPUs have no float64.
        self.exact = torch.float32 if torch.device(device).type == "mps" else torch.float64
        self.sums = {k: torch.tensor(v, dtype=self.exact, device=device) for k, v in self.state.sums.items()}
        self.best: dict[str, Tensor] = {}
        self.draw: Rows | None = None
        self.order: tuple[int, NDArray[np.int64]] = (-1, np.zeros(0, np.int64))

    def go(
        self,
        losses: Sequence[Loss],
        transforms: Sequence[Transform],
        measure: Callable[[Model], Mapping[str, float]] | None,
        progress: Progress,
    ) -> Fitted:
        config, state = self.config, self.state
        began = time.monotonic() - state.seconds
        why = state.finished
        gpus = [self.device.index or 0] if self.device.type == "cuda" else []
        try:
            # Dropout draws from torch's global generators: borrow them, seed them at every step, give them back.
            with torch.random.fork_rng(devices=gpus), deferred() as interrupted:
                while not why:
                    self.step(losses, transforms)
                    state.step += 1
                    state.seconds = time.monotonic() - began
                    last = state.step >= self.total
                    if state.step % config.log_every == 0 or last:
                        self.log()
                    if measure is not None and (state.step % config.check_every == 0 or last):
                        why = self.check(measure)
                    why = "steps" if last else why
                    out_of_time = bool(config.seconds) and state.seconds >= config.seconds
                    stop = interrupted()
                    state.finished = why
                    if why or out_of_time or stop or state.step % config.checkpoint_every == 0:
                        self.checkpoint()
                    if stop:
                        raise KeyboardInterrupt
                    why = why or ("seconds" if out_of_time else "")
                    progress(f"training · {self.told()}", state.step, self.total)
        finally:
            self.curves.close()
        self.finish(measure is not None)
        accuracy = state.best if state.best > -math.inf else math.nan
        return Fitted(state.step, why, accuracy, state.best_step, state.seconds, self.precision)

    def step(self, losses: Sequence[Loss], transforms: Sequence[Transform]) -> None:
        config, step = self.config, self.state.step
        seed = _seed(config.seed, step)
        _seed_all(seed, self.device)
        for module in self.modules.values():
            module.train()
        rate = config.rate_at(step, self.total)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        rows = self.rows(step)
        batch = self.data.batch(rows).to(self.device, non_blocking=True)
        for transform in transforms:
            batch = transform(batch, seed)
        with autocast(self.device, self.precision, ()):
            moment = Moment(self.model, batch, self.model(batch), step, rows)
            parts: dict[str, Tensor] = {}
            for loss in losses:
                parts |= loss(moment)
            total = torch.stack([value.float() for value in parts.values()]).sum()
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(total).backward()  # type: ignore[no-untyped-call]
        every = [p for group in self.optimizer.param_groups for p in group["params"]]
        if config.clip:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(every, config.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.follow()
        for name, value in {
            "loss": total,
            **{f"loss/{k}": v for k, v in parts.items()},
            "steps": total.new_ones(()),
        }.items():
            kept = self.sums.get(name)
            value = value.detach().to(self.exact)
            self.sums[name] = value if kept is None else kept + value

    def rows(self, step: int) -> NDArray[np.int64]:
        """The examples of a step: every pass has an order of its own, drawn from the seed."""
        if self.draw is not None:
            return self.draw(step)
        count, per = len(self.data), self.config.per_epoch(len(self.data))
        epoch, place = divmod(step, per)
        if self.order[0] != epoch:
            self.order = (epoch, np.random.default_rng([self.config.seed, epoch]).permutation(count))
        return self.order[1][place * self.config.batch : (place + 1) * self.config.batch]

    @torch.no_grad()
    def follow(self) -> None:
        """Move the average towards the weights; counters and running statistics are taken as they are."""
        # Early on a long memory would remember the random start: it grows with the steps.
        keep = min(self.config.average, (1 + self.state.step) / (10 + self.state.step))
        now = self.model.state_dict() if self.average else {}
        moving = [name for name, kept in self.average.items() if kept.is_floating_point()]
        if moving:
            # One call for all: hundreds of small ones take longer than many a step.
            torch._foreach_lerp_([self.average[n] for n in moving], [now[n] for n in moving], 1 - keep)
        for name, kept in self.average.items():
            if not kept.is_floating_point():
                kept.copy_(now[name])

    def log(self) -> None:
        sums, self.sums = self.sums, {}
        count = float(sums.pop("steps"))
        point = {name: float(value) / count for name, value in sums.items()}
        if not math.isfinite(point["loss"]):
            broken = "NaN" if math.isnan(point["loss"]) else "infinite"
            raise PfungstError(
                f"The loss became {broken} by step {self.state.step}. Use a lower rate, clip the gradient, "
                "or train in fp32."
            )
        self.curves.add(self.state.step, {**point, "rate": self.config.rate_at(self.state.step - 1, self.total)})

    def check(self, measure: Callable[[Model], Mapping[str, float]]) -> str:
        with self.averaged():
            self.model.eval()
            measured = dict(measure(self.model))
            self.curves.add(self.state.step, {f"check/{name}": value for name, value in measured.items()})
            accuracy = measured.get("accuracy", math.nan)
            if accuracy > self.state.best:
                self.state.best, self.state.best_step, self.state.bad_checks = accuracy, self.state.step, 0
                self.keep_best()
            else:
                self.state.bad_checks += 1
        return "patience" if self.config.patience and self.state.bad_checks >= self.config.patience else ""

    def keep_best(self) -> None:
        weights = self.model.state_dict()
        if self.folder is not None:
            save_tensors(self.folder / BEST, weights)
        else:
            self.best = {name: value.detach().clone() for name, value in weights.items()}

    def finish(self, checked: bool) -> None:
        """Leave the model with the weights worth keeping."""
        if checked and self.folder is not None and (self.folder / BEST).exists():
            self.best, _ = load_tensors(self.folder / BEST)
        chosen = self.best if checked and self.best else self.average
        if chosen:
            self.model.load_state_dict(chosen)
        for module in self.modules.values():
            module.eval()

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """The averaged weights in the model's place."""
        if not self.average:
            yield
            return
        own = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        self.model.load_state_dict(self.average)
        try:
            yield
        finally:
            self.model.load_state_dict(own)

    def checkpoint(self) -> None:
        if self.folder is None:
            return
        self.state.sums = {name: float(value) for name, value in self.sums.items()}
        if self.scaler.is_enabled():
            self.state.scaler = {k: v for k, v in self.scaler.state_dict().items() if isinstance(v, int | float)}
        save_checkpoint(self.folder / CHECKPOINT, self.modules, self.optimizer, self.average, self.state)

    def told(self) -> str:
        return f"best {self.state.best:.1%} at step {self.state.best_step}" if self.state.best_step else ""


def _seed_all(seed: int, device: torch.device) -> None:
    """As torch.manual_seed, which on a machine without a GPU queues a stack trace for every kind of device there is."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


def _seed(seed: int, step: int) -> int:
    return int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint32)[0])
