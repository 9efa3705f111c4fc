"""Adversaries: the *Adversarial Player* of the game, by name."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from pfungst.core.registry import Registry
from pfungst.core.settings import parse_settings
from pfungst.probes.game.minigame import MiniGame

__all__ = ["ADVERSARIES", "Adversary", "LearningAdversary", "TellingAdversary", "VersionedAdversary", "get_adversary"]


@runtime_checkable
class Adversary(Protocol):
    """Moves the objects of a mini-game until the player is fooled or the budget is spent.

    It may look at boards and at what came of its moves, and asks the enforcers as often as it likes; only
    `game.step` puts a question to the player.
    """

    @property
    def name(self) -> str: ...

    @property
    def budget(self) -> int:
        """Moved scenes to ask about, for each question, where the user does not say."""
        ...

    def attack(self, game: MiniGame, rng: np.random.Generator) -> None: ...


@runtime_checkable
class VersionedAdversary(Protocol):
    """An adversary whose moves depend on more than its settings, such as weights: a change means another game."""

    @property
    def fingerprint(self) -> str: ...


@runtime_checkable
class TellingAdversary(Protocol):
    """An adversary with a line for the reader: what it sees with, who sits in it."""

    @property
    def about(self) -> str: ...


@runtime_checkable
class LearningAdversary(Protocol):
    """An adversary that learns from what came of its moves, and so has a control."""

    @property
    def untrained(self) -> Adversary:
        """The same that learns nothing and moves at random."""
        ...


ADVERSARIES = Registry(
    "adversary",
    "pfungst.adversaries",
    {
        "a2c": "pfungst.probes.game.adversaries.a2c:A2C",
        "a2c-pixel": "pfungst.probes.game.adversaries.a2c:PixelA2C",
        "a2c-plain": "pfungst.probes.game.adversaries.a2c:PlainA2C",
        "committee": "pfungst.probes.game.adversaries.committee:Committee",
        "cross-entropy": "pfungst.probes.game.adversaries.search:CrossEntropy",
        "greedy": "pfungst.probes.game.adversaries.search:Greedy",
        "rsg": "pfungst.probes.game.adversaries.search:RandomScenes",
    },
)


def get_adversary(name: str, **settings: Any) -> Adversary:
    """An adversary by name; settings are the fields of its dataclass, as values or as words (`budget="50"`)."""
    made: Adversary = parse_settings(ADVERSARIES.get(name), settings, what=f"adversary {name}")
    return made
