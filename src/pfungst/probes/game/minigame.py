"""A mini-game: some questions, one player, and the moves an adversary tries on it. Everything is batched.

One step is Algorithm 3 of Measuring CLEVRness for any number of moves at once: enforcers, image, answer, reward.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pfungst.core import Answer, Asker, ProbeError, Query
from pfungst.core.flips import normalise
from pfungst.core.scoring import read_answer
from pfungst.core.types import AskingMatcher
from pfungst.probes.game.board import Board, Bools, Floats, Ints
from pfungst.probes.game.enforcers import Enforcers
from pfungst.probes.game.rules import CHANGED, FOOLED, INVALID, SAME, UNANSWERED, GameRules, Rewards
from pfungst.scores import same_answer
from pfungst.scores.matchers import get_matcher
from pfungst.world.constants import ATTRIBUTES, MAX_ANSWERABLE

KEPT_ILLEGAL = 1000
"""Refused scenes remembered of one mini-game; the rest is only counted."""
UNASKED = "unasked"
"""Status of a legal move for which the budget was spent. It earns nothing and leaves no trace."""

VOCABULARY = frozenset(
    [*(word for words in ATTRIBUTES.values() for word in words), "yes", "no", *map(str, range(MAX_ANSWERABLE + 1))]
)
"""Every answer a CLEVR question can have. What is outside is counted as nonsense (and is simply wrong)."""


@dataclass(frozen=True, slots=True)
class Move:
    """A manipulated scene and what came of it."""

    board: int
    positions: Floats
    """(objects, 2)"""
    status: str
    """See `pfungst.probes.game.rules.STATUSES`."""
    reward: float
    refused_by: str = ""
    """The enforcer that refused it, empty where legal."""
    answer: str | None = None
    confidence: float | None = None
    step: int = 0
    """Step of the mini-game in which it was first tried."""
    query: int = 0
    """How many questions the board had cost until then, this one included."""


@dataclass(frozen=True, slots=True)
class Point:
    """State of the mini-game after a step, for curves."""

    step: int
    queries: int
    """Moved scenes asked so far, over all boards."""
    fooled: float
    """Share of boards fooled so far."""
    changed: float
    """Share of boards whose answer was changed so far."""
    reward: float
    """Mean reward of the step's moves."""
    legal: float
    """Share of the step's moves that were legal."""
    hits: float
    """Share of the step's moves that fooled the player: how good the adversary is now."""


@dataclass
class _Seat:
    """What is known about one board."""

    board: Board
    old: Answer | None = None
    right: bool = False
    queries: int = 0
    draws: int = 0
    legal_draws: int = 0
    updates: int = 0
    known: dict[bytes, Move] = field(default_factory=dict)
    first_fooled: Move | None = None
    first_changed: Move | None = None
    committed: Move | None = None


@dataclass(frozen=True)
class Remembering(Enforcers):
    """Enforcers that an adversary asks before it tries a layout: what they agreed to then is not judged a second time
    when it is tried."""

    agreed: dict[Board, set[bytes]] = field(default_factory=lambda: defaultdict(set), repr=False, compare=False)

    def judge(self, board: Board, positions: Floats) -> Ints:
        agreed = self.agreed[board]
        names = [layout.tobytes() for layout in positions]
        new = np.array([name not in agreed for name in names], dtype=np.bool_)
        verdict = np.full(len(positions), -1, dtype=np.int64)
        verdict[new] = super().judge(board, positions[new])
        agreed.difference_update(names)
        agreed.update(name for name, fresh, code in zip(names, new, verdict, strict=True) if fresh and code < 0)
        return verdict


class MiniGame:
    """Boards, a player, and what has been tried so far.

    budget: moved scenes that may be asked about, for each board. The question about the scene as it stands, and the
        repetitions that `settle` asks, are not counted.
    draws: moves that may be tried on each board, refused and repeated ones included; a step that was begun is finished.

    >>> game = MiniGame(boards, Asker(player), rules)
    >>> moves = game.step([0, 0, 1], [positions, other_positions, positions_of_board_1])
    """

    def __init__(
        self,
        boards: Sequence[Board],
        asker: Asker,
        rules: GameRules,
        *,
        enforcers: Enforcers | None = None,
        budget: int | None = None,
        draws: int | None = None,
    ) -> None:
        if not boards:
            raise ProbeError("A mini-game needs at least one question.")
        self.rules = rules
        self.asker = asker
        self.enforcers: Enforcers = Remembering((enforcers or Enforcers.of(rules)).parts)
        self.budget = budget
        self.most_draws = draws
        self.steps: int = 0
        self.illegal: dict[str, int] = {}
        """How many moves each enforcer refused, repetitions included."""
        self.nonsense: int = 0
        """Answers no CLEVR question has."""
        self.curve: list[Point] = []
        self.entropy: dict[int, float] = {}
        """Of the policy for a board when it was last drawn from, as a share of a uniform policy's; kept by adversaries
        that have a policy."""
        self._seats = [_Seat(board) for board in boards]
        self._reader = Reader(asker)
        self._kept_illegal = 0
        self._asked = self._fooled = self._changed = 0
        self._ask_old()

    @property
    def boards(self) -> list[Board]:
        return [seat.board for seat in self._seats]

    @property
    def rewards(self) -> Rewards:
        return self.rules.rewards

    def old_answer(self, board: int) -> Answer | None:
        """What the player says about the scene as it stands; None where it failed."""
        return self._seats[board].old

    def was_right(self, board: int) -> bool:
        return self._seats[board].right

    def queries(self, board: int) -> int:
        """Moved scenes asked about so far."""
        return self._seats[board].queries

    def draws(self, board: int) -> int:
        """Moves tried so far, refused and repeated ones included; `legal_draws` without the refused ones."""
        return self._seats[board].draws

    def legal_draws(self, board: int) -> int:
        return self._seats[board].legal_draws

    def updates(self, board: int) -> int:
        """Steps of the game in which something was tried on it: of an adversary that learns, its updates."""
        return self._seats[board].updates

    def out_of_draws(self, board: int) -> bool:
        """Whether nothing more may be drawn, although the answer stands and the budget is not spent."""
        drawn = self.most_draws is not None and self._seats[board].draws >= self.most_draws
        return drawn and self._seats[board].first_changed is None and self.left(board) > 0

    def tried(self, board: int, layouts: Floats) -> Bools:
        """Which layouts (layouts, objects, 2) were tried before: they would cost no query and tell nothing new."""
        known = self._seats[board].known
        return np.array([one.tobytes() in known for one in np.ascontiguousarray(layouts)], dtype=np.bool_)

    def left(self, board: int) -> int:
        """Questions the budget still allows on a board."""
        return (1 << 60) if self.budget is None else self.budget - self._seats[board].queries

    def fooled(self, board: int) -> Move | None:
        """The first scene that made a right answer wrong."""
        return self._seats[board].first_fooled

    def changed(self, board: int) -> Move | None:
        """The first scene that changed the answer, right or wrong before."""
        return self._seats[board].first_changed

    def committed(self, board: int) -> bool | None:
        """Whether the player is right on the scene that the adversary committed itself to; None where it did not."""
        move = self._seats[board].committed
        wrong = None if move is None else self.was_wrong_on(move)
        return None if wrong is None else not wrong

    def committed_to(self, board: int) -> Floats | None:
        """The scene that the adversary committed itself to, (objects, 2)."""
        seat = self._seats[board]
        return None if seat.committed is None else seat.committed.positions

    def was_wrong_on(self, move: Move) -> bool | None:
        """Whether the player is wrong on a moved scene, whatever it said before; None where it was not asked."""
        if move.answer is None:
            return None
        return not same_answer(move.answer, self._seats[move.board].board.truth_text)

    def commit(self, layouts: Mapping[int, npt.ArrayLike]) -> None:
        """Ask about one scene for each of these boards: what the adversary would show if it had a single try.

        layouts: board -> (objects, 2). Not counted as queries of the search, and nothing is won by it: it tells how
        right the player is on scenes of this adversary, whatever it said before. Refused scenes commit to nothing; a
        scene that was tried is not asked about again.
        """
        placed = {number: np.ascontiguousarray(one, dtype=np.float64) for number, one in layouts.items()}
        open_ones: list[int] = []
        for number, positions in placed.items():
            seat = self._seats[number]
            known = seat.known.get(positions.tobytes())
            if known is not None and known.answer is not None:
                seat.committed = known
            elif self.enforcers.allow(seat.board, positions[None])[0]:
                open_ones.append(number)
        for number, answer in self.answers({number: placed[number] for number in open_ones}).items():
            seat = self._seats[number]
            status = self._status(seat, answer)
            seat.committed = Move(number, placed[number], status, 0.0, "", answer.text, answer.confidence)

    def answers(self, layouts: Mapping[int, Floats], take: int = 0) -> dict[int, Answer]:
        """What the player says about one layout (objects, 2) for each of these boards, if anything; not counted."""
        reads, boards = self.asker.reads_scenes, [self._seats[number].board for number in layouts]
        queries = [b.query(places, reads, take) for b, places in zip(boards, layouts.values(), strict=True)]
        said = self._reader.ask(boards, queries)
        return {number: answer for number, answer in zip(layouts, said, strict=True) if answer is not None}

    def live(self, won: bool = False) -> list[int]:
        """Boards still worth a move: the answer stands, and neither budget nor draws are spent. `won`: also those where
        the answer was changed."""
        return [
            number
            for number, seat in enumerate(self._seats)
            if seat.old is not None
            and (won or seat.first_changed is None)
            and self.left(number) > 0
            and (self.most_draws is None or seat.draws < self.most_draws)
        ]

    def moves(self) -> list[Move]:
        """Every distinct scene tried, in order."""
        found = [move for seat in self._seats for move in seat.known.values() if move.step > 0]
        return sorted(found, key=lambda move: (move.step, move.board))

    def step(self, which: Sequence[int], layouts: Sequence[npt.ArrayLike]) -> list[Move]:
        """Try layouts, (objects, 2) each, on the boards numbered `which`.

        Returns a move for each, in order. Layouts tried before are not drawn, judged or asked about again.
        """
        self.steps += 1
        placed = [np.ascontiguousarray(one, dtype=np.float64) for one in layouts]
        names = [one.tobytes() for one in placed]
        new: dict[int, dict[bytes, Floats]] = {}
        for number, name, positions in zip(which, names, placed, strict=True):
            if positions.shape != (len(self._seats[number].board), 2):
                raise ProbeError(
                    f"A layout of shape {positions.shape} was tried on a scene of {len(self._seats[number].board)} "
                    "objects; (objects, 2) is needed."
                )
            if name not in self._seats[number].known:
                new.setdefault(number, {})[name] = positions
        fresh = self._judge(new)
        self._ask(fresh)
        moves = []
        for number, name in zip(which, names, strict=True):
            move = self._seats[number].known.get(name) or fresh[number, name]
            self._seats[number].draws += 1
            if move.status == INVALID:
                self.illegal[move.refused_by] = self.illegal.get(move.refused_by, 0) + 1
            else:
                self._seats[number].legal_draws += 1
            moves.append(move)
        for number in set(which):
            self._seats[number].updates += 1
        self._note(moves)
        return moves

    def _ask_old(self) -> None:
        for number, answer in self.answers({n: seat.board.start for n, seat in enumerate(self._seats)}).items():
            seat = self._seats[number]
            seat.old = answer
            self._count_nonsense(answer, seat.board)
            seat.right = not answer.unread and same_answer(answer.text, seat.board.truth_text)
            start = np.ascontiguousarray(seat.board.start)
            # The scene as it stands is a move that changes nothing: asking again would be the same query.
            stay = Move(number, start, SAME, self.rewards.fail, answer=answer.text, confidence=answer.confidence)
            seat.known[start.tobytes()] = stay

    def _judge(self, new: dict[int, dict[bytes, Floats]]) -> dict[tuple[int, bytes], Move]:
        """Moves that are refused, and legal ones still without an answer (status `unasked`)."""
        fresh: dict[tuple[int, bytes], Move] = {}
        for number, layouts in new.items():
            verdict = self.enforcers.judge(self._seats[number].board, np.stack(list(layouts.values())))
            for (name, positions), code in zip(layouts.items(), verdict.tolist(), strict=True):
                if code < 0:
                    fresh[number, name] = Move(number, positions, UNASKED, 0.0)
                    continue
                refused = self.enforcers.names[code]
                move = Move(number, positions, INVALID, self.rewards.of(INVALID), refused, step=self.steps)
                fresh[number, name] = move
                if self._kept_illegal < KEPT_ILLEGAL:
                    self._kept_illegal += 1
                    self._seats[number].known[name] = move
        return fresh

    def _ask(self, fresh: dict[tuple[int, bytes], Move]) -> None:
        """Answer what is legal and within the budget, in one call to the player."""
        chosen: dict[int, list[bytes]] = {}
        for (number, name), move in fresh.items():
            if move.status != UNASKED or self._seats[number].old is None:
                continue
            if len(chosen.setdefault(number, [])) < self.left(number):
                chosen[number].append(name)
        boards: list[Board] = []
        queries: list[Query] = []
        for number, names in chosen.items():
            if names:
                places = np.stack([fresh[number, name].positions for name in names])
                boards += [self._seats[number].board] * len(names)
                queries += self._seats[number].board.queries(places, self.asker.reads_scenes)
        answers = iter(self._reader.ask(boards, queries))
        for number, names in chosen.items():
            for name in names:
                fresh[number, name] = self._answered(number, name, fresh[number, name].positions, next(answers))

    def _answered(self, number: int, name: bytes, positions: Floats, answer: Answer | None) -> Move:
        seat = self._seats[number]
        seat.queries += 1
        self._asked += 1
        status = self._status(seat, answer)
        text, confidence = (None, None) if answer is None else (answer.text, answer.confidence)
        move = Move(number, positions, status, self.rewards.of(status), "", text, confidence, self.steps, seat.queries)
        seat.known[name] = move
        if answer is not None:
            self._count_nonsense(answer, seat.board)
        if status == FOOLED and seat.first_fooled is None:
            seat.first_fooled = move
            self._fooled += 1
        if status in (FOOLED, CHANGED) and seat.first_changed is None:
            seat.first_changed = move
            self._changed += 1
        return move

    @staticmethod
    def _status(seat: _Seat, answer: Answer | None) -> str:
        """Algorithm 1: which reward applies."""
        if answer is None or seat.old is None:
            return UNANSWERED
        if same_answer(answer.text, seat.old.text):
            return SAME
        return FOOLED if seat.right else CHANGED

    def _count_nonsense(self, answer: Answer, board: Board) -> None:
        text = normalise(answer.text)
        self.nonsense += text not in VOCABULARY and text not in map(normalise, board.example.choices)

    def _note(self, moves: Sequence[Move]) -> None:
        seats = len(self._seats)
        count = max(1, len(moves))
        self.curve.append(
            Point(
                step=self.steps,
                queries=self._asked,
                fooled=self._fooled / seats,
                changed=self._changed / seats,
                reward=sum(move.reward for move in moves) / count,
                legal=sum(move.status != INVALID for move in moves) / count,
                hits=sum(move.status == FOOLED for move in moves) / count,
            )
        )


def matcher_name(asker: Asker) -> str:
    """The matcher that reads the replies in a game; empty where the text is the answer."""
    return asker.reading or asker.player.matcher


class Reader:
    """Puts queries about boards to a player and reads the replies."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        name = matcher_name(asker)
        self._matcher = get_matcher(name) if name else None

    def ask(self, boards: Sequence[Board], queries: Sequence[Query]) -> list[Answer | None]:
        """One answer per query, in order, each about the board at the same place; None where the player failed."""
        replies, matcher = self._asker.ask(queries), self._matcher
        if matcher is None:
            return replies
        known = [(board.example, reply) for board, reply in zip(boards, replies, strict=True) if reply is not None]
        part: object = matcher
        asking = isinstance(part, AskingMatcher)
        if isinstance(part, AskingMatcher) and self._asker.folder is not None:
            part.prepare(known, self._asker.folder.parent, self._asker.progress)
        read: list[Answer | None] = []
        for board, answer in zip(boards, replies, strict=True):
            spoken = answer is not None and answer.scores is None  # else it was chosen by its scores, not said
            read.append(read_answer(answer, board.example, matcher, asking) if answer and spoken else answer)
        return read
