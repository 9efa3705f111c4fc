"""The paper's adversary: advantage actor-critic with episodes of one step (Measuring CLEVRness, section 5, A.5).

    features  a relation network over the objects of the scene (or over cells of its image) and the question,
              pretrained on question answering
    actor     a layer and ten object heads; each gives two softmax distributions over N = 7 bins, for x and for y
    critic    three layers, 1.2 tanh
    learning  loss = -log p (r - V) + (V - r)^2, AdamW, one move an episode

Read it from top to bottom: settings, the update (Algorithm 2), the game (Algorithm 3), how moves are drawn, and what is
remembered; the networks are in `a2c_networks`.

Where it goes beyond the paper: objects are placed one after the other, each distribution restricted to the cells that
gap and margin leave (`mask`), and new moves that keep the answer go first (`redraw`). Both are known without asking
the player; without them nearly all moves of scenes with many objects are invalid. And it imitates what fooled the
player (`imitate`, `Memory`), until it plays that: the paper trains until the policy converges, and does not say in
how many queries; a hundred per question are too few to converge by policy gradient alone. `a2c-plain` does without all
this, as the paper does.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError, ProbeError
from pfungst.probes.game.adversaries.a2c_networks import Features, Policy, find_features, make_policy, nn, torch
from pfungst.probes.game.board import QUESTION_LENGTH, Board, object_features, question_tokens
from pfungst.probes.game.layouts import Layouts
from pfungst.probes.game.minigame import UNASKED, MiniGame
from pfungst.probes.game.rules import FOOLED
from pfungst.world.constants import MAX_OBJECTS

BEST_OF = 4
"""Times `samples` moves that are drawn to find the likeliest legal one."""
PICTURE_SIDE = 64
AT_ONCE = 256
"""Remembered questions in one update of `Memory.settle`."""
UNTRAINED_UPDATES = 10
"""Whose moves an adversary that learns nothing draws at once."""
LOOK_EVERY = 10
"""Updates of `Memory.settle` between two looks whether it is done."""


@dataclass(frozen=True)
class A2C:
    """The paper's actor-critic on the state of the scene, with legal moves only, imitating what it found."""

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
    """A safetensors file of `a2c_networks.save_policy`: a whole policy, trained before."""
    learn: bool = True
    """False plays a policy from `weights` on questions it has not seen; without weights, the uniform one."""
    imitate: float = 1.0
    """Weight of the self-imitation loss: in every update, and then alone until the policy plays what it found; 0 leaves
    it out."""
    settle: int = 2000
    """Maximum number of updates that learn only from imitation, once the queries are spent. They ask nothing."""
    leave_fooled: bool = True
    """Spend nothing more on a question that is won. False goes on learning from it."""
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

    @property
    def untrained(self) -> A2C:
        """Its control: draws its moves in the same way from a policy that stays uniform, those of ten updates at once,
        since it learns nothing between them."""
        patience = -(-self.patience // UNTRAINED_UPDATES)
        samples = self.samples * UNTRAINED_UPDATES
        return replace(self, learn=False, weights="", features="own", samples=samples, patience=patience)


@dataclass(frozen=True)
class PixelA2C(A2C):
    """The actor-critic that sees the image instead of the objects."""

    name: str = "a2c-pixel"
    sees: str = "pixels"
    heads: str = "paper"


@dataclass(frozen=True)
class PlainA2C(A2C):
    """The actor-critic to the letter of the paper: it must learn from refusals which moves are legal."""

    name: str = "a2c-plain"
    mask: bool = False
    heads: str = "paper"
    learning_rate: float = 5e-4
    explore: float = 0.0
    entropy: float = 0.0
    imitate: float = 0.0
    patience: int = 400


# --- learning (Algorithm 2) -----------------------------------------------------------------------------------------


def train(settings: A2C, game: MiniGame, rng: np.random.Generator) -> Policy:
    """Play until every question is won, its queries or draws are spent or nothing new is tried; returns the policy."""
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
    while live := [n for n in game.live(won=not settings.leave_fooled) if idle[n] < settings.patience]:
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
        game.entropy.update(zip(live, table.entropies(live, x, y), strict=True))
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


# --- what the policy sees, and how its words become moves -----------------------------------------------------------


class BoardTable:
    """What the policy sees of the boards of a game, and which head moves which object."""

    def __init__(self, game: MiniGame, settings: A2C, network: Features | None, rng: np.random.Generator) -> None:
        self.game, self.settings, boards = game, settings, game.boards
        big = next((board for board in boards if len(board) > MAX_OBJECTS), None)
        if big is not None:
            raise ProbeError(
                f"The scene of {big.example.id} has {len(big)} objects; the A2C adversary has {MAX_OBJECTS} heads."
            )
        # "Each head is randomly assigned to a unique object" (section 5). A head that sees its object needs no lot.
        lots = settings.heads == "paper"
        self.heads = [(rng.permutation(MAX_OBJECTS) if lots else np.arange(MAX_OBJECTS))[: len(b)] for b in boards]
        self.moving = torch.tensor([[head in mine for head in range(MAX_OBJECTS)] for mine in self.heads])
        """(boards, heads): whether a head moves an object."""
        self.layouts = [Layouts(board) for board in boards]
        self.cheap = game.enforcers.without("pixels")
        self.tokens = torch.tensor(np.stack([question_tokens(b.example.question, QUESTION_LENGTH) for b in boards]))
        self.objects = torch.tensor(np.stack([object_features(board.scene) for board in boards]))
        self.seen = self.objects
        if network is not None:
            self.seen = network(boards)
        elif settings.sees == "pixels":
            self.seen = torch.tensor(np.stack([_picture(board) for board in boards]))

    def decide(self, policy: Policy, numbers: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What the policy says of these boards, as `Policy.decide`."""
        return policy.decide(policy.features(self.seen[numbers], self.tokens[numbers]), self.objects[numbers])

    def joint(self, number: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Log-probabilities (objects, cells) of one board from those of its heads (10, bins): x and y are
        independent."""
        heads = torch.from_numpy(self.heads[number])
        return (x[heads, :, None] + y[heads, None, :]).flatten(1)

    @torch.no_grad()
    def entropies(self, numbers: list[int], x: torch.Tensor, y: torch.Tensor) -> list[float]:
        """The mean over the heads that move something, as a share of uniform heads'; x, y as decided for them."""
        both = -((x.exp() * x).sum(-1) + (y.exp() * y).sum(-1)) / (2 * math.log(x.shape[-1]))
        moving = self.moving[numbers]
        shares: list[float] = ((both * moving).sum(1) / moving.sum(1)).tolist()
        return shares

    def sample(
        self, number: int, x: torch.Tensor, y: torch.Tensor, rng: np.random.Generator
    ) -> tuple[Any, torch.Tensor]:
        """Moves of one board: cells (samples, objects) and their log-probabilities (samples,); x, y as for `joint`."""
        settings, logs = self.settings, self.joint(number, x, y)
        if settings.explore:
            logs = torch.log((1 - settings.explore) * logs.exp() + settings.explore / logs.shape[1])
        odds = logs.detach().exp().double().numpy()
        if settings.mask:
            cells, masks, _ = self.layouts[number].sequential(rng, odds, settings.samples * settings.redraw)
            board = self.game.boards[number]
            places = board.positions(cells)
            refused = self.cheap.judge(board, places) >= 0
            first = np.argsort(2 * refused + self.game.tried(number, places), kind="stable")[: settings.samples]
            cells, open_cells = cells[first], torch.from_numpy(masks[first])
            normaliser = logs[None].masked_fill(~open_cells, -torch.inf).logsumexp(-1)
        else:
            total = odds.cumsum(1)
            draws = rng.random((settings.samples, len(odds), 1)) * total[None, :, -1:]
            cells = np.minimum((total[None] <= draws).sum(-1), odds.shape[1] - 1)
            normaliser = logs.new_zeros(())
        chosen = logs[None].expand(len(cells), -1, -1).gather(-1, torch.from_numpy(cells)[..., None]).squeeze(-1)
        return cells, (chosen - normaliser).sum(-1)


def _picture(board: Board) -> Any:
    """(3, 64, 64) in [-1, 1]"""
    small = board.image(board.start).pil().resize((PICTURE_SIDE, PICTURE_SIDE))
    return (np.asarray(small, dtype=np.float32) / 127.5 - 1.0).transpose(2, 0, 1)


# --- what fooled the player once ------------------------------------------------------------------------------------


class Memory:
    """The first fooling move of every question of the table that has one, as what each head should have said.

    A policy gradient forgets: a question is fooled by one of a hundred moves, that move gives one step, and the policy
    goes on to others. Self-imitation (Oh et al. 2018, https://arxiv.org/abs/1806.05635) learns from remembered moves
    that paid better than the critic expects,

        loss = -log p(move) max(R - V, 0),

    which costs no query, since what came of them is known. The critic, which there learns from these moves as well,
    does not: it would soon expect what is remembered, long before the policy plays it. Of each question the first move
    that fooled is remembered, and no other: the distributions of x and y are independent, so that between two good
    moves lies a third that may be none.
    """

    def __init__(self, table: BoardTable, bins: int) -> None:
        self._table, self._bins = table, bins
        boards = len(table.heads)
        self._cells = torch.zeros((boards, MAX_OBJECTS, 2), dtype=torch.int64)
        self._moves = torch.zeros((boards, MAX_OBJECTS), dtype=torch.bool)
        self._rewards = torch.zeros(boards)
        self.numbers: list[int] = []
        """Questions with something to remember, in the order they were fooled."""

    def add(self, number: int, cells: npt.NDArray[np.int64], reward: float) -> None:
        """Remember a move of a question, cells (objects,), where it has none yet."""
        heads = torch.from_numpy(self._table.heads[number])
        if self._moves[number, heads[0]]:
            return
        self._cells[number, heads] = torch.from_numpy(np.stack(np.divmod(cells, self._bins), axis=1))
        self._moves[number, heads] = True
        self._rewards[number] = reward
        self.numbers.append(number)

    def some(self, most: int, rng: np.random.Generator) -> list[int]:
        """Questions with something to remember, drawn at random where they are more than `most`."""
        return self.numbers if len(self.numbers) <= most else rng.choice(self.numbers, most, replace=False).tolist()

    def loss(self, policy: Policy, some: list[int]) -> torch.Tensor:
        """The loss above, mean over these questions."""
        log_p, values, _ = self._recall(policy, some)
        out: torch.Tensor = -(log_p * (self._rewards[some] - values).clamp(min=0.0).detach()).mean()
        return out

    @torch.no_grad()
    def settled(self, policy: Policy) -> bool:
        """Whether each remembered move is the likeliest of all moves."""
        parts = range(0, len(self.numbers), AT_ONCE)
        return all(bool(self._recall(policy, self.numbers[at : at + AT_ONCE])[2].all()) for at in parts)

    def settle(self, policy: Policy, learn: Callable[[torch.Tensor], None], most: int, rng: np.random.Generator) -> int:
        """Learn from what is remembered until the policy plays it, in at most so many updates; returns how many."""
        for step in range(most if self.numbers else 0):
            if step % LOOK_EVERY == 0 and self.settled(policy):
                return step
            learn(self.loss(policy, self.some(AT_ONCE, rng)))
        return most

    def _recall(self, policy: Policy, some: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Log-probabilities (questions,) of the moves, values (questions,), and whether each head that moves something
        finds what it should have said likeliest (questions, 10)."""
        x, y, values = self._table.decide(policy, some)
        both, wanted, moves = torch.stack([x, y], 2), self._cells[some], self._moves[some]
        log_p = both.gather(-1, wanted[..., None]).squeeze(-1).sum(-1)
        played = (both.argmax(-1) == wanted).all(-1) | ~moves
        return (log_p * moves).sum(-1), values, played
