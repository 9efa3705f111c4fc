"""AdamW over everything that learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from pfungst.training.config import FitConfig


def make_optimizer(modules: Sequence[nn.Module], config: FitConfig) -> torch.optim.AdamW:
    """AdamW; weight decay on matrices and convolutions only."""
    decay: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for module in modules:
        for part in module.modules():
            for parameter in part.parameters(recurse=False):
                if not parameter.requires_grad or any(parameter is p for p in (*decay, *plain)):
                    continue
                spared = parameter.ndim < 2 or isinstance(part, nn.Embedding)
                (plain if spared else decay).append(parameter)
    groups: list[dict[str, Any]] = [
        {"params": decay, "weight_decay": config.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    on_gpu = all(parameter.is_cuda for parameter in (*decay, *plain))
    return torch.optim.AdamW(
        [g for g in groups if g["params"]], lr=config.rate, betas=config.betas, fused=True if on_gpu else None
    )
