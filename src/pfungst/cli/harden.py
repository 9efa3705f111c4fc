"""pfungst harden"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pfungst.cli.examine import Json

if TYPE_CHECKING:
    from pfungst.core import Player
    from pfungst.models import Trained


def harden(
    player: Annotated[str, typer.Argument(help="A model of the zoo: film, zoo:FOLDER ...")],
    runs: Annotated[list[Path], typer.Argument(help="Folders of pfungst play with scenes that fooled it.")],
    data: Annotated[str, typer.Option("--data", "-d", help="Questions it also learns from.")] = "world#train",
    test: Annotated[str, typer.Option(help="Questions on new scenes: accuracy and new games.")] = "world?seed=7",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the hardened model.")] = None,
    share: Annotated[float, typer.Option(help="Part of the training questions that are fooling scenes.")] = 0.3,
    epochs: Annotated[float, typer.Option(help="Passes over the questions.")] = 3.0,
    rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 2e-4,
    adversary: Annotated[str, typer.Option("--adversary", "-a", help="Plays the new games: as in the runs.")] = "a2c",
    other: Annotated[str, typer.Option(help="Another adversary: is the gain only to the first?")] = "cross-entropy",
    size: Annotated[int, typer.Option(help="Questions of a mini-game.")] = 10,
    seeds: Annotated[int, typer.Option(help="New mini-games for each adversary; 0 for none.")] = 10,
    budget: Annotated[int, typer.Option(help="Moved scenes to ask about, for each question.")] = 100,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps.")] = "cpu",
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    as_json: Json = False,
) -> None:
    """Train a model further with the scenes that fooled it, and find out whether that helps against anybody else."""
    from pfungst.cli.play import show_table
    from pfungst.cli.show import print_json, progress_bar
    from pfungst.core import PfungstError
    from pfungst.data import load
    from pfungst.players import resolve
    from pfungst.players.zoo import ZooPlayer
    from pfungst.probes.game import PlaySettings
    from pfungst.training import FitConfig
    from pfungst.training.adversarial import harden as run

    found = resolve(player)
    if not isinstance(found, ZooPlayer):
        raise PfungstError(f"{player} cannot be trained from here: give a model of the zoo (zoo:NAME or zoo:FOLDER).")
    folder = out or Path("runs") / f"{found.trained.name}-hardened"
    games = {
        name: PlaySettings(size, seeds, adversary=name, budget=budget, seed=seed)
        for name in dict.fromkeys((adversary, other))
        if seeds
    }

    def make_player(trained: Trained, name: str) -> Player:
        return ZooPlayer(trained, name=name, device=device)

    with progress_bar() as show:
        result = run(
            found.trained, runs, load(data), load(test), folder, make_player=make_player, games=games, share=share,
            config=FitConfig(epochs=epochs, rate=rate, seed=seed), device=device, seed=seed, progress=show,
        )  # fmt: skip
    if as_json:
        print_json({"folder": str(folder), **result.to_json()})
        return
    show_table(result.table())
    print(result.verdict)
    print(f"\n{folder}\npfungst play zoo:{folder}")
