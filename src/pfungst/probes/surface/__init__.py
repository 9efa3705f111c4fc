"""The same question, typed differently."""

from pfungst.probes.surface.edits import Edit, touched
from pfungst.probes.surface.probe import EDITS, Surface
from pfungst.probes.surface.question import Question

__all__ = ["EDITS", "Edit", "Question", "Surface", "touched"]
