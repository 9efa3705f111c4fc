"""The game as a probe of an exam: it asks while it makes its trials, and finds what fools the player."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pfungst.core import AnsweredTrial, Asker, Dataset, Finding, Findings, Probe, Table, Trial, Variant
from pfungst.probes import measure
from pfungst.probes.game import results
from pfungst.probes.game.board import Board, boards_of
from pfungst.probes.game.playing import play_rounds, playable, sample_games
from pfungst.probes.game.rows import Round
from pfungst.probes.game.rules import BASELINE, GameSettings

CLEAN, AGAIN, MOVED = "clean", "again", "moved"
KEEPS = (
    "the program's answer on the moved scene, and all rules of a CLEVR scene; no object is added, removed or changed"
)


@dataclass(frozen=True)
class Game(GameSettings, Probe):
    """Moves the objects of a scene until the player is fooled; the right answer stays.

    Needs data with scenes and programs. `pfungst play` is an exam with this probe alone.
    """

    name: str = "game"

    def check_data(self, data: Dataset) -> None:
        """Whether there are enough questions with scenes and programs."""
        sample_games(playable(data, self)[0], self)
        self.queries_each()

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        """The questions of the mini-games on their scenes as they stand, asked twice: what can be known before."""
        for sample in sample_games(playable(data, self)[0], self, seed):
            for board in boards_of(sample, self.rules)[0]:
                yield Trial(board.example.id, _still(board), KEEPS)

    def search(self, asker: Asker, data: Dataset, seed: int) -> Iterator[Trial]:
        """Play, and yield a trial for each question: the scene as it stands, twice, and the scene that the adversary
        shows: the one that fooled the player, or the scene as it stands where none did.

        Questions that the player could not answer are left out; the findings count them.
        """
        by_id = {example.id: example for example in data}
        for played in play_rounds(self, asker, data, seed):
            boards, _ = boards_of([by_id[summary.example_id] for summary in played.boards], self.rules)
            about = played.about
            summaries = about.pop("boards")
            # What holds for the whole mini-game stands with its first question.
            shared = {"round": about}
            fooling = _fooling(played)
            for board, summary, stored in zip(boards, played.boards, summaries, strict=True):
                if summary.old_answer is None:
                    continue
                places = fooling.get(summary.example_id)
                moved = board.start if places is None else np.reshape(places, (-1, 2))
                again = _still(board) if summary.again is not None else _still(board)[:1]
                variants = (*again, Variant(MOVED, board.query(moved, True)))
                yield Trial(summary.example_id, variants, KEEPS, {"board": stored, **shared})
                shared = {}

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        clean = measure.accuracy(trials, CLEAN, seed)
        if not measure.having(trials, MOVED):
            return Findings(self.name, (clean,), "No object was moved: these are the original scenes.", clean)
        after, drop = measure.accuracy(trials, MOVED, seed), measure.drop(trials, CLEAN, MOVED, seed)
        rounds = _rounds([trial.trial.notes for trial in trials])
        result = results.Result("", self, tuple(rounds))
        rows = results.rows_of(result)
        verdict = (
            f"Moving objects without changing the right answer takes accuracy from {measure.percent(clean.value)} to "
            f"{measure.percent(after.value)}, a drop of {measure.with_interval(drop)}; asking about the same scene "
            f"twice changes {measure.percent(rows['control'].value)} of the answers ({self.adversary}, "
            f"{len(rounds)} mini-games of {self.size})."
        )
        if "beyond" in rows:
            verdict += f" {control_sentence(rows)}"
        elif self.adversary != BASELINE:
            verdict += (
                f" Random legal scenes with as many queries, its control, are another game: adversary {BASELINE}."
            )
        if result.missing:
            verdict += (
                f" {result.missing} of {self.seeds} mini-games could not be finished and are missing from all numbers."
            )
        counts = Table(
            "What happened",
            ("what", "count"),
            tuple(row for row in result.counts.items() if row[1]),
        )
        boards = result.boards
        tables = (counts, results.search_table(rows), results.type_table(boards), results.rarity_table(boards))
        figures = (
            results.budget_figure(boards),
            results.type_figure(boards),
            results.convergence_figure({"fooled": result.curves}),
            results.distribution_figure(result.runs),
        )
        failures = measure.worst(trials, CLEAN, MOVED)
        return Findings(
            self.name, (clean, after, drop, *rows.values()), verdict, clean, after, drop, tables, figures, failures
        )


def control_sentence(rows: Mapping[str, Finding]) -> str:
    """What a uniform policy does by the same rules. rows: as of `results.rows_of`."""
    tried = {who: f"{rows[f'{who}queries'].value:,.1f} scenes in {rows[f'{who}draws'].value:,.0f} draws"
             for who in ("", "uniform ")}  # fmt: skip
    return (
        f"A uniform policy with as many draws and queries fools {measure.with_interval(rows['uniform'])} of the "
        f"questions; the adversary fools {measure.with_interval(rows['beyond'])} more. The adversary asked about "
        f"{tried['']} a question, the uniform policy about {tried['uniform ']}."
    )


def _still(board: Board) -> tuple[Variant, ...]:
    return (
        Variant(CLEAN, board.query(board.start, True, 0)),
        Variant(AGAIN, board.query(board.start, True, 1), role="control"),
    )


def _fooling(played: Round) -> dict[str, list[float]]:
    """For each question that was fooled, by a fair scene and again when asked again, the places that did it first."""
    won = {board.example_id for board in played.boards if results.is_won(board)}
    rows = played.table.select(["example_id", "after", "fooled", "query"]).to_pylist()
    found: dict[str, list[float]] = {}
    for row in sorted((row for row in rows if row["fooled"]), key=lambda row: row["query"]):
        if row["example_id"] in won:
            found.setdefault(row["example_id"], row["after"])
    return found


def _rounds(notes: Sequence[Mapping[str, Any]]) -> list[Round]:
    """The mini-games, without their tables, from the notes of their trials."""
    stored: list[dict[str, Any]] = []
    for note in notes:
        if "round" in note:
            stored.append({**note["round"], "boards": []})
        if "board" in note:
            stored[-1]["boards"].append(note["board"])
    return [Round.of(None, about) for about in stored]
