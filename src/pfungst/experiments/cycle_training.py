"""The trainings of a study of cycle consistency: their data, and one run, which trains a model in one variant.

The data are training questions in one wording each, and held-out questions in groups of wordings.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable, Container, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

import pfungst.players  # noqa: F401  (offers the rephrasers model and vqg)
from pfungst.compute import Shard
from pfungst.core import DataError, Dataset, PfungstError
from pfungst.core.files import jsonable
from pfungst.core.types import Progress, no_progress
from pfungst.data import load
from pfungst.experiments.base import check_known
from pfungst.experiments.cycle import BEST, JUDGED, PHOTOGRAPHS, VARIANTS, WRITING, CycleStudy, is_prepared
from pfungst.experiments.failure import failure_table
from pfungst.experiments.photographs import ROWS
from pfungst.experiments.photographs_training import sample, sized, start_looking
from pfungst.experiments.photographs_training import splits as photograph_splits
from pfungst.models import MODELS, Inputs, Model, Sizes, Vocabulary, build, get_config
from pfungst.models.trained import split_words
from pfungst.probes.rephrase.generators import with_rephrasings
from pfungst.probes.rephrase.world_words import WorldWords
from pfungst.text.encoders import WordVectors
from pfungst.training.checkpoint import CHECKPOINT, last_weights
from pfungst.training.config import FitConfig
from pfungst.training.cycle.generator import QuestionGenerator
from pfungst.training.cycle.loss import Cycle, answer_chances, hiding
from pfungst.training.cycle.tap import Tap
from pfungst.training.data import PARTS, ArrayData, Prepared, batches
from pfungst.training.loop import Loss, fit, model_losses
from pfungst.training.numerics import evaluate
from pfungst.training.preparing import prepare
from pfungst.training.words import start_words
from pfungst.world import embedded
from pfungst.world.builtin import examples_of
from pfungst.world.constants import BOUND, DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.making import draw_scene
from pfungst.world.questions import TemplateSet, generate, load_templates

DROPOUT = 0.4
"""As `pfungst reproduce photographs` has it."""
FAILURE_FIT = FitConfig(epochs=30, batch=256, rate=2e-3, weight_decay=1e-3)
"""How FP is trained."""
_AT_ONCE = 512
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
    examples = examples_of([one.to_json() for one in drawn], asked, DEFAULT_WIDTH, DEFAULT_HEIGHT)
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

    def to(self, device: str) -> StudyData:
        """The same where the model is: a run reads its arrays many times."""
        return self if device == "cpu" else self.each(lambda part: part.to(device))

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


@dataclass
class Runs:
    """Does the runs of a study, each into a file: its record and the score of every question."""

    arrays: Path
    config: CycleStudy
    begun: Path
    """Folder of the checkpoints: a run that was cut short continues."""
    progress: Progress | None = None
    data: StudyData | None = None
    on: StudyData | None = None
    """The same on the device: the runs of a process share it."""

    def __call__(self, shard: Shard, path: Path) -> None:
        if self.data is None:
            self.data = load_study(Prepared.load(self.arrays), self.config)
            self.on = self.data.to(self.config.device)
        model, variant, seed = shard.payload
        folder = self.begun / Path(shard.name).stem
        result = run_one((model, variant, seed), self.data, self.config, folder, self.progress, self.on)
        scores: dict[str, Any] = {name: value for name, value in result.items() if isinstance(value, np.ndarray)}
        about: dict[str, Any] = {f"group{one.ending}": one.groups for one in self.data.wordings}
        about |= {f"picture{one.ending}": one.pictures for one in self.data.wordings}
        record = {name: value for name, value in result.items() if name not in scores}
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                record=np.array(json.dumps(jsonable(record))),
                val_picture=self.data.val.picture,
                **about,
                **scores,
            )
        shutil.rmtree(folder)


def make_model(name: str, data: StudyData, config: CycleStudy, seed: int) -> Model:
    """A fresh model without a CNN of its own."""
    if config.preset == PHOTOGRAPHS:
        return _for_photographs(name, data, seed)
    kind = MODELS.get(name)
    preset = config.preset if config.preset in kind.PRESETS else "compact"
    known = {field.name for field in dataclasses.fields(kind.Config)}
    changes: dict[str, Any] = {key: value for key, value in config.changes.items() if key in known}
    pixels = data.sizes.image[0] == 3 and not data.sizes.regions
    if "stem" in known and not pixels:
        changes.setdefault("stem", ())
    model = build(name, data.sizes, get_config(name, preset, **changes), seed=seed)
    if config.words:
        start_words(model, data.vocabulary, config.words, fixed=config.fixed_words)
    return model


def _for_photographs(name: str, data: StudyData, seed: int) -> Model:
    check_known([name], ROWS, "The preset photographs has no model {0!r}. It has: {1}.")
    row = ROWS[name]
    model = build(row.model, data.sizes, sized(row.model, row.sizes, DROPOUT), seed=seed)
    start_looking(model, data.train.for_model(model).batch(sample(len(data.train))))
    return model


def run_one(
    key: tuple[str, str, int],
    data: StudyData,
    config: CycleStudy,
    out: Path,
    progress: Progress | None = None,
    on: StudyData | None = None,
) -> dict[str, Any]:
    """Train one model in one variant and measure it; its checkpoints lie in OUT, and it can be resumed."""
    name, variant, seed = key
    device, way = config.device, VARIANTS[variant]
    model = make_model(name, data, config, seed)
    on = (on or data.to(device)).each(lambda part: part.for_model(model))
    train, choose = on.train, on.choose
    fit_config = dataclasses.replace(config.fit, seed=seed, check_every=config.early_stop or config.fit.check_every)
    size, precision = max(512, fit_config.batch), fit_config.precision

    def check(now: Model) -> dict[str, float]:
        assert choose is not None
        return {"accuracy": evaluate(now, choose, size, device, precision).accuracy}

    losses: list[Loss] = [model_losses]
    cycle = None
    if way.changes is not None:
        changes = {**way.changes, **({"unknown": config.hidden} if way.hides else {})}
        wanted = dataclasses.replace(config.cycle, **changes)
        cycle = Cycle.of(model.to(device), train, wanted, fit_config.total(len(train)), seed, _allowed(data, config))
        losses.append(cycle)
    fitted = fit(
        model,
        train,
        config=fit_config,
        losses=losses,
        modules={**cycle.modules, "gate": cycle.kept} if cycle else {},
        transforms=(hiding(config.hidden),) if way.hides else (),
        check=check if choose else None,
        device=device,
        out=out,
        settings={"study": jsonable({"key": list(key), "cycle": config.cycle, "model": model.config})},
        progress=None if progress is None else lambda what, done, total: progress("training", done, total),
        tensorboard=False,
    )
    last = last_weights(out / CHECKPOINT) if choose else {}
    scored: dict[str, Any] = {}
    for ending, weights in ((BEST, None), ("", last)) if last else (("", None),):
        if weights:
            model.load_state_dict(weights)
        for part, asked in {"val": on.val, **{f"heldout{one.ending}": one.data for one in on.wordings}}.items():
            scored[f"{part}{ending}"] = evaluate(model, asked, size, device, precision).correct.astype(np.float32)
        if ending or not last:
            scored |= _more(model, variant, cycle, on, data, config, seed)
    if cycle is not None:
        cycle.close()
    return {
        "model": name,
        "variant": variant,
        "seed": seed,
        "steps": fitted.steps,
        "best_step": fitted.best_step or fitted.steps,
        "parameters": model.parameter_count,
        "gate": cycle.gate_rate() if cycle is not None else None,
        "seconds": round(fitted.seconds, 2),
        "precision": fitted.precision,
        **scored,
    }


def _more(
    model: Model, variant: str, cycle: Cycle | None, on: StudyData, data: StudyData, config: CycleStudy, seed: int
) -> dict[str, Any]:
    """What Tables 3 and 4 and Figure 4 need, of the weights that count."""
    found: dict[str, Any] = {
        f"looks{one.ending}": looks(model, one.data, one.groups, config.device) for one in on.wordings
    }
    if cycle is not None and variant in WRITING:
        found["asked"] = np.asarray(data.val.arrays["question"])
        found["written"] = written(model, cycle.generator, on.val, config.device)
    if variant in JUDGED:
        judged = failure_table(model, on.val, seed=seed, fit_config=FAILURE_FIT, device=config.device)
        found["failure"] = jsonable(judged)
    return found


def _allowed(data: StudyData, config: CycleStudy) -> Any:
    """(V,) bool: the words that `near` of the file of word vectors names; None where it has none."""
    if config.words is None or config.words.suffix != ".npz":
        return None
    with np.load(config.words, allow_pickle=False) as file:
        if "near" not in file.files:
            return None
        near = set(file["near"].tolist())
    return torch.tensor([False] * 4 + [word in near for word in data.vocabulary.words])


@torch.no_grad()
def looks(model: Model, data: ArrayData, groups: NDArray[np.int64], device: str) -> NDArray[np.float16]:
    """(N,) how far a model looks at the same place in another wording as in the original, for Figure 4.

    The overlap of the two attention maps, sum of min(a, b) over the cells with a and b summing to 1, averaged over the
    glimpses: 1 where they are the same, as of the originals, which are the first of their groups, and 0 where they
    share no cell. Empty if the model has no attention.
    """
    found = np.ones(len(data), np.float16)
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    others = np.setdiff1d(np.arange(len(data)), first)
    with closing(Tap(model.eval())) as tap:
        for start in range(0, len(others), _AT_ONCE):
            rows = others[start : start + _AT_ONCE]
            one, two = (_attention(model, tap, data, part, device) for part in (first[number[rows]], rows))
            if one is None or two is None:
                return found[:0]
            found[rows] = torch.minimum(one, two).sum(-1).mean(-1).cpu().numpy()
    return found


def _attention(model: Model, tap: Tap, data: ArrayData, rows: NDArray[np.int64], device: str) -> Tensor | None:
    """(B, glimpses, cells), each glimpse summing to 1."""
    weights = tap.attention(model(data.batch(rows).to(device)))
    if weights is None:
        return None
    weights = weights.float().clamp(min=0)
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-6)


@torch.no_grad()
def written(model: Model, generator: QuestionGenerator, data: ArrayData, device: str) -> NDArray[np.uint16]:
    """(N, T) the words of the question that G writes for every image and its right answer, greedily, without noise.

    Where the model cannot give the right answer, G is told what the model would say.
    """
    model.eval()
    generator.eval()
    found = []
    with closing(Tap(model)) as tap:
        for batch in batches(data, _AT_ONCE, device):
            output = model(batch)
            chances = answer_chances(model, output)
            assert batch.answer is not None
            answer = batch.answer
            if answer.ndim == 2:
                answer = torch.where(answer.amax(-1) > 0, answer.argmax(-1), -1)
            right = F.one_hot(answer.clamp(min=0), chances.shape[1]).to(chances.dtype)
            chances = torch.where((answer >= 0)[:, None], right, chances)
            condition = generator.condition(tap.features(output, generator.config.attended).float(), chances, 0.0)
            found.append(generator.write(condition, batch.question.shape[1], greedy=True).cpu())
    return torch.cat(found).numpy().astype(np.uint16)
