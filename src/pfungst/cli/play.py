"""pfungst play"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst.cli.examine import Images, Json, SkipBad

if TYPE_CHECKING:
    from pfungst.core import Example, Player
    from pfungst.probes.game import Result


def play(
    player: Annotated[str, typer.Argument(help="A player: my_module:answer, hf:MODEL, openai:MODEL@URL ...")],
    data: Annotated[str, typer.Option("--data", "-d", help="Questions with scenes and programs.")] = "world",
    size: Annotated[int, typer.Option(help="Questions of a mini-game.")] = 10,
    seeds: Annotated[int, typer.Option(help="Mini-games, each with questions and an adversary of its own.")] = 30,
    games: Annotated[
        int | None,
        typer.Option(help="At most so many samples of questions; --games 1 plays one sample again and again."),
    ] = None,
    adversary: Annotated[str, typer.Option("--adversary", "-a", help="a2c, a2c-pixel, a2c-plain, rsg ...")] = "a2c",
    setting: Annotated[
        list[str] | None, typer.Option("--setting", help="A setting of the adversary, key=value. Repeatable.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Moved scenes to ask about, for each question [rsg 5000, others 100].")
    ] = None,
    max_queries: Annotated[int | None, typer.Option(help="Most questions to the player, all in all.")] = None,
    preset: Annotated[str, typer.Option(help="The rules: paper, paper-literal or code.")] = "paper",
    ood: Annotated[bool, typer.Option("--ood", help="Lift the in-distribution constraints (appendix A.9).")] = False,
    relate_only: Annotated[bool, typer.Option("--relate-only", help="Only questions about places.")] = False,
    transfer: Annotated[
        list[Path] | None, typer.Option(help="Also try the fooling scenes of this other run. Repeatable.")
    ] = None,
    strips: Annotated[int, typer.Option(help="Draw so many fooled scenes, before and after.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    limit: Annotated[int | None, typer.Option(help="Only the first so many examples.")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", help="A setting of the player, key=value. Repeatable.")
    ] = None,
    images: Images = None,
    skip_bad: SkipBad = False,
    on: Annotated[str, typer.Option("--on", help="Where mini-games run: local, processes, ray ...")] = "local",
    workers: Annotated[int | None, typer.Option(help="Mini-games at once [one a core].")] = None,
    as_json: Json = False,
) -> None:
    """Let an adversary move the objects of scenes until the player is fooled, while the right answer stays.

    A run that was stopped goes on where it was when the same command is run again; nothing is asked twice.
    """
    import sys

    from pfungst.cli.examine import data_options, parse_options
    from pfungst.cli.show import progress_bar
    from pfungst.probes.game.playing import PlaySettings, shown_progress
    from pfungst.probes.game.playing import play as play_games

    sys.path.insert(0, "")  # the user's own module stands in the working folder
    settings = PlaySettings(
        size, seeds, games, adversary, parse_options(setting or []), budget, max_queries, preset, ood, relate_only,
        seed=seed,
    )  # fmt: skip
    most = settings.most_queries()
    source = Source(player, data, _frozen(data_options(images, skip_bad)), _frozen(parse_options(option or [])), limit)
    asked_player, examples = source()
    folder = out or Path("runs") / f"{_slug(asked_player.name)}-game-{adversary}-{size}"
    if not as_json:
        each = settings.queries_each()
        print(f"at most {most:,} questions to {asked_player.name}: {seeds} x {size} x {each}, and repetitions")
    asked = 0
    with progress_bar() as show:

        def count(answers: int) -> None:
            nonlocal asked
            asked += answers
            usage = getattr(asked_player, "usage", None)
            show("asking" if usage is None else f"asking · {usage}, {most - asked:,} left at most", asked, most)

        result = play_games(
            asked_player, examples, folder, settings, source=source, on=on, workers=workers,
            progress=shown_progress(show), on_asked=count if on == "local" else None,
        )  # fmt: skip
    extra = _transfer(transfer or [], asked_player, examples, settings.rules, folder)
    pictures = _strips(folder, strips)
    _print(result, folder, extra, pictures, as_json)
    for note in getattr(asked_player, "notes", ()):
        print(f"{player}: {note}", file=sys.stderr)
    if result.failed:
        raise typer.Exit(1)


@dataclass(frozen=True)
class Source:
    """Makes player and data from the words of the command line, in whatever process the game runs."""

    player: str
    data: str
    data_options: tuple[tuple[str, Any], ...]
    player_options: tuple[tuple[str, Any], ...]
    limit: int | None

    def __call__(self) -> tuple[Player, Sequence[Example]]:
        import sys

        from pfungst.data import load
        from pfungst.players import resolve

        if "" not in sys.path:
            sys.path.insert(0, "")
        found = load(self.data, **dict(self.data_options))
        made = resolve(self.player, data=found, **dict(self.player_options))
        return made, found if self.limit is None else found.subset(found.examples[: self.limit])


def _frozen(options: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(options.items()))


def _slug(name: str) -> str:
    import re

    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "player"


def _transfer(runs: list[Path], player: Player, examples: Sequence[Example], rules: Any, folder: Path) -> Any:
    if not runs:
        return None
    import json

    import pyarrow.parquet as pq

    from pfungst.core import PfungstError
    from pfungst.core.store import AnswerStore
    from pfungst.probes.game import fooled_rows, transfer_matrix

    found = {}
    for run in runs:
        try:
            name = json.loads((run / "game.json").read_text("utf-8"))["player"]["name"]
            found[f"{name} ({run.name})"] = fooled_rows(pq.read_table(run / "games.parquet"))
        except (OSError, ValueError, KeyError) as error:
            raise PfungstError(f"{run} is not a finished folder of pfungst play ({error}).") from error
    with AnswerStore(folder / "answers.sqlite") as store:
        return transfer_matrix(found, [player], examples, rules, store)


def _strips(folder: Path, count: int) -> list[Path]:
    if count < 1:
        return []
    from pfungst.probes.game.strips import write_strips

    return write_strips(folder, count)


def _print(result: Result, folder: Path, transfer: Any, pictures: list[Path], as_json: bool) -> None:
    from pfungst.cli.show import print_json, print_table
    from pfungst.core.files import jsonable
    from pfungst.probes.game import table_2, table_4
    from pfungst.report.card import format_cell

    if as_json:
        print_json({"run": str(folder), **result.to_json(), "transfer": transfer, "strips": pictures})
        return
    for table in (table_2([result]), table_4([result], result.adversary), *result.findings.tables, transfer):
        if table is not None:
            print_table(
                table.title, table.columns, [[format_cell(jsonable(cell)) for cell in row] for row in table.rows]
            )
    counts = [(name, count) for name, count in {**result.counts, **_prefixed(result.left_out)}.items() if count]
    print_table("What happened", ("what", "count"), counts)
    print(result.findings.verdict)
    for name, why in result.failed:
        print(f"{name} could not be finished: {why}")
    for path in pictures:
        print(path)
    print(f"\n{folder / 'games.parquet'}")


def _prefixed(left_out: Any) -> dict[str, int]:
    return {f"left out: {reason}": count for reason, count in left_out.items()}
