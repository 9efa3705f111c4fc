"""What `pfungst list` lists."""

from __future__ import annotations


def parts() -> dict[str, list[tuple[str, str]]]:
    """Kind to (name, one line about it)."""
    from pfungst.probes import PROBES

    return {
        "probes": [(name, _line(PROBES.get(name))) for name in PROBES.names()],
    }


def _line(part: object) -> str:
    return (getattr(part, "__doc__", None) or "").strip().split("\n")[0]
