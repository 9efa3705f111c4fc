"""The trainings of the hardening matrix: what a model learns from in each way, and how it is examined afterwards."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pfungst.compute import Shard
from pfungst.core import Dataset, Exam, Example, PfungstError, Place, Probe
from pfungst.core.files import read_json, write_json
from pfungst.core.types import Progress, no_progress
from pfungst.data import load
from pfungst.data.loading import select
from pfungst.experiments.base import kept
from pfungst.experiments.harden import dataset_of, found_examples
from pfungst.experiments.matrix import BEFORE, BLOCKS_FILE, MEASURES, MatrixConfig, kit, measured
from pfungst.models import Model, Trained, load_shipped, shipped
from pfungst.players.resolving import Recipe
from pfungst.players.zoo import ZooPlayer
from pfungst.probes import get_probe
from pfungst.probes.game import Game, GameSettings, play
from pfungst.probes.noise.probe import Noise
from pfungst.probes.rephrase.generators import get_rephraser
from pfungst.scores import get_metric
from pfungst.training import fit, prepare
from pfungst.training.augment import mixed_rows, recolour, shuffle_objects
from pfungst.training.cycle.loss import Cycle, hiding
from pfungst.training.data import ArrayData, Prepared
from pfungst.training.loop import Loss, Transform, model_losses

BLOCKS = ("noise", "rephrase", "scenes")
"""Ways that put questions in: they stand behind the plain ones in the arrays, in this order."""
TRAINS_ON, READS = "rules", "world"
"""Who rephrases training questions, and who those of the world that are examined: in other words than the training's
rephraser has, so that the gain is not to its words alone."""
MINI_GAME = 10


@dataclass(frozen=True)
class Kit:
    """What the trainings of one model share."""

    trained: Trained
    arrays: ArrayData
    """On the device: plain questions, then the blocks."""
    blocks: dict[str, int]
    """Questions of each part: `plain`, and those of `BLOCKS`."""
    test: Dataset

    def rows(self, way: str, share: float, seed: int) -> NDArray[np.int64]:
        """The training questions of a way."""
        plain = self.blocks["plain"]
        if way not in BLOCKS:
            return np.arange(plain)
        start = plain + sum(self.blocks[name] for name in BLOCKS[: BLOCKS.index(way)])
        rows = mixed_rows(plain, self.blocks[way], share, seed)
        return np.where(rows >= plain, rows - plain + start, rows)


def model_of(name: str) -> Trained:
    name = name.removeprefix("zoo:")
    return load_shipped(name) if name in shipped() else Trained.load(name)


def _drawn(data: Dataset, most: int, seed: int) -> Dataset:
    """Originals without their choices, at most so many, drawn by the seed."""
    whole = select(data, open_questions=True)
    examples = whole.originals
    chosen = np.sort(np.random.default_rng([seed, 0xE2]).permutation(len(examples))[:most])
    told = hashlib.sha256(f"{data.fingerprint} {most} {seed}".encode()).hexdigest()
    return dataclasses.replace(whole, examples=tuple(examples[i] for i in chosen.tolist()), fingerprint=told)


def make_kit(name: str, config: MatrixConfig, out: Path, progress: Progress = no_progress) -> None:
    """Write the arrays of a model: noisy and rephrased questions are kept, scenes that fool it are searched once."""
    trained = model_of(name)
    source, asked = config.sources(name)
    test = _drawn(load(asked), config.limit, config.seed)
    for probe in probes_for(test, config):
        probe.prepare(test, config.seed, progress)  # rankings and decoys are cached: trainings share them
    place = kit(name, out)
    if (place / BLOCKS_FILE).exists():
        return
    data = _drawn(load(source), config.questions, config.seed)
    texts = out / "texts" / data.fingerprint[:16]
    noise = kept(texts / "noise.json", lambda: _noisy(data, config, progress))
    others = kept(texts / "rephrase.json", lambda: _rephrased(data, config))
    blocks = {
        "plain": list(data),
        "noise": _worded(data, noise, "noise"),
        "rephrase": _worded(data, others, "rephrase"),
        "scenes": _fooling(name, data, config, place, progress) if "scenes" in config.ways else [],
    }
    learnt = dataset_of("train", [example for block in blocks.values() for example in block])
    inputs = trained.inputs
    if not _looks(trained):
        inputs = dataclasses.replace(inputs, picture="none")
    prepare(
        {"train": learnt}, place / "arrays", inputs=inputs, vocabulary=trained.vocabulary, device=config.device,
        reuse=True, progress=progress,
    )  # fmt: skip
    write_json(place / BLOCKS_FILE, {part: len(block) for part, block in blocks.items()})


def _looks(trained: Trained) -> bool:
    return "image" in trained.model.reads | trained.model.learns_from


def _noisy(data: Dataset, config: MatrixConfig, progress: Progress) -> dict[str, str]:
    """Id -> the question with one of the seven partitions of its basic questions, drawn by the seed."""
    probe = Noise(controls="none")
    probe.prepare(data, config.seed, progress)
    rng = np.random.default_rng([config.seed, 0x401])
    noisy = {}
    for trial in probe.trials(data, config.seed):
        level = int(rng.integers(1, len(trial.variants)))
        noisy[trial.example_id] = trial.variants[level].query.question
    return noisy


def _rephrased(data: Dataset, config: MatrixConfig) -> dict[str, str]:
    found = get_rephraser(TRAINS_ON).rephrase(list(data), 1, config.seed)
    return {example.id: texts[0] for example, texts in zip(data, found, strict=True) if texts}


def _worded(data: Dataset, texts: dict[str, str], what: str) -> list[Example]:
    return [
        dataclasses.replace(example, id=f"{example.id}@{what}", question=texts[example.id])
        for example in data
        if example.id in texts
    ]


def _fooling(name: str, data: Dataset, config: MatrixConfig, place: Path, progress: Progress) -> list[Example]:
    """Scenes that fooled the model as it is, at most as many as there are plain questions."""
    if not any(example.scene is not None and example.program is not None for example in data):
        return []
    device = {} if config.device == "cpu" else {"device": config.device}
    recipe = Recipe.of(f"zoo:{name.removeprefix('zoo:')}", config.sources(name)[0], device, {}, open_questions=True)
    settings = GameSettings(
        "rsg", MINI_GAME, config.train_games, options={"batch": config.train_budget}, budget=config.train_budget
    )
    player, whole = recipe()
    where = Place("processes", config.jobs, recipe) if config.jobs > 1 else None
    about = recipe.config()
    play(player, whole, place / "game", settings, seed=config.seed, place=where, progress=progress, config=about)
    found = found_examples([place / "game"])
    if not found:
        raise PfungstError(f"No scene fooled {name} in {config.train_games} mini-games: play more (--train-games).")
    order = np.random.default_rng([config.seed, 0x5CE]).permutation(len(found))
    return [found[i] for i in order[: len(data)].tolist()]


@lru_cache(maxsize=1)
def load_kit(name: str, config: MatrixConfig, out: Path) -> Kit:
    """What `make_kit` wrote, on the device."""
    trained = model_of(name)
    place = kit(name, out)
    arrays = Prepared.load(place / "arrays").split("train", _looks(trained)).for_model(trained.model)
    if config.device != "cpu":
        arrays = arrays.to(config.device)
    test = _drawn(load(config.sources(name)[1]), config.limit, config.seed)
    return Kit(trained, arrays, read_json(place / BLOCKS_FILE), test)


def train_and_examine(shard: Shard, path: Path, *, config: MatrixConfig, out: Path) -> None:
    """One training and its examination; the score of every question is written to `path`."""
    cell: dict[str, Any] = shard.payload
    if config.device == "cpu" and config.jobs > 1:
        torch.set_num_threads(1)
    shared = load_kit(cell["model"], config, out)
    trained = shared.trained
    told: dict[str, Any] = {}
    if cell["way"] != BEFORE:
        model, told = learn(shared, cell["way"], cell["seed"], config)
        trained = dataclasses.replace(trained, model=model, card={**trained.card, "hardened": cell})
        trained.save(out / "weights" / Path(shard.name).stem)
    player = ZooPlayer(trained, name=Path(shard.name).stem, device=config.device)
    scores = examine(player, shared.test, config, out / "exams" / Path(shard.name).stem)
    write_json(path, {**cell, **told, "scores": scores})


def learn(shared: Kit, way: str, seed: int, config: MatrixConfig) -> tuple[Model, dict[str, Any]]:
    """The model, trained further in one way: its last weights, as all ways have the same steps."""
    model = copy.deepcopy(shared.trained.model)
    data = shared.arrays.rows(shared.rows(way, config.share, seed))
    how = dataclasses.replace(config.fit, seed=seed)
    transforms: list[Transform] = []
    if "scene" in model.reads:
        transforms += [shuffle_objects, recolour(shared.trained.vocabulary)]
    if way == "hidden":
        transforms.append(hiding(config.hidden))
    losses: list[Loss] = [model_losses]
    cycle = None
    if way == "cycle":
        cycle = Cycle.of(model.to(config.device), data, config.cycle, how.total(len(data)), seed)
        losses.append(cycle)
    fitted = fit(
        model, data, config=how, losses=losses, modules=cycle.modules if cycle else {}, transforms=transforms,
        device=config.device, tensorboard=False,
    )  # fmt: skip
    if cycle is not None:
        cycle.close()
    told = {"steps": fitted.steps, "seconds": round(fitted.seconds, 1), "questions": len(data)}
    return model.to("cpu"), {**told, **({"gate": cycle.gate_rate()} if cycle else {})}


def probes_for(test: Dataset, config: MatrixConfig) -> list[Probe]:
    """The probes that the data can carry, but for `picture`."""
    wanted: Sequence[Probe] = (
        get_probe("control"),
        get_probe("noise"),
        get_probe(f"rephrase:generator={READS if any(one.program is not None for one in test) else TRAINS_ON}"),
        get_probe("surface"),
        get_probe("decoys:circular=none"),
        Game("rsg", MINI_GAME, config.games, options={"batch": config.budget}, budget=config.budget),
        get_probe("contrast"),
        get_probe("contrast:by=question"),
        get_probe("blind"),
    )
    found: dict[str, Probe] = {}
    for probe in wanted:
        try:
            probe.check_data(test)
        except PfungstError:
            continue  # such as a game about photographs; the table says so
        found.setdefault(probe.name, probe)
    return list(found.values())


def examine(player: ZooPlayer, test: Dataset, config: MatrixConfig, place: Path) -> dict[str, Any]:
    """Measure -> ids, images and scores of the questions."""
    metric = get_metric(test.metric)
    Exam(player, test, probes_for(test, config), metric, place, config.seed).run()
    if not player.reads_scenes:
        few = dataclasses.replace(test, examples=tuple(test)[: config.pictures])
        Exam(player, few, [get_probe("picture:severities=3")], metric, place / "picture", config.seed).run()
    found = {}
    for measure in MEASURES:
        if (scores := measured(measure, place / "picture" if measure == "picture" else place)) is not None:
            found[measure] = scores
    return found
