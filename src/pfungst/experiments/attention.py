"""Figure 4 of Cycle-Consistency for Robust VQA: where models look in every wording of one question, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import Example, PfungstError, Table
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, argument, option

if TYPE_CHECKING:
    from pfungst.report.attention import Look


@dataclass(frozen=True)
class AttentionConfig:
    """Figure 4: where models look in every wording of one question, side by side. Written to OUT/attention.html."""

    models: tuple[str, ...] = argument()
    """Trained models, one row each: zoo names or folders."""
    data: str = option("world", "--data", "-d")
    """Data set the question is from."""
    group: str = ""
    """Id of the original question [the first with rephrasings]."""
    generator: str = "rules"
    """Who rephrases data without groups: rules, world ..."""
    images: Path | None = None
    """Folder or archive of the images, if it is not next to the data."""
    device: str = "cpu"
    """cpu, cuda, cuda:1, mps."""


@dataclass(frozen=True)
class Shown:
    """What the figure shows."""

    figure: Path
    wordings: Sequence[Example]
    models: Mapping[str, Sequence[Look]]


def run(config: AttentionConfig, out: Path, *, progress: Progress) -> Shown:
    """Ask every model every wording, and draw."""
    from pfungst.data import load
    from pfungst.players import zoo
    from pfungst.probes.rephrase import with_rephrasings
    from pfungst.report.attention import draw_attention

    asked = load(config.data, images=config.images)
    if not any(example.group and example.group != example.id for example in asked):
        chosen = [example for example in asked if not config.group or example.id == config.group][:1]
        asked = with_rephrasings(asked.subset(chosen), config.generator)
    wanted = config.group or next((x.group for x in asked if x.group and x.group != x.id), "")
    wordings = sorted((x for x in asked if x.group == wanted), key=lambda x: x.id != wanted)
    if not wordings:
        raise PfungstError(f"{asked.name} has no rephrasing group {wanted!r}.")
    players = {Path(name).name: zoo.load(name, device=config.device) for name in config.models}
    figure = out / "attention.html"
    return Shown(figure, wordings, draw_attention(players, wordings, figure))


def tables(result: Shown) -> list[Table]:
    """What every model answers to every wording."""
    rows = tuple(
        (example.question, *(look.answer if look.right else f"{look.answer} (wrong)" for look in looks))
        for example, *looks in zip(result.wordings, *result.models.values(), strict=True)
    )
    target = result.wordings[0].target
    note = f"Right answer: {target}. Where they look: {result.figure}"
    return [Table("Answers to the wordings of one question", ("wording", *result.models), rows, note)]


def record(result: Shown) -> dict[str, Any]:
    return {
        "figure": str(result.figure),
        "group": result.wordings[0].group,
        "wordings": [{"id": x.id, "question": x.question, "target": x.target} for x in result.wordings],
        "models": {name: [look.to_json() for look in row] for name, row in result.models.items()},
    }


EXPERIMENT = Experiment("attention", AttentionConfig, run, tables, record=record)
