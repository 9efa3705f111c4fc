"""Rephrasings: the same question in other words, and how far the answers agree."""

from pfungst.probes.rephrase.generators import REPHRASERS, Gate, Rephraser, get_rephraser, with_rephrasings
from pfungst.probes.rephrase.probe import Rephrase

__all__ = ["REPHRASERS", "Gate", "Rephrase", "Rephraser", "get_rephraser", "with_rephrasings"]
