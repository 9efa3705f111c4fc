"""pfungst rank"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst.cli.options import Json, On, Workers, own_device, place, with_options
from pfungst.cli.show import print_json, print_table, progress_bar, say
from pfungst.core import PfungstError
from pfungst.probes.noise.ranking import Ranking, RankSettings

if TYPE_CHECKING:
    from pfungst.probes.noise.bqd import MainQuestion


@with_options(RankSettings, after="pool_type")
def rank(
    question: Annotated[str | None, typer.Argument(help="One main question to look up.")] = None,
    main: Annotated[str | None, typer.Option(help="Data set (or .txt file) of main questions.")] = None,
    pool: Annotated[str, typer.Option(help="Data set (or .txt file, one question per line) to rank.")] = "world",
    pool_type: Annotated[str, typer.Option(help="Which questions of the pool: all or yes/no.")] = "all",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write: .parquet or .json.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Where the LASSO is solved: cpu, cuda ...; cuda:0,cuda:1 share it.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N main questions.")] = None,
    lambda_study: Annotated[
        str | None, typer.Option("--lambda-study", help="Compare these values of lambda, such as 1e-7,1e-6,1e-5,1e-2.")
    ] = None,
    on: On = "local",
    workers: Workers = None,
    as_json: Json = False,
    **how: Any,
) -> None:
    """Rank basic questions: look up one main question, or write a basic question dataset.

    Run the same command again to resume a ranking that was stopped.
    """
    from pfungst.compute import working
    from pfungst.compute.devices import check_device
    from pfungst.probes.noise import bqd

    if (question is None) == (main is None):
        raise PfungstError("Give either one main question, or --main with a data set of them.")
    if lambda_study is None and main is not None and out is None:
        raise PfungstError("Say where the basic question dataset goes: --out FILE.parquet.")
    asked = bqd.read_source(main, limit=limit) if main is not None else None
    questions = asked.questions if asked is not None else [bqd.MainQuestion(question or "")]
    source = bqd.read_source(pool, pool_type)
    candidates = source.texts
    where = place(on, workers, device)
    if where.on == "local":
        check_device(device)
    settings = RankSettings(**how)
    solver = own_device(where, device)
    known = [*(asked.examples if asked is not None else ()), *source.examples]
    with progress_bar() as progress, working(where):
        if lambda_study is not None:
            rows = bqd.lambda_study(questions, candidates, settings, _numbers(lambda_study), progress, solver, known)
        elif question is not None:
            ranking = settings.rank([questions[0].text], candidates, progress, solver, known)
        elif out is not None:
            bqd.build(out, questions, candidates, settings, progress, device=solver, known=known)
    about = {"main": asked.about()} if asked is not None else {}
    about |= {"pool": source.about()}
    if lambda_study is not None:
        _print_study(rows, about, as_json)
    elif question is not None:
        _print_lookup(questions[0], candidates, ranking, out, about, as_json)
    elif as_json:
        print_json({"file": str(out), "ranker": settings.ranker, "k": settings.k, **about})
    else:
        say(out)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--lambda-study takes numbers separated by commas, not {text!r}.") from None


def _print_lookup(
    main: MainQuestion, pool: list[str], ranking: Ranking, out: Path | None, about: dict[str, Any], as_json: bool
) -> None:
    rows = [
        (f"{place:02d}", f"{score:.3f}", pool[index])
        for place, (index, score) in enumerate(
            zip(ranking.indices[0].tolist(), ranking.scores[0].tolist(), strict=True), start=1
        )
    ]
    if out is not None:
        from pfungst.probes.noise.bqd import write_bqd

        write_bqd(out, [main], pool, ranking, {})
    gap = float(ranking.gaps[0])
    if as_json:
        basic = [
            {"question": text, "score": s} for (_, _, text), s in zip(rows, ranking.scores[0].tolist(), strict=True)
        ]
        row = {"main_question": main.text, "basic_questions": basic, "gap": gap, "ranker": ranking.ranker, **about}
        print_json(row if out is None else {**row, "file": str(out)})
        return
    print_table(f"MQ: {main.text}", ("BQ ID", "Similarity Score", "BQ"), rows)
    if gap == gap:
        say(f"certified relative duality gap: {gap:.1e}")


def _print_study(rows: list[dict[str, float]], about: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({"lambdas": rows, **about})
        return
    columns = list(rows[0])
    print_table("Lambda study", columns, [[f"{row[name]:.4g}" for name in columns] for row in rows])
