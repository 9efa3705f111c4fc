"""A GPU says what the CPU says, also where modules run in groups with weights of their own."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from pfungst.core import Query
from pfungst.models import MODELS, Model
from pfungst.models.features import image_array, image_batch
from pfungst.players.zoo import load
from pfungst.probes.game import GAMES
from pfungst.probes.game.board import Board
from pfungst.world import embedded
from tests.models.tiny import make, tiny_batch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


def both(name: str, programs: bool) -> list[tuple[Model, Tensor, dict[str, Tensor]]]:
    """The model on CPU and GPU, its logits, and the gradients of its losses."""
    found = []
    for device in ("cpu", "cuda"):
        model = make(name).to(device).eval()
        batch = tiny_batch(6)
        if not programs:
            batch = dataclasses.replace(batch, program=None)
        batch = batch.to(device)
        output = model(batch)
        gradients: dict[str, Tensor] = {}
        if programs or "program" not in model.learns_from:
            # cuDNN's recurrent networks have gradients in training mode alone; nothing tiny has dropout.
            model.train()
            sum(model.losses(batch, model(batch)).values(), torch.zeros((), device=device)).backward()
            gradients = {key: p.grad.cpu() for key, p in model.named_parameters() if p.grad is not None}
        found.append((model, output.logits.detach().cpu(), gradients))
    return found


@pytest.fixture(autouse=True)
def _exact() -> object:
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


@pytest.mark.parametrize("name", [name for name in MODELS.names() if name != "slot-attention"])
def test_answers_and_gradients_are_those_of_the_cpu(name: str) -> None:
    (_, logits, gradients), (_, there, there_gradients) = both(name, programs=True)
    torch.testing.assert_close(there, logits, rtol=1e-3, atol=1e-4)
    assert gradients.keys() == there_gradients.keys()
    for key, gradient in gradients.items():
        difference = (there_gradients[key] - gradient).norm()
        assert float(difference) <= 1e-3 * float(gradient.norm()) + 1e-5, key


@pytest.mark.parametrize("name", ["iep", "tbd"])
def test_modules_run_the_programs_that_the_generator_writes_as_on_the_cpu(name: str) -> None:
    (_, logits, _), (_, there, _) = both(name, programs=False)
    torch.testing.assert_close(there, logits, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    boards = [Board.of(example, GAMES["paper-places"]) for example in embedded(8, rephrasings=0)]
    rng = np.random.default_rng(0)
    return [board.query(board.start + rng.uniform(-0.1, 0.1, board.start.shape)) for board in boards for _ in range(2)]


def test_images_of_scenes_have_the_pixels_of_their_files(queries: list[Query]) -> None:
    images = [query.image for query in queries if query.image is not None]
    files = np.stack([image_array(image.fixed(), 192, 144) for image in images])  # type: ignore[attr-defined]
    np.testing.assert_array_equal(image_batch(images, 192, 144, "cuda").cpu().numpy(), files)


@pytest.mark.parametrize("name", ["film", "san", "rn", "iep", "tbd", "mdetr", "hiecoatt"])
def test_a_player_answers_as_on_the_cpu(name: str, queries: list[Query]) -> None:
    here, there = (load(name, device=device).answer(queries) for device in ("cpu", "cuda"))
    assert [answer.text for answer in there] == [answer.text for answer in here]
    chances = [[answer.confidence or 0.0 for answer in answers] for answers in (here, there)]
    np.testing.assert_allclose(chances[1], chances[0], atol=0.01)  # float16 features may differ in their last bit
