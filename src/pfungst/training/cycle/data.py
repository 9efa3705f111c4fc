"""Data for the ablation: training questions in one wording each, and held-out questions in groups of wordings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pfungst.core import Dataset, PfungstError
from pfungst.data import load
from pfungst.models import Inputs
from pfungst.probes.rephrase.generators import with_rephrasings
from pfungst.training._data import Prepared
from pfungst.training._prepare import prepare

ProgressCall = Callable[[str, int, int], None]


def world_splits(scenes: int, validation: int, seed: int = 0) -> dict[str, Dataset]:
    """`train` and `val` in training wordings, `heldout`: other scenes, every question with three held-out wordings."""
    from pfungst.world import embedded

    train = _originals(embedded(scenes, seed, split="train", rephrasings=0))
    val = _originals(embedded(validation, seed, split="val", rephrasings=0))
    asked = _originals(embedded(validation, seed + 1, split="val", rephrasings=0))
    from pfungst.probes.rephrase.world_words import WorldWords

    return {"train": train, "val": val, "heldout": with_rephrasings(asked, WorldWords("heldout"), 3, seed)}


def data_splits(
    train: str, test: str, *, rephraser: str = "rules", seed: int = 0, limit: int | None = None
) -> dict[str, Dataset]:
    """Splits of any data set: `test` is asked as it stands and, in groups, in the rephraser's words."""
    first, second = load(train, limit=limit), load(test, limit=limit)
    if not len(first) or not len(second):
        raise PfungstError("The ablation needs training and test questions.")
    held = (
        second
        if any(one.group and one.group != one.id for one in second)
        else with_rephrasings(second, rephraser, 3, seed)
    )
    return {"train": _originals(first), "val": _originals(second), "heldout": held}


def prepare_study(
    splits: dict[str, Dataset],
    out: str | Path,
    *,
    picture: str = "none",
    max_answers: int | None = None,
    progress: ProgressCall | None = None,
) -> Prepared:
    """The arrays of the three splits; those of an earlier call where they are the same."""
    folder = Path(out)
    wanted = {name: {"name": one.name, "fingerprint": one.fingerprint} for name, one in splits.items()}
    if (folder / "prepared.json").exists():
        known = Prepared.load(folder)
        if known.notes.get("data") == wanted and known.inputs.picture == picture:
            return known
    return prepare(splits, folder, inputs=Inputs(picture=picture), max_answers=max_answers, progress=progress)


def _originals(data: Dataset) -> Dataset:
    return replace(data, examples=tuple(one for one in data if not one.group or one.group == one.id))
