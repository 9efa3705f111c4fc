"""Data sets as arrays: questions, pictures, scenes, programs; compressed, split, and shifted."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

from pfungst.core import DataError, Dataset, Example, FileImage, NamedImage
from pfungst.models import Batch, Inputs, Scenes, Vocabulary, build
from pfungst.models.features.regions import RegionFeatures, Regions
from pfungst.models.programs import decode_program
from pfungst.training import ArrayData, FitConfig, Prepared, prepare, shift, train
from pfungst.training.augment import shuffle_objects
from tests.conftest import squares

SMALL = Inputs(width=16, height=16, question_length=6, choice_length=2)


def test_a_data_set_becomes_arrays(tmp_path: Path) -> None:
    data = squares(6, choices=("yes", "no"))
    prepared = prepare({"train": data}, tmp_path, inputs=SMALL)
    arrays = Prepared.load(tmp_path).split("train")
    assert len(arrays) == 12
    batch = arrays.batch(np.array([0, 5]))
    words = prepared.vocabulary
    assert [words.decode(row) for row in batch.question.tolist()] == ["is number 0 shown", "is number 1 shown"]
    assert [words.answers[n] for n in batch.answer.tolist()] == [data[0].target, data[5].target]
    assert batch.image is not None
    assert tuple(batch.image.shape) == (2, 3, 16, 16)
    assert batch.image.dtype == torch.uint8
    assert int(batch.image[1, 0, 0, 0]) == 2 * 255 // 6
    assert batch.choices is not None
    assert [words.decode(row) for row in batch.choices[0].tolist()] == ["yes", "no"]
    chosen = dataclasses.replace(arrays, choosing=True).batch(np.array([0, 1])).answer
    assert chosen is not None
    assert chosen.tolist() == [0, 1]


def test_the_world_brings_scenes_and_programs(tmp_path: Path) -> None:
    from pfungst.world import embedded

    data = embedded(scenes=3, rephrasings=1)
    prepare({"val": data}, tmp_path, inputs=Inputs(width=32, height=32))
    arrays = Prepared.load(tmp_path).split("val")
    batch = arrays.batch(np.arange(len(data)))
    assert batch.scene is not None
    assert batch.program is not None
    for i, example in enumerate(data):
        assert example.scene is not None
        assert int(batch.scene.present[i].sum()) == len(example.scene["objects"])
        place = batch.scene.positions[i, 0].tolist()
        assert place == pytest.approx(example.scene["objects"][0]["3d_coords"][:2], rel=1e-5)
        written = decode_program(batch.program[i].tolist())
        assert sorted(n.function for n in written.nodes) == sorted(n["function"] for n in _tree(example.program))
    assert batch.scene.pixels is not None
    assert bool(((batch.scene.pixels > 0) & (batch.scene.pixels < 1) | batch.scene.pixels.isnan()).all())


def _tree(program):  # type: ignore[no-untyped-def]
    """The nodes of a program as a tree: shared ones once for every use."""

    def walk(i):  # type: ignore[no-untyped-def]
        yield program[i]
        for one in program[i]["inputs"]:
            yield from walk(one)

    return list(walk(len(program) - 1))


def test_several_human_answers_become_scores(tmp_path: Path) -> None:
    image = squares(1)[0].image
    answers = ("cat",) * 2 + ("dog",) * 7 + ("cow",)
    data = Dataset("ten", [Example("1", "What?", image, "a", answers=answers, target="dog")])
    arrays = prepare({"train": data}, tmp_path, inputs=SMALL).split("train")
    scores = arrays.batch(np.array([0])).answer
    assert scores is not None
    order = Prepared.load(tmp_path).vocabulary.answers
    assert dict(zip(order, scores[0].tolist(), strict=True)) == pytest.approx({"dog": 1, "cat": 2 / 3, "cow": 1 / 3})


def test_unknown_words_and_answers_of_later_splits_are_marked(tmp_path: Path) -> None:
    first = squares(4)
    other = Dataset("new", [dataclasses.replace(first[0], question="Zebra?", target="perhaps", answers=("perhaps",))])
    arrays = prepare({"train": first, "val": other}, tmp_path, inputs=SMALL).split("val")
    assert arrays.arrays["answer"].tolist() == [-1]
    assert arrays.arrays["question"][0].tolist() == [1, 0, 0, 0, 0, 0]


def test_questions_without_their_picture_are_left_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = squares(6)
    data = data.subset([dataclasses.replace(one, image=None) if n < 2 else one for n, one in enumerate(data)])
    with caplog.at_level("INFO", "pfungst"):
        assert len(prepare({"train": data}, tmp_path, inputs=SMALL).split("train")) == 10
    assert caplog.messages == ["train: left out 2 of 12 questions, because their images are missing."]


def test_questions_that_are_cut_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = squares(6)
    data = data.subset([dataclasses.replace(data[0], question="is " * 7), *data[1:]])
    with caplog.at_level("INFO", "pfungst"):
        prepare({"train": data}, tmp_path, inputs=SMALL)
    assert caplog.messages == ["train: 1 of 12 questions have more than 6 words, and are cut at the end."]


def test_other_pictures_of_the_same_questions_are_other_data(tmp_path: Path) -> None:
    def learn(width: int) -> None:
        """The data set's fingerprint does not know images."""
        examples = []
        for number, one in enumerate(squares(6)):
            path = tmp_path / f"{one.id}.png"
            PIL.Image.new("RGB", (width, width), (number, 0, 0)).save(path)
            examples.append(dataclasses.replace(one, image=FileImage(path)))
        data = dataclasses.replace(squares(6), examples=examples)
        prepared = prepare({"train": data}, tmp_path / "arrays", inputs=SMALL, reuse=True)
        train("film", prepared, tmp_path / "run", config="tiny", fit_config=FitConfig(steps=1, batch=4))

    learn(16)
    learn(16)
    with pytest.raises(DataError, match=r"other settings \(images was "):
        learn(160)


def test_other_regions_of_the_same_images_are_other_data(tmp_path: Path) -> None:
    found = []
    for value in (1.0, 1.0, 2.0):
        regions = RegionFeatures(
            3, {f"picture {n}": n for n in range(6)}, lambda n, v=value: Regions(np.full((2, 3), v))
        )
        found.append(prepare({"train": squares(6)}, tmp_path, inputs=SMALL, regions=regions, reuse=True).images)
    assert found[0] == found[1] != found[2]
    assert float(Prepared.load(tmp_path).split("train").arrays["regions"][0, 0, 0]) == 2.0


def test_missing_pictures_are_told(tmp_path: Path) -> None:
    data = Dataset("x", [Example("1", "What?", NamedImage("a"), "a", ("b",), "b")])
    with pytest.raises(DataError, match="image was not found"):
        prepare({"train": data}, tmp_path, inputs=SMALL)
    blind = prepare({"train": data}, tmp_path, inputs=dataclasses.replace(SMALL, picture="none")).split("train")
    film = build("film", Prepared.load(tmp_path).sizes(), "tiny")
    with pytest.raises(DataError, match="needs images to learn from"):
        blind.for_model(film)


def test_damaged_data_are_told(tmp_path: Path) -> None:
    prepare({"train": squares(2)}, tmp_path, inputs=SMALL)
    with pytest.raises(DataError, match="no split 'val'; there are train"):
        Prepared.load(tmp_path).split("val")
    (tmp_path / "train" / "question.npy").write_bytes(b"nothing")
    with pytest.raises(DataError, match="the array is damaged"):
        Prepared.load(tmp_path).split("train")
    (tmp_path / "prepared.json").write_text("{}")
    with pytest.raises(DataError, match="description of the data is damaged"):
        Prepared.load(tmp_path)
    with pytest.raises(DataError, match="no prepared data here"):
        Prepared.load(tmp_path / "nowhere")


def test_held_out_questions_show_other_pictures() -> None:
    arrays = ArrayData(
        {"question": np.zeros((40, 2)), "answer": np.zeros(40), "picture": np.repeat(np.arange(10), 4)}, 2
    )
    one, other = arrays.split_by_picture(0.2, seed=0)
    assert (len(one), len(other)) == (32, 8)
    assert not set(one.arrays["picture"].tolist()) & set(other.arrays["picture"].tolist())
    assert other.arrays["picture"].tolist() == arrays.split_by_picture(0.2, 0)[1].arrays["picture"].tolist()
    with pytest.raises(DataError, match="only one image"):
        arrays.rows(np.arange(4)).split_by_picture(0.5, 0)


def test_shifted_pictures_move_with_their_objects() -> None:
    image = torch.zeros(40, 1, 9, 9, dtype=torch.uint8)
    image[:, 0, 4, 4] = 255
    centre = torch.full((40, 1, 2), 4.5 / 9)
    scene = Scenes(torch.ones(40, 1, 4, dtype=torch.int64), torch.zeros(40, 1, 2), centre)
    moved = shift(2)(Batch(torch.ones(40, 1, dtype=torch.int64), image=image, scene=scene), 3)
    assert moved.image is not None
    assert moved.scene is not None
    assert moved.scene.pixels is not None
    places = set()
    for one, where in zip(moved.image, moved.scene.pixels, strict=True):
        row, column = divmod(int(one[0].argmax()), 9)
        assert where[0].tolist() == pytest.approx([(column + 0.5) / 9, (row + 0.5) / 9])
        places.add((row, column))
    assert places <= {(r, c) for r in range(2, 7) for c in range(2, 7)}
    assert len(places) > 5


def test_a_model_is_trained_from_a_data_set_to_a_folder_that_answers(tmp_path: Path) -> None:
    prepared = prepare({"train": squares(20, 1)}, tmp_path / "data", inputs=SMALL)
    settings = FitConfig(steps=30, batch=8, rate=1e-2, check_every=10)
    trained = train(
        "lstm-qi", prepared, tmp_path / "run", config="tiny", fit_config=settings, validation=0.2, half=True
    )
    assert {one.name for one in (tmp_path / "run").iterdir()} >= {
        "model.safetensors", "model.json", "card.md", "curves.jsonl", "fit.json", "checkpoint.safetensors",
    }  # fmt: skip
    card = trained.card
    assert card["parameters"] == trained.model.parameter_count
    assert card["n"] == 4
    assert card["seed"] == 0
    assert 0 <= card["low"] <= card["accuracy"] <= card["high"] <= 1
    assert "parameters" in (tmp_path / "run" / "card.md").read_text()
    assert trained.vocabulary == prepared.vocabulary


def test_a_vocabulary_can_be_given(tmp_path: Path) -> None:
    given = Vocabulary(("is",), ("no", "yes"))
    prepared = prepare({"train": squares(2)}, tmp_path, inputs=SMALL, vocabulary=given)
    assert prepared.split("train").arrays["question"][0].tolist() == [4, 1, 1, 1, 0, 0]


@pytest.mark.slow
def test_shuffled_scenes_have_the_same_objects_in_other_places() -> None:
    attributes = torch.arange(1, 25).reshape(1, 6, 4).repeat(30, 1, 1)
    positions, pixels = attributes[..., :2].float(), attributes[..., 2:].float()
    batch = Batch(torch.ones(30, 1, dtype=torch.int64), scene=Scenes(attributes, positions, pixels))
    moved = shuffle_objects(batch, 5).scene
    assert moved is not None
    assert moved.pixels is not None
    orders = {tuple(one[:, 0].tolist()) for one in moved.attributes}
    assert len(orders) > 20
    assert all(sorted(order) == [1, 5, 9, 13, 17, 21] for order in orders)
    # Every object keeps its own place.
    assert torch.equal(moved.positions, moved.attributes[..., :2].float())
    assert torch.equal(moved.pixels, moved.attributes[..., 2:].float())
    again = shuffle_objects(batch, 5).scene
    assert again is not None
    assert torch.equal(again.attributes, moved.attributes)


def test_training_can_begin_with_trained_weights(tmp_path: Path) -> None:
    prepared = prepare({"train": squares(), "val": squares()}, tmp_path / "data", inputs=Inputs(width=16, height=16))
    quick = FitConfig(steps=1, batch=4, rate=1e-9, weight_decay=0.0)
    first = train("film", prepared, tmp_path / "a", config="tiny", fit_config=FitConfig(steps=30), validation="val")
    second = train("film", prepared, tmp_path / "b", config="tiny", fit_config=quick, validation="val", start=first)
    fresh = train("film", prepared, tmp_path / "c", config="tiny", fit_config=quick, validation="val")
    weights = [one.model.answers[-1].weight for one in (first, second, fresh)]
    torch.testing.assert_close(weights[0], weights[1], atol=1e-6, rtol=0)
    assert not torch.allclose(weights[0], weights[2], atol=1e-3)


def test_questions_that_chose_the_weights_do_not_judge_them(tmp_path: Path) -> None:
    prepared = prepare({"train": squares(6), "val": squares(8)}, tmp_path / "data", inputs=SMALL)
    settings = {"config": "tiny", "validation": "val", "fit_config": FitConfig(steps=2, batch=4, check_every=2)}
    every = train("lstm-qi", prepared, tmp_path / "every", **settings)
    some = train("lstm-qi", prepared, tmp_path / "some", check_limit=5, **settings)
    named = train("lstm-qi", prepared, tmp_path / "named", check_limit=5, test="val", **settings)
    other = train("lstm-qi", prepared, tmp_path / "other", check_limit=5, test="train", **settings)
    assert [one.card["n"] for one in (every, some, named, other)] == [16, 11, 11, 12]


def test_a_model_that_reads_no_question_is_asked_once_a_picture(tmp_path: Path) -> None:
    from pfungst.world import embedded

    data = embedded(scenes=3, rephrasings=1)
    assert len(data) > 3
    prepared = prepare({"train": data, "val": data}, tmp_path / "data", inputs=Inputs(width=32, height=32))
    settings = {"config": "tiny", "validation": "val", "fit_config": FitConfig(steps=1, batch=4, check_every=1)}
    assert train("slot-attention", prepared, tmp_path / "every", **settings).card["n"] == 3
    # One picture chose the weights, so it does not judge them.
    assert train("slot-attention", prepared, tmp_path / "some", check_limit=1, **settings).card["n"] == 2
