"""The zoo: every architecture the papers examine, one file each, behind one interface.

    from pfungst.models import Batch, Sizes, build

    model = build("film", Sizes(words=90, answers=28, image=(3, 96, 128)), "compact")
    output = model(Batch(question, image=pixels))        # output.logits (B, 28), output.maps

`MODELS.names()` lists them; `Trained.load(FOLDER)` reads one that was trained. Names are loaded when they are first
used: torch takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pfungst._lazy import declared, lazy

if TYPE_CHECKING:
    from pfungst.models.base import Batch as Batch
    from pfungst.models.base import Model as Model
    from pfungst.models.base import Output as Output
    from pfungst.models.base import Scenes as Scenes
    from pfungst.models.base import Sizes as Sizes
    from pfungst.models.objects import same_objects as same_objects
    from pfungst.models.trained import MODELS as MODELS
    from pfungst.models.trained import Inputs as Inputs
    from pfungst.models.trained import Trained as Trained
    from pfungst.models.trained import Vocabulary as Vocabulary
    from pfungst.models.trained import build as build
    from pfungst.models.trained import get_config as get_config
    from pfungst.models.trained import load_shipped as load_shipped
    from pfungst.models.trained import load_tensors as load_tensors
    from pfungst.models.trained import save_tensors as save_tensors
    from pfungst.models.trained import shipped as shipped

_HOMES = declared(__name__)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
