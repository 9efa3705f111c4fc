"""Commands that make and check data: pfungst data, world, decoys, and audit, which measures what choices give away"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst.cli import PROBLEMS_FOUND
from pfungst.cli.options import (
    Images,
    Json,
    On,
    Replicas,
    Seed,
    SkipBad,
    Workers,
    data_options,
    family,
    place,
    with_options,
)
from pfungst.cli.show import print_json, print_table, progress_bar, say, tell
from pfungst.core import PfungstError, UsageError
from pfungst.core.code import own_modules
from pfungst.core.files import jsonable, write_json
from pfungst.core.store import AnswerStore
from pfungst.experiments.audit import ScorerConfig
from pfungst.probes.decoys.probe import Decoys

if TYPE_CHECKING:
    from pfungst.core import Dataset
    from pfungst.experiments.audit import Cell
    from pfungst.probes.decoys import DecoySet

data_app = family("Look at data sets.")
world_app = family("Make CLEVR worlds and look at them.")

Balanced = Annotated[
    bool, typer.Option("--balanced", help="Choose decoys so that every answer is wrong as often as it is right.")
]
Vectors = Annotated[
    str | None, typer.Option(help="File of word vectors (GloVe, word2vec, npz) [the embedded encoder].")
]
MAKING = ("k", "fallback")
TRAINING = ("hidden", "epochs", "seeds", "device")


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


@world_app.command("make")
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
    say(manifest.path)


def _short(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


@with_options(Decoys, only=(*MAKING, "encoder", "neighbours", "threshold"), after="kinds")
def decoys(
    data: Annotated[str, typer.Argument(help="The data set: one labelled split, as for `pfungst examine`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .jsonl or .parquet.")],
    kinds: Annotated[
        str, typer.Option(help="Kinds of decoys, separated by commas: qou, iou, both, random, qou@RANK, mined.")
    ] = "qou,iou",
    balanced: Balanced = False,
    player: Annotated[str | None, typer.Option(help="The player whose mistakes become decoys (kind mined).")] = None,
    vectors: Vectors = None,
    confusions: Annotated[
        bool,
        typer.Option(
            "--confusions", help="Also skip answers that annotators confuse (needs several human answers per question)."
        ),
    ] = False,
    variant: Annotated[str, typer.Option(help="Choice set to write as `choices` [QoU+IoU].")] = "",
    seed: Seed = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only this many examples, from the start of the split.")
    ] = None,
    images: Images = None,
    skip_bad: SkipBad = False,
    on: On = "local",
    workers: Workers = None,
    replicas: Replicas = None,
    as_json: Json = False,
    **making: Any,
) -> None:
    """Make decoys: turn a data set with right answers into a multiple choice that is hard to game.

    Decoys come only from the split that is read. To continue a run that was stopped, run the same command again.
    """
    from pfungst.compute import working
    from pfungst.data import load
    from pfungst.probes.decoys import build, write
    from pfungst.probes.decoys.sets import check_ending

    check_ending(out)
    if vectors is not None and making["encoder"]:
        raise UsageError("Give --vectors or --encoder, not both.")
    if data.partition("?")[0].endswith("#all"):
        raise UsageError(
            "Decoys are made within one split, so that no training answer ends up in a test: name one, #SPLIT."
        )
    names = [kind.strip() for kind in kinds.split(",") if kind.strip()]
    if ("mined" in names) != (player is not None):
        raise UsageError(
            "Decoys of the kind mined come from a player: give both --kinds mined and --player, or neither."
        )
    making["encoder"] = encoder = f"words:{vectors}" if vectors else making["encoder"] or None
    loaded = load(data, limit=limit, **data_options(images, skip_bad))
    parts = out.with_name(out.name + ".parts")
    if replicas is not None and player is None:
        raise UsageError("--replicas are copies of a player: name one with --player.")
    asked = (player, data, data_options(images, skip_bad) | ({"limit": limit} if limit is not None else {}))
    with progress_bar() as progress, working(place(on, workers)):
        made = build(
            loaded, names, seed=seed, balanced=balanced, **making,
            filters=_filters(loaded, encoder, making["threshold"]) if confusions else None,
            mined=_mined(loaded, asked, replicas, on, parts, progress), folder=parts, progress=progress,
        )  # fmt: skip
        left_out = write(made, out, variant)
    shutil.rmtree(parts)
    _print(made, out, left_out, as_json, words=(encoder or "").startswith("words:"))


def _filters(data: Dataset, encoder: str | None, threshold: float) -> list[Any]:
    from pfungst.probes.decoys import EmbeddingFilter, WupFilter, confusions
    from pfungst.text import get_encoder

    if not any(len(example.answers) > 1 for example in data):
        raise PfungstError(f"{data.name} has one answer per question: --confusions has nothing to learn from.")
    return [WupFilter(threshold), EmbeddingFilter(get_encoder(encoder), human=confusions(data))]


def _mined(
    data: Dataset, asked: tuple[str | None, str, dict[str, Any]], replicas: str | None, on: str, folder: Path,
    progress: Any,
) -> dict[str, tuple[str, ...]] | None:  # fmt: skip
    """What the player says wrongly, where that is asked for. Its answers are kept beside the finished decoys."""

    from pfungst.players import resolve
    from pfungst.players.replicate import ReplicaSettings, closing, replicate
    from pfungst.probes.decoys.filters import mine

    player, spec, options = asked
    if player is None:
        return None
    own_modules()
    folder.mkdir(parents=True, exist_ok=True)
    with AnswerStore(folder / "answers.sqlite") as store:
        chosen = resolve(player, data=data) if replicas is None else replicate(
            player, data, {}, ReplicaSettings.of(replicas), on=on, data_spec=spec, data_options=options
        )  # fmt: skip
        with closing(chosen):
            return mine(chosen, data, store=store, progress=progress)


def _print(made: DecoySet, out: Path, left_out: int, as_json: bool, words: bool) -> None:
    from pfungst.probes.decoys import rules

    found = {name: rules(made, name) for name in made.variants}
    counts = {kind: made.counts(kind) for kind in made.kinds}
    warnings = made.warnings()
    if made.vectors is not None and not words:
        warnings.append(
            "Similar questions were found by the embedded sentence encoder; the paper averages word vectors, "
            "see --vectors."
        )
    if as_json:
        print_json(
            {
                "out": str(out), "examples": len(made) - left_out, "left_out": left_out, "about": made.about,
                **made.sources(), "rules": found, "warnings": warnings,
            }
        )  # fmt: skip
        return
    print_table("Rules", _COLUMNS, [_row(one) for one in found.values()])
    print_table("Where decoys come from", _COUNTS, [(kind, *row.values()) for kind, row in counts.items()])
    for sentence in warnings:
        say(f"Note: {sentence}")
    say(f"{len(made) - left_out} examples: {out}")


_COLUMNS = ("choices", "options", "chance", "neutral", "uses", "question fit", "decided", "image fit")
_COUNTS = ("kind", "all", "found", "yes/no", "own", "target", "loose", "none", "q. filled", "q. short", "q. empty")
"""Short names of `DecoySet.counts`: a terminal is narrow. JSON has the long ones."""


def _row(one: Any) -> tuple[str, ...]:
    return (
        one.variant,
        f"{one.options:.2f}",
        f"{100 * one.chance:.1f}%",
        f"{one.neutrality:.3f}",
        f"{one.decoys_a_target:.1f} / {one.decoys_by_chance:.1f}",
        f"{one.question_fit.value:.2f} / {one.target_fit.value:.2f}",
        f"{100 * one.question_resolves.value:.1f}%",
        f"{100 * one.image_fit.value:.1f}%",
    )


@with_options(Decoys, only=MAKING, after="kinds")
@with_options(ScorerConfig, only=TRAINING, after="models")
def audit(
    data: Annotated[str, typer.Argument(help="The data set; with --test, its training split.")],
    test: Annotated[str | None, typer.Option(help="The split to test on [a random 30% of the images].")] = None,
    kinds: Annotated[
        str,
        typer.Option(help="Kinds of decoys to audit in addition to the data set's own choices; `none` for only those."),
    ] = "qou,iou",
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
    **given: Any,
) -> None:
    """Can a data set be answered without the image, without the question, without both?"""
    from pfungst.compute import working
    from pfungst.compute.devices import check_device
    from pfungst.data import load
    from pfungst.experiments.audit import SEES, find_models
    from pfungst.experiments.audit import audit as run_audit
    from pfungst.experiments.audit_features import image_features

    wanted = find_models([name.strip() for name in models.split(",") if name.strip()])
    if on == "local":
        check_device(given["device"])
    options = data_options(images, skip_bad)
    train = load(data, limit=limit, **options)
    asked = load(test, limit=limit, **options) if test else None
    sees = features != "none" and any(SEES[name] in ("the image alone", "everything") for name in wanted)
    chosen = [kind.strip() for kind in kinds.split(",") if kind.strip() not in ("", "none")]
    config = ScorerConfig(seed=seed, **{name: given[name] for name in TRAINING})
    seen = image_features(features, config.device) if sees else None
    with progress_bar() as progress, working(place(on, workers)):
        result = run_audit(
            train, asked, kinds=chosen, k=given["k"], seed=seed, fallback=given["fallback"], balanced=balanced,
            encoder=f"words:{vectors}" if vectors else None, features=seen, config=config, models=wanted,
            human=_human(human or []), people=_people(human or []), name=train.name, sets=sets, progress=progress,
        )  # fmt: skip
    if out is not None:
        write_json(out, result)
    if as_json:
        about_open = result.open.verdict() if result.open is not None else None
        print_json({**jsonable(result), "verdicts": result.verdicts(), "open_verdict": about_open})
        return
    title = f"{result.name}: {result.train} questions to train on, {result.test} to test on"
    if result.open is not None:
        print_table(f"{title}. Open questions, metric {result.open.metric}", *result.open.table())
    if result.variants:
        print_table(f"{title}. Picking the target", *result.table())
    if result.metric and result.variants:
        print_table(f"The same by the metric {result.metric}: the picked answer against all human answers",
                    *result.table(vqa=True))  # fmt: skip
    for sentence in ([result.open.verdict()] if result.open is not None else []) + result.verdicts():
        say(sentence)
    for sentence in result.warnings:
        say(f"Note: {sentence}")


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
