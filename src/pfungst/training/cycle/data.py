"""Data for the ablation: training questions in one wording each, and held-out questions in groups of wordings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pfungst.core import Dataset, PfungstError
from pfungst.data import load
from pfungst.models import Inputs, Vocabulary
from pfungst.models.vocabulary import split_words
from pfungst.probes.rephrase.generators import with_rephrasings
from pfungst.text.encoders import WordVectors
from pfungst.training.data import Prepared
from pfungst.training.preparing import prepare

if TYPE_CHECKING:
    from pfungst.world.questions import TemplateSet

WORDS = "words.npz"
"""Word vectors of a study, beside its arrays."""
ProgressCall = Callable[[str, int, int], None]


def world_splits(scenes: int, validation: int, seed: int = 0) -> dict[str, Dataset]:
    """`train` and `val` in training wordings, `heldout`: other scenes, every question with three held-out wordings."""
    from pfungst.world import embedded

    train = _originals(embedded(scenes, seed, split="train", rephrasings=0))
    val = _originals(embedded(validation, seed, split="val", rephrasings=0))
    asked = _originals(embedded(validation, seed + 1, split="val", rephrasings=0))
    from pfungst.probes.rephrase.world_words import WorldWords

    return {"train": train, "val": val, "heldout": with_rephrasings(asked, WorldWords("heldout"), 3, seed)}


def kind_splits(
    kinds: Sequence[str], scenes: int, validation: int, *, each: int = 8, seed: int = 0
) -> dict[str, Dataset]:
    """As `world_splits`, with questions of some kinds alone (`zero_hop`, `one_hop` ...): small models learn simple ones
    well in a short time, so that what is left to get wrong is the words.

    each : questions a training scene; other scenes have four
    """
    from pfungst.world.questions import load_templates

    families = load_templates()
    known = sorted({one.kind for one in families.templates})
    for kind in kinds:
        if kind not in known:
            raise PfungstError(f"The world has no questions of the kind {kind!r}. There are: {', '.join(known)}.")
    some = replace(families, templates=tuple(one for one in families.templates if one.kind in kinds))
    return {
        "train": _asked(some, "train", scenes, each, 0, seed),
        "val": _asked(some, "val", validation, 4, 0, seed),
        "heldout": _asked(some, "heldout", validation, 4, 3, seed),
    }


def _asked(families: TemplateSet, split: str, scenes: int, each: int, rephrasings: int, seed: int) -> Dataset:
    from pfungst.world.builtin import _examples
    from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
    from pfungst.world.making import draw_scene
    from pfungst.world.questions import generate

    drawn = [draw_scene(number, split=split, seed=seed) for number in range(scenes)]
    words = "heldout" if rephrasings else "train"
    asked = list(
        generate(drawn, each, rephrasings=rephrasings, phrasings=words, templates=families, split=split, seed=seed)
    )
    examples = _examples([one.to_json() for one in drawn], asked, DEFAULT_WIDTH, DEFAULT_HEIGHT)
    kinds = ",".join(sorted({one.kind for one in families.templates}))
    told = f"{families.fingerprint} {kinds} {split} {scenes} {each} {rephrasings} {seed}"
    fingerprint = hashlib.sha256(told.encode()).hexdigest()
    return Dataset(f"world {kinds}", tuple(examples), metric="exact", fingerprint=fingerprint)


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
    words: str = "",
    progress: ProgressCall | None = None,
) -> Prepared:
    """The arrays of the three splits; those of an earlier call where they are the same.

    words : file of word vectors; what it knows of the words of all splits joins the vocabulary. FOLDER/words.npz then
        holds these vectors, small enough to go with the arrays
    """
    folder = Path(out)
    wanted = {name: {"name": one.name, "fingerprint": one.fingerprint} for name, one in splits.items()}
    if (folder / "prepared.json").exists():
        known = Prepared.load(folder)
        same = known.notes.get("data") == wanted and known.inputs.picture == picture
        if same and (folder / WORDS).exists() == bool(words):
            return known
    (folder / WORDS).unlink(missing_ok=True)
    vocabulary = None
    if words:
        vectors = WordVectors.read(words)
        vocabulary = known_words(splits, vectors.rows, max_answers)
        some = [word for word in vocabulary.words if word in vectors.rows]
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / WORDS, words=np.array(some), vectors=vectors.of(some).astype(np.float16))
    inputs = Inputs(picture=picture)
    return prepare(splits, folder, inputs=inputs, vocabulary=vocabulary, max_answers=max_answers, progress=progress)


def known_words(splits: Mapping[str, Dataset], known: Container[str], max_answers: int | None = None) -> Vocabulary:
    """The vocabulary of the first split, and the words of the others that somebody knows."""
    first, *others = splits.values()
    learnt = Vocabulary.build(
        (one.question for one in first), (one.target or "" for one in first), max_answers=max_answers
    )
    more = {word for data in others for one in data for word in split_words(one.question) if word in known}
    return replace(learnt, words=tuple(sorted({*learnt.words, *more})))


def _originals(data: Dataset) -> Dataset:
    return replace(data, examples=tuple(one for one in data if not one.group or one.group == one.id))
