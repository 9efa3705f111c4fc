"""Options that say where work runs, the same for every command that can take long."""

from __future__ import annotations

from typing import Annotated

import typer

from pfungst.core import Place, UsageError

On = Annotated[
    str, typer.Option("--on", help="Where work runs: local, processes, ray, or the address of a Ray cluster.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Workers at once [one per core].")]
Replicas = Annotated[
    str | None,
    typer.Option(
        help="Copies of the player that are asked at once: a number, or auto for one per GPU or core; with settings "
        "as 4:timeout=600,memory=8."
    ),
]


def place(on: str, workers: int | None, device: str | None = None) -> Place:
    """Where it runs. Several devices (`cuda:0,cuda:1`) share the work, in a process each."""
    from pfungst.compute.devices import every_gpu, kind, read_devices

    devices = read_devices(device)
    if on == "local" and len(devices) > 1:
        on = "processes"
    if on == "processes" and [kind(one) for one in devices] == ["cuda"]:
        devices = every_gpu() if devices == ("cuda",) else devices
    if on == "local" and workers not in (None, 1):
        raise UsageError("Several workers need a place to work: add --on processes.")
    return Place(on, workers, devices=devices if on != "local" else ())


def own_device(where: Place, device: str | None) -> str | None:
    """The device as the process calls it that has it for itself."""
    from pfungst.compute.devices import own_name

    return own_name(where.devices[0]) if where.devices else device
