"""pfungst import"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Images, Json, SkipBad, data_options, end_with
from pfungst.cli.show import progress_bar


def import_logs(
    logs: Annotated[
        list[str], typer.Argument(help="Files of answers, all of one model; NAME=FILE names the condition of a file.")
    ],
    by: Annotated[
        str,
        typer.Option(help="What tells conditions apart: file, folder, circular, epoch, variant, or a column."),
    ] = "",
    clean: Annotated[str, typer.Option(help="The condition that the others are compared with.")] = "",
    again: Annotated[list[str] | None, typer.Option(help="A condition that repeats the clean one. Repeatable.")] = None,
    data: Annotated[
        str | None, typer.Option("--data", "-d", help="The data set, if the logs do not have the right answers.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder [runs/MODEL-DATA].")] = None,
    matcher: Annotated[str | None, typer.Option(help="How replies are read [lenient].")] = None,
    metric: Annotated[str | None, typer.Option(help="How answers are judged [what fits them].")] = None,
    name: Annotated[str, typer.Option(help="Name of the model, if the logs do not name it.")] = "",
    images: Images = None,
    skip_bad: SkipBad = False,
    as_json: Json = False,
) -> None:
    """Turn answers that other tools recorded into a run folder with its report; nobody is asked.

    Reads VQA results, LLaVA answers, lmms-eval, lm-eval, VLMEvalKit, inspect and evalscope logs, results of the
    batch APIs of OpenAI and Anthropic, and tables whose columns are named: FILE?reply=output&id=qid.
    """
    from pfungst.importing import import_logs as run_import

    with progress_bar() as progress:
        run = run_import(
            logs,
            out,
            by=by,
            clean=clean,
            again=again or (),
            data=data,
            data_options=data_options(images, skip_bad),
            matcher=matcher,
            metric=metric,
            name=name,
            progress=progress,
        )
    end_with(run, as_json)
