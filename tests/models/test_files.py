"""Weights, words and descriptions on disk."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch

from pfungst.core import DataError, PfungstError
from pfungst.models import Inputs, Trained, Vocabulary, load_shipped, load_tensors, save_tensors
from pfungst.models.trained import share
from tests.models.tiny import SIZES, make, tiny_batch

TENSORS = {
    "a": torch.randn(3, 4),
    "b.half": torch.randn(5).half(),
    "c.brain": torch.randn(2, 2).bfloat16(),
    "d": torch.arange(7),
    "e": torch.tensor([True, False]),
    "f.scalar": torch.tensor(3.5, dtype=torch.float64),
    "g.empty": torch.zeros(0, 4),
    "h": torch.randint(0, 255, (3,), dtype=torch.uint8),
}


def test_the_safetensors_package_reads_what_we_write(tmp_path: Path) -> None:
    torch_side = pytest.importorskip("safetensors.torch")
    save_tensors(tmp_path / "x.safetensors", TENSORS, {"who": "we"})
    got = torch_side.load_file(tmp_path / "x.safetensors")
    assert got.keys() == TENSORS.keys()
    assert all(torch.equal(got[name], TENSORS[name]) and got[name].dtype == TENSORS[name].dtype for name in got)


def test_we_read_what_the_safetensors_package_writes(tmp_path: Path) -> None:
    torch_side = pytest.importorskip("safetensors.torch")
    torch_side.save_file(TENSORS, tmp_path / "x.safetensors", {"who": "they"})
    got, metadata = load_tensors(tmp_path / "x.safetensors")
    assert metadata == {"who": "they"}
    assert all(torch.equal(got[name], TENSORS[name]) and got[name].dtype == TENSORS[name].dtype for name in TENSORS)


def _file(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1234567",
        _file({}, length=1 << 60),
        _file([1]),
        struct.pack("<Q", 4) + b"nope",
        _file({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}),
        _file({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, b"12345678"),
        _file({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, b"12345678"),
        _file({"a": {"dtype": "F9", "shape": [2], "data_offsets": [0, 8]}}, b"12345678"),
        _file({"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}}, b"12345678"),
        _file({"a": 3}),
    ],
)
def test_damaged_weights_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a safetensors file, or a damaged one"):
        load_tensors(path)


def _trained(name: str = "film") -> Trained:
    return Trained(name, make(name).eval(), Vocabulary(tuple(f"w{i}" for i in range(16)), tuple("abcde")), Inputs())


@pytest.mark.parametrize("place", ["folder", "film.safetensors"])
def test_a_trained_model_answers_the_same_after_a_round_trip(tmp_path: Path, place: str) -> None:
    trained = _trained()
    trained.save(tmp_path / place)
    again = Trained.load(tmp_path / place)
    batch = tiny_batch(3)
    with torch.no_grad():
        assert torch.equal(again.model(batch).logits, trained.model(batch).logits)
    assert (again.vocabulary, again.inputs, again.model.sizes) == (trained.vocabulary, trained.inputs, SIZES)
    assert again.fingerprint


def test_half_precision_takes_half_the_space(tmp_path: Path) -> None:
    trained = _trained()
    trained.save(tmp_path / "full.safetensors")
    trained.save(tmp_path / "half.safetensors", half=True)
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("half", "full")]
    assert sizes[0] < 0.7 * sizes[1]
    batch = tiny_batch(3)
    with torch.no_grad():
        difference = Trained.load(tmp_path / "half.safetensors").model(batch).logits - trained.model(batch).logits
    assert difference.abs().max() < 0.01


def test_two_models_can_share_a_part_that_is_stored_once(tmp_path: Path) -> None:
    one, other = tmp_path / "tbd.safetensors", tmp_path / "iep.safetensors"
    _trained("iep").save(other)
    mine = _trained("tbd")
    with torch.no_grad():
        for value in mine.model.get_submodule("generator").parameters():
            value.add_(1.0)
    mine.save(one)
    before, size = Trained.load(one), one.stat().st_size
    share(one, "generator", other)
    after, giver = Trained.load(one), Trained.load(other)
    assert one.stat().st_size < size
    assert after.fingerprint != before.fingerprint
    for key, value in after.model.state_dict().items():
        whose = giver if key.startswith("generator.") else before
        torch.testing.assert_close(value, whose.model.state_dict()[key])
    # It is part of what the model is: who changes it there changes both.
    giver.save(other, half=True)
    assert Trained.load(one).fingerprint != after.fingerprint
    with pytest.raises(DataError, match="this part does not fit"):
        share(other, "functions", one)
    other.unlink()
    with pytest.raises(DataError, match=r"iep\.safetensors"):
        Trained.load(one)


def test_weights_that_do_not_fit_their_description_are_told(tmp_path: Path) -> None:
    _trained().save(tmp_path / "film")
    record = json.loads((tmp_path / "film" / "model.json").read_text())
    record["config"]["blocks"] = 3
    (tmp_path / "film" / "model.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match="do not fit"):
        Trained.load(tmp_path / "film")
    (tmp_path / "film" / "model.json").write_text("{}")
    with pytest.raises(DataError, match="description of the model is damaged"):
        Trained.load(tmp_path / "film")
    with pytest.raises(DataError, match="there is no trained model here"):
        Trained.load(tmp_path / "nowhere")


def test_missing_weights_are_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pfungst.models.trained.SHIPPED", tmp_path)
    with pytest.raises(PfungstError, match="no weights for film yet. Train it: pfungst train film"):
        load_shipped("film")
    _trained().save(tmp_path / "film.safetensors", half=True)
    assert load_shipped("film").name == "film"
    with pytest.raises(PfungstError, match="There are weights for: film."):
        load_shipped("san")


def test_a_vocabulary_counts_words_and_ranks_answers() -> None:
    words = Vocabulary.build(["What's the BIG cube?", "the cube, the end"], ["Yes", "no", "no "], choices=["sea"])
    assert words.words == ("big", "cube", "end", "sea", "the", "what's")
    assert words.answers == ("no", "yes")
    assert words.encode(["the zebra cube?", ""], 4).tolist() == [[8, 1, 5, 0], [0, 0, 0, 0]]
    assert (words.answer_number(" YES"), words.answer_number("perhaps")) == (1, -1)
    assert Vocabulary.from_json(words.to_json()) == words
    assert words.decode([8, 5, 0]) == "the cube"


def test_rare_words_and_answers_can_be_left_out() -> None:
    words = Vocabulary.build(["a b", "a c"], ["x", "y", "y"], min_count=2, max_answers=1)
    assert (words.words, words.answers) == (("a",), ("y",))
    with pytest.raises(DataError, match="no answers to learn from"):
        Vocabulary.build(["a"], [])
