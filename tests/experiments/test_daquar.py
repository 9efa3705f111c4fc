"""Training the natural-image models on DAQUAR: the official split by image, resumed, scored."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from pfungst.cli.app import app
from pfungst.core import UsageError
from pfungst.experiments.daquar import DaquarConfig, official
from pfungst.models import Trained

QUESTIONS = {"train": "what is on the table", "eval": "how many chairs are there"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Questions in two files; the official split is by image and mixes them."""
    place = tmp_path / "daquar"
    (place / "images").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(1, 9):
        Image.fromarray(rng.integers(0, 255, (24, 32, 3), np.uint8)).save(place / "images" / f"image{number}.png")
    for split, text in QUESTIONS.items():
        rows = [f"{text},{answer},image{n}" for n, answer in zip(range(1, 9), ["lamp", "cup"] * 4, strict=True)]
        (place / f"data_{split}.csv").write_text("\n".join(["question,answer,image_id", *rows]) + "\n")
    (place / "train_images_list.txt").write_text("\n".join(f"image{n}" for n in (1, 2, 3, 4, 5, 6)))
    (place / "test_images_list.txt").write_text("image7\nimage8\n")
    return place


def test_the_split_is_by_image_whatever_file_a_question_stands_in(folder: Path) -> None:
    splits = official(folder)
    assert {x.image_id for x in splits["test"]} == {"image7", "image8"}
    assert (len(splits["train"]), len(splits["test"])) == (12, 4)


def test_a_model_is_trained_scored_and_not_trained_again(folder: Path, tmp_path: Path) -> None:
    words = ["reproduce", "daquar", str(folder), "--models", "butd", "--picture", "world", "--epochs", "1", "--json"]
    words += ["--batch", "4", "--fit", "check_every=2", "--out", str(tmp_path / "out")]
    told = CliRunner().invoke(app, words, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    scores = json.loads(told.stdout)["models"]["butd"]
    assert 0 <= scores["exact"] <= scores["WUPS 0.9"] <= scores["WUPS 0.0"] <= 1
    trained = Trained.load(tmp_path / "out" / "butd-daquar.safetensors")
    assert trained.card["asked_on"] == "DAQUAR test" and trained.card["scores"]["exact"] == scores["exact"]
    (tmp_path / "out" / "scores" / "butd.json").write_text(json.dumps({**scores, "exact": 0.123}))
    again = CliRunner().invoke(app, words, catch_exceptions=False)
    assert json.loads(again.stdout)["models"]["butd"]["exact"] == 0.123


def test_models_without_sizes_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No sizes are known for 'film'"):
        DaquarConfig(tmp_path, models=("film",))
