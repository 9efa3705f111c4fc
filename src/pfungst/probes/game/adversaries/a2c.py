"""The paper's adversary: advantage actor-critic with episodes of one step (Measuring CLEVRness, section 5, A.5).

    features  a relation network over the objects of the scene (or over cells of its image) and the question,
              pretrained on question answering (`pretrained.py`)
    actor     a layer and ten object heads; each gives two softmax distributions over N = 7 bins, for x and for y
    critic    three layers, 1.2 tanh
    learning  loss = -log p (r - V) + (V - r)^2, AdamW, one move an episode

Read it from top to bottom: settings, the update (Algorithm 2), the game (Algorithm 3); the networks are in `policy`,
and how they draw moves in `table`.

Where it goes beyond the paper: objects are placed one after the other, each distribution restricted to the cells that
gap and margin leave (`mask`), and new moves that keep the answer go first (`redraw`). Both are known without asking
the player; without them nearly all moves of scenes with many objects are invalid. And it imitates what fooled the
player (`imitate`, `memory.py`), until it plays that: the paper trains until the policy converges, and does not say in
how many queries; a hundred per question are too few to converge by policy gradient alone. `a2c-plain` does without all
this, as the paper does.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError
from pfungst.probes.game.adversaries.memory import Memory
from pfungst.probes.game.adversaries.policy import Policy, make_policy, save_policy
from pfungst.probes.game.adversaries.pretrained import find_features
from pfungst.probes.game.adversaries.table import BoardTable
from pfungst.probes.game.adversaries.torch_guard import nn, torch
from pfungst.probes.game.minigame import UNASKED, MiniGame
from pfungst.probes.game.rules import FOOLED

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["A2C", "PixelA2C", "PlainA2C", "Policy", "make_policy", "save_policy", "train"]

BEST_OF = 4
"""Times `samples` moves that are drawn to find the likeliest legal one."""


@dataclass(frozen=True)
class A2C:
    """The state-input adversary, with legal moves only."""

    name: str = "a2c"
    budget: int = 100
    """Moved scenes asked about, for each question. The paper does not say how many its adversary needed."""
    sees: str = "state"
    """What the features are made of: `state` (the objects) or `pixels` (the image)."""
    mask: bool = True
    """Place the objects one after the other, each where gap and margin leave room."""
    samples: int = 4
    """Moves tried on a question in one update."""
    redraw: int = 16
    """With `mask`, draw this many times more moves and first try those that keep the question's answer and are new."""
    boards: int = 64
    """Maximum number of questions in one update."""
    learning_rate: float = 2e-3
    """The authors' code has 5e-4; mini-games of few queries need to learn faster."""
    weight_decay: float = 1e-4
    clip: float = 50.0
    """Largest norm of the gradient."""
    temperature: float = 1.0
    """Temperature of the softmax. The authors' code divides by 10, which keeps it exploring for longer."""
    heads: str = "objects"
    """`objects`: one head for all, which also sees the object it moves, so that what works on a red cube is tried on
    the next one. `paper`: ten heads, assigned to the objects at random, that see the scene as a whole only."""
    explore: float = 0.2
    """Share of every distribution that stays uniform; the paper has none."""
    entropy: float = 0.03
    """Weight of an entropy bonus, which keeps it looking while nothing pays; the paper has none."""
    hidden: int = 128
    features: str = "auto"
    """The relation network it sees with. `auto`: the zoo's (`rn-state`, for pixels `rn`), pretrained on question
    answering and fixed, as in the paper, where the package has its weights; else, as with `own`, a small one of its own
    that starts at random and learns along. Or a folder or file with a trained `rn-state` or `rn`."""
    weights: str = ""
    """A safetensors file of `save_policy`: a whole policy, trained before."""
    learn: bool = True
    """False plays a policy from `weights` on questions it has not seen: the universal adversary."""
    imitate: float = 1.0
    """Weight of the self-imitation loss: in every update, and then alone until the policy plays what it found; 0 leaves
    it out."""
    settle: int = 2000
    """Maximum number of updates that learn only from imitation, once the queries are spent. They ask nothing."""
    leave_fooled: bool = True
    """Spend nothing more on a question that is won. False goes on learning from it."""
    max_steps: int = 5000
    patience: int = 40
    """Updates in a row without a new scene to ask about after which a question is given up: it has no legal move, or
    none that was not tried."""

    @property
    def about(self) -> str:
        """A line about what it sees with."""
        return find_features(self.sees, self.features)[1]

    @property
    def fingerprint(self) -> str:
        """Content of the networks it starts from; empty where it starts at random."""
        network, _ = find_features(self.sees, self.features)
        seen_with = "" if network is None else network.fingerprint
        if not self.weights:
            return seen_with
        try:
            return seen_with + hashlib.sha256(Path(self.weights).read_bytes()).hexdigest()
        except OSError as error:
            raise PfungstError(f"{self.weights}: there are no weights to read ({error.strerror}).") from error

    def attack(self, game: MiniGame, rng: np.random.Generator) -> None:
        train(self, game, rng)


@dataclass(frozen=True)
class PixelA2C(A2C):
    """The pixel-input adversary: it sees the image instead of the objects."""

    name: str = "a2c-pixel"
    sees: str = "pixels"
    heads: str = "paper"


@dataclass(frozen=True)
class PlainA2C(A2C):
    """The state-input adversary to the letter of the paper: it must learn from refusals which moves are legal."""

    name: str = "a2c-plain"
    mask: bool = False
    heads: str = "paper"
    learning_rate: float = 5e-4
    explore: float = 0.0
    entropy: float = 0.0
    imitate: float = 0.0
    patience: int = 400


# --- learning (Algorithm 2) -------------------------------------------------------------------------------------------


def train(settings: A2C, game: MiniGame, rng: np.random.Generator) -> Policy:
    """Play until every question is won, the budget is spent or nothing new is tried; returns the policy."""
    policy, network = make_policy(settings, game.rules.bins, int(rng.integers(1 << 31)))
    table = BoardTable(game, settings, network, rng)
    memory = Memory(table, game.rules.bins)
    learning = list(policy.parameters())
    optimiser = torch.optim.AdamW(learning, lr=settings.learning_rate, weight_decay=settings.weight_decay)

    def learn(loss: torch.Tensor) -> None:
        with _one_thread():
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(learning, settings.clip)
            optimiser.step()

    idle = [0] * len(game.boards)
    for _ in range(settings.max_steps):
        live = game.live()
        if not settings.leave_fooled:
            live = [n for n in range(len(game.boards)) if game.old_answer(n) is not None and game.left(n) > 0]
        live = [number for number in live if idle[number] < settings.patience]
        if not live:
            break
        if len(live) > settings.boards:
            live = sorted(rng.choice(live, settings.boards, replace=False).tolist())
        before = [game.queries(number) for number in live]
        loss = _round(table, policy, memory, live, rng)
        if settings.learn and loss is not None:
            if settings.imitate and memory.numbers:
                loss = loss + settings.imitate * memory.loss(policy, memory.some(settings.boards, rng))
            learn(loss)
        for number, asked in zip(live, before, strict=True):
            idle[number] = 0 if game.queries(number) > asked else idle[number] + 1
    if settings.learn and settings.imitate:
        with _one_thread():
            memory.settle(policy, learn, settings.settle, rng)
    game.commit(_best(table, policy, rng))
    return policy


@torch.no_grad()
def _best(table: BoardTable, policy: Policy, rng: np.random.Generator) -> dict[int, npt.NDArray[np.float64]]:
    """The likeliest legal move of every board: what the policy would do if it had a single try.

    The likeliest cell of every object; with `mask` also the likeliest that the surer objects leave; and what a few
    draws bring.
    """
    game, best = table.game, {}
    known = [number for number in range(len(game.boards)) if game.old_answer(number) is not None]
    if not known:
        return {}
    with _one_thread():
        x, y, _ = table.decide(policy, known)
        for at, number in enumerate(known):
            odds = table.joint(number, x[at], y[at]).numpy()
            tries = [odds.argmax(1)[None]]
            if table.settings.mask:
                tries.append(table.layouts[number].greedy(odds))
            tries += [table.sample(number, x[at], y[at], rng)[0] for _ in range(BEST_OF)]
            cells = np.concatenate(tries)
            places = game.boards[number].positions(cells)
            legal = game.enforcers.allow(game.boards[number], places)
            if legal.any():
                likely = odds[np.arange(len(odds)), cells].sum(1)
                best[number] = places[int(np.where(legal, likely, -np.inf).argmax())]
    return best


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Networks this small lose more by sharing work than they gain, above all beside a busy player."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _round(
    table: BoardTable, policy: Policy, memory: Memory, live: list[int], rng: np.random.Generator
) -> torch.Tensor | None:
    """One batch of moves (Algorithm 3) and its loss; what fooled is remembered."""
    game, settings = table.game, table.settings
    with _one_thread():
        x, y, values = table.decide(policy, live)
        which: list[int] = []
        drawn, layouts, logs = [], [], []
        for at, number in enumerate(live):
            cells, log_p = table.sample(number, x[at], y[at], rng)
            which += [number] * len(cells)
            drawn += list(cells)
            layouts += list(game.boards[number].positions(cells))
            logs.append(log_p)
    moves = game.step(which, layouts)
    for move, cells in zip(moves, drawn, strict=True):
        if move.status == FOOLED:
            memory.add(move.board, cells, move.reward)
    counts = torch.tensor([move.status != UNASKED for move in moves])
    if not counts.any():
        return None
    rewards = torch.tensor([move.reward for move in moves], dtype=torch.float32)[counts]
    log_p = torch.cat(logs)[counts]
    guesses = values.repeat_interleave(settings.samples)[counts]
    advantage = rewards - guesses.detach()
    loss = -(log_p * advantage).mean() + ((guesses - rewards) ** 2).mean()
    if settings.entropy:
        loss = loss + settings.entropy * ((x.exp() * x).sum(-1) + (y.exp() * y).sum(-1)).mean()
    out: torch.Tensor = loss
    return out
