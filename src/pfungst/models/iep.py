"""IEP: inferring and executing programs (Johnson et al. 2017).

    question (B, T) -> program generator (LSTM to LSTM, 2 layers of 256) -> program, a tree of functions
    image -> two 3x3 convolutions, ReLU -> x (B, 128, 14, 14), what `scene` gives
    every function has a module of its own, which gives (128, 14, 14) again:
        one input    y = relu(x + 3x3(relu(3x3(x))))
        two inputs   1x1 of both side by side, then the same
    the tree of the program is the network; its root -> 1x1 to 512, 2x2 maxima, 1024, ReLU -> answers

Both parts learn at once, from programs and answers: the generator from the true programs, the modules by running the
true programs. When it answers, it runs what the generator wrote. (The paper's last stage, which tunes both with
REINFORCE and few programs, is left out: in the world every question has its program.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models.base import Batch, Output
from pfungst.models.each import ConvBank
from pfungst.models.execute import ModuleNetwork, execute
from pfungst.models.programs import Group, Plan, by_inputs, kinds, plan


@dataclass(frozen=True)
class IepConfig:
    """Sizes of the published model."""

    word_size: int = 300
    hidden: int = 256
    """Of both LSTMs."""
    layers: int = 2
    channels: int = 128
    projection: int = 512
    classifier: int = 1024
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: features come from outside (ResNet-101, 1024x14x14)."""
    dilations: tuple[int, ...] = (1, 1)
    """Of the convolutions of every module; those behind the second add to its result. ResNet's features have seen the
    whole image, those of a small CNN only a part: (1, 3, 9) see all within 13 cells."""
    tells: bool = False
    """Whether a module tells every cell what its first convolution found anywhere, so that the cell can compare it with
    what it has itself: "the same colour as that one" is hard to learn otherwise."""


class Unary(nn.Module):
    """One module a token: x (n, C, H, W), which (n,) the token of each -> (n, C, H, W)"""

    def __init__(self, count: int, channels: int, dilations: tuple[int, ...] = (1, 1), tells: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ConvBank(count, channels, channels, 3, dilation) for dilation in dilations)
        self.tell = ConvBank(count, channels, channels, 1) if tells else None
        self.compare = ConvBank(count, channels, channels, 1) if tells else None

    def forward(self, x: Tensor, which: Tensor) -> Tensor:
        first, *rest = self.layers
        hidden = found = first(x, which)
        for layer in rest:
            hidden = layer(torch.relu(hidden), which)
            x = x + hidden
        if self.tell is not None and self.compare is not None:
            anywhere = torch.relu(found.amax((2, 3), keepdim=True))
            x = x + self.compare(torch.relu(x + self.tell(anywhere, which)), which)
        return torch.relu(x)


class Binary(nn.Module):
    """One module a token: both inputs side by side (n, 2C, H, W), which (n,) -> (n, C, H, W)"""

    def __init__(self, count: int, channels: int, dilations: tuple[int, ...] = (1, 1), tells: bool = False) -> None:
        super().__init__()
        self.join = ConvBank(count, 2 * channels, channels, 1)
        self.then = Unary(count, channels, dilations, tells)

    def forward(self, x: Tensor, which: Tensor) -> Tensor:
        joined: Tensor = self.then(torch.relu(self.join(x, which)), which)
        return joined


class Iep(ModuleNetwork):
    """question, image -> answers. Maps: `program` (B, P) token numbers, `picture` the activity at the root."""

    Config = IepConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": IepConfig(),
        "compact": IepConfig(96, 160, 1, 40, 32, 128, (48, 64, 64)),
        "features": IepConfig(64, 144, 1, 40, 20, 128, (), (1, 3, 9), True),
        "tiny": IepConfig(8, 16, 1, 8, 8, 16, (8, 8)),
    }

    def make_modules(self) -> dict[str, nn.Module]:
        count = {kind: len(numbers) for kind, numbers in kinds(by_inputs).items()}
        sizes = (self.config.channels, self.config.dilations, self.config.tells)
        return {"unary": Unary(count["unary"], *sizes), "binary": Binary(count["binary"], *sizes)}

    def forward(self, batch: Batch) -> Output:
        output = super().forward(batch)
        output.maps["picture"] = output.extra["root"].mean(1)
        return output

    def run(self, picture: Tensor, program: Tensor) -> tuple[Plan, list[Tensor], Tensor]:
        """What every group of steps gives (n, C, H, W), and the roots (B, C, H, W): program (B, P)."""

        def apply(group: Group, inputs: Tensor, _: Tensor, which: Tensor) -> Tensor:
            result: Tensor = self.functions[group.kind](inputs.flatten(1, 2), which)
            return result

        steps = plan(program.cpu().numpy())
        return steps, *execute(steps, apply, picture)
