"""What `pfungst examine` makes of pictures, questions and answers that a model of the zoo did not expect."""

from __future__ import annotations

import io
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from pfungst import examine
from pfungst.core import BytesImage, DataError, FileImage, NamedImage, PlayerError, Query
from pfungst.models import Batch, Inputs, Sizes, Trained, Vocabulary, build
from pfungst.models.features import load_regions
from pfungst.players import resolve
from pfungst.players.zoo import ZooPlayer

WORDS = Vocabulary(("color", "cube", "is", "the", "what"), ("yes", "no", "red"))
NOISE = np.random.default_rng(0).integers(0, 256, (24, 30, 4), np.uint8)
PICTURES: dict[str, Any] = {
    "colour.png": PIL.Image.fromarray(NOISE[..., :3]),
    "grey.png": PIL.Image.fromarray(NOISE[..., 0]),
    "transparent.png": PIL.Image.fromarray(NOISE),
    "deep.png": PIL.Image.fromarray(NOISE[..., 0].astype(np.uint16) * 257),
    "huge.jpg": PIL.Image.new("RGB", (3500, 2500), (200, 10, 10)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bad")
    sizes = Sizes(WORDS.size, len(WORDS.answers), (3, 16, 20))
    inputs = Inputs(width=20, height=16, question_length=8)
    Trained("film", build("film", sizes, "tiny"), WORDS, inputs).save(place / "film")
    for name, picture in PICTURES.items():
        picture.save(place / name)
    return place


def data(folder: Path, rows: list[dict[str, Any]]) -> str:
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / "data.jsonl")


def test_any_image_any_question_and_an_unknown_answer_are_examined(folder: Path) -> None:
    rows = [
        {"id": name, "question": "what color is the cube", "image": name, "answer": "red"} for name in sorted(PICTURES)
    ]
    # The model cannot say "zebra", so it is wrong; it can still be asked.
    rows += [{"id": "unknown", "question": "what is the zebra", "image": "grey.png", "answer": "zebra"}]
    run = examine(f"zoo:{folder / 'film'}", data(folder, rows), ["control"], folder / "run")
    (control,) = run.findings
    assert control.clean.n == len(rows)
    assert control.clean.value < 1


def test_a_corrupt_image_ends_the_exam_with_its_name(folder: Path) -> None:
    (folder / "broken.png").write_bytes((folder / "colour.png").read_bytes()[:70])
    rows = [{"id": "b", "question": "is", "image": "broken.png", "answer": "yes"}]
    with pytest.raises(DataError, match=r"broken\.png.*not an image that can be decoded"):
        examine(f"zoo:{folder / 'film'}", data(folder, rows), ["control"], folder / "broken")


def test_a_picture_that_would_fill_the_memory_is_refused() -> None:
    # A valid header that promises 40,000 x 40,000 pixels.
    buffer = io.BytesIO()
    PIL.Image.new("1", (8, 8)).save(buffer, format="PNG")
    data = bytearray(buffer.getvalue())
    data[16:24] = (40_000).to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(bytes(data[12:29])).to_bytes(4, "big")
    sizes = Sizes(WORDS.size, len(WORDS.answers), (3, 16, 20))
    player = ZooPlayer(Trained("film", build("film", sizes, "tiny"), WORDS, Inputs(width=20, height=16)))
    with pytest.raises(DataError, match="not an image that can be decoded"):
        player.answer([Query("is", BytesImage(bytes(data)))])


@pytest.fixture
def on_regions(tmp_path: Path) -> Path:
    sizes = Sizes(WORDS.size, len(WORDS.answers), (3, 16, 20), regions=6)
    Trained("butd", build("butd", sizes, "tiny"), WORDS, Inputs(picture="none")).save(tmp_path / "butd")
    (tmp_path / "regions").mkdir()
    rng = np.random.default_rng(0)
    for number, count in ((7, 3), (8, 5)):
        np.savez(tmp_path / "regions" / f"{number}.npz", features=rng.normal(size=(count, 6)).astype(np.float32))
    return tmp_path


def test_a_model_on_regions_plays_with_the_regions_of_its_pictures(on_regions: Path) -> None:
    player = resolve(f"zoo:{on_regions / 'butd'}", regions=str(on_regions / "regions"))
    asked = [FileImage(Path("val/0007.jpg")), NamedImage("8"), None]
    got = player.answer([Query("what is the cube", image) for image in asked])
    model, features = Trained.load(on_regions / "butd").model, load_regions(on_regions / "regions")
    import torch

    question = torch.from_numpy(WORDS.encode(["what is the cube"], 50).astype(np.int64))
    for answer, name in zip(got, ("7", "8"), strict=False):
        rows = torch.from_numpy(features.get(name).features.astype(np.float16).astype(np.float32))
        with torch.no_grad():
            chances = model(Batch(question, regions=rows[None])).logits.sigmoid()[0]
        assert answer.confidence == pytest.approx(float(chances.max()), abs=1e-5)
    assert got[2].text in WORDS.answers


def test_a_model_on_regions_says_what_it_lacks(on_regions: Path) -> None:
    with pytest.raises(PlayerError, match="trained on region features: give those of the images"):
        resolve(f"zoo:{on_regions / 'butd'}")
    player = resolve(f"zoo:{on_regions / 'butd'}", regions=str(on_regions / "regions"))
    with pytest.raises(DataError, match="no region features for the image"):
        player.answer([Query("is", NamedImage("9"))])
    with pytest.raises(DataError, match="is not a file of a data set"):
        player.answer([Query("is", BytesImage(b"changed"))])
    np.savez(on_regions / "regions" / "7.npz", features=np.zeros((2, 4), np.float32))
    np.savez(on_regions / "regions" / "8.npz", features=np.zeros((2, 4), np.float32))
    with pytest.raises(PlayerError, match="regions of 6 numbers; these have 4"):
        resolve(f"zoo:{on_regions / 'butd'}", regions=str(on_regions / "regions"))
