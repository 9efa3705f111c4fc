"""Running the programs of a batch with modules: one call of a module for all questions that need it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pfungst.models.programs import Plan, Token

Apply = Callable[[Token, list[Tensor], Tensor], Tensor]
"""`apply(token, inputs, examples)`: inputs (n, ...) each, examples (n,) the questions' numbers -> (n, ...)."""


def execute(programs: Plan, apply: Apply, device: torch.device) -> list[Tensor]:
    """The value of every node, (...) without a batch dimension."""
    values: list[Tensor | None] = [None] * programs.nodes
    for step in programs.steps:
        inputs = [torch.stack([_known(values[node]) for node in nodes]) for nodes in step.inputs]
        results = apply(step.token, inputs, torch.tensor(step.examples, device=device))
        for node, value in zip(step.nodes, results.unbind(0), strict=True):
            values[node] = value
    return [_known(value) for value in values]


def _known(value: Tensor | None) -> Tensor:
    if value is None:
        raise RuntimeError("A program was run out of order.")
    return value
