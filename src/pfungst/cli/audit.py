"""pfungst audit"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Images, Json, SkipBad


def audit(
    data: Annotated[str, typer.Argument(help="The data set; with --test, its training split.")],
    test: Annotated[str | None, typer.Option(help="The split to test on [30% of the images].")] = None,
    kinds: Annotated[str, typer.Option(help="Kinds of decoys to audit beside the data set's own.")] = "qou,iou",
    k: Annotated[int, typer.Option("--k", "-k", help="Decoys of each kind.")] = 3,
    fallback: Annotated[
        str, typer.Option(help="Where too few are found: frequent (the paper's ten most frequent targets) or neutral.")
    ] = "frequent",
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Draw decoys so that every answer is wrong as often as it is right.")
    ] = False,
    vectors: Annotated[
        str | None, typer.Option(help="File of word vectors (GloVe, word2vec, npz) [the embedded encoder].")
    ] = None,
    features: Annotated[
        str,
        typer.Option(help="What MLP-IA and MLP-IQA see: grid, efficientnet-lite0, timm:NAME, hf:NAME, or none."),
    ] = "grid",
    human: Annotated[
        list[str] | None, typer.Option(help="Accuracy of people in percent, SET=NUMBER, shown beside. Repeatable.")
    ] = None,
    models: Annotated[str, typer.Option(help="Scorers to train, of A,QA,IA,IQA; `none` for the statistics alone.")] = (
        "A,QA,IA,IQA"
    ),
    hidden: Annotated[int, typer.Option(help="Neurons of the hidden layer.")] = 8192,
    epochs: Annotated[int, typer.Option(help="Epochs of training, at most.")] = 20,
    device: Annotated[str, typer.Option(help="Where scorers are trained: cpu, cuda ...")] = "cpu",
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    limit: Annotated[int | None, typer.Option(help="Only the first so many examples.")] = None,
    images: Images = None,
    skip_bad: SkipBad = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the numbers there, as JSON.")] = None,
    as_json: Json = False,
) -> None:
    """Can a data set be answered without the image, without the question, without both?"""
    from pfungst.cli.examine import data_options
    from pfungst.cli.show import print_json, print_table, progress_bar
    from pfungst.core import PfungstError
    from pfungst.core.files import write_json
    from pfungst.data import load
    from pfungst.probes.decoys import audit as run

    wanted = [] if models == "none" else [one.strip().upper() for one in models.split(",") if one.strip()]
    unknown = [one for one in wanted if one not in ("A", "QA", "IA", "IQA")]
    if unknown:
        raise PfungstError(f"There is no scorer {unknown[0]!r}; there are A, QA, IA and IQA, or none.")
    options = data_options(images, skip_bad)
    train = load(data, limit=limit, **options)
    asked = load(test, limit=limit, **options) if test else None
    config = None
    if wanted:
        try:
            from pfungst.probes.decoys.mlp import MlpConfig
        except ImportError:
            from pfungst.core import MissingExtra

            raise MissingExtra("Training the scorers of the audit", "torch") from None
        config = MlpConfig(hidden=hidden, epochs=epochs, seed=seed, device=device)
    seen = None
    if features != "none" and any("I" in one for one in wanted):
        from pfungst.cli.features import image_features

        seen = image_features(features, device)
    with progress_bar() as progress:
        found = run(
            train, asked, kinds=[one.strip() for one in kinds.split(",") if one.strip()], k=k, seed=seed,
            fallback=fallback, balanced=balanced, encoder=f"words:{vectors}" if vectors else None, features=seen,
            config=config, models=wanted, human=_human(human or []), name=train.name, progress=progress,
        )  # fmt: skip
    if out is not None:
        write_json(out, found)
    if as_json:
        print_json({**_plain(found), "verdicts": found.verdicts()})
        return
    columns, rows = found.table()
    print_table(f"{found.name}: {found.train} questions to train on, {found.test} to test on", columns, rows)
    for sentence in found.verdicts():
        print(sentence)
    for sentence in found.warnings:
        print(f"Note: {sentence}")


def _human(given: list[str]) -> dict[str, float]:
    from pfungst.core import PfungstError

    found = {}
    for one in given:
        name, equals, number = one.partition("=")
        try:
            found[name] = float(number) / 100
        except ValueError:
            equals = ""
        if not equals:
            raise PfungstError(f"--human takes SET=NUMBER, as in QoU+IoU=82.5, not {one!r}.")
    return found


def _plain(value: object) -> dict[str, object]:
    from pfungst.core.files import jsonable

    found: dict[str, object] = jsonable(value)
    return found
