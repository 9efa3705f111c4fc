"""The same question, typed differently."""

from pfungst.probes.surface.edits import Edit, Question, touched
from pfungst.probes.surface.probe import EDITS, Surface

__all__ = ["EDITS", "Edit", "Question", "Surface", "touched"]
