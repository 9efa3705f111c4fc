"""pfungst reproduce decoys: the tables of 001_e067043fdf3face1.txt on the data at hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst.cli.examine import Json

if TYPE_CHECKING:
    from pfungst.probes.decoys import Audit

SPLITS = {"daquar": ("all", ""), "cocoqa": ("train", "test"), "vqa2": ("train", "val")}
"""Folder -> splits to train and to test on; DAQUAR's images are divided 70 to 30, as its own split is by question."""
TITLES = {"daquar": "DAQUAR", "cocoqa": "COCO-QA", "vqa2": "VQA v2"}
CONSTRUCTIONS = ("frequent", "neutral", "balanced")


def reproduce_decoys(
    data: Annotated[Path, typer.Option(help="Folder with the folders daquar, cocoqa, vqa2 (any of them) and glove.")],
    sets: Annotated[str, typer.Option(help="Which of them, by commas.")] = "daquar,cocoqa,vqa2",
    constructions: Annotated[
        str, typer.Option(help="How decoys are made: the paper's frequent fallback, neutral, balanced; by commas.")
    ] = "frequent,balanced",
    kinds: Annotated[str, typer.Option(help="Kinds of decoys.")] = "qou,iou,random,both",
    vectors: Annotated[
        str | None, typer.Option(help="File of word vectors [the first in DATA/glove, else the embedded encoder].")
    ] = None,
    features: Annotated[str, typer.Option(help="What scorers see of a picture, see `pfungst audit`.")] = (
        "efficientnet-lite0"
    ),
    models: Annotated[str, typer.Option(help="Scorers to train, of A,QA,IA,IQA; `none` for the statistics alone.")] = (
        "A,QA,IA,IQA"
    ),
    hidden: Annotated[int, typer.Option(help="Neurons of the hidden layer.")] = 8192,
    epochs: Annotated[int, typer.Option(help="Epochs of training, at most.")] = 12,
    batch: Annotated[int, typer.Option(help="Questions a step.")] = 512,
    device: Annotated[str, typer.Option(help="Where scorers are trained: cpu, cuda ...")] = "cpu",
    transfer: Annotated[bool, typer.Option(help="Table 6 too: from COCO-QA to the others.")] = True,
    limit: Annotated[int | None, typer.Option(help="Only the first so many examples of a split.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for tables.md and numbers.json.")] = None,
    as_json: Json = False,
) -> None:
    """Tables 3 to 6 of the decoys paper: what can be answered without the image, the question, or both.

    With the paper's hidden layer of 8,192 on one GPU a matter of minutes, on a CPU of hours: `--hidden 512 --models
    A,QA` or `--models none` (Eq. 2 alone) are for a first look. A data set that is finished is not computed again when
    the same command is run with the same --out.
    """
    import json

    from pfungst.cli.show import print_json, progress_bar
    from pfungst.core import PfungstError
    from pfungst.core.files import jsonable, write_atomic, write_json

    wanted = [one.strip() for one in sets.split(",") if one.strip()]
    ways = [one.strip() for one in constructions.split(",") if one.strip()]
    for one in wanted:
        if one not in SPLITS or not (data / one).is_dir():
            raise PfungstError(f"{data / one} is no folder with one of {', '.join(SPLITS)}: name others with --sets.")
    for way in ways:
        if way not in CONSTRUCTIONS:
            raise PfungstError(f"Decoys are made {', '.join(CONSTRUCTIONS)}, not {way!r}.")
    settings: dict[str, Any] = {
        "kinds": kinds, "vectors": vectors or _glove(data), "features": features, "models": models, "hidden": hidden,
        "epochs": epochs, "batch": batch, "limit": limit, "seed": seed,
    }  # fmt: skip
    results: list[dict[str, Any]] = []
    with progress_bar() as progress:
        for one in wanted:
            for way in ways:
                part = None if out is None else out / f"{one}-{way}.json"
                if part is not None and part.exists():
                    stored = json.loads(part.read_text(encoding="utf-8"))
                    if stored["settings"] == jsonable(settings):
                        results.append(stored)
                        continue
                found = _audit(data / one, one, way, settings, device, progress)
                columns, rows = found.table()
                about = {
                    "data": one, "construction": way, "train": found.train, "test": found.test, "columns": columns,
                    "rows": rows, "verdicts": found.verdicts(), "warnings": found.warnings, "cells": found.cells,
                    "rules": found.rules, "gains": found.gains, "settings": settings,
                }  # fmt: skip
                results.append(jsonable(about))
                if part is not None:
                    part.parent.mkdir(parents=True, exist_ok=True)
                    write_json(part, results[-1])
        moved = _transfers(data, wanted, settings, device, progress) if transfer and models != "none" else []
    text = markdown(results, moved)
    if out is not None:
        write_atomic(out / "tables.md", text.encode())
        write_json(out / "numbers.json", {"audits": results, "transfer": moved})
    if as_json:
        print_json({"audits": results, "transfer": moved})
    else:
        print(text)


def markdown(results: list[dict[str, Any]], moved: list[dict[str, Any]]) -> str:
    """The tables as they stand in the documentation."""
    lines = []
    for one in results:
        lines += [
            f"### {TITLES[one['data']]}, {one['construction']} ({one['train']:,} to train, {one['test']:,} to test)"
        ]
        lines += ["", "| " + " | ".join(["", *one["columns"][1:]]) + " |", "|---" * len(one["columns"]) + "|"]
        lines += ["| " + " | ".join(row) + " |" for row in one["rows"]]
        lines += ["", *(f"- {sentence}" for sentence in [*one["verdicts"], *one["warnings"]]), ""]
    if moved:
        lines += ["### Transfer from COCO-QA, QoU+IoU, MLP-QA", ""]
        lines += ["| target | trained on it alone | COCO-QA alone | fine-tuned | gain |", "|---|---|---|---|---|"]
        lines += [f"| {TITLES[one['target']]} | " + " | ".join(one["row"]) + " |" for one in moved]
    return "\n".join(lines) + "\n"


def _glove(data: Path) -> str | None:
    found = sorted(path for path in (data / "glove").glob("*") if path.suffix in (".npz", ".txt", ".bin"))
    return str(found[0]) if found else None


def _load(folder: Path, name: str, settings: dict[str, Any]) -> tuple[Any, Any]:
    from pfungst.data import load
    from pfungst.probes.decoys.auditing import split_by_image

    train, test = SPLITS[name]
    limit = settings["limit"]
    if test:
        return load(folder, split=train, limit=limit), load(folder, split=test, limit=limit)
    return split_by_image(load(folder, split=train, limit=limit), settings["seed"])


def _config(settings: dict[str, Any], device: str) -> Any:
    from pfungst.core import MissingExtra

    try:
        from pfungst.probes.decoys.mlp import MlpConfig
    except ImportError:
        raise MissingExtra("Training the scorers of the audit", "torch") from None
    return MlpConfig(
        hidden=settings["hidden"], epochs=settings["epochs"], batch=settings["batch"], seed=settings["seed"],
        device=device,
    )  # fmt: skip


def _encoder(settings: dict[str, Any]) -> str | None:
    return f"words:{settings['vectors']}" if settings["vectors"] else None


def _audit(folder: Path, name: str, way: str, settings: dict[str, Any], device: str, progress: Any) -> Audit:
    from pfungst.cli.features import image_features
    from pfungst.probes.decoys import audit

    models = [] if settings["models"] == "none" else settings["models"].upper().split(",")
    train, test = _load(folder, name, settings)
    pictures = any("I" in one for one in models) and train[0].image is not None
    found: Audit = audit(
        train, test, kinds=settings["kinds"].split(","), seed=settings["seed"], encoder=_encoder(settings),
        fallback="frequent" if way == "balanced" else way, balanced=way == "balanced",
        features=image_features(settings["features"], device) if pictures else None,
        config=_config(settings, device) if models else None, models=models, name=name, progress=progress,
    )  # fmt: skip
    return found


def _transfers(
    data: Path, wanted: list[str], settings: dict[str, Any], device: str, progress: Any
) -> list[dict[str, Any]]:
    """Table 6: MLP-QA, because COCO-QA's pictures are rarely at hand."""
    if "cocoqa" not in wanted:
        return []
    from pfungst.probes.decoys import build, transfer
    from pfungst.probes.decoys.auditing import _text
    from pfungst.probes.decoys.tasks import Tasks
    from pfungst.text import get_encoder

    name = _encoder(settings)
    chosen = get_encoder(name) if name else get_encoder()

    def task(examples: Any) -> tuple[Any, list[str]]:
        made = build(examples, seed=settings["seed"], encoder=chosen, progress=progress)
        found, where = Tasks(made, chosen, None).of("QoU+IoU")
        return found, [made.examples[at].image_id or made.examples[at].id for at in where.tolist()]

    source, _ = task(_load(data / "cocoqa", "cocoqa", settings)[0])
    rows = []
    for one in wanted:
        if one != "cocoqa":
            train, test = _load(data / one, one, settings)
            asked, groups = task(test)
            found = transfer(source, task(train)[0], asked, groups, "QA", _config(settings, device), settings["seed"])
            cells = [_text(cell) for cell in (found.alone, found.before, found.after, found.gain)]
            rows.append({"target": one, "row": cells})
    return rows
