"""What the audit trains, how, and what a cell of its table holds. Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pfungst.core import UsageError
from pfungst.core.stats import Interval

SEES = {
    "Q": "the question, without choices",
    "A": "neither image nor question",
    "QA": "the question alone",
    "IA": "the image alone",
    "IQA": "everything",
    "HieCoAtt": "everything",
    "Attention": "everything",
}
"""What there is to train -> what it sees. Q answers open questions (`audit_open`), the others pick a choice."""
MODELS = ("Q", "A", "QA", "IA", "IQA")


@dataclass(frozen=True)
class ScorerConfig:
    """How a scorer is trained. The paper gives the layer, the loss and the features; the rest is ours."""

    hidden: int = 8192
    """Neurons of the hidden layer (Sect. 5.2)."""
    epochs: int = 20
    """At most; the epoch with the best accuracy on held-out training images counts."""
    batch: int = 128
    """Questions per step, each with all its candidates."""
    rate: float = 3e-4
    dropout: float = 0.5
    decay: float = 1e-4
    held_out: float = 0.1
    """Share of the training images kept to choose the epoch."""
    seed: int = 0
    seeds: int = 1
    """Trainings of every scorer, with `seed`, `seed` + 1 ...; intervals are then over images and trainings."""
    device: str = "cpu"

    def each(self) -> Iterator[ScorerConfig]:
        """One configuration a training."""
        for number in range(self.seeds):
            yield replace(self, seed=self.seed + number, seeds=1)


@dataclass(frozen=True)
class Cell:
    """One model on one choice set."""

    variant: str
    model: str
    """`Eq. 2`, `position`, `MLP-A`, `MLP-QA`, `MLP-IA`, `MLP-IQA`, `HieCoAtt` or `Attention`."""
    accuracy: Interval
    note: str = ""
    vqa: Interval | None = None
    """What the picked answers score by the metric of the data set, where that is VQA's and several people answered."""


def row_name(name: str) -> str:
    """`MLP-QA` for QA; models with a name keep theirs."""
    return name if len(name) > 3 else f"MLP-{name}"


def find_models(names: Sequence[str]) -> tuple[str, ...]:
    """The scorers of these names, in any case; UsageError for one that does not exist. `none` alone is none."""
    if [name.lower() for name in names] == ["none"]:
        return ()
    known = {name.lower(): name for name in SEES}
    for name in names:
        if name.lower() not in known:
            raise UsageError(f"There is no scorer {name!r}; there are {', '.join(SEES)}, or none.")
    return tuple(dict.fromkeys(known[name.lower()] for name in names))
