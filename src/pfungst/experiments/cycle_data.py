"""Data for the ablation: training questions in one wording each, and held-out questions in groups of wordings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import pfungst.players  # noqa: F401  (offers the rephrasers model and vqg)
from pfungst.core import DataError, Dataset, PfungstError
from pfungst.core.types import Progress, no_progress
from pfungst.data import load
from pfungst.experiments.cycle import CycleStudy, is_prepared
from pfungst.experiments.photographs_training import splits as photograph_splits
from pfungst.models import Inputs, Sizes, Vocabulary
from pfungst.models.vocabulary import split_words
from pfungst.probes.rephrase.generators import with_rephrasings
from pfungst.probes.rephrase.world_words import WorldWords
from pfungst.text.encoders import WordVectors
from pfungst.training.data import PARTS, ArrayData, Prepared
from pfungst.training.preparing import prepare
from pfungst.world import embedded
from pfungst.world.builtin import _examples
from pfungst.world.constants import BOUND, DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.making import draw_scene
from pfungst.world.questions import TemplateSet, generate, load_templates

HELD_OUT, CHOOSE = "heldout", "choose"
"""Questions in groups of wordings; questions about training images that the best step is chosen on."""
OBJECT_FEATURES = 18
"""8 colours, 3 shapes, 2 sizes, 2 materials, presence, x and y."""
WORDS = "words.npz"
"""Word vectors of a study, beside its arrays."""


def study_splits(config: CycleStudy) -> dict[str, Dataset]:
    """`train` in one wording, `val` in the same wordings, `heldout` in groups of other wordings."""
    if config.data != "world":
        return _data_splits(config)
    return _kind_splits(config) if config.kinds else _world_splits(config)


def _world_splits(config: CycleStudy) -> dict[str, Dataset]:
    """`heldout`: other scenes than those of `val`, every question with three held-out wordings."""
    seed = config.world_seed
    train = embedded(config.scenes, seed, split="train", rephrasings=0).originals
    val = embedded(config.validation, seed, split="val", rephrasings=0).originals
    asked = embedded(config.validation, seed + 1, split="val", rephrasings=0).originals
    return {"train": train, "val": val, HELD_OUT: with_rephrasings(asked, WorldWords("heldout"), 3, seed)}


def _kind_splits(config: CycleStudy) -> dict[str, Dataset]:
    """As `_world_splits`, with questions of some kinds alone (`zero_hop`, `one_hop` ...): small models learn simple
    ones well in a short time, so that what is left to get wrong is the words. Training scenes have 8, others 4."""
    families, seed = load_templates(), config.world_seed
    known = sorted({one.kind for one in families.templates})
    for kind in config.kinds:
        if kind not in known:
            raise PfungstError(f"The world has no questions of the kind {kind!r}. There are: {', '.join(known)}.")
    some = replace(families, templates=tuple(one for one in families.templates if one.kind in config.kinds))
    return {
        "train": _asked(some, "train", config.scenes, 8, 0, seed),
        "val": _asked(some, "val", config.validation, 4, 0, seed),
        HELD_OUT: _asked(some, HELD_OUT, config.validation, 4, 3, seed),
    }


def _asked(families: TemplateSet, split: str, scenes: int, each: int, rephrasings: int, seed: int) -> Dataset:
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


def _data_splits(config: CycleStudy) -> dict[str, Dataset]:
    """Splits of any data set: `test` is asked as it stands and, in groups, in each rephraser's words: `heldout` for the
    first, `heldout-NAME` for the others. A share of the training images may be kept apart as `choose`."""
    first, second = (load(spec, limit=config.limit) for spec in (config.data, config.test))
    if not len(first) or not len(second):
        raise PfungstError("The ablation needs training and test questions.")
    parts = {"train": first.originals}
    if config.held:
        apart = photograph_splits(parts["train"], second, config.held)
        parts = {"train": apart["train"], CHOOSE: apart["held"]}
    parts["val"] = second.originals
    if any(one.group and one.group != one.id for one in second):
        return {**parts, HELD_OUT: second}
    for number, spec in enumerate(config.rephraser):
        split = f"{HELD_OUT}-{spec.partition(':')[0]}" if number else HELD_OUT
        parts[split] = with_rephrasings(second, spec, 3, 0)
    return parts


def prepare_study(config: CycleStudy, out: Path, progress: Progress = no_progress) -> Prepared:
    """The arrays of a study: those of the folder that it names, or made from its data."""
    if is_prepared(config.data):
        return Prepared.load(config.data)
    return write_study(study_splits(config), config, out, progress)


def write_study(
    splits: Mapping[str, Dataset], config: CycleStudy, out: Path, progress: Progress = no_progress
) -> Prepared:
    """The arrays of all splits; those of an earlier call where they are the same.

    What a file of word vectors knows of the words of all splits joins the vocabulary. OUT/words.npz then holds these
    vectors, small enough to go with the arrays.
    """
    usual = "efficientnet-lite0" if config.data != "world" else "world" if config.sees == "image" else "none"
    vocabulary = None
    (out / WORDS).unlink(missing_ok=True)
    if config.words:
        vectors = WordVectors.read(config.words)
        vocabulary = known_words(splits, vectors.rows, config.max_answers)
        known = [word for word in vocabulary.words if word in vectors.rows]
        out.mkdir(parents=True, exist_ok=True)
        np.savez(out / WORDS, words=np.array(known), vectors=vectors.of(known).astype(np.float16))
    return prepare(
        splits, out, inputs=Inputs(picture=config.picture or usual), vocabulary=vocabulary, min_count=config.min_count,
        max_answers=config.max_answers, reuse=True, device=config.device, progress=progress,
    )  # fmt: skip


def known_words(splits: Mapping[str, Dataset], known: Container[str], max_answers: int | None = None) -> Vocabulary:
    """The vocabulary of the first split, and the words of the others that somebody knows."""
    first, *others = splits.values()
    learnt = Vocabulary.build(
        (one.question for one in first), (one.target or "" for one in first), max_answers=max_answers
    )
    more = {word for data in others for one in data for word in split_words(one.question) if word in known}
    return replace(learnt, words=tuple(sorted({*learnt.words, *more})))


@dataclass(frozen=True)
class Wordings:
    """Held-out questions in groups."""

    ending: str
    """What tells them from others in names: "", "-NAME"."""
    data: ArrayData
    groups: NDArray[np.int64]
    """(N,) group of every question."""
    pictures: NDArray[np.int64]
    """(N,) their images."""


@dataclass(frozen=True)
class StudyData:
    """Training, validation (training wordings, new images) and held-out wordings in groups."""

    train: ArrayData
    val: ArrayData
    wordings: tuple[Wordings, ...]
    """Held-out wordings, one for each rephraser."""
    sizes: Sizes
    vocabulary: Vocabulary
    choose: ArrayData | None = None
    """Questions that the best step is chosen on, about other images than those that are measured; None where none is
    chosen."""

    def each(self, change: Callable[[ArrayData], ArrayData]) -> StudyData:
        """The same with all its arrays changed."""
        return replace(
            self,
            train=change(self.train),
            val=change(self.val),
            wordings=tuple(replace(one, data=change(one.data)) for one in self.wordings),
            choose=change(self.choose) if self.choose else None,
        )


def load_study(prepared: Prepared, config: CycleStudy) -> StudyData:
    """The splits as the study uses them."""
    asked = [name for name in prepared.splits if name.partition("-")[0] == HELD_OUT]
    apart = [CHOOSE] if config.early_stop and CHOOSE in prepared.splits else []
    parts = {name: prepared.split(name, config.sees == "image") for name in ("train", "val", *apart, *asked)}
    sizes = prepared.sizes()
    for name in asked:
        if "group" not in parts[name].arrays:
            raise DataError.at(
                prepared.folder, name, "there is no array `group` that says which wordings belong together."
            )
    if config.sees == "objects":
        parts = {name: with_objects(data) for name, data in parts.items()}
        sizes = replace(sizes, regions=OBJECT_FEATURES)
    train = one_wording(parts["train"])
    if config.questions and len(train) > config.questions:
        order = np.argsort(train.picture, kind="stable")[: config.questions]
        train = train.rows(np.sort(order))
    train = only_pictures(train)
    val, choose = one_wording(parts["val"]), parts.get(CHOOSE)
    if config.early_stop and choose is None:
        val, choose = val.split_by_picture(0.5, seed=0)
        parts |= {name: about_others(parts[name], choose) for name in asked}
    wordings = []
    for name in asked:
        groups, pictures = (np.asarray(parts[name].arrays[one]).astype(np.int64) for one in ("group", "picture"))
        wordings.append(Wordings(name.removeprefix(HELD_OUT), parts[name], groups, pictures))
    return StudyData(train, val, tuple(wordings), sizes, prepared.vocabulary, choose)


def one_wording(data: ArrayData) -> ArrayData:
    """The first wording of every group."""
    if "group" not in data.arrays:
        return data
    _, first = np.unique(np.asarray(data.arrays["group"]), return_index=True)
    return data.rows(np.sort(first))


def only_pictures(data: ArrayData) -> ArrayData:
    """Without the images nobody asks about: they need not be copied to the device."""
    used, places = np.unique(data.picture, return_inverse=True)
    arrays = {
        name: array if name in PARTS else np.ascontiguousarray(np.asarray(array)[used]) if len(array) else array
        for name, array in data.arrays.items()
    }
    return replace(data, arrays={**arrays, "picture": places.astype(np.int32)})


def about_others(data: ArrayData, chosen: ArrayData) -> ArrayData:
    """Without the questions about images that `chosen` asks about: where a data set is rephrased, validation and
    held-out wordings ask about the same ones. Images are compared by content, as splits count them apart."""
    taken = set(_contents(chosen).values())
    same = [number for number, content in _contents(data).items() if content in taken]
    kept = np.flatnonzero(~np.isin(data.picture, same))
    if not len(kept):
        raise DataError("No held-out question is left for a best step: all are about images that it is chosen on.")
    return data.rows(kept) if same else data


def _contents(data: ArrayData) -> dict[int, bytes]:
    """Number of every image asked about -> hash of all that is known of it; none where nothing is."""
    known = [np.asarray(array) for name, array in sorted(data.arrays.items()) if name not in PARTS and len(array)]
    asked = np.unique(data.picture).tolist() if known else []
    return {number: hashlib.sha256(b"".join(one[number].tobytes() for one in known)).digest() for number in asked}


def with_objects(data: ArrayData) -> ArrayData:
    """Regions (M, O, 18) from the scenes: one-hot attributes, presence, place on the ground."""
    if "attributes" not in data.arrays:
        raise DataError("The data has no scenes to make objects of: use --see image.")
    attributes = np.asarray(data.arrays["attributes"]).astype(np.int64)
    there = (attributes[..., :1] > 0).astype(np.float32)
    places = np.asarray(data.arrays["positions"], np.float32) / BOUND * there
    known = [np.eye(n + 1, dtype=np.float32)[attributes[..., i]][..., 1:] for i, n in enumerate((8, 3, 2, 2))]
    regions = np.concatenate([*known, there, places], -1).astype(np.float16)
    arrays = {name: array for name, array in data.arrays.items() if name != "pictures"}
    return replace(data, arrays={**arrays, "regions": regions})
