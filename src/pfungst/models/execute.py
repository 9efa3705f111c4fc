"""Running the programs of a batch with modules, one group of nodes at a time and a group in one go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from pfungst.models.base import Batch, Model, Output, Sizes
from pfungst.models.generator import ProgramGenerator
from pfungst.models.layers import ConvClassifier, Grid
from pfungst.models.programs import Group, Integers, Plan, tokens

Apply: TypeAlias = Callable[[Group, Tensor, Tensor, Tensor], Tensor]
"""`apply(group, inputs, examples, which)` -> the n values (n, ...) of a group.

inputs (n, inputs of the kind, ...); examples (n,) the questions' numbers; which (n,) the number of each node's token
among the tokens of its kind.
"""


class ModuleNetwork(Model):
    """What IEP and TbD share: a generator writes the program, modules run it, and the root is classified."""

    learns_from: frozenset[str] = frozenset({"answer", "program"})

    def __init__(self, sizes: Sizes, config: Any) -> None:
        super().__init__(sizes, config)
        self.grid = Grid(sizes, config.stem)
        self.generator = ProgramGenerator(sizes.words, config.word_size, config.hidden, config.layers, len(tokens()))
        channels = config.channels
        first, second = (nn.Conv2d(before, channels, 3, padding=1) for before in (self.grid.channels, channels))
        self.enter = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.functions = nn.ModuleDict(self.make_modules())
        shape = (channels, self.grid.height, self.grid.width)
        self.answers = ConvClassifier(shape, config.projection, config.classifier, sizes.answers, pool="window")

    def make_modules(self) -> dict[str, nn.Module]:
        """By kind of token."""
        raise NotImplementedError

    def run(self, picture: Tensor, program: Tensor) -> tuple[Plan, list[Tensor], Tensor]:
        """The plan of programs (B, P), what every group of its steps gives, and the roots (B, C, H, W)."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Output:
        program, to_run, learnt = self.generator.programs(batch, self.training)
        steps, values, root = self.run(self.enter(self.grid(batch)), to_run)
        return Output(
            self.answers(root), {"program": program}, {**learnt, "steps": steps, "values": values, "root": root}
        )

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        losses = super().losses(batch, output)
        if batch.program is not None and "program" in output.extra:
            losses["program"] = self.generator.loss(output.extra["program"], batch.program)
        return losses


def execute(steps: Plan, apply: Apply, scenes: Tensor) -> tuple[list[Tensor], Tensor]:
    """The values of every group, (n, ...) each, and those of the roots (B, ...).

    `scenes` (B, ...) are the values of the first group.
    """
    groups = steps.groups[1:]
    bounds = np.array([0, *[group.stop for group in steps.groups]])
    readings = [_locate(nodes, bounds) for nodes in (*[group.inputs for group in groups], steps.roots)]
    parts = [index for _, index in readings]
    for group in groups:
        parts += [group.examples, group.which]
    moved = _move(parts, scenes.device)
    indices, rest = moved[: len(readings)], moved[len(readings) :]
    values = [scenes]
    for i, group in enumerate(groups):
        inputs = torch.unflatten(_gather(values, readings[i][0], indices[i]), 0, group.inputs.shape)
        values.append(apply(group, inputs, rest[2 * i], rest[2 * i + 1]))
    return values, _gather(values, readings[-1][0], indices[-1])


def _locate(nodes: Integers, bounds: Integers) -> tuple[list[int], Integers]:
    """The groups that hold the nodes, and where these are in the values of those groups put together."""
    flat = nodes.ravel()
    owner = np.searchsorted(bounds, flat, side="right") - 1
    groups = np.unique(owner)
    sizes = np.diff(bounds)[groups]
    shift = np.zeros(len(bounds), np.int64)
    shift[groups] = np.cumsum(sizes) - sizes - bounds[groups]
    return groups.tolist(), flat + shift[owner]


def _gather(values: list[Tensor], groups: list[int], index: Tensor) -> Tensor:
    together = values[groups[0]] if len(groups) == 1 else torch.cat([values[group] for group in groups])
    return together.index_select(0, index)


def _move(parts: list[Integers], device: torch.device) -> tuple[Tensor, ...]:
    """All index arrays on the device, in one transfer that nothing waits for."""
    joined = torch.from_numpy(np.concatenate(parts))
    if device.type == "cuda":
        joined = joined.pin_memory().to(device, non_blocking=True)
    return torch.split(joined.to(device), [len(part) for part in parts])
