"""`replicate`: a player in several copies, from words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pfungst.compute.devices import environment, every_gpu
from pfungst.core import Dataset, Needs, Player, PlayerError, UsageError
from pfungst.core.settings import parse_settings, split_spec
from pfungst.core.threads import available_cores, machine_memory
from pfungst.players.replica_host import LateExamples, Made
from pfungst.players.replica_processes import ProcessFleet
from pfungst.players.replica_ray import RayFleet
from pfungst.players.replicas import Fleet, ReplicatedPlayer
from pfungst.players.resolving import find, load

SHARE = 0.9
"""Of the machine's memory that all copies together may hold."""


@dataclass(frozen=True)
class ReplicaSettings:
    """How a player is copied."""

    count: int | None = None
    """Copies. None: one for each GPU where the player needs one, else one for each core."""
    timeout: float = 1800.0
    """Seconds without a word after which a copy is considered hung and replaced."""
    memory: float | None = None
    """GiB beyond which a copy is replaced [what the player says, else its share of the machine]."""
    gpus: float | None = None
    """GPUs of each copy [what the player says]."""
    threads: int = 1
    """Threads that each copy computes with."""

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise UsageError(f"At least one copy of the player is needed, not {self.count}.")
        if self.timeout <= 0 or self.threads < 1:
            raise UsageError("The timeout and the threads of a copy must be above 0.")

    @classmethod
    def of(cls, text: str | int) -> ReplicaSettings:
        """`4`, `auto`, or with more settings: `4:timeout=60,memory=8`."""
        count, words = split_spec(str(text))
        if count != "auto" and not count.isdecimal():
            raise UsageError(f"--replicas takes a number or `auto`, not {count!r}.")
        given = {} if count == "auto" else {"count": int(count)}
        read = parse_settings(cls, words, what="replicas")
        return cls(**{**vars(read), **given})


def replicate(
    spec: object,
    data: Dataset | None,
    options: Mapping[str, Any],
    settings: ReplicaSettings | None = None,
    *,
    on: str = "processes",
    data_spec: str | None = None,
    data_options: Mapping[str, Any] | None = None,
) -> Player:
    """The player of `spec` in several copies.

    data: what players see that know a data set. Where it was loaded from `data_spec`, copies load it themselves, and
        only if they look at it.
    on: `local` or `processes` for processes of this machine, else a Ray cluster as in `pfungst.compute`.
    """
    if not isinstance(spec, str):
        raise PlayerError("Copies of a player are made from its name: give it as text, such as my_module:answer.")
    if spec.startswith("openai:"):
        raise UsageError(
            f"{spec} asks servers, many questions at once: there is nothing to copy here. Start more servers and give "
            "their addresses separated by commas, openai:MODEL@URL1,URL2."
        )
    settings = settings or ReplicaSettings()
    if data is not None and data_spec is not None:
        late = LateExamples(data_spec, dict(data_options or {}))
        data = Dataset(data.name, late, data.metric, data.fingerprint, data.skipped)
    make = Made(spec, dict(options), data)
    needs = needs_of(spec, options)
    needs = Needs(needs.gpus if settings.gpus is None else settings.gpus, settings.memory or needs.memory)
    fleet: Fleet
    if on in ("local", "processes"):
        gpus = every_gpu() if needs.gpus and ":" not in str(options.get("device", "")) else ()
        count = settings.count or (max(1, int(len(gpus) / needs.gpus)) if gpus else available_cores())
        fleet = ProcessFleet(make, settings.threads, [environment(gpu) for gpu in gpus] or [{}])
        memory = needs.memory or SHARE * machine_memory() / 2**30 / count
    else:
        fleet = RayFleet(make, on, settings.count, needs)
        count, memory = settings.count or fleet.most, needs.memory or 0.0
    return ReplicatedPlayer(fleet, count, timeout=settings.timeout, memory=memory or None)


def needs_of(spec: str, options: Mapping[str, Any]) -> Needs:
    """What a copy needs: what the player's class or maker says (`core.NeedingPlayer`), else what its options tell."""
    name = spec.partition(":")[0]
    maker = find(name)
    said = getattr(maker if maker is not None else load(spec), "needs", None)
    if isinstance(said, Needs):
        return said
    device = str(options.get("device", "auto" if name == "hf" else ""))
    return Needs(gpus=1.0 if device.startswith("cuda") or (device == "auto" and every_gpu()) else 0.0)
