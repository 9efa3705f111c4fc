"""Contrast: questions that look alike but must *not* be answered alike."""

from pfungst.probes.contrast.probe import Contrast

__all__ = ["Contrast"]
