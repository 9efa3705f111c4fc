"""A player and its data, made from words: in this process, in another one, or again from a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pfungst.core import Dataset, PfungstError, Player, read_config
from pfungst.core.code import own_modules
from pfungst.data import load
from pfungst.data.selection import select
from pfungst.players.resolving import resolve


@lru_cache(maxsize=2)
def _data(data: str, options: tuple[tuple[str, Any], ...], limit: int | None, open_questions: bool) -> Dataset:
    """Players that are asked the same share the data."""
    return select(load(data, **dict(options)), limit, (), open_questions)


@dataclass(frozen=True)
class Recipe:
    """Makes the player and the examples of a run, wherever the work runs."""

    player: str
    data: str
    player_options: tuple[tuple[str, Any], ...] = ()
    data_options: tuple[tuple[str, Any], ...] = ()
    limit: int | None = None
    open_questions: bool = False

    def __call__(self) -> tuple[Player, Dataset]:
        own_modules()
        part = self.examples()
        return resolve(self.player, data=part.whole, **dict(self.player_options)), part

    def examples(self) -> Dataset:
        """The data alone."""
        return _data(self.data, self.data_options, self.limit, self.open_questions)

    @classmethod
    def of(
        cls,
        player: str,
        data: str,
        player_options: Mapping[str, Any],
        data_options: Mapping[str, Any],
        limit: int | None = None,
        open_questions: bool = False,
    ) -> Recipe:
        about_player, about_data = tuple(sorted(player_options.items())), tuple(sorted(data_options.items()))
        return cls(player, data, about_player, about_data, limit, open_questions)

    def config(self) -> dict[str, Any]:
        """The same for exam.json; `of_run` reads it again."""
        return {
            "player": {"spec": self.player, "options": dict(self.player_options)},
            "data": {
                "spec": self.data,
                "options": dict(self.data_options),
                "limit": self.limit,
                "open": self.open_questions,
            },
        }

    @classmethod
    def of_run(cls, run: Path) -> Recipe:
        """What made the player and data of a run."""
        config = read_config(run)
        player, data = config["player"], config["data"]
        if player.get("spec") is None or data.get("spec") is None:
            raise PfungstError(f"{run} does not say how its player or data was made: it was run with Python objects.")
        options = (player.get("options") or {}, data.get("options") or {})
        return cls.of(player["spec"], data["spec"], *options, data.get("limit"), bool(data.get("open", False)))
