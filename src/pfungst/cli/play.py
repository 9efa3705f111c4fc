"""pfungst play and games"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst import api
from pfungst.cli.examine import print_plan, print_run
from pfungst.cli.options import DryRun, Images, Json, SkipBad, data_options, with_options
from pfungst.cli.show import print_json, progress_bar, say, show_table
from pfungst.core import ExamSpec, Place, Table, read_config
from pfungst.core.code import own_modules
from pfungst.core.settings import split_settings
from pfungst.core.store import AnswerStore
from pfungst.probes.game.rules import GameSettings

if TYPE_CHECKING:
    from pfungst.probes.game.extras import Tried


EXAM = ("player", "seed", "player_options", "open_questions", "replicas", "max_errors")


@with_options(GameSettings(seeds=30), after="data")
@with_options(ExamSpec, only=EXAM, after="limit")
def play(
    data: Annotated[str, typer.Option("--data", "-d", help="Questions with scenes and programs.")] = "world",
    transfer: Annotated[
        list[Path] | None,
        typer.Option(help="Also try the scenes that fooled the player of this other run. Repeatable."),
    ] = None,
    strips: Annotated[
        int,
        typer.Option(
            min=0, help="Draw this many fooled scenes before and after; for models of the zoo also what they looked at."
        ),
    ] = 8,
    fairness: Annotated[
        str,
        typer.Option(
            help="Slot Attention that checks whether the objects can still be seen (B.6): auto, none, or a folder."
        ),
    ] = "auto",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Where the player runs: cpu, cuda, cuda:1. Short for --option device=...")
    ] = None,
    images: Images = None,
    skip_bad: SkipBad = False,
    on: Annotated[str, typer.Option("--on", help="Where mini-games run: local, processes, ray ...")] = "local",
    workers: Annotated[int | None, typer.Option(min=1, help="Mini-games at once [one per core].")] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Let an adversary move the objects of scenes until the player is fooled, while the right answer stays the same.

    This is `pfungst examine` with only the probe `game`, plus the paper's tables and images. Run the
    same command again to resume a run that was stopped; nothing is asked twice.
    """
    from pfungst.players.resolving import Recipe
    from pfungst.probes.game.extras import add_extras, check_answered
    from pfungst.probes.game.probe import Game

    own_modules()
    for other in transfer or ():
        read_config(other)  # a folder that cannot be read must not wait until everything is played
    exam = {name: given.pop(name) for name in EXAM}
    settings = split_settings(given["options"] or [], what=f"adversary {given['adversary']}")
    probe = Game(**{**given, "options": settings})
    player, options = exam["player"], split_settings(exam["player_options"] or [], noun="option")
    options |= {"device": device} if device else {}
    about_data = data_options(images, skip_bad)
    recipe = Recipe.of(player, data, options, about_data, limit, exam["open_questions"])
    folder = out or Path("runs") / f"{api.slug(player)}-game-{probe.adversary}-{probe.size}"
    exam |= {"data": data, "probes": [probe], "out": folder, "limit": limit, "data_options": about_data,
             "player_options": options}  # fmt: skip
    if dry_run:
        from pfungst.planning import plan

        print_plan(plan(**exam), as_json)
        return
    if not as_json:
        most, each = probe.most_queries(), probe.queries_each()
        beside = "" if probe.make_control() is None else ", as many for the uniform control"
        say(f"at most {most:,} questions to {player}: {probe.seeds} x {probe.size} x {each}{beside}, and repetitions")
    tried: list[Tried] = []
    with progress_bar() as show:

        def extend(run: Path) -> None:
            show("drawing", 0, 1)
            tried.extend(add_extras(run, *recipe(), strips=strips, fairness=fairness, transfer=transfer or ()))
            show("drawing", 1, 1)

        run = api.examine_and(ExamSpec(**exam, place=Place(on, workers, recipe), progress=show), extend)
    _print(folder, as_json)
    for line in (*run.notes, *run.problems):
        say(f"{player}: {line}", file=sys.stderr)
    check_answered(tried)
    if run.problems:
        raise typer.Exit(1)


def _print(folder: Path, as_json: bool) -> None:
    from pfungst.probes.game import read_result, table_2, table_4, table_b1, with_controls
    from pfungst.report.card import read_extras, read_findings

    result = read_result(folder)
    both = with_controls([result])
    tables = [table_2(both), table_4([result], result.adversary), table_b1(both)]
    extras = read_extras(folder, "game")
    findings = read_findings(folder)
    if as_json:
        report = folder / "report.html"
        print_json(
            {"run": folder, "report": report, "findings": findings, "tables": tables, "extras": extras,
             "runs": result.runs, "worst": result.worst, "counts": result.counts}
        )  # fmt: skip
        return
    for table in tables:
        show_table(table)
    for section in (*findings[0]["tables"], *extras["tables"]):
        show_table(Table(**section))
    if result.about:
        say(f"The adversary {result.about}.")
    print_run(folder, False)


def games(
    runs: Annotated[list[Path], typer.Argument(help="Run folders with a game.")],
    transfer: Annotated[
        bool, typer.Option("--transfer", help="Try the scenes found against each player on all the others.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Put games side by side: the tables of the paper, success by budget, and what transfers."""

    from pfungst.experiments.games import tables as games_tables
    from pfungst.probes.game import read_result
    from pfungst.probes.game.extras import check_answered, transfer_table

    own_modules()
    results = [read_result(run) for run in runs]
    tables = games_tables(results)
    tried = _tried(runs) if transfer else []
    if transfer:
        tables.append(transfer_table(tried))
    if as_json:
        print_json({"tables": tables})
    else:
        for table in tables:
            show_table(table)
    check_answered(tried)
    if missing := sum(result.missing for result in results):
        say(f"{missing} mini-games are missing: they could not be finished. Play again.", file=sys.stderr)
        raise typer.Exit(1)


def _tried(runs: list[Path]) -> list[Tried]:
    """Scenes found against the player of each run, tried on the players of all runs."""
    from pfungst.players.resolving import Recipe
    from pfungst.probes.game import fooled_rows, read_moves, read_result
    from pfungst.probes.game.extras import Tried
    from pfungst.probes.game.rules import GameRules

    found: dict[str, list[dict[str, Any]]] = {}
    rules: dict[str, GameRules] = {}
    recipes = {}
    for run in runs:
        name = against = read_config(run)["player"]["name"]
        played = read_result(run).settings.rules
        if rules.setdefault(name, played) != played:
            against = f"{name}, {played.name}{' ood' if played.ood else ''}"
            rules[against] = played
        found.setdefault(against, []).extend(fooled_rows(read_moves(run)))
        recipes[name] = (Recipe.of_run(run), run)
    tried: list[Tried] = []
    for recipe, run in recipes.values():
        player, examples = recipe()
        with AnswerStore(run / "answers.sqlite") as store:
            for other, rows in found.items():
                tried.append(Tried.of(other, rows, player, examples, rules[other], store))
    return tried
