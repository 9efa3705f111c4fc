"""What adversarial training with the scenes that the game found is worth.

Measuring CLEVRness, "Adversarial training": manipulated scenes are mixed into the training of the player; the
paper "obtained only marginal improvements in robustness at the cost of a slight performance degradation". Here the
gain is measured where it counts: on fooling scenes of images that were not trained on, and in new games on new
scenes, against the adversary whose scenes were trained on and against another one.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import Dataset, Example, Finding, PfungstError, Table
from pfungst.core.files import jsonable
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.base import Experiment, argument, claim, lifted, option
from pfungst.training.config import FitConfig

if TYPE_CHECKING:
    from pfungst.models import Trained
    from pfungst.players.zoo import ZooPlayer
    from pfungst.probes.game import GameSettings

HELD_OUT = 0.3
"""Share of the images whose fooling scenes are kept for measuring."""


@dataclass(frozen=True)
class HardenConfig:
    """Train a model further with the scenes that fooled it, and find out whether that helps against anybody else.

    The hardened model is written to OUT: zoo:OUT plays it.
    """

    player: str = argument()
    """A model of the zoo: film, zoo:FOLDER ..."""
    runs: tuple[str, ...] = argument()
    """Folders of pfungst play with scenes that fooled it."""
    data: str = option("world#train", "--data", "-d")
    """Questions it also learns from."""
    test: str = "world?seed=7"
    """Questions on new scenes: for its accuracy, and for new games."""
    share: float = 0.3
    """Part of the training questions that are fooling scenes."""
    fit: FitConfig = lifted(FitConfig(epochs=3, rate=2e-4), "epochs", "rate")
    """A setting of the training: batch=64 ..."""
    adversary: str = option("a2c", "--adversary", "-a")
    """Plays the new games: as in the runs."""
    other: str = "cross-entropy"
    """Another adversary: is the gain only to the first?"""
    size: int = 10
    """Questions of a mini-game."""
    seeds: int = 10
    """New mini-games for each adversary; 0 for none."""
    budget: int = 100
    """Moved scenes to ask about, for each question."""
    device: str = option("cpu", free=True)
    """cpu, cuda, cuda:1, mps."""
    seed: int = 0
    """Seed of every random choice."""

    def games(self) -> dict[str, GameSettings]:
        """The new games, by the name of the adversary."""
        from pfungst.probes.game import GameSettings

        names = dict.fromkeys((self.adversary, self.other)) if self.seeds else {}
        return {name: GameSettings(name, self.size, self.seeds, budget=self.budget, uniform=False) for name in names}


@dataclass(frozen=True)
class Change:
    """A number before and after hardening."""

    name: str
    before: Finding
    after: Finding
    gain: Finding
    """What got better, above 0 is good: accuracy gained, or fewer questions fooled."""


@dataclass(frozen=True)
class Hardened:
    """What came of it."""

    folder: Path
    """Of the hardened model."""
    changes: tuple[Change, ...]
    found: int
    """Fooling scenes that were trained on."""
    held: int
    """Fooling scenes of other images, for measuring."""

    @property
    def verdict(self) -> str:
        from pfungst.probes.measure import with_interval

        games = [change for change in self.changes if change.name.startswith("game")]
        saved = ", ".join(
            f"{game.name.removeprefix('game, ')} fools {with_interval(game.gain)} fewer questions" for game in games
        )
        return (
            f"Training with {self.found} fooling scenes changes the accuracy on untouched scenes by "
            f"{with_interval(self.changes[0].gain)}" + (f"; in new games on new scenes, {saved}." if saved else ".")
        )


def run(config: HardenConfig, out: Path, *, progress: Progress) -> Hardened:
    """Load the model and the data, and harden it."""
    from pfungst.data import load
    from pfungst.players import resolve
    from pfungst.players.zoo import ZooPlayer

    player = resolve(config.player)
    if not isinstance(player, ZooPlayer):
        raise PfungstError(
            f"{config.player} cannot be trained from here: give a model of the zoo (zoo:NAME or zoo:FOLDER)."
        )
    return harden(player.trained, load(config.data), load(config.test), config, out, progress=progress)


def harden(
    trained: Trained,
    clean: Dataset,
    test: Dataset,
    config: HardenConfig,
    out: Path,
    *,
    progress: Progress = no_progress,
) -> Hardened:
    """Train a model of the zoo further on the questions `clean` and on scenes that fooled it; write it to `out`."""
    from pfungst.data.loading import select
    from pfungst.models import Trained
    from pfungst.players.zoo import ZooPlayer
    from pfungst.training import evaluate, fit, prepare
    from pfungst.training.augment import mixed_rows

    if trained.model.objective == "choice":
        raise PfungstError(f"{trained.name} learns to choose; hardening with found scenes needs a model that answers.")
    if not 0 < config.share < 1:
        raise PfungstError(f"The share of fooling scenes must be between 0 and 1, not {config.share}.")
    learnt, held = split_images(found_examples(config.runs), HELD_OUT, config.seed)
    if not learnt or not held:
        raise PfungstError(
            "The runs have fooling scenes of fewer than two images, too few to learn from some and check with others. "
            "Play more mini-games first."
        )
    # Found scenes have no choices, and all rows must be alike.
    asked = list(select(clean, open_questions=True))
    sets = {
        "train": dataset_of("train", [*asked, *learnt]),
        "held": dataset_of("held", held),
        "test": dataset_of("test", select(test, open_questions=True)),
    }
    claim(out, config, model=trained.fingerprint, **{name: data.fingerprint for name, data in sets.items()})
    prepared = prepare(
        sets, out / "data", inputs=trained.inputs, vocabulary=trained.vocabulary, reuse=True, device=config.device,
        progress=progress,
    )  # fmt: skip
    fit_config = dataclasses.replace(config.fit, seed=config.seed)
    model = copy.deepcopy(trained.model)
    rows = mixed_rows(len(asked), len(learnt), config.share, config.seed)
    mixed, checked = prepared.split("train").for_model(model).rows(rows).split_by_picture(0.1, config.seed)
    noted = {"model": trained.fingerprint, "share": config.share, "data": sets["train"].fingerprint}
    fitted = fit(
        model, mixed, validation=checked, config=fit_config, out=out / "fit", device=config.device, progress=progress,
        settings=noted,
    )  # fmt: skip
    old = trained.model.to(config.device)
    changes = []
    for name, split in (("untouched scenes", "test"), ("fooling scenes of other images", "held")):
        arrays = prepared.split(split).for_model(model)
        before, after = (
            evaluate(net, arrays, fit_config.batch, config.device).correct.tolist() for net in (old, model)
        )
        images = [example.image_id or example.id for example in sets[split]]
        changes.append(_change(f"accuracy, {name}", "accuracy", before, after, images))
    now = changes[0].after
    card = {
        **trained.card,
        "accuracy": now.value,
        "low": now.low,
        "high": now.high,
        "n": now.n,
        "hardened": {"found": len(learnt), "share": config.share, "steps": fitted.steps, "of": trained.fingerprint},
    }
    Trained(trained.name, model.to("cpu"), trained.vocabulary, trained.inputs, card).save(out)
    pair = [
        ZooPlayer(net, name=f"{trained.name}{ending}", device=config.device)
        for net, ending in ((trained, ""), (Trained.load(out), ", hardened"))
    ]
    for number, (name, settings) in enumerate(config.games().items()):
        changes.append(_new_games(f"game, {name}", pair, test, out / f"game-{number}", settings, config.seed, progress))
    return Hardened(out, tuple(changes), len(learnt), len(held))


def found_examples(runs: Sequence[str | Path]) -> list[Example]:
    """Every verified fooling scene of run folders of `pfungst play`, as an example with its true answer."""
    from pfungst.probes.game import read_moves

    examples: dict[str, Example] = {}
    for run in runs:
        for row in read_moves(Path(run)).to_pylist():
            if row["fooled"] and row["verified"] is not False and row["confirmed"] is not False:
                example = _example(row)
                examples.setdefault(example.id, example)
    return list(examples.values())


def _example(row: Mapping[str, Any]) -> Example:
    from pfungst.probes.game.rows import image_of, scene_after

    scene = scene_after(row)
    image = image_of(scene)
    name = f"{row['example_id']}@{image.digest[:10]}"
    return Example(
        name, row["question"], image, row["image_id"] or row["example_id"], (row["truth"],), row["truth"],
        question_type=row["question_type"], scene=scene, program=json.loads(row["program"]),
    )  # fmt: skip


def split_images(examples: Sequence[Example], share: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Two parts without a common image; the second has about `share` of the images (at least one, if two exist)."""
    from pfungst.training.data import held_images

    held = held_images([example.image_id for example in examples], share, np.random.default_rng([seed, 0xAD]))
    return [x for x in examples if x.image_id not in held], [x for x in examples if x.image_id in held]


def dataset_of(name: str, examples: Sequence[Example]) -> Dataset:
    """Examples from several places as one data set."""
    about = [[x.id, x.question, x.image.digest if x.image is not None else ""] for x in examples]
    return Dataset(name, list(examples), "exact", hashlib.sha256(json.dumps(about).encode()).hexdigest())


def _change(name: str, metric: str, before: Sequence[float], after: Sequence[float], images: Sequence[str]) -> Change:
    from pfungst.core.stats import compare_paired, interval_of
    from pfungst.probes.measure import finding

    paired = compare_paired(after, before, images) if metric == "accuracy" else compare_paired(before, after, images)
    return Change(
        name,
        finding(metric, interval_of(before, images), "before"),
        finding(metric, interval_of(after, images), "after"),
        finding("gain", paired),
    )


def _new_games(
    name: str,
    players: Sequence[ZooPlayer],
    test: Dataset,
    folder: Path,
    settings: GameSettings,
    seed: int,
    progress: Progress,
) -> Change:
    """How many questions the adversary fools, of the old and of the new player in the same new games."""
    from pfungst.probes.game import play
    from pfungst.probes.game.results import is_won

    wins: list[dict[str, float]] = []
    images: dict[str, str] = {}
    for player, place in zip(players, ("before", "after"), strict=True):
        boards = play(player, test, folder / place, settings, seed=seed, progress=progress).boards
        wins.append({board.example_id: float(is_won(board)) for board in boards})
        images |= {board.example_id: board.image_id for board in boards}
    shared = [key for key in wins[0] if key in wins[1]]
    before, after = ([won[key] for key in shared] for won in wins)
    return _change(name, "fooled", before, after, [images[key] for key in shared])


def tables(result: Hardened) -> list[Table]:
    rows = tuple((change.name, change.before, change.after, change.gain) for change in result.changes)
    note = (
        f"{result.verdict} Gain: accuracy gained, or fewer questions fooled. No image that is measured on was trained "
        f"on. Next: pfungst play zoo:{result.folder}"
    )
    return [Table("Hardening", ("what", "before", "after", "gain"), rows, note)]


def record(result: Hardened) -> dict[str, Any]:
    found: dict[str, Any] = jsonable(result)
    return {**found, "verdict": result.verdict}


EXPERIMENT = Experiment("harden", HardenConfig, run, tables, record=record, out="runs/{player}-hardened")
