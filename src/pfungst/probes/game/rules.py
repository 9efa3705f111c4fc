"""The rules of the game: what the adversary may do, what a scene must keep, what a move earns; and what is played.

The presets are `code`, the game as its authors' code plays it, and three readings of its paper (Measuring CLEVRness,
sections 4 and 5, appendix B.2):

`paper` moves objects by (dx, dy). "Every head produces a displacement in x and y" (section 5), Algorithm 3 calls
Perturbate(scene, dx, dy), and the boundaries must be checked because the adversary can "stretch the whole scene"
(section 4), which places within them could not. The only range that the paper names is [-3, 3] in 7 bins.

`paper-places`, the default, reads the bins as places: "We discretize the scene where each axis has values in [-3, 3]
onto N = 7 bins" (section 5); "a discrete 7x7 grid" (section 6, B.3).

`paper-literal` differs from that in one number: the paper speaks of 0.25 between the *centres* of two objects, which on
the 7x7 grid lets large objects stand inside each other. The paper also says that this check is borrowed from the
generator of CLEVR, which measures between *surfaces*; so the other two do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pfungst.core import UsageError
from pfungst.core.settings import option
from pfungst.world.constants import GRID_BINS, MAX_OBJECTS, MIN_OBJECTS
from pfungst.world.legal import PRESETS as LEGALITY
from pfungst.world.legal import STEP, Rules

if TYPE_CHECKING:
    from pfungst.probes.game.adversaries import Adversary

BASELINE = "rsg"
"""The adversary that knows nothing: others stand beside it."""
OOD_STRETCH = 3.0
"""How much larger the grid of the out-of-distribution game is (appendix A.9 gives no number)."""


@dataclass(frozen=True)
class Rewards:
    """What a move earns (section 5)."""

    drop: float = 1.0
    """dr: a right answer became a wrong one."""
    consistency: float = 0.1
    """cr: the answer changed, but it was wrong before."""
    fail: float = -0.1
    """fr: the answer stayed."""
    invalid: float = -0.8
    """isr: an enforcer refused the scene."""
    summed: bool = False
    """False: exactly one of the four (Algorithms 1 and 3). True: every one whose condition holds is added, so a drop
    also earns `consistency` and an invalid scene also costs `fail`."""

    def of(self, status: str) -> float:
        """The reward of a move with this status, see `Status`."""
        if status == FOOLED:
            return self.drop + self.summed * self.consistency
        if status == CHANGED:
            return self.consistency
        if status == INVALID:
            return self.invalid + self.summed * self.fail
        return self.fail


FOOLED, CHANGED, SAME, INVALID, UNANSWERED = "fooled", "changed", "same", "invalid", "unanswered"
STATUSES = (FOOLED, CHANGED, SAME, INVALID, UNANSWERED)
"""What came of a move. `fooled`: right before, another answer now. `changed`: wrong before, another answer now. `same`:
the answer stayed. `invalid`: an enforcer refused the scene, nobody was asked. `unanswered`: the player failed."""


@dataclass(frozen=True)
class GameRules:
    """Everything a game depends on besides player, questions and adversary."""

    name: str = "paper-places"
    moves: str = "grid"
    """`grid`: an action names one of bins x bins places over the scene. `displacement`: it moves an object by as much
    as these places are away from the middle; what leaves the scene is refused. `step`: it displaces an object by whole
    steps from where it stood, clipped to the bounds."""
    bins: int = GRID_BINS
    """N, places an axis (section 5: N = 7)."""
    step: float = STEP
    """Length of a step, for `moves="step"`."""
    legality: Rules = field(default_factory=lambda: LEGALITY["clevr"])
    """Gap, margin, bounds and visible pixels."""
    min_objects: int = MIN_OBJECTS
    max_objects: int = MAX_OBJECTS
    rewards: Rewards = field(default_factory=Rewards)
    width: int | None = None
    height: int | None = None
    """Size of the images the player sees; None: as the scene says, else 320x240. Visible pixels are counted in a
    image of this size, 320x240 where it is None."""
    ood: bool = False
    """The out-of-distribution game of appendix A.9: a grid `stretch` times as large, from which the camera steps back
    until everything is in view, and no bounds, margins or pixel counts (one pixel must show). Answers stay true."""
    stretch: float = OOD_STRETCH

    def __post_init__(self) -> None:
        if self.moves not in ("grid", "displacement", "step"):
            raise UsageError(f"The moves of a game are grid, displacement or step, not {self.moves!r}.")
        if self.bins < 2:
            raise UsageError(f"A game needs at least 2 bins per axis, not {self.bins}.")
        if (self.width is None) != (self.height is None):
            raise UsageError("Give both width and height of the game's images, or neither.")

    @property
    def in_force(self) -> Rules:
        """What a layout must keep to: the legality, without what the out-of-distribution game lifts."""
        return replace(self.legality, margin=0.0, bound=math.inf, min_pixels=1) if self.ood else self.legality

    def to_json(self) -> dict[str, Any]:
        """What the rules are, for a run's configuration."""
        from pfungst.core.files import jsonable

        legality = replace(self.legality, radius=dict(self.legality.radius))
        plain: dict[str, Any] = jsonable(replace(self, legality=legality))
        return plain


GAMES: Mapping[str, GameRules] = {
    "paper": GameRules("paper", moves="displacement"),
    "paper-places": GameRules(),
    "paper-literal": GameRules("paper-literal", legality=LEGALITY["paper"]),
    "code": GameRules(
        "code",
        moves="step",
        legality=LEGALITY["code"],
        rewards=Rewards(summed=True),
        width=224,
        height=224,
    ),
}
"""The presets by name."""


def rules_of(preset: str | GameRules, *, ood: bool = False) -> GameRules:
    """The rules a preset names; rules of one's own pass through. `ood` lifts the in-distribution constraints."""
    if isinstance(preset, str):
        if preset not in GAMES:
            raise UsageError(f"There is no game called {preset!r}; there are {', '.join(GAMES)}.")
        preset = GAMES[preset]
    return replace(preset, ood=True) if ood and not preset.ood else preset


@dataclass(frozen=True)
class GameSettings:
    """The settings of the probe `game` and of `pfungst play`."""

    adversary: str = option("a2c", "--adversary", "-a")
    """Who moves the objects: a2c, a2c-pixel, a2c-plain, rsg ..."""
    size: int = 10
    """Questions of a mini-game (the paper plays 10, 100 and 1000)."""
    seeds: int = 3
    """Mini-games, each with a fresh adversary (the paper plays 30). They share no question as long as the data set
    lasts; after that samples are played again by another adversary."""
    games: int | None = None
    """At most this many samples of questions, as many as there are by default; 1 plays one sample over and over."""
    options: Mapping[str, Any] = option(MISSING, "--setting", factory=dict)
    """Settings of the adversary; as an option key=value, repeatable."""
    budget: int | None = None
    """Moved scenes to ask about per question [the adversary's own number: rsg 5,000, others 100]."""
    draws: int = 20_000
    """Moves to try per question, refused and repeated ones included, whatever the size of the mini-game: all that an
    adversary can learn from."""
    max_queries: int | None = None
    """Maximum number of questions to ask the player in the whole game; lowers `budget` if needed."""
    preset: str = "paper-places"
    """The rules: paper, paper-places, paper-literal or code."""
    ood: bool = False
    """Lift the in-distribution constraints (appendix A.9)."""
    relate_only: bool = False
    """Only questions about places, with `relate` in the program: no other right answer depends on places."""
    uniform: bool = option(True, "--uniform/--no-uniform")
    """Where the adversary learns, play every question again by the same rules with one that moves at random: its
    control."""
    control: bool = option(True, shown=False)
    """Ask every original and every fooling scene again, to tell a fooled player from a fickle one."""

    def __post_init__(self) -> None:
        for name in ("size", "seeds", "games", "budget", "draws", "max_queries"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"The game's {name.replace('_', ' ')} must be at least 1, not {value}.")
        if self.budget is not None and self.budget > self.draws:
            raise UsageError(f"To ask about {self.budget} moved scenes takes at least as many draws, not {self.draws}.")
        rules_of(self.preset)

    @property
    def rules(self) -> GameRules:
        return rules_of(self.preset, ood=self.ood)

    def make_adversary(self) -> Adversary:
        from pfungst.probes.game.adversaries import get_adversary  # which imports the rules

        return get_adversary(self.adversary, **self.options)

    def make_control(self) -> Adversary | None:
        """What an adversary that learns is compared with; None for others."""
        from pfungst.probes.game.adversaries import LearningAdversary

        adversary = self.make_adversary()
        return adversary.untrained if self.uniform and isinstance(adversary, LearningAdversary) else None

    @property
    def _repeats(self) -> int:
        """Questions besides the search: the original, the scene each adversary commits itself to, and with `control`
        these and the fooling scenes again."""
        each = 3 if self.control else 1
        return 1 + self.control + each * self._arms

    @property
    def _arms(self) -> int:
        """Adversaries that play every question: the chosen one and its control."""
        return 1 if self.make_control() is None else 2

    def queries_each(self) -> int:
        """Moved scenes for each question, after `max_queries`. Raises ProbeError where nothing is left."""
        budget = self.budget if self.budget is not None else self.make_adversary().budget
        if self.max_queries is not None:
            most = (self.max_queries // (self.seeds * self.size) - self._repeats) // self._arms
            if most < 1:
                raise UsageError(
                    f"{self.max_queries} queries are too few for {self.seeds} mini-games of {self.size} questions: "
                    f"at least {self.seeds * self.size * (self._repeats + self._arms)} are needed. Play fewer or "
                    "smaller ones."
                )
            budget = min(budget, most)
        return budget

    def most_queries(self) -> int:
        """Questions the player can be asked at most."""
        return self.seeds * self.size * (self.queries_each() * self._arms + self._repeats)
