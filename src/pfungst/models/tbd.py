"""TbD: transparency by design (Mascharka et al. 2018). Modules pass attention masks, which can be looked at.

    question (B, T) -> program generator, as in IEP
    picture -> two 3x3 convolutions, ReLU -> x (B, 128, 14, 14); all modules look at it
    scene               a mask of ones (1, 14, 14)
    filter_*[word]      Attention: x * mask -> 3x3, ReLU, 3x3, ReLU -> 1x1, sigmoid -> mask
    relate[side]        Relate: x * mask -> 3x3 of dilation 1, 2, 4, 8, 1, each with ReLU -> 1x1, sigmoid -> mask
    same_*              Same: x times the features where the mask is greatest, beside the mask -> 1x1, sigmoid -> mask
    intersect, union    And, Or: the smaller, the greater of two masks, cell by cell
    unique              passes its mask on
    count, exist, query_*  Query: x * mask -> 3x3, ReLU, 3x3, ReLU -> features (128, 14, 14)
    equal_*, less_than, greater_than  Compare: both features side by side -> 1x1, 3x3, 3x3, each with ReLU -> features
    equal_object        And, then Query (it is not among the published questions)
    features at the root -> 1x1 to 512, 2x2 maxima, 1024, ReLU -> answers

A small penalty on the masks (2.5e-7 of their sum) keeps them clean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models._base import Model
from pfungst.models._batch import Batch, Output, Sizes
from pfungst.models._execute import execute
from pfungst.models._generator import ProgramGenerator
from pfungst.models._layers import ConvClassifier, Grid
from pfungst.models.programs import Plan, Token, plan, tokens


@dataclass(frozen=True)
class TbdConfig:
    """Sizes of the published model; its better variant has 28x28 features."""

    word_size: int = 300
    hidden: int = 256
    layers: int = 2
    channels: int = 128
    dilations: tuple[int, ...] = (1, 2, 4, 8, 1)
    """Of the convolutions of Relate: together they see the whole grid."""
    projection: int = 512
    classifier: int = 1024
    mask_penalty: float = 2.5e-7
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: features come from outside (ResNet-101, 1024x14x14)."""


def _convolutions(before: int, channels: int, dilations: tuple[int, ...]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for dilation in dilations:
        layers += [nn.Conv2d(before, channels, 3, padding=dilation, dilation=dilation), nn.ReLU()]
        before = channels
    return layers


class Attend(nn.Module):
    """x (n, C, H, W), mask (n, 1, H, W) -> mask. Attention with dilations (1, 1), Relate with (1, 2, 4, 8, 1)."""

    def __init__(self, channels: int, dilations: tuple[int, ...]) -> None:
        super().__init__()
        layers = _convolutions(channels, channels, dilations)
        self.layers = nn.Sequential(*layers, nn.Conv2d(channels, 1, 1), nn.Sigmoid())

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        found: Tensor = self.layers(x * mask)
        return found


class Same(nn.Module):
    """x (n, C, H, W), mask (n, 1, H, W) -> mask of what shares a property with the one place the mask marks."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.decide = nn.Conv2d(channels + 1, 1, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        place = mask.flatten(1).argmax(-1)
        there = x.flatten(2).gather(2, place[:, None, None].expand(-1, x.shape[1], 1))
        return torch.sigmoid(self.decide(torch.cat([x * there[..., None], mask], 1)))


class Query(nn.Module):
    """x (n, C, H, W), mask (n, 1, H, W) -> features (n, C, H, W)"""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_convolutions(channels, channels, (1, 1)))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        features: Tensor = self.layers(x * mask)
        return features


class Compare(nn.Module):
    """Features (n, C, H, W) twice -> features"""

    def __init__(self, channels: int) -> None:
        super().__init__()
        layers = _convolutions(channels, channels, (1, 1))
        self.layers = nn.Sequential(nn.Conv2d(2 * channels, channels, 1), nn.ReLU(), *layers)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        features: Tensor = self.layers(torch.cat([x, y], 1))
        return features


def make_module(token: Token, channels: int, dilations: tuple[int, ...]) -> nn.Module | None:
    """The module of a function; None for those without weights."""
    function = token.function
    if function.startswith("filter_"):
        return Attend(channels, (1, 1))
    if function == "relate":
        return Attend(channels, dilations)
    if function.startswith("same_"):
        return Same(channels)
    if function in ("count", "exist", "equal_object") or function.startswith("query_"):
        return Query(channels)
    if function in ("less_than", "greater_than") or function.startswith("equal_"):
        return Compare(channels)
    return None


class Tbd(Model):
    """question, picture -> answers.

    Maps: `program` (B, P) token numbers. `drawings` adds `masks` (B, P, H, W), the mask of every token that gives one,
    in the order of the program, NaN elsewhere.
    """

    Config = TbdConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": TbdConfig(),
        "compact": TbdConfig(96, 160, 1, 40, (1, 2, 4, 8, 1), 32, 128, 2.5e-7, (48, 64, 64)),
        "tiny": TbdConfig(8, 16, 1, 8, (1, 2, 1), 8, 16, 2.5e-7, (8, 8)),
    }
    learns_from = frozenset({"answer", "program"})

    def __init__(self, sizes: Sizes, config: TbdConfig) -> None:
        super().__init__(sizes, config)
        self.grid = Grid(sizes, config.stem)
        self.generator = ProgramGenerator(sizes.words, config.word_size, config.hidden, config.layers, len(tokens()))
        channels = config.channels
        self.enter = nn.Sequential(*_convolutions(self.grid.channels, channels, (1, 1)))
        made = {t.name: make_module(t, channels, config.dilations) for t in tokens() if t is not None}
        self.functions = nn.ModuleDict({name: module for name, module in made.items() if module is not None})
        shape = (channels, self.grid.height, self.grid.width)
        self.answers = ConvClassifier(shape, config.projection, config.classifier, sizes.answers, pool="window")

    def forward(self, batch: Batch) -> Output:
        extra: dict[str, Any] = {}
        if batch.program is not None and self.training:
            program = batch.program
            extra["program"] = self.generator(batch.question, program)
        else:
            program = self.generator.write(batch.question)
        picture = self.enter(self.grid(batch))
        steps, values = self.run(picture, program)
        root = torch.stack([values[one] for one in steps.roots])
        extra["mask_sum"] = torch.stack([value.sum() for value in values if value.shape[0] == 1]).sum()
        if not self.training:
            extra |= {"steps": steps, "values": values}
        return Output(self.answers(root), {"program": program}, extra)

    def drawings(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        program = output.maps["program"]
        return {**output.maps, "masks": _masks(output.extra["steps"], output.extra["values"], program)}

    def run(self, picture: Tensor, program: Tensor) -> tuple[Plan, list[Tensor]]:
        """What every step gives: masks (1, H, W) and features (C, H, W)."""
        ones = torch.ones_like(picture[:, :1])

        def apply(token: Token, inputs: list[Tensor], examples: Tensor) -> Tensor:
            function = token.function
            if function == "scene":
                return ones[examples]
            if function == "intersect":
                return torch.minimum(*inputs)
            if function == "union":
                return torch.maximum(*inputs)
            module = self.functions[token.name]
            if isinstance(module, Compare):
                compared: Tensor = module(*inputs)
                return compared
            mask = torch.minimum(*inputs) if function == "equal_object" else inputs[0]
            result: Tensor = module(picture[examples], mask)
            return result

        steps = plan(program.tolist(), skip=frozenset({"unique"}))
        return steps, execute(steps, apply, picture.device)

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        losses = super().losses(batch, output)
        losses["masks"] = self.config.mask_penalty * output.extra["mask_sum"]
        if batch.program is not None and "program" in output.extra:
            losses["program"] = self.generator.loss(output.extra["program"], batch.program)
        return losses


def _masks(steps: Plan, values: list[Tensor], program: Tensor) -> Tensor:
    """(B, P, H, W): the masks beside the tokens of the program that made them."""
    height, width = values[0].shape[-2:]
    drawn = values[0].new_full((len(program), program.shape[1], height, width), torch.nan)
    by_node = {node: step.token for step in steps.steps for node in step.nodes}
    inputs = {node: [places[i] for places in step.inputs] for step in steps.steps for i, node in enumerate(step.nodes)}
    names = {token: number for number, token in enumerate(tokens())}
    for example, root in enumerate(steps.roots):
        row = program[example].tolist()
        place = 0
        waiting = [root]
        while waiting:
            node = waiting.pop()
            # `unique` stands in the program but has no node: its mask is that of the step below it.
            while row[place] != names[by_node[node]]:
                drawn[example, place] = values[node][0].detach()
                place += 1
            if values[node].shape[0] == 1:
                drawn[example, place] = values[node][0].detach()
            place += 1
            waiting.extend(reversed(inputs[node]))
    return drawn
