"""The models by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from pfungst.core import PfungstError
from pfungst.core.registry import Registry
from pfungst.core.settings import parse_settings
from pfungst.models.base import Model
from pfungst.models.batch import Sizes
from pfungst.models.names import TABLE

MODELS = Registry("model", "pfungst.models", {name: f"pfungst.models.{place}" for name, (place, _) in TABLE.items()})
"""Every architecture; other packages add theirs through the entry point group `pfungst.models`."""


def get_config(name: str, config: Any = "paper", **changes: Any) -> Any:
    """The configuration of a model: a preset's name, a mapping (as saved beside weights), or the dataclass itself."""
    kind: type[Model] = MODELS.get(name)
    if isinstance(config, str):
        if config not in kind.PRESETS:
            raise PfungstError(f"The model {name} has no preset {config!r}. It has: {', '.join(kind.PRESETS)}.")
        config = kind.PRESETS[config]
    elif isinstance(config, Mapping):
        config = parse_settings(kind.Config, config, what=f"model {name}")
    if changes:
        config = parse_settings(kind.Config, {**dataclasses.asdict(config), **changes}, what=f"model {name}")
    return config


def build(name: str, sizes: Sizes, config: Any = "paper", *, seed: int = 0, **changes: Any) -> Model:
    """A fresh model; the same arguments give the same weights.

    >>> model = build("film", Sizes(words=80, answers=28), "compact", blocks=3)
    """
    kind: type[Model] = MODELS.get(name)
    chosen = get_config(name, config, **changes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(sizes, chosen)
