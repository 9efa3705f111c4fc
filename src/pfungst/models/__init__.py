"""The zoo: every architecture the papers examine, one file each, behind one interface.

    from pfungst.models import Batch, Sizes, build

    model = build("film", Sizes(words=90, answers=28, image=(3, 96, 128)), "compact")
    output = model(Batch(question, image=pixels))        # output.logits (B, 28), output.maps

`MODELS.names()` lists them; `Trained.load(FOLDER)` reads one that was trained. Names are loaded when they are first
used: torch takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pfungst._lazy import lazy

if TYPE_CHECKING:
    from pfungst.models._base import Model as Model
    from pfungst.models._batch import Batch as Batch
    from pfungst.models._batch import Output as Output
    from pfungst.models._batch import Scenes as Scenes
    from pfungst.models._batch import Sizes as Sizes
    from pfungst.models._objects import same_objects as same_objects
    from pfungst.models._registry import MODELS as MODELS
    from pfungst.models._registry import build as build
    from pfungst.models._registry import get_config as get_config
    from pfungst.models._safetensors import load_tensors as load_tensors
    from pfungst.models._safetensors import save_tensors as save_tensors
    from pfungst.models._trained import Inputs as Inputs
    from pfungst.models._trained import Trained as Trained
    from pfungst.models._trained import load_shipped as load_shipped
    from pfungst.models._trained import shipped as shipped
    from pfungst.models._vocabulary import Vocabulary as Vocabulary

# name -> module below pfungst.models that defines it
_HOMES = {
    "Model": "_base",
    "Batch": "_batch",
    "Output": "_batch",
    "Scenes": "_batch",
    "Sizes": "_batch",
    "same_objects": "_objects",
    "MODELS": "_registry",
    "build": "_registry",
    "get_config": "_registry",
    "load_tensors": "_safetensors",
    "save_tensors": "_safetensors",
    "Inputs": "_trained",
    "Trained": "_trained",
    "load_shipped": "_trained",
    "shipped": "_trained",
    "Vocabulary": "_vocabulary",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy(__name__, _HOMES)
