"""Disturbances that must not change the answer, one folder or file a probe."""

from __future__ import annotations

import dataclasses
from typing import Any

from pfungst.core import Probe, ProbeError
from pfungst.core.registry import Registry

__all__ = ["PROBES", "check_probe", "get_probe"]

PROBES = Registry(
    "probe",
    "pfungst.probes",
    {
        "control": "pfungst.probes.control:Control",
        "blind": "pfungst.probes.blind:Blind",
        "decoys": "pfungst.probes.decoys:Decoys",
        "game": "pfungst.probes.game.probe:Game",
        "noise": "pfungst.probes.noise.probe:Noise",
        "rephrase": "pfungst.probes.rephrase:Rephrase",
        "vqabq": "pfungst.probes.noise.vqabq_probe:Vqabq",
    },
)


def get_probe(spec: str) -> Probe:
    """A probe from a word: its name, with settings after a colon, for example `blind:draws=500`.

    Settings are the fields of the probe's dataclass.
    """
    name, _, text = spec.partition(":")
    kind = PROBES.get(name)
    settings = {}
    fields = {field.name: field for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key not in fields:
            known = ", ".join(fields) or "none"
            raise ProbeError(f"The probe {name} has no setting {part!r}. Write key=value; its settings are: {known}.")
        settings[key] = _parse(name, fields[key], value)
    probe: Probe = kind(**settings)
    return probe


def _parse(probe: str, field: dataclasses.Field[Any], value: str) -> Any:
    kind = str(field.type)
    try:
        if kind.startswith("bool"):
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[value.lower()]
        if kind.startswith("int"):
            return int(value)
        if kind.startswith("float"):
            return float(value)
    except (KeyError, ValueError):
        raise ProbeError(f"The setting {field.name} of the probe {probe} is of type {kind}, not {value!r}.") from None
    return value


def check_probe(probe: Probe) -> list[str]:
    """What is wrong with a probe, in sentences; empty when it keeps the rules. See `pfungst.probes.check`."""
    from pfungst.probes.check import check_probe as check

    return check(probe)
