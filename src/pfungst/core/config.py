"""What exam.json says, as far as other parts of the package rely on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pfungst.core.settings import shaped


@dataclass(frozen=True)
class _Player:
    name: str
    fingerprint: str
    spec: str | None = None
    options: dict[str, Any] | None = None
    reads_scenes: bool = False
    reads_ids: bool = False
    reads_images: bool = True
    takes: list[str] | None = None


@dataclass(frozen=True)
class _Data:
    name: str
    metric: str
    fingerprint: str
    examples: int
    originals: int | None = None
    skipped: int = 0
    spec: str | None = None
    options: dict[str, Any] | None = None
    limit: int | None = None
    only: list[str] | None = None
    open: bool = False


@dataclass(frozen=True)
class _Probe:
    name: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class _Config:
    player: _Player
    data: _Data
    probes: list[_Probe]
    seed: int
    matcher: str | None = None
    precision: float | None = None
    share: bool = False


def check_config(config: Any) -> None:
    """Raises ValueError, which says where, unless this is the configuration of an exam."""
    shaped(config, _Config, "the file")
