"""Listening to a model: what it attended to and how it read the question, for any architecture, from outside.

Forward hooks on the layers that the zoo shares (`Regions`, `Grid`, `SceneTokens`, recurrent readers, word embeddings)
note what passes; the weights come from `Output.maps`. No model knows that it is listened to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from pfungst.core import PfungstError
from pfungst.models import Model, Output
from pfungst.models.base import PAD
from pfungst.models.layers import Grid, Regions
from pfungst.models.scene import SceneTokens

_ATTENTION = ("picture", "pairs", "objects")
"""Maps that are attention over the image, by how their name ends."""


class Tap:
    """Notes the last forward pass of a model. `close()` takes the hooks off again."""

    def __init__(self, model: Model) -> None:
        self.cells: Tensor | None = None
        """(B, R, D): regions, cells of the grid, or object tokens."""
        self.there: Tensor | None = None
        """(B, R) bool."""
        self.encoding: Tensor | None = None
        """(B, H): how the model reads the question, the last state of its reader; the mean word without one."""
        self._soft: Tensor | None = None
        self._hooks: list[Any] = []
        picture = _first(model, Regions) or _first(model, Grid) or _first(model, SceneTokens)
        if picture is None:
            raise PfungstError(
                f"Cycle training cannot see what {type(model).__name__} looks at: it has none of the layers Regions, "
                "Grid and SceneTokens of pfungst.models."
            )
        self._hooks.append(picture.register_forward_hook(self._looked))
        self._hooks.append(word_embedding(model).register_forward_hook(self._read_words))
        network = _first(model, nn.GRU) or _first(model, nn.LSTM)
        if network is not None:
            self._hooks.append(network.register_forward_hook(self._read))
        self._recurrent = network is not None

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def features(self, output: Output, attended: bool = True) -> Tensor:
        """(B, D') what G is told of the image: attended features, one glimpse beside the other, or the mean.

        A map of activity instead of attention (FiLM, relation networks) is taken as weights too: non-negative, scaled
        to sum to 1. A model without maps has the mean.
        """
        if self.cells is None or self.there is None:
            raise PfungstError("The model has not been asked anything yet.")
        cells, there = self.cells, self.there
        weights = self.attention(output) if attended else None
        if cells.ndim == 4:
            # Scene tokens: weights over all of them, or over whole objects.
            if weights is None or weights.shape[-1] == cells.shape[1]:
                cells = cells.sum(2)
            else:
                there = there[:, :, None].expand(cells.shape[:3]).flatten(1)
                cells = cells.flatten(1, 2)
        if weights is None:
            weights = there[:, None].to(cells.dtype)
        weights = weights.clamp(min=0) * there[:, None]
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-6)
        return torch.einsum("bgr,brd->bgd", weights.to(cells.dtype), cells).flatten(1)

    def attention(self, output: Output) -> Tensor | None:
        """(B, G, R) of all maps that lie over the image; words are averaged out."""
        cells = self.cells
        assert cells is not None
        counts = {cells.shape[1], cells.shape[1] * cells.shape[2]} if cells.ndim == 4 else {cells.shape[1]}
        found = []
        for name, values in output.maps.items():
            if not name.endswith(_ATTENTION) or values.ndim < 2 or not values.is_floating_point():
                continue
            flat = _flat(values, counts)
            if flat is None:
                continue
            if name == "pairs" and flat.ndim == 4:
                flat = flat.mean(2)
            elif name == "pairs" and flat.ndim == 3 and flat.shape[1] == flat.shape[2]:
                flat = flat.mean(1, keepdim=True)
            found.append(flat[:, None] if flat.ndim == 2 else flat)
        return torch.cat(found, 1) if found else None

    @contextlib.contextmanager
    def soft_words(self, chances: Tensor) -> Iterator[None]:
        """Let gradients pass from the embedded words to the chances (B, T, V) they were drawn from."""
        self._soft = chances
        try:
            yield
        finally:
            self._soft = None

    def _looked(self, module: nn.Module, given: Any, result: Any) -> None:
        if isinstance(module, Regions):
            self.cells, self.there = result
        elif isinstance(module, Grid):
            self.cells = result.flatten(2).transpose(1, 2)
            self.there = torch.ones(self.cells.shape[:2], dtype=torch.bool, device=result.device)
        else:
            self.cells, self.there = result, given[0].present

    def _read_words(self, module: nn.Module, given: tuple[Tensor, ...], result: Tensor) -> Tensor | None:
        if given[0].ndim != 2:
            return None
        if not self._recurrent:
            there = (given[0] != PAD)[..., None]
            self.encoding = (result * there).sum(1) / there.sum(1).clamp(min=1)
        if self._soft is None or self._soft.shape[:2] != given[0].shape:
            return None
        assert isinstance(module, nn.Embedding)
        mean = self._soft.to(result.dtype) @ module.weight.detach()
        return result + mean - mean.detach()

    def _read(self, module: nn.Module, given: Any, result: tuple[Tensor | PackedSequence, Any]) -> None:
        state = result[1]
        self.encoding = (state[0] if isinstance(state, tuple) else state)[-1]


def _first(model: nn.Module, kind: type[nn.Module]) -> nn.Module | None:
    return next((module for module in model.modules() if isinstance(module, kind)), None)


def word_embedding(model: Model) -> nn.Embedding:
    """What a model reads words by."""
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.num_embeddings == model.sizes.words:
            return module
    raise PfungstError(f"Cycle training found no word embedding in {type(model).__name__}.")


def _flat(values: Tensor, counts: set[int]) -> Tensor | None:
    """The last dimensions joined until they are as many as there are regions; None where that never happens."""
    for joined in range(1, values.ndim):
        flat = values.flatten(values.ndim - joined)
        if flat.shape[-1] in counts:
            return flat
    return None
