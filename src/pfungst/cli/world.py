"""pfungst world"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Json, Seed
from pfungst.cli.show import print_json, print_table, progress_bar
from pfungst.cli.where import On, Workers

app: typer.Typer = typer.Typer(help="Make CLEVR worlds and look at them.", no_args_is_help=True)


@app.command("make")
def make(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")],
    scenes: Annotated[int, typer.Option(min=1, help="How many scenes.")] = 100,
    questions_per_scene: Annotated[int, typer.Option(min=1, help="Questions per scene.")] = 10,
    rephrasings: Annotated[int, typer.Option(min=0, help="Other wordings of every question.")] = 3,
    split: Annotated[str, typer.Option(help="Name of the split, as in CLEVR_SPLIT_scenes.json.")] = "new",
    phrasings: Annotated[
        str | None, typer.Option(help="Where rephrasings come from: train, heldout or mixed [by the split].")
    ] = None,
    templates: Annotated[Path | None, typer.Option(help="Folder of template files [the built-in ones].")] = None,
    seed: Seed = 0,
    width: Annotated[int, typer.Option(min=1, help="Width of the images.")] = 320,
    height: Annotated[int, typer.Option(min=1, help="Height of the images.")] = 240,
    images: Annotated[bool, typer.Option("--images/--no-images", help="Draw the images.")] = True,
    on: On = "processes",
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Make scenes, questions with programs and rephrasings, and images, in the published CLEVR formats.

    The same seed gives the same bytes. A stopped run picks up where it left off.
    """
    from pfungst.world import make as make_world

    with progress_bar() as progress:
        manifest = make_world(
            out, scenes=scenes, questions_per_scene=questions_per_scene, rephrasings=rephrasings, split=split,
            seed=seed, width=width, height=height, templates=templates, phrasings=phrasings, images=images,
            workers=workers, on=on, progress=progress,
        )  # fmt: skip
    if as_json:
        print_json(manifest.to_json())
        return
    for title, counts in manifest.statistics.items():
        if isinstance(counts, dict):
            print_table(title, ("what", "value"), [(name, _short(value)) for name, value in counts.items()])
    print(manifest.path)


def _short(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
