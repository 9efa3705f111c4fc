"""pfungst train, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pfungst.cli.train import train
from pfungst.core import PfungstError, Query
from pfungst.players import resolve

app = typer.Typer()
app.command()(train)


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_model_is_trained_on_the_world_and_plays(tmp_path: Path) -> None:
    words = (
        "rn-state", "--data", "world?split=train&scenes=12&rephrasings=1", "--out", str(tmp_path), "--preset", "tiny",
        "--steps", "12", "--batch", "8", "--set", "check_every=6", "--set", "relation=[8, 8]", "--json",
    )  # fmt: skip
    first = json.loads(run(*words))
    assert first["card"]["steps"] == 12
    assert json.loads((tmp_path / "model.json").read_text())["config"]["relation"] == [8, 8]
    # The same command again finds everything done.
    assert json.loads(run(*words))["card"]["accuracy"] == first["card"]["accuracy"]
    player = resolve(f"zoo:{tmp_path}")
    assert player.answer([Query("How many cubes are there?")])[0].text


def test_prepared_data_keep_the_names_of_their_splits_and_take_no_options(tmp_path: Path) -> None:
    from pfungst.training import prepare
    from tests.conftest import squares

    folder = tmp_path / "arrays"
    prepare({"train": squares(8), "mine": squares(5)}, folder)
    words = ("lstm-qi", "--data", str(folder), "--out", str(tmp_path / "out"), "--preset", "tiny", "--steps", "2")
    assert json.loads(run(*words, "--validation", "mine", "--json"))["card"]["n"] == 10
    with pytest.raises(PfungstError, match="is prepared already: --limit"):
        run(*words, "--limit", "3")


def test_settings_that_do_not_exist_are_told(tmp_path: Path) -> None:
    with pytest.raises(PfungstError, match="model or its training has no setting 'depth'."):
        run("film", "--out", str(tmp_path), "--set", "depth=3")
    with pytest.raises(PfungstError, match="no setting 'rat'. Did you mean rate"):
        run("film", "--out", str(tmp_path), "--set", "rat=3")
    with pytest.raises(PfungstError, match="setting blocks of the model must be a whole number, not 'two'"):
        run("film", "--out", str(tmp_path), "--set", "blocks=two")
    with pytest.raises(PfungstError, match="no preset 'huge'. There are: paper"):
        run("film", "--out", str(tmp_path), "--preset", "huge")
    with pytest.raises(PfungstError, match="Did you mean film"):
        run("fillm", "--out", str(tmp_path))


def test_the_zoo_trains_the_generator_that_two_models_share(tmp_path: Path) -> None:
    from scripts.train_zoo import write_programs

    from pfungst.core.types import no_progress
    from pfungst.models import Inputs, load_tensors
    from pfungst.training import FitConfig, prepare
    from pfungst.world import embedded

    data, out = embedded(2, rephrasings=0), tmp_path / "generator.safetensors"
    prepare({"train": data, "val": data}, tmp_path / "scenes", inputs=Inputs(picture="none"))
    write_programs(tmp_path / "scenes", out, None, FitConfig(steps=2, batch=4), 4, "cpu", no_progress)
    assert load_tensors(out)[0]


def test_the_zoo_begins_with_weights_of_the_sizes_it_trains(tmp_path: Path) -> None:
    from scripts.train_zoo import begin

    from pfungst.models import Inputs, Trained, build, get_config
    from pfungst.training import prepare
    from pfungst.world import embedded

    prepared = prepare({"train": embedded(2, rephrasings=0)}, tmp_path / "data", inputs=Inputs(picture="none"))
    small = get_config("lstm-qi", "tiny", hidden=6)  # as in SIZES: other sizes than those of the preset
    model = build("lstm-qi", prepared.sizes(), small, seed=1)
    before = tmp_path / "before"
    before.mkdir()
    Trained("lstm-qi", model, prepared.vocabulary, prepared.inputs, {}).save(before / "lstm-qi.safetensors")
    where = (tmp_path / "data", tmp_path / "kept.safetensors", before, tmp_path / "none", "cpu", 0)
    begun = begin("lstm-qi", small, *where)
    assert begun.model.config.hidden == 6
    assert all((value == model.state_dict()[name]).all() for name, value in begun.model.state_dict().items())
