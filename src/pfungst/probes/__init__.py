"""Disturbances that must not change the answer, one folder or file a probe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pfungst.core import Dataset, Probe
from pfungst.core.registry import Registry
from pfungst.core.settings import parse_settings, split_spec
from pfungst.core.types import as_probe

__all__ = ["PROBES", "check_probe", "get_probe"]

PROBES = Registry(
    "probe",
    "pfungst.probes",
    {
        "control": "pfungst.probes.control:Control",
        "blind": "pfungst.probes.blind:Blind",
        "conditions": "pfungst.probes.conditions:Conditions",
        "contrast": "pfungst.probes.contrast:Contrast",
        "decoys": "pfungst.probes.decoys:Decoys",
        "game": "pfungst.probes.game.probe:Game",
        "noise": "pfungst.probes.noise.probe:Noise",
        "picture": "pfungst.probes.picture:Picture",
        "protocol": "pfungst.probes.protocol:Protocol",
        "rephrase": "pfungst.probes.rephrase:Rephrase",
        "surface": "pfungst.probes.surface:Surface",
        "vqabq": "pfungst.probes.noise.probe:Vqabq",
    },
)

RETIRED = frozenset({"rephrasings"})
"""Settings that probes had."""


def get_probe(spec: str) -> Probe:
    """A probe from a word: its name, with settings after a colon, for example `blind:draws=500`.

    Settings are the fields of the probe's dataclass.
    """
    name, words = split_spec(spec)
    return as_probe(parse_settings(PROBES.get(name), words, what=f"probe {name}"))


def probe_again(name: str, settings: Mapping[str, Any]) -> Probe:
    """The probe of a run, from its exam.json, which may name settings of earlier versions."""
    known = {setting: value for setting, value in settings.items() if setting not in RETIRED}
    return as_probe(parse_settings(PROBES.get(name), known, what=f"probe {name}"))


def check_probe(probe: Probe, data: Dataset | None = None) -> list[str]:
    """What is wrong with a probe, in sentences; empty when it keeps the rules. See `pfungst.probes.check`."""
    from pfungst.probes.check import check_probe as check

    return check(probe, data)
