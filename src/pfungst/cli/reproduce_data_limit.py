"""pfungst reproduce data-limit"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Json


def data_limit(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the training runs and the figure.")] = Path(
        "runs/data-limit"
    ),
    objects: Annotated[list[int] | None, typer.Option(help="Objects on the grid: 2, 3, 4. Repeatable [2].")] = None,
    hops: Annotated[list[str] | None, typer.Option(help="onehop, twohop, mixhop. Repeatable [all].")] = None,
    percent: Annotated[
        list[float] | None, typer.Option(help="Share of the layouts seen, in percent. Repeatable [1 to 75].")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="rn, film, tbd. Repeatable [all].")] = None,
    trials: Annotated[int, typer.Option(help="Trials, each with other layouts [the paper has 10].")] = 1,
    steps: Annotated[int, typer.Option(help="Training steps of a run.")] = 2000,
    batch: Annotated[int, typer.Option(help="Questions a step.")] = 256,
    sees: Annotated[str, typer.Option(help="What the models see: pixels, world, or world:FOLDER.")] = "pixels",
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps.")] = "cpu",
    read: Annotated[bool, typer.Option("--read", help="Train nothing: draw what the folder holds.")] = False,
    as_json: Json = False,
) -> None:
    """How much of all layouts must a model see to be right on the rest? (Figure 2 of Measuring CLEVRness.)

    All ways to place 2, 3 or 4 objects on a 7x7 grid, with questions of one and two reasoning steps. Finished training
    runs are kept: the same command goes on. The whole figure takes a GPU: see scripts/data_limit.py.
    """
    from pfungst.cli.play import show_table
    from pfungst.cli.show import print_json, progress_bar
    from pfungst.core.files import jsonable, write_atomic, write_json
    from pfungst.probes.game.data_limit import HOPS
    from pfungst.probes.game.data_limit_plan import MODELS, PERCENTS, LimitPlan, read_cells, summarise
    from pfungst.probes.game.data_limit_runs import run_plan
    from pfungst.report.plots import draw

    plan = LimitPlan(
        tuple(objects or (2,)), tuple(hops or HOPS), tuple(percent or PERCENTS), tuple(model or MODELS), trials, steps,
        batch, sees=sees,
    )  # fmt: skip
    if read:
        results = read_cells(plan, out)
    else:
        with progress_bar() as show:
            results = run_plan(plan, out, device, progress=show)
    found = summarise(plan, results)
    figure, table = found.figure(), found.table()
    write_json(out / "data_limit.json", {"results": found.results, "figure": figure, "table": table})
    write_atomic(out / "data_limit.svg", _alone(draw(jsonable(figure)), figure.y_label).encode())
    if as_json:
        print_json({"folder": str(out), "figure": figure, "table": table})
        return
    show_table(table)
    print(f"\n{out / 'data_limit.svg'}")


_STYLE = (
    "<style>text{font:12px sans-serif;fill:#5d6878}.grid{stroke:#d9dee6}.axis{stroke:#5d6878}"
    ".whisker{stroke:#1d2430;fill:none;stroke-width:1.5}</style>"
)


def _alone(svg: str, y_label: str) -> str:
    """A plot of the report as a file of its own: with its style, a white ground, and what its height means."""
    head, _, rest = svg.partition(">")
    return f'{head}>{_STYLE}<rect width="100%" height="100%" fill="#fff"/><text x="62" y="11">{y_label}</text>{rest}'
