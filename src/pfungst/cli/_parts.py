"""What `pfungst list` lists."""

from __future__ import annotations

from pfungst.core.registry import Registry


def parts() -> dict[str, list[tuple[str, str]]]:
    """Kind to (name, one line about it)."""
    from pfungst.data import FORMATS
    from pfungst.models._names import TABLE
    from pfungst.players import available
    from pfungst.probes import PROBES
    from pfungst.probes.noise import RANKERS
    from pfungst.scores import METRICS
    from pfungst.text.encoders import list_encoders
    from pfungst.world.renderers.registry import renderer_names

    return {
        "probes": _of(PROBES),
        "players": list(available().items()),
        "models": [(name, about) for name, (_, about) in TABLE.items()],
        "data": _of(FORMATS),
        "metrics": [(name, _METRICS.get(name, "")) for name in METRICS],
        "rankers": _of(RANKERS),
        "encoders": [(name, "") for name in list_encoders()],
        "renderers": [(name, "") for name in renderer_names()],
    }


_METRICS = {
    "vqa": "VQA accuracy, the published evaluation bug for bug",
    "vqa-fixed": "the same without its two bugs",
    "vqa-paper": "min(matches / 3, 1)",
    "exact": "the answer is the target",
    "choice": "the chosen option is the target",
    "wups0.9": "Wu-Palmer similarity of answers, threshold 0.9",
    "wups0.0": "Wu-Palmer similarity of answers, threshold 0.0",
}


def _of(registry: Registry) -> list[tuple[str, str]]:
    return [(name, _line(registry.get(name))) for name in registry.names()]


def _line(part: object) -> str:
    return (getattr(part, "__doc__", None) or "").strip().split("\n")[0]
