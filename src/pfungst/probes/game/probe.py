"""The game as a probe of an exam.

Which scenes are worth asking about depends on the answers so far, so the variants cannot be listed beforehand. A probe
of this kind has a method `search(ask, data, seed)` beside `trials`: it asks through the exam's store and yields the
trials it found, whose queries are then all answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pfungst.core import (
    Answer,
    AnsweredTrial,
    Dataset,
    Figure,
    Finding,
    Findings,
    ProbeError,
    Query,
    Series,
    Table,
    Trial,
    Variant,
)
from pfungst.probes import measure
from pfungst.probes.game.board import Board, boards_of
from pfungst.probes.game.minigame import MiniGame, Move
from pfungst.probes.game.playing import PlaySettings, playable, sample_games
from pfungst.probes.game.results import LEVELS
from pfungst.probes.game.rows import limits_of
from pfungst.probes.game.rules import INVALID
from pfungst.probes.game.verifier import verify

Ask = Callable[[Sequence[Query]], Sequence[Answer]]
"""Answers through the exam: what is in its store is not asked again, and scenes reach only those that read them."""

CLEAN, AGAIN, MOVED = "clean", "again", "moved"
KEEPS = (
    "the program's answer on the moved scene, and all rules of a CLEVR scene; no object is added, removed or changed"
)


@dataclass(frozen=True)
class Game:
    """Moves the objects of a scene until the player is fooled; the right answer stays.

    Needs data with scenes and programs. `pfungst play` plays the same game with tables, curves and resumption.
    """

    adversary: str = "a2c"
    size: int = 10
    seeds: int = 3
    budget: int = 100
    preset: str = "paper"
    ood: bool = False
    name: str = "game"

    @property
    def _settings(self) -> PlaySettings:
        return PlaySettings(
            self.size, self.seeds, adversary=self.adversary, budget=self.budget, preset=self.preset, ood=self.ood
        )

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        """The questions of the mini-games on their scenes as they stand, asked twice: what can be known before."""
        for board in self._boards(data, seed):
            yield Trial(board.example.id, self._still(board), KEEPS)

    def search(self, ask: Ask, data: Dataset, seed: int) -> Iterator[Trial]:
        """Play, and yield a trial for each question: the scene as it stands, twice, and the scene that fooled the
        player, or the last legal one tried where none did."""
        from pfungst.probes.game.adversaries import get_adversary

        settings = replace(self._settings, seed=seed)
        examples, _ = playable(data, settings)
        for number, sample in enumerate(sample_games(examples, settings)):
            boards, _ = boards_of(sample, settings.rules)
            game = MiniGame(boards, _Through(ask), settings.rules, budget=self.budget)
            get_adversary(self.adversary).attack(game, np.random.default_rng([seed, number]))
            for at, board in enumerate(boards):
                yield self._trial(game, at, board)

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        clean = measure.accuracy(trials, CLEAN, seed)
        moved = measure.having(trials, MOVED)
        if not moved:
            return Findings(self.name, (clean,), "No object was moved: these are the scenes as they stand.", clean)
        # Scenes where nothing could be moved stay what they were: both numbers are over all questions.
        kept = [one if one in moved else _as_it_stands(one) for one in trials]
        after, drop = measure.accuracy(kept, MOVED, seed), measure.drop(kept, CLEAN, MOVED, seed)
        control = measure.drop(trials, CLEAN, AGAIN, seed)
        changed, wavered = measure.changed(kept, CLEAN, MOVED, seed), measure.changed(trials, CLEAN, AGAIN, seed)
        notes = [one.trial.notes for one in trials]
        unfair = sum(note.get("problems", "") != "" for note in notes)
        flips = measure.flips(kept, CLEAN, MOVED)
        right = sum(score > 0 for score in measure.scores(kept, CLEAN))
        # The adversary is paid for any change: answers that were wrong come out right as well, and hide in the drop.
        verdict = (
            "Moving objects without changing the right answer fooled the player in "
            f"{flips.right_to_wrong} of the {right} questions it had right, and set {flips.wrong_to_right} of the "
            f"{len(kept) - right} others right: accuracy goes from {measure.percent(clean.value)} to "
            f"{measure.percent(after.value)}, a drop of {measure.with_interval(drop)}; asking the same scene twice "
            f"changes {measure.percent(wavered.value)} of the answers."
        )
        rows: tuple[Finding, ...] = (clean, after, drop, control, changed, wavered)
        table = Table(
            "The game",
            ("what", "count"),
            (
                ("questions", len(trials)),
                ("no legal move found", len(trials) - len(moved)),
                ("queries", sum(int(note.get("queries", 0)) for note in notes)),
                ("moved scenes the verifier finds unfair", unfair),
            ),
        )
        return Findings(
            self.name, rows, verdict, clean, after, drop, (table, _by_type(kept, seed)), (_by_budget(trials),),
            measure.worst(moved, CLEAN, MOVED),
        )  # fmt: skip

    def _boards(self, data: Dataset, seed: int) -> Iterator[Board]:
        settings = replace(self._settings, seed=seed)
        examples, _ = playable(data, settings)
        for sample in sample_games(examples, settings):
            yield from boards_of(sample, settings.rules)[0]

    @staticmethod
    def _still(board: Board) -> tuple[Variant, Variant]:
        start = np.asarray(board.start)
        return Variant(CLEAN, board.query(start, True)), Variant(AGAIN, board.query(start, True, take=1))

    def _trial(self, game: MiniGame, number: int, board: Board) -> Trial:
        tried = [move for move in game.moves() if move.board == number and move.status != INVALID]
        chosen: Move | None = game.changed(number) or (tried[-1] if tried else None)
        variants: tuple[Variant, ...] = self._still(board)
        fooled = game.fooled(number)
        notes: dict[str, object] = {
            "queries": game.queries(number),
            "fooled after": None if fooled is None else fooled.query,
        }
        if chosen is not None:
            variants = (*variants, Variant(MOVED, board.query(chosen.positions, True)))
            before, after = board.record(np.asarray(board.start)), board.record(chosen.positions)
            opinion = verify(before, after, board.program.to_json(), board.truth_text, limits_of(game.rules))
            notes["problems"] = "; ".join(opinion.problems)
        return Trial(board.example.id, variants, KEEPS, notes)


def _by_type(trials: Sequence[AnsweredTrial], seed: int) -> Table:
    """Sensitivity by question type (Figure 8)."""
    rows = []
    for kind in sorted({one.example.question_type for one in trials}):
        some = [one for one in trials if one.example.question_type == kind]
        clean, lost = measure.accuracy(some, CLEAN, seed), measure.drop(some, CLEAN, MOVED, seed)
        rows.append((kind or "unknown", len(some), clean, lost))
    columns = ("question type", "questions", "accuracy before", "drop")
    return Table("Sensitivity by question type", columns, tuple(rows))


def _by_budget(trials: Sequence[AnsweredTrial]) -> Figure:
    """Success against query budget: share of the questions right before that are fooled within n queries."""
    right = [one.trial.notes for one in trials if one.of(CLEAN)[1] > 0]
    most = max((int(note.get("queries", 0)) for note in right), default=0)
    levels = [level for level in LEVELS if level <= max(most, 1)]
    shares = [
        sum(note.get("fooled after") is not None and note["fooled after"] <= level for note in right)
        / max(1, len(right))
        for level in levels
    ]
    line = Series("fooled", tuple(levels), tuple(shares))
    return Figure("Success against query budget", "line", (line,), "queries a question", "fooled, of those right")


def _as_it_stands(one: AnsweredTrial) -> AnsweredTrial:
    """A trial without a legal move, read as if the scene had been moved to where it was."""
    answer, score = one.of(CLEAN)
    still = Variant(MOVED, one.trial.variants[0].query)
    trial = replace(one.trial, variants=(*one.trial.variants, still))
    return AnsweredTrial(trial, one.example, (*one.answers, answer), (*one.scores, score))


class _Through:
    """The exam's way of asking, in the shape a mini-game wants."""

    reads_scenes = True
    fingerprint = ""
    asked = recalled = failed = 0
    last_error = ""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def ask(self, queries: Sequence[Query]) -> list[Answer | None]:
        answers = list(self._ask(queries))
        if len(answers) != len(queries):
            raise ProbeError(f"The exam gave {len(answers)} answers to {len(queries)} queries.")
        return list(answers)
