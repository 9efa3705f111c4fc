"""Slot Attention: what is published, and what makes slots hold on to objects."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from torch import Tensor, nn

from pfungst.models import Batch, Scenes, Sizes, build
from pfungst.models.slot_attention import Decoder, SlotAttention, SlotAttentionModel, look_loss
from tests.models.tiny import SIZES, make, tiny_batch


def test_the_published_network_sees_every_pixel_and_draws_the_picture_anew() -> None:
    model = build("slot-attention", SIZES, "paper", seed=0)
    batch = tiny_batch(2)
    output = model.train()(batch)
    assert tuple(output.maps["slots"].shape) == (2, 11, 16, 20)
    assert tuple(output.extra["picture"].shape) == (2, 3, 16, 20)
    torch.testing.assert_close(output.extra["masks"].sum(1), torch.ones(2, 16, 20))
    convolutions = [one for one in model.front.modules() if isinstance(one, nn.Conv2d)]
    assert [(one.kernel_size, one.stride, one.out_channels) for one in convolutions] == [((5, 5), (1, 1), 64)] * 4
    assert not any(isinstance(one, nn.BatchNorm2d) for one in model.modules())
    assert "look" not in model.losses(batch, output)


def test_without_supervision_the_classifier_does_not_reach_the_slots() -> None:
    model, batch = build("slot-attention", SIZES, "paper", seed=0), tiny_batch(2)
    losses = model.losses(batch, model.train()(batch))
    (losses["attributes"] + losses["places"]).backward()
    assert model.head.attributes[0].weight.grad is not None
    assert model.attention.query.weight.grad is None
    model.losses(batch, model(batch))["picture"].backward()
    assert float(model.attention.query.weight.grad.abs().sum()) > 0


def test_scores_begin_with_a_spread_of_about_one() -> None:
    torch.manual_seed(0)
    attention = SlotAttention(64, 128, 1)
    inputs, slots = torch.randn(8, 50, 64), torch.randn(8, 11, 64)
    with torch.no_grad():
        scores = attention.query(slots) @ attention.key(inputs).transpose(1, 2) / 8.0
    assert 0.8 < float(scores.std()) < 1.25


def test_learnt_slots_have_no_noise() -> None:
    batch = tiny_batch(2)
    learnt, drawn = (make("slot-attention", learnt=one).train() for one in (True, False))
    assert torch.equal(learnt(batch).logits, learnt(batch).logits)
    assert not torch.equal(drawn(batch).logits, drawn(batch).logits)
    # Fixed noise when it does not train.
    drawn.eval()
    assert torch.equal(drawn(batch).logits, drawn(batch).logits)


def _one(weights: list[list[float]], pixels: list[tuple[float, float]]) -> Tensor:
    """The loss of one scene whose object i is matched with slot i; a grid of one row."""
    count = len(pixels)
    scene = Scenes(torch.ones(1, count, 4, dtype=torch.int64), torch.zeros(1, count, 2), torch.tensor([pixels]))
    number = torch.arange(count)
    return look_loss(torch.tensor(weights)[None, :, None], scene, (torch.zeros_like(number), number, number))


def test_a_slot_is_asked_to_have_the_cell_of_its_object_alone_and_no_other() -> None:
    # Slot 0 has 0.5 of cell 1, which is 0.5 / (0.5 + 0.25) of all it has; slot 1 has 0.75 of cell 0, and 0.6 of all.
    weights = [[0.25, 0.5], [0.75, 0.5]]
    expected = -(math.log(0.5) + math.log(0.5 / 0.75) + math.log(0.75) + math.log(0.6)) / 2
    assert float(_one(weights, [(0.9, 0.5), (0.1, 0.5)])) == pytest.approx(expected, rel=1e-5)
    assert float(_one([[1.0, 0.0], [0.0, 1.0]], [(0.1, 0.5), (0.9, 0.5)])) == pytest.approx(0.0, abs=1e-4)


def test_objects_of_unknown_pixels_say_nothing_about_where_to_look() -> None:
    weights = [[0.25, 0.5], [0.75, 0.5]]
    alone = -(math.log(0.5) + math.log(0.5 / 0.75))
    for other in ((math.nan, math.nan), (1.2, 0.5), (0.5, -0.1)):
        assert float(_one(weights, [(0.9, 0.5), other])) == pytest.approx(alone, rel=1e-5)
    assert float(_one(weights, [(math.nan, math.nan)])) == 0.0


def test_scenes_without_pixels_teach_attributes_but_not_where_to_look() -> None:
    batch = tiny_batch(3)
    assert batch.scene is not None
    bare = dataclasses.replace(batch, scene=Scenes(batch.scene.attributes, batch.scene.positions))
    model = make("slot-attention")
    losses = model.losses(bare, model(bare))
    assert float(losses["places"].detach()) == 0.0 and float(losses["attributes"].detach()) > 0.0
    looking = make("slot-attention", look=1.0)
    with pytest.raises(ValueError, match="from the pixels of the objects"):
        looking.losses(bare, looking(bare))


def test_a_decoder_draws_pictures_and_features_of_any_size() -> None:
    for image in ((3, 20, 33), (7, 12, 16)):
        picture, masks = Decoder(8, 4, image)(torch.randn(2, 3, 8))
        assert tuple(picture.shape) == (2, *image) and tuple(masks.shape) == (2, 3, *image[1:])


def _features(count: int, seed: int) -> Batch:
    """Grids of 4 x 5 cells with a large common part; a cell with an object says what it is, in 19 of 20 channels."""
    rng = torch.Generator().manual_seed(seed)
    image = 4.0 + 0.1 * torch.randn(count, 20, 4, 5, generator=rng)
    attributes = torch.zeros(count, 10, 4, dtype=torch.int64)
    pixels = torch.full((count, 10, 2), torch.nan)
    for i in range(count):
        cells = torch.randperm(20, generator=rng)[: int(torch.randint(1, 4, (), generator=rng))]
        for n, cell in enumerate(cells.tolist()):
            row, column = divmod(cell, 5)
            one = [int(torch.randint(1, 3, (), generator=rng)) for _ in range(4)]
            attributes[i, n] = torch.tensor(one)
            pixels[i, n] = torch.tensor([(column + 0.5) / 5, (row + 0.5) / 4])
            for start, number in zip((0, 9, 13, 16), one, strict=True):
                image[i, start + number, row, column] += 2.0
    scene = Scenes(attributes, torch.zeros(count, 10, 2), pixels)
    return Batch(torch.zeros(count, 1, dtype=torch.int64), image=image, scene=scene)


def test_slots_hold_on_to_the_objects_of_features() -> None:
    sizes = Sizes(words=5, answers=2, image=(20, 4, 5))
    model = build("slot-attention", sizes, "features", seed=0, slots=5, size=32, hidden=32, head=32, iterations=3)
    assert isinstance(model, SlotAttentionModel)
    new = _features(200, 10**6)
    # A slot per cell in five, and a cell in twenty per slot: -log of both is 4.6 before it learns.
    assert _looking(model, new) > 4.0
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for step in range(140):
        batch = _features(32, step)
        losses = model.train().losses(batch, model(batch))
        optimizer.zero_grad()
        torch.stack(list(losses.values())).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert _looking(model, new) < 1.5


def _looking(model: SlotAttentionModel, batch: Batch) -> float:
    with torch.no_grad():
        return float(model.losses(batch, model.eval()(batch))["look"])
