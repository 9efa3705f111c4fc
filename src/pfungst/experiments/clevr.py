"""Is our world CLEVR? The same questions about original CLEVR images and about our drawing of the same scenes.

The players of the zoo learnt on the package's own scenes and images. If these stand for CLEVR, a player answers as well
about the original images. Each question is asked twice, so the difference is paired; intervals resample images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import (
    AnsweredTrial,
    DataError,
    Dataset,
    Exam,
    Example,
    FileImage,
    Findings,
    Probe,
    Table,
    Trial,
    Variant,
)
from pfungst.core.fingerprint import fingerprint
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, argument, claim, option

if TYPE_CHECKING:
    from pfungst.world import SceneImage

ORIGINAL, DRAWN = "original", "drawn"
SIZE = (480, 320)
"""Of the released images."""


@dataclass(frozen=True)
class ClevrStudy:
    """Ask about original CLEVR images and about our drawing of the same scenes, then play the game from these scenes.

    Questions are made from the scenes that have an image, in the wordings of the training split.
    """

    scenes: Path = argument()
    """File of released scenes, such as CLEVR_val_scenes.json."""
    images: Path = argument()
    """Folder of released images."""
    players: tuple[str, ...] = ("film", "tbd", "mdetr", "iep", "rn", "san")
    """Players that look at images."""
    per_scene: int = 6
    """Questions about each image."""
    limit: int | None = None
    """Only the first N images."""
    adversary: str = "rsg"
    """Adversary of the game."""
    games: int = 0
    """Mini-games for each player; 0: none."""
    size: int = 10
    """Questions of a mini-game."""
    budget: int = 100
    """Moved scenes to ask about, for each question of the game."""
    device: str = option("cpu", free=True)
    """Where the players run: cpu, cuda."""
    seed: int = 0
    """Seed of the questions and of the game."""


@dataclass(frozen=True)
class Redrawn(Probe):
    """A probe: the image is replaced by a drawing of its scene."""

    name: str = "redrawn"

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        from pfungst.probes import measure

        for example in data:
            query = measure.clean_query(example)
            drawn = replace(query, image=drawing(example))
            keeps = "the answer: the drawing shows the same scene through the same camera"
            yield Trial(example.id, (Variant(ORIGINAL, query), Variant(DRAWN, drawn)), keeps)

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        from pfungst.probes import measure

        clean, disturbed = (measure.accuracy(trials, name, seed) for name in (ORIGINAL, DRAWN))
        drop = measure.drop(trials, ORIGINAL, DRAWN, seed)
        changed = measure.changed(trials, ORIGINAL, DRAWN, seed)
        verdict = f"Original minus drawn: {measure.with_interval(drop)}; {measure.with_interval(changed)} change."
        failures = measure.worst(trials, DRAWN, ORIGINAL)
        rows = (clean, disturbed, drop, changed)
        return Findings(self.name, rows, verdict, clean, disturbed, drop, failures=failures)


@dataclass(frozen=True)
class Asked:
    """What came out for one player."""

    redrawn: Findings
    game: Findings | None = None


@dataclass(frozen=True)
class Compared:
    """What came out, with what it was asked about."""

    images: int
    questions: int
    fingerprint: str
    players: Mapping[str, Asked]


def run(config: ClevrStudy, out: Path, *, progress: Progress) -> Compared:
    """Ask every player, then play; each player's run folders stay in OUT."""
    from pfungst.players import resolve
    from pfungst.probes.game.probe import Game
    from pfungst.scores import get_metric

    data = questions(config)
    claim(out, config, data=data.fingerprint)
    drawn = replace(data, examples=tuple(replace(one, image=drawing(one)) for one in data))
    metric = get_metric(data.metric)
    asked: dict[str, Asked] = {}
    for name in config.players:
        progress("players", len(asked), len(config.players))
        player = resolve(name, data=data, **({} if config.device == "cpu" else {"device": config.device}))
        about = {"player": {"spec": name}}
        exam = Exam(player, data, [Redrawn()], metric, out / name, config.seed, about, progress)
        asked[name] = Asked(exam.run().findings[0])
        if config.games:
            game = Game(config.adversary, config.size, config.games, budget=config.budget)
            exam = Exam(player, drawn, [game], metric, out / f"{name}-game", config.seed, about, progress)
            asked[name] = replace(asked[name], game=exam.run().findings[0])
    progress("players", len(asked), len(config.players))
    return Compared(len({one.image_id for one in data}), len(data), data.fingerprint, asked)


def tables(result: Compared) -> list[Table]:
    """Original against drawn, and the game."""
    about = f"{result.questions:,} questions about {result.images:,} images."
    columns = ("player", "original", "drawn", "original − drawn", "p", "answers changed")
    rows = []
    for name, asked in result.players.items():
        found = asked.redrawn
        p = None if found.drop is None else found.drop.p
        rows.append((name, found.clean, found.disturbed, found.drop, p, found.rows[-1]))
    made = [Table("Original images and our drawing of the same scenes", columns, tuple(rows), about)]
    games = [(name, asked.game) for name, asked in result.players.items() if asked.game is not None]
    if games:
        lines = tuple(
            (name, game.clean, game.disturbed, game.drop, None if game.drop is None else game.drop.n)
            for name, game in games
        )
        made.append(Table("The game, from these scenes", ("player", "clean", "moved", "drop", "n"), lines))
    return made


def questions(config: ClevrStudy) -> Dataset:
    """Questions about the original images, each with its scene and the camera recovered from it."""
    from pfungst.world import Scene, estimate_camera
    from pfungst.world.questions import generate

    scenes, images = {}, {}
    for scene, image in _pictured(config.scenes, config.images)[: config.limit]:
        camera = estimate_camera(scene, *SIZE)
        # Rounded, so that the last bits of another processor do not make another data set.
        place = [round(float(value), 4) for value in camera.position]
        named = {**scene, "camera": place, "image_size": list(SIZE)}
        scenes[image.path.name], images[image.path.name] = named, image
    examples = []
    names = {Path(name).stem: name for name in images}
    for one in generate([Scene.from_json(scene) for scene in scenes.values()], config.per_scene, seed=config.seed):
        name = names[Path(one.image_filename).stem]
        examples.append(
            Example(
                id=f"q{one.index:05d}",
                question=one.question,
                image=images[name],
                image_id=name,
                answers=(one.answer,),
                target=one.answer,
                question_type=one.kind,
                scene=scenes[name],
                program=one.program,
            )
        )
    return Dataset("clevr originals", tuple(examples), metric="exact", fingerprint=fingerprint(tuple(examples)))


def _pictured(file: Path, folder: Path) -> list[tuple[Mapping[str, Any], FileImage]]:
    """Scenes whose image is there, by name."""
    from pfungst.data import scenes

    known = {path.stem: path for path in sorted(folder.glob("*")) if path.suffix in (".jpg", ".png")}
    found = [
        (scene, FileImage(known[stem])) for name, scene in scenes(file).items() if (stem := Path(name).stem) in known
    ]
    if not found:
        raise DataError.at(folder, "", f"none of the scenes of {file} has its image here.")
    return sorted(found, key=lambda pair: pair[1].path.name)


def drawing(example: Example) -> SceneImage:
    """Our image of a released scene, in the size of the original."""
    from pfungst.world import SceneImage

    return SceneImage(example.scene or {}, *SIZE)


EXPERIMENT = Experiment("clevr", ClevrStudy, run, tables)
