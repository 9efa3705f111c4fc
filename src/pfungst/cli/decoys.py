"""pfungst decoys"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst.cli.examine import Images, Json, Seed, SkipBad, data_options
from pfungst.cli.show import print_json, print_table, progress_bar
from pfungst.cli.where import On, Replicas, Workers, place
from pfungst.core import PfungstError, UsageError
from pfungst.core.code import own_modules
from pfungst.core.store import AnswerStore

if TYPE_CHECKING:
    from pfungst.core import Dataset
    from pfungst.probes.decoys import DecoySet

PerKind = Annotated[int, typer.Option("--k", "-k", min=1, help="Decoys of each kind.")]
Fallback = Annotated[
    str,
    typer.Option(
        help="Used if too few are found: frequent (the ten most frequent targets, as in the paper) or neutral."
    ),
]
Balanced = Annotated[
    bool, typer.Option("--balanced", help="Choose decoys so that every answer is wrong as often as it is right.")
]
Vectors = Annotated[
    str | None, typer.Option(help="File of word vectors (GloVe, word2vec, npz) [the embedded encoder].")
]


def decoys(
    data: Annotated[str, typer.Argument(help="The data set: one labelled split, as for `pfungst examine`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .jsonl or .parquet.")],
    kinds: Annotated[
        str, typer.Option(help="Kinds of decoys, separated by commas: qou, iou, both, random, qou@RANK, mined.")
    ] = "qou,iou",
    k: PerKind = 3,
    fallback: Fallback = "frequent",
    balanced: Balanced = False,
    player: Annotated[str | None, typer.Option(help="The player whose mistakes become decoys (kind mined).")] = None,
    vectors: Vectors = None,
    encoder: Annotated[str | None, typer.Option(help="An encoder of questions by name, instead of --vectors.")] = None,
    neighbours: Annotated[int, typer.Option(min=1, help="How many of the most similar questions to search.")] = 10_000,
    threshold: Annotated[float, typer.Option(min=0, help="Answers whose WUPS is at least this are too similar.")] = 0.9,
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
) -> None:
    """Make decoys: turn a data set with right answers into a multiple choice that is hard to game.

    Decoys come only from the split that is read. To continue a run that was stopped, run the same command again.
    """
    from pfungst.compute import working
    from pfungst.data import load
    from pfungst.probes.decoys import build, write
    from pfungst.probes.decoys.sets import check_ending

    check_ending(out)
    if vectors is not None and encoder is not None:
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
    loaded = load(data, limit=limit, **data_options(images, skip_bad))
    encoder = f"words:{vectors}" if vectors else encoder
    settings = {"encoder": encoder, "neighbours": neighbours, "threshold": threshold, "fallback": fallback,
                "balanced": balanced}  # fmt: skip
    parts = out.with_name(out.name + ".parts")
    if replicas is not None and player is None:
        raise UsageError("--replicas are copies of a player: name one with --player.")
    asked = (player, data, data_options(images, skip_bad) | ({"limit": limit} if limit is not None else {}))
    with progress_bar() as progress, working(place(on, workers)):
        made = build(
            loaded, names, k, seed, **settings,
            filters=_filters(loaded, encoder, threshold) if confusions else None,
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
        print(f"Note: {sentence}")
    print(f"{len(made) - left_out} examples: {out}")


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
