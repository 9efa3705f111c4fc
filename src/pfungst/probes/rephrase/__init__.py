"""Rephrasings: the same question in other words, and how far the answers agree."""

from pfungst.probes.rephrase.probe import Rephrase

__all__ = ["Rephrase"]
