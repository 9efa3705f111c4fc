"""`judge:PLAYER,key=value,...` in parts: the player who judges, and how it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pfungst.core import Player, UsageError
from pfungst.core.settings import parse_settings, settings_of, split_settings, split_spec
from pfungst.players.resolving import writer

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """How a judge scores answers."""

    labels: Path | None = None
    """A table of what people say about the same answers: id and right, and if known probe, condition, reply."""
    repeat: float = 1.0
    """Share of the judgements that are asked for twice."""
    prompt: Path | None = None
    """A text file with the judge's prompt; {data} stands for question, reference answers and reply."""
    image: bool = False
    """Show the judge the image too."""
    max_errors: int | None = None
    """How many judgements may fail before the run stops; none: 10, or 1% if that is more."""

    def __post_init__(self) -> None:
        if not 0 <= self.repeat <= 1:
            raise UsageError(f"The judge's setting repeat is a share from 0 to 1, not {self.repeat:g}.")
        if self.max_errors is not None and self.max_errors < 0:
            raise UsageError(f"The judge's setting max_errors must be 0 or more, not {self.max_errors}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings:
    """How a judge reads replies."""

    first: str | None = "lenient"
    """The matcher that reads what it can; the judge is asked about the rest. none: about everything."""


def parse(argument: str, kind: type[T], what: str) -> tuple[Player, T]:
    """The player and the settings in what follows `judge:`; options that are not the judge's are the player's."""
    words = split_spec(f"judge:{argument}")[1]
    spec = words[0].strip() if words else ""
    if not spec or not argument.strip() or "=" in spec.partition(":")[0]:
        raise UsageError(f"Say who judges: --{what} judge:openai:MODEL@http://localhost:8000/v1.")
    own = {setting.name for setting in settings_of(kind)}
    given = split_settings(words[1:], what="judge")
    settings = parse_settings(kind, {key: word for key, word in given.items() if key in own}, what="judge")
    options = {key: word for key, word in given.items() if key not in own}
    try:
        player = writer(spec, **options)
    except UsageError as error:
        if not options:
            raise
        raise UsageError(f"{error} The judge's own settings are: {', '.join(sorted(own))}.") from error
    return player, settings
