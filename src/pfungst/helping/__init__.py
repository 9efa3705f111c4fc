"""What helps with the tool itself: what is installed, what is cached, a first walk, skeletons for parts of your own."""

from __future__ import annotations

from pfungst.helping.cache import Kept, clear, kept
from pfungst.helping.doctor import Checked, diagnose
from pfungst.helping.new import KINDS, write_skeleton
from pfungst.helping.tour import STEPS, Step, walk

__all__ = ["KINDS", "STEPS", "Checked", "Kept", "Step", "clear", "diagnose", "kept", "walk", "write_skeleton"]
