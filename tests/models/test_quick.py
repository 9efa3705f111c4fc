"""A network laid out to answer quickly answers the same."""

from __future__ import annotations

import pytest
import torch

from pfungst.models import MODELS
from pfungst.models.trained import quick
from tests.models.tiny import make, tiny_batch


@pytest.mark.parametrize("name", MODELS.names())
def test_it_answers_as_the_network_does(name: str) -> None:
    model, batch = make(name), tiny_batch(4)
    model(batch)  # running statistics that are not those of the start
    fast = quick(model)
    model.eval()
    with torch.inference_mode():
        torch.testing.assert_close(fast(batch).logits, model(batch).logits, rtol=1e-4, atol=1e-4)


def test_the_network_itself_can_go_on_learning() -> None:
    model = make("film").train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fast = quick(model)
    assert model.training
    assert not fast.training
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert any(isinstance(part, torch.nn.BatchNorm2d) for part in model.modules())


def test_normalisation_behind_a_convolution_is_gone() -> None:
    fast = quick(make("world-cnn"))
    assert not any(isinstance(part, torch.nn.BatchNorm2d) for part in fast.modules())


@pytest.mark.parametrize("name", ["iep", "tbd"])
def test_the_program_of_a_question_is_written_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = make(name), tiny_batch(4)
    fast = quick(model)
    write, asked = fast.generator.write, []
    monkeypatch.setattr(fast.generator, "write", lambda question: asked.append(len(question)) or write(question))
    with torch.inference_mode():
        first, again = fast(batch), fast(batch)
        other = fast(tiny_batch(4, seed=1))
    rows = batch.question.tolist()
    assert asked[0] == len({tuple(row) for row in rows})
    assert torch.equal(first.maps["program"], again.maps["program"])
    assert len(asked) == 2
    torch.testing.assert_close(other.logits, model.eval()(tiny_batch(4, seed=1)).logits, rtol=1e-4, atol=1e-4)
    assert model.generator.known is None
