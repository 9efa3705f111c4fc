"""A cycle-trained model end to end: train, write questions, score them, rephrase, predict failures, draw attention."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pfungst.cli.app import app
from pfungst.core import Dataset, PfungstError
from pfungst.experiments.questions import QuestionsConfig, evaluate_generator
from pfungst.models import Inputs, Trained
from pfungst.probes import get_probe
from pfungst.probes.rephrase import get_rephraser
from pfungst.training import FitConfig, prepare, train
from pfungst.training.cycle import CycleConfig, load_generator
from pfungst.training.cycle.rephrase import RoundTrip, Writer
from pfungst.world import embedded


@pytest.fixture(scope="module")
def world() -> Dataset:
    return embedded(scenes=6, rephrasings=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, world: Dataset) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("cycle")
    prepared = prepare({"train": world}, place / "data", inputs=Inputs(width=32, height=32, question_length=30))
    assert (place / "data" / "train" / "group.npy").exists()
    settings = FitConfig(steps=24, batch=10, rate=1e-2, check_every=12)
    train("butd", prepared, place / "model", config="tiny", fit_config=settings, cycle=CycleConfig(start=0.5))
    yield place / "model"


def test_the_generator_lies_beside_its_model(folder: Path) -> None:
    generator = load_generator(folder)
    assert generator.count == Trained.load(folder).vocabulary.size
    assert json.loads((folder / "fit.json").read_bytes())["cycle"]["start"] == 0.5


def test_it_writes_questions_that_noise_varies_and_seeds_repeat(folder: Path, world: Dataset) -> None:
    writer = Writer.load(str(folder))
    some = list(world)[:4]
    once, again = (writer.write(some, 4, seed=3, noise=2.0) for _ in range(2))
    assert once == again
    assert all(len(texts) == 4 and all(text.endswith("?") for text in texts) for texts in once)
    assert any(len(set(texts)) > 1 for texts in once)
    assert writer.write(some, 4, seed=4, noise=2.0) != once


def test_generated_questions_are_scored_against_all_wordings(folder: Path, world: Dataset) -> None:
    config = QuestionsConfig(folder, samples=2, limit=5, meteor=False)
    found = evaluate_generator(Writer.load(str(folder)), world, config)
    assert found.n == len(found.samples) == 5
    assert list(found.scores) == ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "METEOR", "CIDEr"]
    assert all(len(one.written) == 3 for one in found.samples)
    assert 0 < found.distinct <= 1
    with pytest.raises(PfungstError, match="no question to compare"):
        evaluate_generator(Writer.load(str(folder)), [], config)


def test_the_round_trip_keeps_what_its_model_answers_rightly(folder: Path, world: Dataset) -> None:
    originals = [one for one in world if one.group == one.id]
    texts = RoundTrip(str(folder), least=-1.0).rephrase(originals, 2, 0)
    assert any(texts)
    trained = Trained.load(folder)
    from pfungst.core import Query
    from pfungst.players.zoo import ZooPlayer

    player = ZooPlayer(trained)
    for one, written in zip(originals, texts, strict=True):
        for answer in player.answer([Query(text, one.image) for text in written]):
            assert answer.text == one.target
    assert RoundTrip(str(folder), least=1.01).rephrase(originals[:3], 2, 0) == [(), (), ()]
    assert "round trip" in get_rephraser(f"vqg:{folder}").keeps


def test_the_probe_takes_the_round_trip(folder: Path, world: Dataset) -> None:
    trials = list(get_probe(f"rephrase:generator=vqg:{folder},least=-1,count=1").trials(world, 0))
    assert trials
    assert all(len(trial.variants) == 2 for trial in trials)


@pytest.mark.parametrize(
    "words",
    [
        ["reproduce", "questions", "FOLDER", "--data", "world?scenes=3", "--limit", "4", "--no-meteor", "--json"],
        ["reproduce", "failure", "FOLDER", "--data", "world?scenes=8", "--json"],
    ],
)
def test_the_commands_print_json(words: list[str], folder: Path, tmp_path: Path) -> None:
    given = [str(folder) if word == "FOLDER" else word for word in words]
    result = CliRunner().invoke(app, [*given, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    if words[1] == "questions":
        assert found["n"] == 4
    else:
        assert [row["name"] for row in found["models"][folder.name]] == ["confidence", "FP"]


def test_attention_is_drawn_side_by_side(folder: Path, tmp_path: Path) -> None:
    words = ["reproduce", "attention", str(folder), str(folder), "--data", "world?scenes=2&rephrasings=2"]
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    figure = tmp_path / "attention.html"
    assert found["figure"] == str(figure)
    assert found["wordings"][0]["id"] == found["group"]
    (looks,) = found["models"].values()
    assert [look["question"] for look in looks] == [text["question"] for text in found["wordings"]]
    assert all(isinstance(look["right"], bool) and look["answer"] for look in looks)
    text = figure.read_text()
    assert text.count("<td>") == 3  # one model of that name, three wordings
    assert text.count("data:image/png;base64,") == 3
    assert "<script" not in text


def test_a_cycle_option_without_the_cycle_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["train", "butd", "--no-gating", "--data", "world?scenes=2", "-o", str(tmp_path)])
    assert result.exit_code != 0
    assert "without --cycle" in str(result.exception)


def test_train_cycles_from_the_command_line(tmp_path: Path) -> None:
    words = [
        "train",
        "san",
        "--data",
        "world?split=train&scenes=12",
        "-o",
        str(tmp_path),
        "--preset",
        "tiny",
        "--steps",
    ]
    words += ["6", "--batch", "4", "--width", "32", "--height", "32", "--cycle", "--no-gating", "--unattended"]
    result = CliRunner().invoke(app, [*words, "--cycle-start", "2", "--cycle-set", "lambda_c=0.25", "--json"])
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "generator.json").read_bytes())["config"]
    assert (record["gating"], record["attended"], record["start"], record["lambda_c"]) == (False, False, 2.0, 0.25)
    curve = [json.loads(line) for line in (tmp_path / "curves.jsonl").read_text().splitlines()]
    assert any("loss/cycle" in point for point in curve)
