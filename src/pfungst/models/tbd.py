"""TbD: transparency by design (Mascharka et al. 2018). Modules pass attention masks, which can be looked at.

    question (B, T) -> program generator, as in IEP
    image -> two 3x3 convolutions, ReLU -> x (B, 128, 14, 14); all modules look at it
    scene               a mask of ones (1, 14, 14)
    filter_*[word]      Attention: x * mask -> 3x3, ReLU, 3x3, ReLU -> 1x1, sigmoid -> mask
    relate[side]        Relate: x * mask -> 3x3 of dilation 1, 2, 4, 8, 1, each with ReLU -> 1x1, sigmoid -> mask
    same_*              Same: x times the features where the mask is greatest, beside the mask -> 1x1, sigmoid -> mask
    intersect, union    And, Or: the smaller, the greater of two masks, cell by cell
    unique              passes its mask on
    count, exist, query_*  QueryModule: x * mask -> 3x3, ReLU, 3x3, ReLU -> features (128, 14, 14)
    equal_*, less_than, greater_than  Compare: both features side by side -> 1x1, 3x3, 3x3, each with ReLU -> features
    equal_object        And, then Query (it is not among the published questions)
    features at the root -> 1x1 to 512, 2x2 maxima, 1024, ReLU -> answers

A small penalty on the masks (2.5e-7 of their sum) keeps them clean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from pfungst.models.base import Batch, Output
from pfungst.models.each import ConvBank
from pfungst.models.execute import ModuleNetwork, execute
from pfungst.models.programs import Group, Plan, Token, kinds, plan


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


class Convolutions(nn.Module):
    """3x3 convolutions, each with ReLU, one such chain a token: x (n, C, H, W), which (n,) -> (n, C, H, W)"""

    def __init__(self, count: int, channels: int, dilations: tuple[int, ...] = (1, 1)) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ConvBank(count, channels, channels, 3, dilation) for dilation in dilations)

    def forward(self, x: Tensor, which: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x, which))
        return x


class Attend(nn.Module):
    """x (n, C, H, W), masks (n, 1, H, W) -> masks. Attention with dilations (1, 1), Relate with (1, 2, 4, 8, 1)."""

    def __init__(self, count: int, channels: int, dilations: tuple[int, ...] = (1, 1)) -> None:
        super().__init__()
        self.look = Convolutions(count, channels, dilations)
        self.decide = ConvBank(count, channels, 1, 1)

    def forward(self, x: Tensor, masks: Tensor, which: Tensor) -> Tensor:
        return torch.sigmoid(self.decide(self.look(x * masks, which), which))


class Same(nn.Module):
    """x (n, C, H, W), masks (n, 1, H, W) -> masks of what shares a property with the one place a mask marks."""

    def __init__(self, count: int, channels: int) -> None:
        super().__init__()
        self.decide = ConvBank(count, channels + 1, 1, 1)

    def forward(self, x: Tensor, masks: Tensor, which: Tensor) -> Tensor:
        place = masks.flatten(1).argmax(-1)
        there = x.flatten(2).gather(2, place[:, None, None].expand(-1, x.shape[1], 1))
        return torch.sigmoid(self.decide(torch.cat([x * there[..., None], masks], 1), which))


class QueryModule(nn.Module):
    """x (n, C, H, W), masks (n, 1, H, W) -> features (n, C, H, W)"""

    def __init__(self, count: int, channels: int) -> None:
        super().__init__()
        self.look = Convolutions(count, channels)

    def forward(self, x: Tensor, masks: Tensor, which: Tensor) -> Tensor:
        features: Tensor = self.look(x * masks, which)
        return features


class Compare(nn.Module):
    """Both features side by side (n, 2C, H, W) -> features (n, C, H, W)"""

    def __init__(self, count: int, channels: int) -> None:
        super().__init__()
        self.join = ConvBank(count, 2 * channels, channels, 1)
        self.look = Convolutions(count, channels)

    def forward(self, pairs: Tensor, which: Tensor) -> Tensor:
        features: Tensor = self.look(torch.relu(self.join(pairs, which)), which)
        return features


SKIP = frozenset({"unique"})
MASKS = frozenset({"scene", "filter", "relate", "same", "intersect", "union"})
"""The kinds that give masks; the others give features."""


def kind_of(token: Token) -> str:
    """The kind of module that runs a token."""
    function = token.function
    if function in ("scene", "unique", "relate", "intersect", "union", "equal_object"):
        return function
    if function in ("count", "exist"):
        return "query"
    if function in ("less_than", "greater_than") or function.startswith("equal_"):
        return "compare"
    return function.split("_")[0]


class Tbd(ModuleNetwork):
    """question, image -> answers.

    Maps: `program` (B, P) token numbers. `drawings` adds `masks` (B, P, H, W), the mask of every token that gives one,
    in the order of the program, NaN elsewhere.
    """

    Config = TbdConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": TbdConfig(),
        "compact": TbdConfig(96, 160, 1, 40, (1, 2, 4, 8, 1), 32, 128, 2.5e-7, (48, 64, 64)),
        "features": TbdConfig(64, 144, 1, 40, (1, 2, 4, 8, 1), 20, 128, 2.5e-7),
        "tiny": TbdConfig(8, 16, 1, 8, (1, 2, 1), 8, 16, 2.5e-7, (8, 8)),
    }

    def make_modules(self) -> dict[str, nn.Module]:
        channels = self.config.channels
        count = {kind: len(numbers) for kind, numbers in kinds(kind_of, SKIP).items()}
        return {
            "filter": Attend(count["filter"], channels),
            "relate": Attend(count["relate"], channels, self.config.dilations),
            "same": Same(count["same"], channels),
            "query": QueryModule(count["query"], channels),
            "equal_object": QueryModule(count["equal_object"], channels),
            "compare": Compare(count["compare"], channels),
        }

    def forward(self, batch: Batch) -> Output:
        output = super().forward(batch)
        masks = _masks(output.extra["steps"], output.extra["values"])
        # The sum of many masks is beyond what half precision counts to.
        output.extra["mask_sum"] = torch.cat(masks).sum(dtype=torch.float32)
        return output

    def drawings(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        return {**output.maps, "masks": _drawn(output.extra["steps"], output.extra["values"])}

    def run(self, picture: Tensor, program: Tensor) -> tuple[Plan, list[Tensor], Tensor]:
        """What every group of steps gives, masks (n, 1, H, W) or features (n, C, H, W), and the roots (B, C, H, W)."""

        def apply(group: Group, inputs: Tensor, examples: Tensor, which: Tensor) -> Tensor:
            if group.kind == "union":
                return inputs.amax(1)
            masks = inputs.amin(1) if group.kind in ("intersect", "equal_object") else inputs.flatten(1, 2)
            if group.kind == "intersect":
                return masks
            module = self.functions[group.kind]
            seen = () if group.kind == "compare" else (picture.index_select(0, examples),)
            result: Tensor = module(*seen, masks, which)
            return result

        steps = plan(program.cpu().numpy(), kind_of, SKIP)
        return steps, *execute(steps, apply, torch.ones_like(picture[:, :1]))

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        losses = super().losses(batch, output)
        masks = self.config.mask_penalty * output.extra["mask_sum"]
        return {"answer": losses.pop("answer"), "masks": masks, **losses}


def _masks(steps: Plan, values: list[Tensor]) -> list[Tensor]:
    """The groups (n, 1, H, W) that hold masks."""
    return [value for group, value in zip(steps.groups, values, strict=True) if group.kind in MASKS]


def _drawn(steps: Plan, values: list[Tensor]) -> Tensor:
    """(B, P, H, W): the masks beside the tokens of the program that made them, NaN beside the others."""
    # Row 0 is for what has no mask; the last entry of `row` for what has no node.
    row = np.zeros(steps.nodes + 1, np.int64)
    masked = [np.arange(group.start, group.stop) for group in steps.groups if group.kind in MASKS]
    row[np.concatenate(masked)] = np.arange(1, 1 + sum(len(nodes) for nodes in masked))
    nothing = torch.full_like(values[0][:1], torch.nan)
    masks = torch.cat([nothing, *_masks(steps, values)]).detach()
    return masks[torch.from_numpy(row[steps.at]).to(masks.device), 0]
