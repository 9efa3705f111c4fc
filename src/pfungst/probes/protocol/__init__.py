"""The same question and image, asked as different harnesses ask. See `probe`."""

from __future__ import annotations

from pfungst.probes.protocol.probe import Protocol

__all__ = ["Protocol"]
