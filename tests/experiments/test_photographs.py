"""`pfungst reproduce photographs` on a small world: the colour of an image is what is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

from pfungst.core import Asker, Query, UsageError
from pfungst.core.types import no_progress
from pfungst.data import load
from pfungst.experiments import get_experiment, perform
from pfungst.experiments.photographs import ROWS, PhotographsConfig, score_tables, twin
from pfungst.experiments.photographs_training import start_looking, vocabulary_of
from pfungst.models import Batch, Sizes, Trained, build, get_config
from pfungst.players.zoo import ZooPlayer
from pfungst.training import FitConfig

COLOURS = {"red": (220, 30, 30), "green": (30, 220, 30), "blue": (30, 30, 220)}
EYE = """
import torch
def eye():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 7, 56, 56), torch.nn.ReLU())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """VQA v2's files: half of the questions are about the colour, half have the same answer for every image."""
    place = tmp_path_factory.mktemp("vqa")
    (place / "eye_of_a_test.py").write_text(EYE)
    rng = np.random.default_rng(0)
    for split, count, start in (("train", 90, 1), ("val", 30, 501)):
        (place / f"{split}_images").mkdir()
        questions: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for image in range(start, start + count):
            name = list(COLOURS)[image % 3]
            noise = rng.integers(-20, 20, (64, 64, 3)) + np.array(COLOURS[name])
            PIL.Image.fromarray(noise.clip(0, 255).astype(np.uint8)).save(
                place / f"{split}_images" / f"{image:012d}.png"
            )
            for kind, text, answer in (("other", "What colour is it?", name), ("yes/no", "Is it a square?", "yes")):
                number = 10 * image + len(questions) % 2
                questions.append({"question_id": number, "image_id": image, "question": text})
                people = [{"answer": answer, "answer_id": i, "answer_confidence": "yes"} for i in range(10)]
                annotations.append({
                    "question_id": number, "image_id": image, "answer_type": kind, "question_type": "x",
                    "multiple_choice_answer": answer, "answers": people,
                })  # fmt: skip
        (place / f"{split}_questions.json").write_text(json.dumps({"questions": questions}))
        (place / f"{split}_annotations.json").write_text(json.dumps({"annotations": annotations}))
    return place


@pytest.fixture(scope="module")
def done(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any], Any]]:
    """Two rows, trained."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(folder))
    patch.setenv("PFUNGST_CACHE", str(folder / "cache"))
    out = tmp_path_factory.mktemp("out")
    config = PhotographsConfig(
        folder, models=("mlb",), small="torch:eye_of_a_test:eye", large="torch:eye_of_a_test:eye",
        seeds=2, rates=(1e-2, 1e-4), dropouts=(0.1, 0.9), min_count=1, fit=FitConfig(epochs=10, batch=32, average=0.9),
    )  # fmt: skip
    try:
        yield out, perform(get_experiment("photographs"), config, out), config
    finally:
        patch.undo()


def test_the_image_is_worth_what_only_it_can_tell(done: tuple[Path, dict[str, Any], Any]) -> None:
    _, result, _ = done
    scores = result["rows"]["mlb"]["scores"]
    assert scores["Y/N"]["sees"]["value"] == scores["Y/N"]["blind"]["value"] == 1.0
    assert scores["Other"]["sees"]["value"] > 0.8
    assert scores["Other"]["blind"]["value"] < 0.5  # three colours: a third by guessing
    worth = scores["All"]["worth"]
    assert worth["value"] == pytest.approx(scores["All"]["sees"]["value"] - scores["All"]["blind"]["value"])
    assert 0 < worth["low"] <= worth["value"] <= worth["high"]
    assert result["rows"]["mlb"]["seeds"] == 2
    assert result["reachable"] == 1.0
    assert result["constant"] == {"answer": "yes", "accuracy": 0.5}


def test_the_better_rate_is_chosen_on_held_out_training_images(done: tuple[Path, dict[str, Any], Any]) -> None:
    _, result, _ = done
    tried = {(one["rate"], one["dropout"]): one["held"] for one in result["tried"] if not one["blind"]}
    assert len(tried) == 4
    best = result["rows"]["mlb"]
    assert tried[best["rate"], best["dropout"]] == max(tried.values()) > tried[1e-4, 0.9]
    assert (best["rate"], best["dropout"]) == (1e-2, 0.1)


def test_both_backbones_of_an_architecture_share_a_twin() -> None:
    assert {row: twin(row) for row in ROWS if twin(row) != row} == {"hiecoatt-large": "hiecoatt"}


def test_what_is_shipped_answers_as_it_was_judged(done: tuple[Path, dict[str, Any], Any], folder: Path) -> None:
    out, result, _ = done
    trained = Trained.load(out / "mlb-vqa2.safetensors")
    cell = json.loads((out / "cells" / "mlb-sees-0.01-0.1-0.json").read_text())
    data = load(f"vqa:{folder}#val")
    given = Asker(ZooPlayer(trained)).answers([Query(one.question, one.image) for one in data])
    assert [answer.text for answer in given] == [trained.vocabulary.answers[number] for number in cell["answers"]]
    assert trained.card["accuracy"] == result["rows"]["mlb"]["first"]["value"]
    assert trained.inputs.question_length == 64


def test_a_finished_run_is_judged_again_without_its_features(
    done: tuple[Path, dict[str, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, result, config = done
    monkeypatch.setattr("pfungst.models.features.backbones.get_backbone", None)
    again = get_experiment("photographs").run(config, out, progress=no_progress)
    assert again["rows"] == result["rows"]


def test_tables_say_where_the_image_is_worth_nothing() -> None:
    part = {"value": 0.5, "low": 0.4, "high": 0.6}
    scores = {
        name: {"sees": part, "blind": part, "worth": {"value": 0.0, "low": -0.01, "high": 0.01}}
        for name in ("Other", "Num", "Y/N", "All")
    }
    row = {"backbone": "eye", "parameters": 1000, "seeds": 5, "scores": scores}
    result = {
        "rows": {"mutan": row}, "questions": {"All": 3, "Other": 1, "Num": 1, "Y/N": 1}, "images": 2,
        "constant": {"answer": "no", "accuracy": 0.2}, "reachable": 0.9,
    }  # fmt: skip
    _, worth = score_tables(result)
    assert worth.rows == (("mutan", *["+0.0 [-1.0, 1.0]"] * 4, "not shown"),)


@pytest.mark.parametrize("row", ROWS)
def test_every_layer_that_looks_at_the_image_begins_at_one_scale(row: str) -> None:
    torch.manual_seed(0)
    model = build(ROWS[row].model, Sizes(60, 31, (1280, 2, 2)), get_config(ROWS[row].model, "features"))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    batch = Batch(torch.randint(4, 60, (48, 6)), image=0.01 * torch.rand(48, 1280, 2, 2))
    start_looking(model, batch)
    seen: dict[str, torch.Tensor] = {}

    def note(name: str, module: torch.nn.Module, given: Any, found: torch.Tensor) -> None:
        seen[name] = found.flatten(0, -2)

    for name, part in model.named_modules():
        if isinstance(part, torch.nn.Linear):
            part.register_forward_hook(partial(note, name))
    with torch.no_grad():
        model(batch)
    looks = {name for name, part in model.named_modules() if getattr(part, "in_features", 0) in (1280, 2560)}
    meets = re.compile(r"(fusion|attend)\.(first|second|question|picture|question_core|picture_core)$")
    looks |= {name for name in seen if meets.search(name)}
    assert looks
    for name in looks:
        assert float(seen[name].std(0).mean()) == pytest.approx(0.5, rel=1e-3), name
        assert float(seen[name].mean()) == pytest.approx(0, abs=1e-3), name
    others = {name: value for name, value in model.state_dict().items() if not name.startswith(tuple(looks))}
    assert all(torch.equal(value, before[name]) for name, value in others.items())


def test_answers_are_ranked_by_the_questions_they_answer(folder: Path) -> None:
    vocabulary = vocabulary_of(load(f"vqa:{folder}#train"), 1, 2)
    assert vocabulary.answers[0] == "yes"
    assert len(vocabulary.answers) == 2


def test_an_unknown_row_and_no_seed_are_refused() -> None:
    with pytest.raises(UsageError, match="no row 'resnet'"):
        PhotographsConfig(Path("x"), models=("resnet",))
    with pytest.raises(UsageError, match="one seed"):
        PhotographsConfig(Path("x"), seeds=0)
