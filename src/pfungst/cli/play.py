"""pfungst play"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    strips: Annotated[
        int, typer.Option(help="Draw so many fooled scenes, before and after; models of the zoo also from inside.")
    ] = 8,
    fairness: Annotated[
        str, typer.Option(help="Slot Attention that checks what can be seen: auto, none, or a folder (B.6).")
    ] = "auto",
    universal: Annotated[
        bool, typer.Option("--universal", help="One adversary for all: learn on many questions, test on unseen ones.")
    ] = False,
    train_questions: Annotated[int, typer.Option(help="With --universal: questions to learn on.")] = 2000,
    test_questions: Annotated[int, typer.Option(help="With --universal: unseen questions.")] = 300,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    limit: Annotated[int | None, typer.Option(help="Only the first so many examples.")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", help="A setting of the player, key=value. Repeatable.")
    ] = None,
    open_questions: Annotated[
        bool, typer.Option("--open", help="Leave out the choices that the data offer: any answer may be given.")
    ] = False,
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
    if universal and data == "world":
        data = WHOLE_WORLD
    source = Source(
        player, data, _frozen(data_options(images, skip_bad)), _frozen(parse_options(option or [])), limit,
        open_questions,
    )  # fmt: skip
    asked_player, examples = source()
    name = f"{_slug(asked_player.name)}-game-{'universal' if universal else f'{adversary}-{size}'}"
    folder = out or Path("runs") / name
    if universal:
        from pfungst.cli.play_universal import play_universal

        play_universal(asked_player, examples, folder, settings, train_questions, test_questions, as_json)
        return
    most = settings.most_queries()
    if not as_json:
        each = settings.queries_each()
        print(f"at most {most:,} questions to {asked_player.name}: {seeds} x {size} x {each}, and repetitions")
    with progress_bar() as show:
        count = counted(asked_player, most, show)
        result = play_games(
            asked_player, examples, folder, settings, source=source, on=on, workers=workers,
            progress=shown_progress(show), on_asked=count if on == "local" else None, words=source.words(),
        )  # fmt: skip
    extra = [_transfer(transfer or [], asked_player, examples, settings.rules, folder), _fairness(folder, fairness)]
    extra = [one for one in extra if one is not None]
    albums = _albums(folder, strips, asked_player)
    report = _report(result, folder, extra, albums)
    _print(result, folder, extra, albums, report, as_json)
    for note in getattr(asked_player, "notes", ()):
        print(f"{player}: {note}", file=sys.stderr)
    if result.failed:
        raise typer.Exit(1)


WHOLE_WORLD = "world?scenes=1500&rephrasings=0"
"""Questions for the universal adversary where the user names none: 3,750."""


def counted(player: Player, most: int, show: Any) -> Callable[[int], None]:
    """Counts answers into the progress bar; for a paid player with tokens, cost and queries left."""
    asked = 0

    def count(answers: int) -> None:
        nonlocal asked
        asked += answers
        usage = getattr(player, "usage", None)
        show("asking" if usage is None else f"asking · {usage}, {most - asked:,} left at most", asked, most)

    return count


@dataclass(frozen=True)
class Source:
    """Makes player and data from the words of the command line, in whatever process the game runs."""

    player: str
    data: str
    data_options: tuple[tuple[str, Any], ...]
    player_options: tuple[tuple[str, Any], ...]
    limit: int | None
    open_questions: bool = False
    """Whether the choices that the data offer are left out."""

    def __call__(self) -> tuple[Player, Sequence[Example]]:
        import sys
        from dataclasses import replace

        from pfungst.data import load
        from pfungst.players import resolve

        if "" not in sys.path:
            sys.path.insert(0, "")
        found = load(self.data, **dict(self.data_options))
        made = resolve(self.player, data=found, **dict(self.player_options))
        if self.limit is not None:
            found = found.subset(found.examples[: self.limit])
        if self.open_questions:
            found = found.subset([replace(one, choices=()) for one in found.examples])
        return made, found

    def words(self) -> dict[str, Any]:
        """What made player and data, for the run folder: `pfungst games` makes them again from it."""
        return {
            "player": self.player,
            "data": self.data,
            "data_options": dict(self.data_options),
            "player_options": dict(self.player_options),
            "limit": self.limit,
            "open": self.open_questions,
        }

    @classmethod
    def from_words(cls, words: Mapping[str, Any]) -> Source:
        return cls(
            words["player"], words["data"], _frozen(words["data_options"]), _frozen(words["player_options"]),
            words["limit"], bool(words.get("open", False)),
        )  # fmt: skip


def _frozen(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
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


def _fairness(folder: Path, wanted: str) -> Any:
    """The table of the visual fairness check; None where there is no detector or nothing to look at."""
    import pyarrow.parquet as pq

    from pfungst.models import shipped
    from pfungst.probes.game import check_fairness, fooled_rows, load_detector
    from pfungst.probes.game.fairness import DETECTOR

    if wanted == "none" or (wanted == "auto" and DETECTOR not in shipped()):
        return None
    table = pq.read_table(folder / "games.parquet")
    if not fooled_rows(table):
        return None
    return check_fairness(table, load_detector("" if wanted == "auto" else wanted)).table()


def _albums(folder: Path, count: int, player: Player) -> dict[str, list[Path]]:
    """Pictures of fooled scenes: before and after, and what a model of the zoo looked at."""
    if count < 1:
        return {}
    import pyarrow.parquet as pq

    from pfungst.probes.game import fooled_rows
    from pfungst.probes.game.inside import write_insides
    from pfungst.probes.game.strips import write_strips

    rows = fooled_rows(pq.read_table(folder / "games.parquet"))
    return {
        "Before and after": write_strips(folder, count),
        "Inside the player, before and after": write_insides(folder, rows, player, count),
    }


def _tables(result: Result) -> list[Any]:
    from pfungst.probes.game import table_2, table_4, table_b1

    return [table_2([result]), table_4([result], result.adversary), table_b1([result])]


def _report(result: Result, folder: Path, extra: list[Any], albums: dict[str, list[Path]]) -> Path:
    import json

    from pfungst.cli.play_report import write_play_report
    from pfungst.core import Table

    config = json.loads((folder / "game.json").read_text("utf-8"))
    counts = [(name, count) for name, count in {**result.counts, **_prefixed(result.left_out)}.items() if count]
    lines = [
        f"{result.adversary}, {len(result.runs)} mini-games of {result.size}, rules: {result.preset}",
        *([f"The adversary {config['adversary']}."] if config["adversary"] else []),
        *(f"{name} could not be finished: {why}" for name, why in result.failed),
    ]
    tables = [*_tables(result), *extra, Table("What happened", ("what", "count"), tuple(counts))]
    return write_play_report(folder, f"The game against {result.player}", lines, result.findings, tables, albums)


def _print(
    result: Result, folder: Path, extra: list[Any], albums: dict[str, list[Path]], report: Path, as_json: bool
) -> None:
    import json

    from pfungst.cli.show import print_json, print_table

    if as_json:
        named = {table.title: table for table in extra}
        transfer = named.get("Transfer of fooling scenes")
        print_json(
            {
                "run": str(folder),
                **result.to_json(),
                "transfer": transfer,
                "fairness": named.get("Visual fairness"),
                "strips": albums.get("Before and after", []),
                "inside": albums.get("Inside the player, before and after", []),
                "report": report,
            }
        )
        return
    for table in (*_tables(result), *result.findings.tables, *extra):
        show_table(table)
    counts = [(name, count) for name, count in {**result.counts, **_prefixed(result.left_out)}.items() if count]
    print_table("What happened", ("what", "count"), counts)
    about = json.loads((folder / "game.json").read_text("utf-8"))["adversary"]
    if about:
        print(f"The adversary {about}.")
    print(result.findings.verdict)
    for name, why in result.failed:
        print(f"{name} could not be finished: {why}")
    print(f"\n{folder / 'games.parquet'}\n{report}")


def show_table(table: Any) -> None:
    """A table of a probe in the terminal."""
    from pfungst.cli.show import print_table
    from pfungst.core.files import jsonable
    from pfungst.report.card import format_cell

    print_table(table.title, table.columns, [[format_cell(jsonable(cell)) for cell in row] for row in table.rows])


def _prefixed(left_out: Any) -> dict[str, int]:
    return {f"left out: {reason}": count for reason, count in left_out.items()}
