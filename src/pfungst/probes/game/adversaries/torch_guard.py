"""torch for the A2C adversary, or a sentence that says how to get it."""

from pfungst.core import MissingExtra

try:
    import torch
    from torch import nn
except ImportError as error:  # pragma: no cover
    raise MissingExtra("The A2C adversary", "torch") from error

__all__ = ["nn", "torch"]
