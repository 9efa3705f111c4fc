"""What helps with the tool itself: what is installed, what is cached, skeletons for parts of your own."""

from __future__ import annotations

from pfungst.helping.cache import Kept, clear, kept
from pfungst.helping.doctor import Checked, diagnose
from pfungst.helping.new import KINDS, write_skeleton

__all__ = ["KINDS", "Checked", "Kept", "clear", "diagnose", "kept", "write_skeleton"]
