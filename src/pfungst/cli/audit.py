"""pfungst audit"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pfungst.cli.decoys import Balanced, Fallback, PerKind, Vectors
from pfungst.cli.examine import Images, Json, Seed, SkipBad, data_options
from pfungst.cli.show import print_json, print_table, progress_bar
from pfungst.cli.where import On, Workers, place
from pfungst.core import UsageError
from pfungst.core.files import jsonable, write_json

if TYPE_CHECKING:
    from pfungst.experiments.audit import Cell


def audit(
    data: Annotated[str, typer.Argument(help="The data set; with --test, its training split.")],
    test: Annotated[str | None, typer.Option(help="The split to test on [a random 30% of the images].")] = None,
    kinds: Annotated[
        str,
        typer.Option(help="Kinds of decoys to audit in addition to the data set's own choices; `none` for only those."),
    ] = "qou,iou",
    k: PerKind = 3,
    fallback: Fallback = "frequent",
    balanced: Balanced = False,
    vectors: Vectors = None,
    features: Annotated[
        str,
        typer.Option(help="What MLP-IA and MLP-IQA see: grid, efficientnet-lite0, timm:NAME, hf:NAME, or none."),
    ] = "grid",
    human: Annotated[
        list[str] | None,
        typer.Option(
            help="Accuracy of people for the table: human.json of a study, or SET=NUMBER in percent. Repeatable."
        ),
    ] = None,
    models: Annotated[
        str,
        typer.Option(
            help="What to train: Q (open questions, from the question only), A, QA, IA, IQA, HieCoAtt, Attention "
            "(choices, from what the letters name); `none` for statistics only."
        ),
    ] = "Q,A,QA,IA,IQA",
    hidden: Annotated[int, typer.Option(min=1, help="Neurons of the hidden layer.")] = 8192,
    epochs: Annotated[int, typer.Option(min=1, help="Maximum number of training epochs.")] = 20,
    seeds: Annotated[
        int, typer.Option(min=1, help="How often to train each scorer; intervals then cover these trainings too.")
    ] = 1,
    device: Annotated[str, typer.Option(help="Where scorers are trained: cpu, cuda ...")] = "cpu",
    seed: Seed = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only this many examples, from the start of each split.")
    ] = None,
    images: Images = None,
    skip_bad: SkipBad = False,
    on: On = "local",
    workers: Workers = None,
    sets: Annotated[
        Path | None, typer.Option(help="Write the choice sets to this folder: train.parquet and test.parquet.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the numbers to this file, as JSON.")] = None,
    as_json: Json = False,
) -> None:
    """Can a data set be answered without the image, without the question, without both?"""
    from pfungst.compute import working
    from pfungst.compute.devices import check_device
    from pfungst.data import load
    from pfungst.experiments.audit import SEES, ScorerConfig, find_models
    from pfungst.experiments.audit import audit as run_audit
    from pfungst.experiments.audit_features import image_features

    wanted = find_models([name.strip() for name in models.split(",") if name.strip()])
    if on == "local":
        check_device(device)
    options = data_options(images, skip_bad)
    train = load(data, limit=limit, **options)
    asked = load(test, limit=limit, **options) if test else None
    sees = features != "none" and any(SEES[name] in ("the image alone", "everything") for name in wanted)
    chosen = [kind.strip() for kind in kinds.split(",") if kind.strip() not in ("", "none")]
    config = ScorerConfig(hidden=hidden, epochs=epochs, seed=seed, seeds=seeds, device=device)
    run = partial(
        run_audit, kinds=chosen, k=k, seed=seed, fallback=fallback, balanced=balanced, models=wanted,
        encoder=f"words:{vectors}" if vectors else None, features=image_features(features, device) if sees else None,
    )  # fmt: skip
    with progress_bar() as progress, working(place(on, workers)):
        found = run(
            train, asked, config=config, human=_human(human or []), people=_people(human or []), name=train.name,
            sets=sets, progress=progress,
        )  # fmt: skip
    if out is not None:
        write_json(out, found)
    if as_json:
        about_open = found.open.verdict() if found.open is not None else None
        print_json({**jsonable(found), "verdicts": found.verdicts(), "open_verdict": about_open})
        return
    title = f"{found.name}: {found.train} questions to train on, {found.test} to test on"
    if found.open is not None:
        print_table(f"{title}. Open questions, metric {found.open.metric}", *found.open.table())
    if found.variants:
        print_table(f"{title}. Picking the target", *found.table())
    if found.metric and found.variants:
        print_table(f"The same by the metric {found.metric}: the picked answer against all human answers",
                    *found.table(vqa=True))  # fmt: skip
    for sentence in ([found.open.verdict()] if found.open is not None else []) + found.verdicts():
        print(sentence)
    for sentence in found.warnings:
        print(f"Note: {sentence}")


def _human(given: list[str]) -> dict[str, float]:
    shares = {}
    for word in given:
        if word.endswith(".json"):
            continue
        name, _, number = word.partition("=")
        try:
            shares[name] = float(number) / 100
        except ValueError:
            raise UsageError(
                f"--human takes human.json of a study or SET=NUMBER, such as QoU+IoU=82.5, not {word!r}."
            ) from None
    return shares


def _people(given: list[str]) -> list[Cell]:
    from pfungst.experiments.audit import read_people

    return [cell for word in given if word.endswith(".json") for cell in read_people(Path(word))]
