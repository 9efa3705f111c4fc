"""pfungst study"""

from __future__ import annotations

import secrets
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst.cli.options import Images, Json, SkipBad, data_options, family
from pfungst.cli.show import print_json, print_table, progress_bar, say, show_table, tell
from pfungst.core.code import own_modules
from pfungst.core.settings import parse_settings, read_settings

if TYPE_CHECKING:
    from pfungst.study import Study

app = family("Ask people: make a study, serve it, read its results.")

Folder = Annotated[Path, typer.Argument(help="The folder of the study.")]
Address = Annotated[
    str,
    typer.Option(
        "--database", envvar="PFUNGST_STUDY_DATABASE",
        help="postgresql://USER:PASSWORD@HOST/NAME [study.sqlite in the folder].",
    ),
]  # fmt: skip
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any free one.")]


@app.command("new")
def new(
    kind: Annotated[
        str,
        typer.Argument(
            help="same-different, withheld, rephrase, validate, judge or kept; settings after a colon, such as "
            "withheld:sets=qou+iou."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to make.")],
    data: Annotated[
        str, typer.Option("--data", "-d", help="A data set; for same-different, judge and kept a run folder.")
    ] = "",
    limit: Annotated[
        int | None, typer.Option(min=1, help="How many questions, drawn at random (same-different: per condition).")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="How the study runs, NAME=VALUE: title, wanted, per_worker, pay ... Repeatable."),
    ] = None,
    database: Address = "",
    images: Images = None,
    skip_bad: SkipBad = False,
    as_json: Json = False,
) -> None:
    """Make a study: its items, its images, and an empty database."""

    from pfungst.study import StudySettings, new_study

    own_modules()
    settings = parse_settings(StudySettings, [f"kind={kind}", f"data={data}", *(setting or ())], what="study")
    with progress_bar() as progress:
        made = new_study(out, settings, database=database, options=data_options(images, skip_bad), limit=limit,
                         progress=progress)  # fmt: skip
    made.study.close()
    notes = [f"Note: {note}" for note in made.notes]
    folder = shlex.quote(str(out))
    after = f"Next: pfungst study workers {folder} --add {made.workers}; pfungst study serve {folder}"
    told = {"folder": out, "items": made.items, "notes": made.notes}
    tell(told, [f"{out}: {made.items} items.", *notes, after], as_json)


@app.command("workers")
def workers(
    folder: Folder,
    add: Annotated[int, typer.Option(min=0, help="Invite this many new workers.")] = 0,
    code: Annotated[list[str] | None, typer.Option(help="Invite a worker with this code. Repeatable.")] = None,
    public: Annotated[str, typer.Option(help="Address where workers reach the server.")] = "http://127.0.0.1:8908",
    database: Address = "",
    as_json: Json = False,
) -> None:
    """List the workers with their links; invite new ones."""
    from pfungst.study import open_study

    study = open_study(folder, database)
    for name in [*(code or ()), *(f"w-{secrets.token_hex(4)}" for _ in range(add))]:
        study.book.join(name)
    base = public.rstrip("/")
    rows = [(one.code, f"{base}/w/{study.keys.token(one.id, one.code)}") for one in study.book.workers()]
    join = f"{base}/join/{study.keys.join}?worker=CODE"
    study.close()
    if as_json:
        print_json({"workers": [{"worker": name, "link": link} for name, link in rows], "join": join})
        return
    print_table("Workers", ("worker", "link"), rows)
    say(f"Workers who join on their own, such as through Prolific or Mechanical Turk: {join}")


@app.command("serve")
def serve(
    folder: Folder,
    host: Host = "127.0.0.1",
    port: Port = 8908,
    public: Annotated[str, typer.Option(help="Address where workers reach the server, if a proxy is in front.")] = "",
    database: Address = "",
    as_json: Json = False,
) -> None:
    """Serve a study to its workers. Ends with Ctrl-C; nothing is lost if it is killed."""
    from pfungst.study import open_study

    _serve(open_study(folder, database), host, port, public, as_json)


@app.command("results")
def results(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write results, answers, payments and exports here.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Other rules for whose answers count: pass_checks, pass_training, min_seconds. Repeatable."
        ),
    ] = None,
    database: Address = "",
    as_json: Json = False,
) -> None:
    """What people said: tables, agreement, workers; with --out also the files."""
    from pfungst.study import Rules, export_study, open_study, study_results

    own = read_settings(Rules, setting or (), what="study's results")
    study = open_study(folder, database)
    found = study_results(study, replace(study.settings, **own))
    files = export_study(study, found, out) if out is not None else []
    study.close()
    if as_json:
        print_json({**found.numbers(), "files": files})
        return
    say(found.title)
    say(f"{found.complete} of {found.items} items have all their answers; {found.answers} answers count.")
    if found.excluded:
        out_of = f"{sum(not one.counts for one in found.workers)} of {len(found.workers)} workers"
        say(f"{found.excluded} answers do not count: {out_of} broke a rule (see Workers).")
    for table in found.tables:
        show_table(table)
    for file in files:
        say(file)


@app.command("forget")
def forget(
    folder: Folder,
    worker: Annotated[str, typer.Argument(help="The code of the worker.")],
    database: Address = "",
    as_json: Json = False,
) -> None:
    """Delete a worker and everything they answered or wrote."""
    from pfungst.study import open_study

    study = open_study(folder, database)
    count = study.book.forget(worker)
    study.close()
    told = f"{worker} is forgotten, with {count} answers. Earlier copies still contain them: delete those too."
    tell({"worker": worker, "answers": count}, [told], as_json)


@app.command("demo")
def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the study; an existing study is served again.")
    ] = Path("study-demo"),
    host: Host = "127.0.0.1",
    port: Port = 8908,
    as_json: Json = False,
) -> None:
    """Play a small game on the built-in world, and serve the study that asks people about its scenes."""
    from pfungst.study import make_demo

    with progress_bar() as progress:
        study = make_demo(out, progress)
    _serve(study, host, port, "", as_json, invite=True)


def _serve(study: Study, host: str, port: int, public: str, as_json: bool, invite: bool = False) -> None:
    from pfungst.study import serve as run

    worker = study.book.join(f"you-{secrets.token_hex(2)}") if invite else None

    def ready(address: str) -> None:
        told: dict[str, Any] = {
            "address": address, "admin": f"{address}admin", "admin_token": study.keys.admin,
            "join": f"{address}join/{study.keys.join}?worker=CODE",
        }  # fmt: skip
        if worker is not None:
            told["link"] = f"{address}w/{study.keys.token(worker.id, worker.code)}"
        lines = [
            *([f"Take part yourself: {told['link']}"] if worker is not None else []),
            f"Workers join with {told['join']} (links of invited ones: pfungst study workers)",
            f"Progress and results are at {told['admin']}, with the token {told['admin_token']}",
            "Stop it with Ctrl-C.",
        ]
        tell(told, lines, as_json)
        sys.stdout.flush()

    run(study, host, port, public, ready)
