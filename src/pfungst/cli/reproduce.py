"""pfungst reproduce: tables and figures of the papers, as commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pfungst.cli.examine import Images, Json, SkipBad, data_options, parse_options
from pfungst.cli.reproduce_data_limit import data_limit
from pfungst.cli.reproduce_decoys import reproduce_decoys

app = typer.Typer(help="Tables and figures of the papers.", no_args_is_help=True, rich_markup_mode=None)

Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps.")]
Data = Annotated[str, typer.Option("--data", "-d", help="Data set whose questions are asked.")]
Limit = Annotated[int | None, typer.Option(help="Only the first so many questions.")]
Seed = Annotated[int, typer.Option(help="Seed of every random choice.")]

app.command("data-limit")(data_limit)
app.command("decoys")(reproduce_decoys)


@app.command("cycle")
def cycle(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the study.")] = Path("runs/cycle"),
    data: Annotated[
        str, typer.Option("--data", "-d", help="world, a data set to learn from, or a folder of prepared arrays.")
    ] = "world",
    test: Annotated[str, typer.Option(help="Data set to ask, where --data is one; rephrased where it has none.")] = "",
    rephraser: Annotated[str, typer.Option(help="Who rephrases it: rules, world, model:PLAYER, vqg:FOLDER.")] = "rules",
    models: Annotated[str, typer.Option(help="Models, with commas.")] = "butd,pythia",
    seeds: Annotated[int, typer.Option(help="Runs of everything.")] = 5,
    see: Annotated[
        str, typer.Option(help="image, or objects: one region an object of the scene [objects for the world].")
    ] = "",
    picture: Annotated[str, typer.Option(help="Features to take of pictures: world, efficientnet-lite0 ...")] = "",
    scenes: Annotated[int, typer.Option(help="Training scenes of the world.")] = 4000,
    validation: Annotated[int, typer.Option(help="Other scenes of the world.")] = 400,
    kinds: Annotated[
        str, typer.Option(help="Only such questions of the world, with commas: zero_hop, one_hop ...; then 8 a scene.")
    ] = "",
    world_seed: Annotated[int, typer.Option(help="Seed of the world's scenes and questions.")] = 0,
    questions: Annotated[int, typer.Option(help="Training questions; 0: all.")] = 0,
    steps: Annotated[int, typer.Option(help="Steps of every run.")] = 6000,
    batch: Annotated[int, typer.Option(help="Questions a step.")] = 128,
    rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-3,
    max_answers: Annotated[int | None, typer.Option(help="Only the most frequent answers.")] = None,
    words: Annotated[
        Path | None, typer.Option(help="File of word vectors (GloVe, word2vec, npz) that the models' words start from.")
    ] = None,
    fixed_words: Annotated[bool, typer.Option("--fixed-words", help="These do not learn.")] = False,
    cycle_set: Annotated[
        list[str] | None, typer.Option("--cycle-set", help="A setting of the cycle, key=value: feedback=sample ...")
    ] = None,
    setting: Annotated[list[str] | None, typer.Option("--set", help="A size of the models, key=value.")] = None,
    early_stop: Annotated[
        int,
        typer.Option(
            help="Look every so many steps at half of the validation pictures: the best step is measured too."
        ),
    ] = 0,
    prepare_only: Annotated[bool, typer.Option("--prepare-only", help="Write the arrays, train nothing.")] = False,
    seconds: Annotated[float, typer.Option(help="After so many no further run is begun; 0: never.")] = 0.0,
    limit: Limit = None,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Table 2: base, + Q-consistency, + A-consistency, + gating, with CS(k) on held-out wordings.

    A study that was stopped goes on where it was when the same command is run again. The table lies in OUT/table.json.
    `scripts/reproduce_cycle.py OUT/data OUT` does the same with torch and numpy alone.
    """
    from pfungst.cli.show import print_json, progress_bar
    from pfungst.training import FitConfig, Prepared
    from pfungst.training.cycle import CycleConfig, StudyConfig, as_text, run_study, summarise
    from pfungst.training.cycle.data import data_splits, kind_splits, prepare_study, world_splits

    world = data == "world"
    see = see or ("objects" if world and not picture else "image")
    with progress_bar() as progress:
        if (Path(data) / "prepared.json").exists():
            prepared = Prepared.load(data)
        elif world:
            wanted = picture or ("world" if see == "image" else "none")
            made = (
                kind_splits(kinds.split(","), scenes, validation, seed=world_seed)
                if kinds
                else world_splits(scenes, validation, world_seed)
            )
            prepared = prepare_study(made, out / "data", picture=wanted, words=str(words or ""), progress=progress)
        else:
            if not test:
                raise typer.BadParameter("Say which other questions to ask: --test DATA.", param_hint="--test")
            splits = data_splits(data, test, rephraser=rephraser, limit=limit)
            features = picture or "efficientnet-lite0"
            prepared = prepare_study(
                splits, out / "data", picture=features, max_answers=max_answers, words=str(words or ""),
                progress=progress,
            )  # fmt: skip
        if prepare_only:
            print(f"{prepared.folder}: {dict(prepared.splits)} questions")
            return
        config = StudyConfig(
            models=tuple(models.split(",")),
            seeds=seeds,
            see=see,
            questions=questions,
            fit=FitConfig(steps=steps, batch=batch, rate=rate),
            cycle=CycleConfig(**{"start": 0.4, "feedback": "forced", **parse_options(cycle_set or [])}),
            changes=parse_options(setting or []),
            words=str(_vectors(prepared.folder, words)) if words else "",
            fixed_words=fixed_words,
            early_stop=early_stop,
        )
        missing = run_study(prepared, out, config, device=device, seconds=seconds, progress=progress)
    result = summarise(out)
    if as_json:
        print_json({"folder": str(out), "missing": missing, **result})
        return
    print(as_text(result))
    if missing:
        print(f"{missing} runs are missing; run the same command again to go on.")
    print(f"\n{out / 'table.json'}")


def _vectors(folder: Path, words: Path) -> Path:
    """The vectors beside the arrays, where they were written with them."""
    beside = folder / "words.npz"
    return beside if beside.exists() else words


@app.command("questions")
def questions(
    model: Annotated[Path, typer.Argument(help="Folder that pfungst train MODEL --cycle wrote.")],
    data: Data = "world",
    samples: Annotated[int, typer.Option(help="Questions drawn with different noise.")] = 3,
    show: Annotated[int, typer.Option(help="Examples to show.")] = 5,
    meteor: Annotated[
        bool, typer.Option("--meteor/--no-meteor", help="METEOR too, whose word lists take a while.")
    ] = True,
    limit: Limit = 500,
    device: Device = "cpu",
    seed: Seed = 0,
    images: Images = None,
    skip_bad: SkipBad = False,
    as_json: Json = False,
) -> None:
    """Table 3: how well the question generator of a cycle-trained model asks, and what it asks."""
    from pfungst.cli.show import print_json, print_table
    from pfungst.data import load
    from pfungst.training.cycle.generation import evaluate_generator
    from pfungst.training.cycle.rephrase import Writer

    asked = load(data, **data_options(images, skip_bad))
    writer = Writer.load(str(model), device)
    found = evaluate_generator(writer, asked, samples=samples, limit=limit, seed=seed, meteor=meteor)
    if as_json:
        print_json(
            {"model": str(model), "n": found.n, "distinct": found.distinct, **found.scores, "samples": found.samples}
        )
        return
    cells = [f"{value:.3f}" for value in found.scores.values()]
    print_table(f"Question generation, n = {found.n}", ("Model", *found.scores), [(model.name, *cells)])
    for one in found.samples[:show]:
        print(f"\n{one.question}  [{one.answer}]\n  without noise: {one.written[0]}")
        for text in one.written[1:]:
            print(f"  with noise:    {text}")
    print(f"\n{found.distinct:.0%} of the drawn questions of an example differ from each other.")


@app.command("failure")
def failure(
    models: Annotated[list[Path], typer.Argument(help="Folders of trained models: the base, the cycle-trained one.")],
    data: Data = "world",
    limit: Limit = None,
    device: Device = "cpu",
    seed: Seed = 0,
    images: Images = None,
    skip_bad: SkipBad = False,
    as_json: Json = False,
) -> None:
    """Table 4: do models know when they are wrong? Confidence threshold and the FP module, on data new to them."""
    import tempfile

    from pfungst.cli.show import print_json
    from pfungst.data import load
    from pfungst.models import Trained
    from pfungst.training import prepare
    from pfungst.training.failure import as_text, failure_table

    asked = load(data, limit=limit, **data_options(images, skip_bad))
    rows: dict[str, Any] = {}
    for place in models:
        trained = Trained.load(place)
        with tempfile.TemporaryDirectory() as folder:
            made = prepare({"asked": asked}, folder, inputs=trained.inputs, vocabulary=trained.vocabulary)
            arrays = made.split("asked").for_model(trained.model)
            rows[place.name] = failure_table(trained.model, arrays, seed=seed, device=device)
    if as_json:
        print_json({name: [one.to_json() for one in judged] for name, judged in rows.items()})
        return
    print(as_text(rows))
    print("\nHalf of the pictures set the threshold and train FP, the other half judges both.")


@app.command("attention")
def attention(
    models: Annotated[list[str], typer.Argument(help="Trained models, a row each: zoo names or folders.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The figure: .html or .png.")] = Path("attention.html"),
    data: Data = "world",
    group: Annotated[str, typer.Option(help="Id of the original question [the first with rephrasings].")] = "",
    generator: Annotated[str, typer.Option(help="Who rephrases data without groups: rules, world ...")] = "rules",
    images: Images = None,
    as_json: Json = False,
) -> None:
    """Figure 4: where models look in every wording of one question, side by side."""
    from pfungst.cli.show import print_json
    from pfungst.core import PfungstError
    from pfungst.data import load
    from pfungst.players.zoo import load as load_player
    from pfungst.probes.rephrase import with_rephrasings
    from pfungst.report.attention import draw_attention

    asked = load(data, **data_options(images, False))
    if not any(one.group and one.group != one.id for one in asked):
        chosen = [one for one in asked if not group or one.id == group][:1]
        asked = with_rephrasings(asked.subset(chosen), generator)
    wanted = group or next((one.group for one in asked if one.group and one.group != one.id), "")
    members = sorted((one for one in asked if one.group == wanted), key=lambda one: one.id != wanted)
    if not members:
        raise PfungstError(f"{asked.name} has no rephrasing group {wanted!r}.")
    shown = draw_attention({Path(name).name: load_player(name) for name in models}, members, out)
    if as_json:
        seen = {name: [one.to_json() for one in row] for name, row in shown.items()}
        texts = [{"id": one.id, "question": one.question, "target": one.target} for one in members]
        print_json({"figure": str(out), "group": wanted, "wordings": texts, "models": seen})
        return
    for name, row in shown.items():
        print(f"{name}: " + "; ".join(f"{one.answer}{'' if one.right else ' (wrong)'}" for one in row))
    print(f"\n{out}")
