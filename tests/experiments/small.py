"""An experiment that is done in no time: for what all experiments have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any

from pfungst.core import Figure, Series, Table
from pfungst.experiments import Experiment, argument, claim, kept, lifted, option


@dataclass(frozen=True)
class Inner:
    steps: int = 10
    """Steps of a run."""
    rate: float = 0.5
    """Highest rate."""


@dataclass(frozen=True)
class Small:
    """Squares of numbers.

    The second paragraph.
    """

    numbers: tuple[int, ...] = argument()
    """What is squared."""
    models: tuple[str, ...] = option(("a", "b"), free=True)
    """Models, one column each. More of it is not shown."""
    fit: Inner = lifted(Inner(steps=4), "steps")
    """Settings of the training."""
    changes: Mapping[str, Any] = option(MISSING, "--set", factory=dict)
    """A setting of the models."""
    limit: int | None = None
    """At most so many numbers."""
    words: Path | None = None
    """A file."""
    loud: bool = False
    """Say more."""
    device: str = option("cpu", free=True)
    """cpu, cuda ..."""
    seed: int = field(default=0)


def run(config: Small, out: Path, *, progress: Any) -> dict[str, Any]:
    claim(out, config, data="d1")
    done = {}
    for place, number in enumerate(config.numbers[: config.limit]):
        done[str(number)] = kept(out / "cells" / f"{number}.json", lambda number=number: number**2)
        progress("squares", place + 1, len(config.numbers))
    return {"squares": done, "steps": config.fit.steps, "rate": config.fit.rate, "changes": dict(config.changes)}


def tables(result: dict[str, Any]) -> list[Table]:
    return [Table("Squares", ("number", "square"), tuple(result["squares"].items()), "All of them.")]


def figures(result: dict[str, Any]) -> list[Figure]:
    square = result["squares"]
    return [Figure("Squares", "line", (Series("n", tuple(square), tuple(map(float, square.values()))),), "n", "n < 9")]


EXPERIMENT = Experiment("small", Small, run, tables, figures)
