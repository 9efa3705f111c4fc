"""Commands that help with the tool itself: pfungst new, check, doctor, cache, and what `pfungst` alone says"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst import __version__
from pfungst.cli import PROBLEMS_FOUND
from pfungst.cli.options import Json, family
from pfungst.cli.show import print_json, print_table, say, tell
from pfungst.core.code import own_modules
from pfungst.core.files import cache_root

check_app = family("Check that your own parts follow the rules.")

GREETING = """\
Pfungst {version}: does a visual question answering model reason, or is it a Clever Hans?

Three commands to try:
  pfungst examine rn-state --limit 50   examine a model that comes with it; ends with the path of a report
  pfungst new player my-model           a small tested package to start your own player from
  pfungst doctor                        what this machine has, and what is missing

All commands: pfungst --help. One of them: pfungst examine --help.
Docs: docs/index.md in the source, tutorials first; `make docs` builds the site."""


def greet() -> None:
    """Print it."""
    say(GREETING.format(version=__version__))


def new(
    kind: Annotated[str, typer.Argument(help="player, probe, metric or data.")],
    name: Annotated[str, typer.Argument(help="Its name, for example my-model.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder [NAME].")] = None,
    as_json: Json = False,
) -> None:
    """Write a small package for your own part: working code, its entry point and its tests."""
    from pfungst.helping import write_skeleton

    folder = out or Path(name)
    files = write_skeleton(kind, name, folder)
    next_ = f"\nNext: cd {folder}, pip install --editable ., python -m pytest. Its README.md says how to use it."
    tell({"folder": folder, "files": files}, [*files, next_], as_json)


def doctor(as_json: Json = False) -> None:
    """Look at this machine: what is there, what is missing, what that costs, and how to get it.

    Exits with 3 if something keeps Pfungst from working; missing optional parts do not count.
    """
    from pfungst.helping import diagnose

    found = diagnose()
    broken = [one for one in found if one.state == "broken"]
    if as_json:
        print_json({"ok": not broken, "checks": found})
    else:
        present = [one for one in found if one.state == "ok"]
        lacking = [one for one in found if one.state != "ok"]
        if present:
            print_table("There", ("what", "found", "note"), [(one.what, one.found, one.costs) for one in present])
        if lacking:
            rows = [(one.what, one.state, one.found, one.costs, one.cure) for one in lacking]
            print_table("Missing", ("what", "", "found", "what it costs", "how to get it"), rows)
        say("Something keeps Pfungst from working: see the rows marked broken." if broken else "Pfungst can work here.")
    if broken:
        raise typer.Exit(PROBLEMS_FOUND)


def cache(
    names: Annotated[list[str] | None, typer.Argument(help="Only these folders of the cache.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Delete their contents.")] = False,
    as_json: Json = False,
) -> None:
    """Show what is cached, or clear it. Runs are not part of it, and files of other programs are never touched.

    What is cleared is made again when needed. What was paid for (`rephrasings`) is cleared only if you name it.
    """
    from pfungst.helping import clear as clear_cache
    from pfungst.helping import kept
    from pfungst.helping.machine import sized

    found = clear_cache(names or ()) if clear else kept(names or ())
    size = sum(one.size for one in found)
    if as_json:
        print_json({"folder": cache_root(), "cleared": clear, "size": size, "kept": found})
        return
    rows = [(one.name, one.about, f"{one.files:,}", sized(one.size)) for one in found]
    if rows:
        print_table("", ("folder", "what it holds", "files", "size"), rows)
    say(f"{cache_root()}: {sized(size)}{' cleared' if clear else ''}.")
    for one in found:
        if one.foreign:
            say(f"{one.folder} holds {one.foreign} files that Pfungst did not write; they are kept.")


@check_app.command("player")
def check_player(
    player: Annotated[str, typer.Argument(help="A player, as for `pfungst examine`.")],
    data: Annotated[str | None, typer.Option("--data", "-d", help="Ask questions of this data set.")] = None,
    as_json: Json = False,
) -> None:
    """Does a player answer in order, one answer per query, the same in any batch?"""

    from pfungst.data import load
    from pfungst.players import check_player as run_check
    from pfungst.players import resolve
    from pfungst.probes.measure import clean_query

    own_modules()
    loaded = load(data) if data else None
    queries = [clean_query(example) for example in loaded[:16]] if loaded else None
    _tell(run_check(resolve(player, data=loaded), queries), as_json)


@check_app.command("probe")
def check_probe(probe: Annotated[str, typer.Argument(help="A probe.")], as_json: Json = False) -> None:
    """Does a probe make the same trials from the same seed, and say what they keep?"""
    import pfungst.players  # noqa: F401  (offers rephrasers that ask a player)
    from pfungst.probes import check_probe as run_check
    from pfungst.probes import get_probe

    _tell(run_check(get_probe(probe)), as_json)


@check_app.command("metric")
def check_metric(metric: Annotated[str, typer.Argument(help="A metric.")], as_json: Json = False) -> None:
    """Does a metric score from 0 to 1 whatever is said, the same twice, and the right answer highest?"""
    from pfungst.scores import check_metric as run_check
    from pfungst.scores import get_metric

    _tell(run_check(get_metric(metric)), as_json)


@check_app.command("ranker")
def check_ranker(ranker: Annotated[str, typer.Argument(help="A ranker.")], as_json: Json = False) -> None:
    """Does a ranker keep shapes, order and exclusions, and rank the same twice?"""
    from pfungst.probes.noise import check_ranker as run_check
    from pfungst.probes.noise.ranking import get_ranker

    _tell(run_check(get_ranker(ranker)), as_json)


def _tell(problems: list[str], as_json: bool) -> None:
    tell({"problems": problems}, [f"- {problem}" for problem in problems] or ["No problem found."], as_json)
    if problems:
        raise typer.Exit(PROBLEMS_FOUND)
