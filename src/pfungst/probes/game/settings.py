"""What a game plays: its settings, and the questions it is played on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pfungst.core import Example, ProbeError, UsageError
from pfungst.probes.game.adversaries import Adversary, get_adversary
from pfungst.probes.game.board import boards_of
from pfungst.probes.game.rules import GameRules, rules_of
from pfungst.scores import same_answer


@dataclass(frozen=True)
class GameSettings:
    """The settings of the probe `game` and of `pfungst play`."""

    adversary: str = "a2c"
    """Who moves the objects."""
    size: int = 10
    """Questions of a mini-game (the paper plays 10, 100 and 1000)."""
    seeds: int = 3
    """Mini-games, each with a fresh adversary (the paper plays 30). They share no question as long as the data set
    lasts; after that samples are played again by another adversary."""
    games: int | None = None
    """Maximum number of samples of questions; fewer than `seeds` repeats them. None: as many as there are."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the adversary."""
    budget: int | None = None
    """Moved scenes to ask about, for each question. None: the adversary's own number (rsg 5,000, others 100)."""
    max_queries: int | None = None
    """Maximum number of questions to ask the player in the whole game; lowers `budget` if needed."""
    preset: str = "paper"
    """The rules: paper, paper-literal or code."""
    ood: bool = False
    """Lift the in-distribution constraints (appendix A.9)."""
    relate_only: bool = False
    """Leave out questions without `relate`, whose right answer never depends on places."""
    control: bool = True
    """Ask every original and every fooling scene again, to tell a fooled player from a fickle one."""

    def __post_init__(self) -> None:
        for name in ("size", "seeds", "games", "budget", "max_queries"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"The game's {name.replace('_', ' ')} must be at least 1, not {value}.")
        rules_of(self.preset)

    @property
    def rules(self) -> GameRules:
        return rules_of(self.preset, ood=self.ood)

    def make_adversary(self) -> Adversary:
        return get_adversary(self.adversary, **self.options)

    @property
    def repeats(self) -> int:
        """Questions besides the search: the original, the scene the adversary commits itself to, and with `control`
        these and the fooling scene again."""
        return 5 if self.control else 2

    def queries_each(self) -> int:
        """Moved scenes for each question, after `max_queries`. Raises ProbeError where nothing is left."""
        budget = self.budget if self.budget is not None else self.make_adversary().budget
        if self.max_queries is not None:
            most = self.max_queries // (self.seeds * self.size) - self.repeats
            if most < 1:
                raise UsageError(
                    f"{self.max_queries} queries are too few for {self.seeds} mini-games of {self.size} questions: "
                    f"at least {self.seeds * self.size * (self.repeats + 1)} are needed. Play fewer or smaller ones."
                )
            budget = min(budget, most)
        return budget

    def most_queries(self) -> int:
        """Questions the player can be asked at most."""
        return self.seeds * self.size * (self.queries_each() + self.repeats)


def sample_games(examples: Sequence[Example], settings: GameSettings, seed: int = 0) -> list[list[Example]]:
    """Mutually exclusive samples of `size` questions, at random by the seed; as many as fit, at most `seeds`."""
    if len(examples) < settings.size:
        raise ProbeError(
            f"A mini-game of {settings.size} questions cannot be drawn from {len(examples)} that can be played. "
            "Choose a smaller size or a larger data set."
        )
    order = np.random.default_rng(seed).permutation(len(examples))
    count = min(len(examples) // settings.size, settings.seeds, settings.games or settings.seeds)
    return [[examples[i] for i in sorted(part)] for part in order[: count * settings.size].reshape(count, -1).tolist()]


def playable(data: Sequence[Example], settings: GameSettings) -> tuple[list[Example], dict[str, int]]:
    """The questions a game can use, and how many were left out for which reason.

    Of a group of rephrasings only the first is played: the others ask the same thing. Where the data set says another
    answer than the program, what was right before would not be what must stay. Raises ProbeError where none is left.
    """
    reasons = (
        "no scene", "no program", "cannot be played", "too few or too many objects",
        "another answer than the program's", "rephrasing", "no relate",
    )  # fmt: skip
    left_out = dict.fromkeys(reasons, 0)
    rules = settings.rules
    chosen, groups, first = [], set(), ""
    for example in data:
        if example.scene is None or example.program is None:
            left_out["no scene" if example.scene is None else "no program"] += 1
        elif example.group and example.group in groups:
            left_out["rephrasing"] += 1
        else:
            boards, unfit = boards_of([example], rules)
            if not boards:
                left_out["cannot be played"] += 1
                first = first or f" For example: {unfit[0][1]}"
            elif not rules.min_objects <= len(boards[0]) <= rules.max_objects:
                left_out["too few or too many objects"] += 1
            elif example.answers and not any(same_answer(one, boards[0].truth_text) for one in example.answers):
                left_out["another answer than the program's"] += 1
            elif settings.relate_only and not boards[0].program.relates:
                left_out["no relate"] += 1
            else:
                groups.add(example.group)
                chosen.append(example)
    left_out = {reason: count for reason, count in left_out.items() if count}
    if not chosen:
        why = ", ".join(f"{count} x {reason}" for reason, count in left_out.items()) or "there are none"
        raise ProbeError(
            f"None of the {len(data)} questions can be played: {why}.{first} The game needs scenes and programs."
        )
    return chosen, left_out
