"""What some models of the zoo begin with: a program generator for two, the relations of another for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pfungst.core.types import Progress
from pfungst.models import MODELS, Batch, Model, Output, Sizes, Trained, build, load_tensors, save_tensors
from pfungst.models.generator import ProgramGenerator
from pfungst.models.objects import centre_loss, centres
from pfungst.models.programs import tokens
from pfungst.training import FitConfig, Prepared, fit

WRITERS = ("iep", "tbd")
"""They run programs, which the generator writes."""


def begin(
    name: str, config: Any, data: Path, kept: Path, start: Path | None, generator: Path, device: str, seed: int
) -> Any:
    """Weights to begin with (`Trained`) or None; once chosen they lie in the file `kept` and stay the same.

    `start`: a folder of weights. Those of the same model and sizes are taken; RN can begin with rn-state's.
    """
    if kept.exists():
        return Trained.load(kept)
    prepared = Prepared.load(data)
    model: Any = build(name, prepared.sizes(), config, seed=seed)
    begun = False
    if start is not None and (start / f"{name}.safetensors").exists():
        trained = Trained.load(start / f"{name}.safetensors").model
        begun = (trained.config, trained.sizes) == (model.config, model.sizes)
        if begun:
            model.load_state_dict(trained.state_dict())
    if name in WRITERS and generator.exists():
        model.generator.load_state_dict(load_tensors(generator)[0])
        begun = True
    elif name == "rn" and not begun and start is not None and (start / "rn-state.safetensors").exists():
        align(model, Trained.load(start / "rn-state.safetensors").model, prepared, device, seed)
        begun = True
    if not begun:
        return None
    Trained(name, model, prepared.vocabulary, prepared.inputs, {}).save(kept)
    return Trained.load(kept)


class Programs(Model):
    """question -> program, for `fit`; right is a program without a wrong token."""

    Config = dict
    reads = frozenset({"question"})
    learns_from = frozenset({"program"})

    def __init__(self, sizes: Sizes, config: Any) -> None:
        super().__init__(sizes, config)
        self.generator = ProgramGenerator(sizes.words, config.word_size, config.hidden, config.layers, len(tokens()))

    def forward(self, batch: Batch) -> Output:
        written, _, learnt = self.generator.programs(batch, self.training)
        return Output(written, {}, learnt)

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        assert batch.program is not None
        return {"program": self.generator.loss(output.extra["program"], batch.program)}

    def correct(self, batch: Batch, output: Output) -> Tensor:
        assert batch.program is not None
        length = min(batch.program.shape[1], output.logits.shape[1])
        return (batch.program[:, :length] == output.logits[:, :length]).all(-1).float()


def write_programs(
    data: Path, out: Path, start: Path | None, config: FitConfig, check: int, device: str, progress: Progress
) -> None:
    """Train the generator of IEP and TbD, which is the same in both; begins with TbD's where `start` has it."""
    prepared = Prepared.load(data)
    model = Programs(prepared.sizes(), MODELS.get("tbd").PRESETS["features"])
    before = None if start is None else start / "tbd.safetensors"
    if before is not None and before.exists():
        trained: Any = Trained.load(before).model
        model.generator.load_state_dict(trained.generator.state_dict())
    every, held = (prepared.split(s, False).for_model(model).to(device) for s in ("train", "val"))
    some = held.rows(np.arange(0, len(held), max(1, len(held) // check)))
    fitted = fit(model, every, validation=some, config=config, device=device, progress=progress)
    print(f"generator: {fitted.accuracy:.2%} of the programs without a wrong token, {fitted.seconds:.0f} s", flush=True)
    save_tensors(out, {name: value.cpu() for name, value in model.generator.state_dict().items()})


def align(model: Any, other: Any, prepared: Prepared, device: str, seed: int, steps: int = 2_000) -> None:
    """Give RN the relations of RN on states, and teach its cells to say what is told of objects there."""
    for part in ("reader", "pairs", "answers"):
        getattr(model, part).load_state_dict(getattr(other, part).state_dict())
    model, other = model.to(device), other.to(device).eval()
    data = prepared.split("train").for_model(model)
    pictures, first = np.unique(np.asarray(data.arrays["picture"]), return_index=True)
    data = data.rows(first).to(device)
    learning = [*model.token.parameters(), *model.centre.parameters()]
    optimizer = torch.optim.AdamW(learning, 3e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    order, shape = np.random.default_rng(seed), (model.grid.height, model.grid.width)
    for step in range(steps):
        batch = data.batch(order.integers(0, len(pictures), min(512, len(pictures))))
        cells = model.cells(batch)
        assert batch.scene is not None
        b, row, column, which, _ = centres(batch.scene, shape)
        said = model.token(cells[b, row * shape[1] + column])
        with torch.no_grad():
            wanted = other.tokens(batch.scene).sum(2)[b, which]
        looks = model.centre(cells)[..., 0].unflatten(1, shape)
        loss = F.mse_loss(said, wanted) / wanted.var() + centre_loss(looks, batch.scene)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 200 == 0:
            print(f"rn: step {step} of {steps} of telling objects, {loss.item():.4f}", flush=True)
    model.to("cpu")
