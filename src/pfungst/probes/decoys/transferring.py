"""Transfer: train on one choice set, fine-tune on another (Table 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pfungst.core.stats import Interval, bootstrap, compare_paired

if TYPE_CHECKING:
    from pfungst.probes.decoys.mlp import MlpConfig, Task


@dataclass(frozen=True)
class Transfer:
    """Accuracy on the target's test questions."""

    alone: Interval
    """Trained on the target alone."""
    before: Interval
    """Trained on the source alone."""
    after: Interval
    """Trained on the source, then fine-tuned on the target."""
    gain: Interval
    """After minus alone, paired."""


def transfer(
    source: Task,
    target: Task,
    test: Task,
    groups: Sequence[Any],
    inputs: str = "IQA",
    config: MlpConfig | None = None,
    seed: int = 0,
) -> Transfer:
    """Three scorers on the test questions of the target, in the layout of Table 6.

    source, target, test: tasks whose vectors and image features come from the same encoder and feature function.
    groups: the image of every test question, for the intervals.
    """
    from pfungst.probes.decoys import mlp

    config = config or mlp.MlpConfig(seed=seed)
    start = mlp.train(source, inputs, config)
    alone = mlp.right(mlp.train(target, inputs, config), test)
    before = mlp.right(start, test)
    after = mlp.right(mlp.train(target, inputs, config, start), test)
    return Transfer(
        bootstrap(alone, groups, seed=seed),
        bootstrap(before, groups, seed=seed),
        bootstrap(after, groups, seed=seed),
        compare_paired(after, alone, groups, seed=seed).difference,
    )
