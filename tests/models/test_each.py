"""Convolutions with weights of their own for every item, against one convolution at a time."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pfungst.models import each
from pfungst.models.each import ConvBank, conv_each, unfolded_conv_each

BOTH = pytest.mark.parametrize("convolve", [conv_each, unfolded_conv_each])
SHAPES = pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (3, 1), (3, 2), (3, 4), (5, 1)])


def case(kernel: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """7 items, 4 convolutions of which one is not used."""
    rng = torch.Generator().manual_seed(kernel)
    make = lambda *shape: torch.randn(*shape, generator=rng, dtype=dtype).requires_grad_()  # noqa: E731
    return make(7, 3, 4, 5), make(4, 2, 3, kernel, kernel), make(4, 2), torch.tensor([2, 0, 0, 3, 2, 2, 0])


def one_by_one(x: Tensor, weight: Tensor, bias: Tensor, which: Tensor, dilation: int) -> Tensor:
    padding = dilation * (weight.shape[-1] // 2)
    return torch.cat(
        [
            F.conv2d(x[i : i + 1], weight[k], bias[k], padding=padding, dilation=dilation)
            for i, k in enumerate(which.tolist())
        ]
    )


@BOTH
@SHAPES
@pytest.mark.parametrize("chunk", [each.CHUNK, 100])
def test_every_item_gets_its_own_convolution_and_gives_its_gradient(
    convolve: object, kernel: int, dilation: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(each, "CHUNK", chunk)
    x, weight, bias, which = case(kernel)
    got, wanted = convolve(x, weight, bias, which, dilation), one_by_one(x, weight, bias, which, dilation)
    torch.testing.assert_close(got, wanted)
    pull = torch.randn(got.shape, generator=torch.Generator().manual_seed(1), dtype=got.dtype)
    gradients = [torch.autograd.grad(y, (x, weight, bias), pull) for y in (got, wanted)]
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs)
    assert not gradients[0][1][1].any()


def test_the_unfolded_convolution_works_in_half_precision_with_full_gradients_of_the_weights() -> None:
    x, weight, bias, which = case(3, torch.float32)
    got = unfolded_conv_each(x.to(torch.bfloat16), weight, bias, which)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), one_by_one(x, weight, bias, which, 1), rtol=0.05, atol=0.1)
    got.float().square().sum().backward()
    wanted = torch.autograd.grad(one_by_one(x, weight, bias, which, 1).square().sum(), (x, weight, bias))
    for parameter, gradient in zip((x, weight, bias), wanted, strict=True):
        assert parameter.grad is not None
        assert parameter.grad.dtype == torch.float32
        assert float((parameter.grad - gradient).norm() / gradient.norm()) < 0.02


def test_a_bank_works_under_autocast() -> None:
    bank, (x, _, _, which) = ConvBank(4, 3, 2, 3), case(3, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert bank(x, which).dtype == torch.bfloat16


def test_weights_that_need_no_gradient_get_none() -> None:
    x, weight, bias, which = case(3)
    unfolded_conv_each(x, weight.detach(), bias.detach(), which).sum().backward()
    assert x.grad is not None


def test_a_bank_starts_as_single_convolutions_do() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        bank, single = ConvBank(200, 4, 6, 3), nn.Conv2d(4, 6, 3)
        for mine, theirs in ((bank.weight, single.weight), (bank.bias, single.bias)):
            assert float(mine.abs().max()) == pytest.approx(1 / 6, rel=1e-2)
            assert float(theirs.abs().max()) <= 1 / 6
            assert float(mine.std()) == pytest.approx(1 / 6 / 3**0.5, rel=0.05)
