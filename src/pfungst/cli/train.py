"""pfungst train"""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from pfungst.cli.options import Images, Json, Seed, SkipBad, data_options, with_options
from pfungst.cli.show import print_json, progress_bar, say
from pfungst.core import UsageError, settings
from pfungst.core.settings import read_settings
from pfungst.training.config import FitConfig


@with_options(FitConfig, only=("epochs", "steps", "batch", "rate", "precision", "patience"), after="height")
def train(
    model: Annotated[str, typer.Argument(help="A model of the zoo (film, san ...).")],
    data: Annotated[
        str, typer.Option("--data", "-d", help="Training data: a data set, or a folder of prepared arrays.")
    ] = "world#train",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the trained model [runs/MODEL].")] = None,
    validation: Annotated[
        str | None, typer.Option(help="Data set that chooses the best weights [a tenth of the training images].")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Sizes of the model: paper, compact, features, tiny [features with --picture or --regions]."),
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A size of the model or a setting of the training, key=value.")
    ] = None,
    picture: Annotated[
        str, typer.Option(help="What it sees: pixels, world, efficientnet-lite0, timm:NAME, hf:NAME, none.")
    ] = "pixels",
    regions: Annotated[Path | None, typer.Option(help="Bottom-up region features: .tsv, .h5, folder of .npz.")] = None,
    width: Annotated[int, typer.Option(min=1, help="Width of the pixels it sees.")] = 128,
    height: Annotated[int, typer.Option(min=1, help="Height of the pixels it sees.")] = 96,
    augment: Annotated[int, typer.Option(min=0, help="Shift training images by up to this many pixels.")] = 0,
    max_answers: Annotated[int | None, typer.Option(min=1, help="Only the most frequent answers.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N examples.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps.")] = "cpu",
    seed: Seed = 0,
    half: Annotated[bool, typer.Option("--half", help="Write the weights as fp16.")] = False,
    grounding: Annotated[
        float,
        typer.Option(min=0, help="Weight of a loss on the objects that each step of the program selects; 0: none."),
    ] = 0.0,
    cycle: Annotated[
        bool, typer.Option("--cycle", help="Train for cycle consistency, together with a question generator.")
    ] = False,
    gating: Annotated[
        bool, typer.Option("--gating/--no-gating", help="Use only good generated questions (with --cycle).")
    ] = True,
    a_consistency: Annotated[
        bool,
        typer.Option("--a-consistency/--no-a-consistency", help="Train on the generated questions too (with --cycle)."),
    ] = True,
    attended: Annotated[
        bool,
        typer.Option("--attended/--unattended", help="Show the generator what the model attends to (with --cycle)."),
    ] = True,
    cycle_start: Annotated[
        float | None,
        typer.Option(min=0, help="Steps before generated questions count [5500]; below 1: share of all steps."),
    ] = None,
    cycle_set: Annotated[
        list[str] | None, typer.Option("--cycle-set", help="Another setting of the cycle, key=value: lambda_c=0.5 ...")
    ] = None,
    images: Images = None,
    skip_bad: SkipBad = False,
    as_json: Json = False,
    **fit: Any,
) -> None:
    """Train a model and write it, its curves and its card to a folder that zoo:FOLDER plays.

    Run the same command again to resume a run that was stopped.
    """
    from pfungst.compute.devices import check_device
    from pfungst.models import MODELS, Inputs
    from pfungst.models.features import load_regions
    from pfungst.training import Prepared, prepare
    from pfungst.training import train as run

    check_device(device)
    folder = out or Path("runs") / model
    kind = MODELS.get(model)
    if not {"image", "scene"} & (kind.reads | kind.learns_from) or "image" not in kind.reads:
        picture = "none"
    inputs = Inputs(picture=picture, width=width, height=height)
    outside = picture not in ("pixels", "none") or regions is not None
    fit_config, sizes = settings_of(
        kind,
        preset or ("features" if outside and "features" in kind.PRESETS else "compact"),
        setting or [],
        {**fit, "seed": seed},
    )
    consistency = cycle_of(cycle, gating, a_consistency, attended, cycle_start, cycle_set or [])
    options = {**data_options(images, skip_bad), "limit": limit}
    prepared_before = Prepared.is_there(data)
    held_out: str | float = 0.1 if not validation else validation if prepared_before else "validation"
    if prepared_before and (limit or max_answers or regions or images):
        raise UsageError(f"{data} is prepared already: --limit, --max-answers, --regions and --images change nothing.")
    with progress_bar() as progress:
        if prepared_before:
            prepared = Prepared.load(data)
        else:
            # Those of an earlier call where they are the same.
            prepared = prepare(
                _load(data, validation, options),
                folder / "data",
                inputs=inputs,
                max_answers=max_answers,
                regions=None if regions is None else load_regions(regions),
                device=device,
                reuse=True,
                progress=progress,
            )
        trained = run(
            model,
            prepared,
            folder,
            config=sizes,
            fit_config=fit_config,
            augment=augment,
            grounding=grounding,
            cycle=consistency,
            validation=held_out,
            device=device,
            half=half,
            progress=progress,
        )
    card = trained.card
    if as_json:
        print_json({"folder": str(folder), "card": card})
        return
    known = card["low"] is not None  # one image has no interval
    interval = f"95% interval {card['low']:.1%} to {card['high']:.1%}" if known else "no interval: too few images"
    say(
        f"{model}: accuracy {card['accuracy']:.1%} ({interval}, "
        f"n = {card['n']}) on {'the validation data' if validation else 'held-out images'}; "
        f"{card['parameters']:,} parameters, {card['steps']} steps."
    )
    say(f"\n{folder}\npfungst examine {shlex.quote(f'zoo:{folder}')}")


def cycle_of(
    wanted: bool, gating: bool, a_consistency: bool, attended: bool, start: float | None, words: list[str]
) -> Any:
    """The settings of cycle training; None without --cycle, whose options then must not be given."""
    from pfungst.training.cycle import CycleConfig

    if not wanted:
        if words or start is not None or not (gating and a_consistency and attended):
            raise UsageError("Options of cycle training were given without --cycle.")
        return None
    given: dict[str, Any] = {"gating": gating, "attended": attended, **({} if a_consistency else {"lambda_c": 0.0})}
    given |= {} if start is None else {"start": start}
    return CycleConfig(**{**given, **read_settings(CycleConfig, words, what="cycle training")})


def settings_of(kind: Any, preset: str, words: list[str], fit: dict[str, Any]) -> tuple[Any, Any]:
    """Split key=value settings into those of the training and those of the model; both checked."""
    if preset not in kind.PRESETS:
        raise UsageError(f"There is no preset {preset!r}. There are: {', '.join(kind.PRESETS)}.")
    sizes, training = settings.settings_of(kind.Config), settings.settings_of(FitConfig)
    of_model = {size.name for size in sizes}
    given = settings.split_settings(words, what="model or its training")
    for name in given:
        if name not in of_model | {one.name for one in training}:
            raise settings.unknown_setting(name, [*sizes, *training], what="model or its training")
    chosen = settings.read_settings(kind.Config, {k: v for k, v in given.items() if k in of_model}, what="model")
    changes = settings.read_settings(FitConfig, {k: v for k, v in given.items() if k not in of_model}, what="training")
    return FitConfig(**{**fit, **changes}), dataclasses.replace(kind.PRESETS[preset], **chosen)


def _load(data: str, validation: str | None, options: dict[str, Any]) -> dict[str, Any]:
    from pfungst.data import load

    return {"train": load(data, **options), **({"validation": load(validation, **options)} if validation else {})}
