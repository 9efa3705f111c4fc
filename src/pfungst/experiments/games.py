"""The games of the zoo: Tables 2, 4, 5, B.1 and B.3 of Measuring CLEVRness, every player against every adversary.

Each game is an ordinary run folder, OUT/PLAYER-ADVERSARY-SIZE, which `pfungst report`, `compare`, `games` and `harden`
read. The mini-games of all games share one set of worker processes, so a machine with many cores and one GPU is never
idle; what is finished is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import Figure, Place, StoredPlayer, Table, UsageError
from pfungst.core.files import file_name
from pfungst.core.settings import split_settings
from pfungst.core.threads import available_cores
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, argument, claim, option

if TYPE_CHECKING:
    from pfungst.compute import Shard
    from pfungst.players.resolving import Recipe
    from pfungst.probes.game.playing import GameJob
    from pfungst.probes.game.results import Result
    from pfungst.probes.game.rules import GameSettings

NINE = ("film", "tbd", "mdetr", "rn", "iep", "san", "ban", "rn-state", "state-transformer")
"""The players of our tables."""


@dataclass(frozen=True)
class GamesConfig:
    """Play the game with many players and adversaries, and put the results side by side in the paper's tables."""

    players: tuple[str, ...] = argument(NINE)
    """Players, as for pfungst play [the nine of the zoo]."""
    adversaries: tuple[str, ...] = option(("a2c", "rsg"), "--adversary", "-a")
    """Adversaries. Repeatable."""
    data: str = option("world?seed=7&rephrasings=0", "--data", "-d")
    """Questions with scenes and programs."""
    open_questions: bool = option(True, "--open/--with-choices")
    """Leave out the choices in the data: any answer may be given."""
    size: int = 10
    """Questions of a mini-game."""
    seeds: int = 30
    """Mini-games for each player and adversary."""
    also: tuple[str, ...] = ()
    """Mini-games of another size as well, SIZExSEEDS: 100x30. Repeatable."""
    budget: int = 100
    """Moved scenes to ask about, for each question."""
    draws: int = 20_000
    """Moves to try per question, refused and repeated ones included."""
    setting: tuple[str, ...] = ()
    """A setting of the adversaries, key=value. Repeatable."""
    preset: str = "paper-places"
    """The rules: paper, paper-places, paper-literal or code."""
    device: str = option("cpu", free=True)
    """Where the players run: cpu, cuda, cuda:1."""
    on: str = option("local", free=True)
    """Where mini-games run: local, processes, ray ..."""
    workers: int | None = option(None, free=True)
    """Mini-games at once [one per core]."""
    seed: int = 0
    """Seed of every random choice."""

    def sizes(self) -> list[tuple[int, int]]:
        """Sizes of mini-games, and how many of each."""
        pairs = [(self.size, self.seeds)]
        for words in self.also:
            match = re.fullmatch(r"(\d+)x(\d+)", words)
            if match is None:
                raise UsageError(f"A size and its number of mini-games are written as 100x30, not {words!r}.")
            pairs.append((int(match[1]), int(match[2])))
        return pairs

    def settings(self, adversary: str) -> list[GameSettings]:
        """Of the games of an adversary, one for each size."""
        from pfungst.probes.game.rules import GameSettings

        options = split_settings(self.setting, what=f"adversary {adversary}")
        more: dict[str, Any] = {"budget": self.budget, "draws": self.draws, "preset": self.preset}
        return [GameSettings(adversary, size, seeds, options=options, **more) for size, seeds in self.sizes()]

    def recipe(self, player: str) -> Recipe:
        from pfungst.players.resolving import Recipe

        options = {} if self.device == "cpu" else {"device": self.device}
        return Recipe.of(player, self.data, options, {}, open_questions=self.open_questions)


def run(config: GamesConfig, out: Path, *, progress: Progress) -> tuple[Result, ...]:
    """Play what is not played yet."""
    from pfungst.probes.game.playing import TOGETHER, GameJob, play, play_ahead
    from pfungst.probes.game.tables import read_result

    claim(out, config)
    recipes = {player: config.recipe(player) for player in config.players}
    jobs = [
        (player, GameJob(recipes[player], settings, config.seed,
                         out / f"{file_name(player) or 'player'}-{adversary}-{settings.size}"))
        for player in config.players
        for adversary in config.adversaries
        for settings in config.settings(adversary)
    ]  # fmt: skip
    if config.on != "local":
        place = Place(config.on, config.workers)
        # Without a GPU, to render an image takes longer than to ask all players about it: as many together as leave
        # no worker idle.
        fewest = min(seeds for _, seeds in config.sizes())
        shared = max(1, len(jobs) * fewest // (config.workers or available_cores()))
        together = shared if config.device == "cpu" else min(shared, TOGETHER)
        play_ahead([job for _, job in jobs], place, out / ".rounds", together=together, progress=progress)
        _examine_all([job for _, job in jobs], place, out / ".exams", progress)
    results: list[Result] = []
    for player, job in jobs:
        progress("games", len(results), len(jobs))
        if config.on != "local" and (job.out / "findings.json").exists():
            result = read_result(job.out)
        else:
            asked, data = recipes[player]()
            about = recipes[player].config()
            result = play(asked, data, job.out, job.settings, seed=config.seed, progress=progress, config=about)
        results.append(replace(result, player=player))
    progress("games", len(jobs), len(jobs))
    return tuple(results)


def _examine_all(jobs: Sequence[GameJob], place: Place, staging: Path, progress: Progress) -> None:
    """The exams of games whose mini-games are all played, in the workers."""
    from pfungst.compute import Shard, run_shards
    from pfungst.probes.game.playing import made_player

    shards = []
    for job in jobs:
        player = made_player(job.source)
        about = [player.name, player.fingerprint, bool(player.reads_scenes)]
        shards.append(Shard(0, f"{job.out.name}.txt", about))
    work = partial(_examine, jobs={job.out.name: job for job in jobs})
    run_shards(work, shards, staging, on=place.on, workers=place.workers, progress=progress, what="exams")


def _examine(shard: Shard, *, jobs: Mapping[str, GameJob]) -> bytes:
    """One exam from what is stored: the player is not needed."""
    from pfungst.players.resolving import Recipe
    from pfungst.probes.game.playing import play

    job = jobs[shard.name.removesuffix(".txt")]
    recipe = job.source
    assert isinstance(recipe, Recipe)
    player = StoredPlayer(*shard.payload)
    play(player, recipe.examples(), job.out, job.settings, seed=job.seed, config=recipe.config())
    return b"done"


def tables(results: Sequence[Result]) -> list[Table]:
    """Every adversary beside its controls, Tables 2, 4 or 5, B.1 and B.3, and success against budget."""
    from pfungst.probes.game import tables as of_the_game

    played = of_the_game.apart(results)
    results = of_the_game.with_controls(played)
    names = dict.fromkeys(result.adversary for result in results)
    return [
        of_the_game.table_controls(played),
        *([of_the_game.table_sizes(played)] if len({result.size for result in played}) > 1 else []),
        of_the_game.table_search(results),
        of_the_game.table_2(results),
        *(of_the_game.table_4(results, name) for name in names),
        of_the_game.table_b1(results),
        of_the_game.table_b3(results),
        of_the_game.budget_table(results),
    ]


def figures(results: Sequence[Result]) -> list[Figure]:
    """Figures 8 to 11, and success against budget, for each size of mini-games."""
    from pfungst.probes.game.tables import apart, figures_8_to_11
    from pfungst.probes.measure import grouped

    by_size = grouped(apart(results), lambda result: result.size)
    if len(by_size) == 1:
        return figures_8_to_11(apart(results))
    return [
        replace(figure, title=f"{figure.title}, mini-games of {size}")
        for size, some in by_size.items()
        for figure in figures_8_to_11(some)
    ]


def _record(results: Sequence[Result]) -> dict[str, object]:
    from pfungst.probes.game.tables import with_controls

    names = ("player", "adversary", "runs", "counts")
    return {"games": [{name: getattr(result, name) for name in names} for result in with_controls(results)]}


EXPERIMENT = Experiment("games", GamesConfig, run, tables, figures, _record)
