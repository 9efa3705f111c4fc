"""pfungst check, and pfungst data"""

from __future__ import annotations

from typing import Annotated

import typer

from pfungst.cli import PROBLEMS_FOUND
from pfungst.cli.examine import Images, Json, SkipBad, data_options
from pfungst.cli.show import progress_bar, tell
from pfungst.core.code import own_modules

app: typer.Typer = typer.Typer(help="Check that your own parts follow the rules.", no_args_is_help=True)
data_app: typer.Typer = typer.Typer(help="Look at data sets.", no_args_is_help=True)


@app.command("player")
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


@app.command("probe")
def check_probe(probe: Annotated[str, typer.Argument(help="A probe.")], as_json: Json = False) -> None:
    """Does a probe make the same trials from the same seed, and say what they keep?"""
    import pfungst.players  # noqa: F401  (offers rephrasers that ask a player)
    from pfungst.probes import check_probe as run_check
    from pfungst.probes import get_probe

    _tell(run_check(get_probe(probe)), as_json)


@app.command("metric")
def check_metric(metric: Annotated[str, typer.Argument(help="A metric.")], as_json: Json = False) -> None:
    """Does a metric score from 0 to 1 whatever is said, the same twice, and the right answer highest?"""
    from pfungst.scores import check_metric as run_check
    from pfungst.scores import get_metric

    _tell(run_check(get_metric(metric)), as_json)


@app.command("ranker")
def check_ranker(ranker: Annotated[str, typer.Argument(help="A ranker.")], as_json: Json = False) -> None:
    """Does a ranker keep shapes, order and exclusions, and rank the same twice?"""
    from pfungst.probes.noise import check_ranker as run_check
    from pfungst.probes.noise.ranking import get_ranker

    _tell(run_check(get_ranker(ranker)), as_json)


def _tell(problems: list[str], as_json: bool) -> None:
    tell({"problems": problems}, [f"- {problem}" for problem in problems] or ["No problem found."], as_json)
    if problems:
        raise typer.Exit(PROBLEMS_FOUND)


@data_app.callback()
def _data() -> None:
    pass


@data_app.command("check")
def check_data(
    spec: Annotated[str, typer.Argument(help="The data set.")],
    images: Images = None,
    skip_bad: SkipBad = False,
    decode: Annotated[bool, typer.Option("--decode", help="Open every image once, and list the broken ones.")] = False,
    as_json: Json = False,
) -> None:
    """Count what a data set holds, and name every bad record with file and position."""
    from pfungst.data import check

    with progress_bar(quiet=not decode) as progress:
        report = check(spec, decode=decode, progress=progress, **data_options(images, skip_bad))
    tell(report.as_dict(), [report], as_json)
    if not report.ok:
        raise typer.Exit(PROBLEMS_FOUND)
