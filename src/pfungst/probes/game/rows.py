"""The rows of moves.parquet: one for each manipulated scene, with everything needed to draw, check and train on it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import PfungstError, read_config
from pfungst.core.files import PARQUET_READING, PARQUET_WRITING, jsonable, reading, storable
from pfungst.probes.game.board import Board, Floats
from pfungst.probes.game.minigame import MiniGame, Move
from pfungst.probes.game.rules import CHANGED, FOOLED, INVALID, GameRules
from pfungst.probes.game.verifier import Limits, Verdict, verify
from pfungst.probes.measure import grouped
from pfungst.scores import same_answer
from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.renderers.raycast import SceneImage
from pfungst.world.scene import Scene

ROUNDS, MOVES = "rounds", "moves.parquet"
"""What the game keeps in its folder of a run."""
POINTS = 200
"""Of the curve of a mini-game that are kept."""

COLUMNS = {
    "run": "int32", "game": "int32", "step": "int32", "query": "int32", "example_id": "string", "image_id": "string",
    "question": "string", "question_type": "string", "program": "string", "scene": "string", "before": "floats",
    "after": "floats", "camera": "floats", "truth": "string", "old_answer": "string", "new_answer": "string",
    "legal": "bool_", "refused_by": "string", "status": "string", "fooled": "bool_", "changed": "bool_",
    "confirmed": "bool_", "verified": "bool_", "problems": "string", "reward": "float64",
}  # fmt: skip
"""`scene` and `program` are JSON, `scene` as it stood before; `before` and `after` are x, y of every object in turn.
`legal` and `refused_by` are the enforcers' word, `verified` and `problems` the independent verifier's (null where it
was not asked). `confirmed`: asked about the same scene again, the player was wrong again (null where not asked)."""


@dataclass(frozen=True)
class BoardSummary:
    """What became of one question."""

    example_id: str
    image_id: str
    question_type: str
    objects: int
    relates: bool
    truth: str
    old_answer: str | None
    right: bool
    queries: int
    fooled_after: int | None
    """Queries until it was fooled, None if it was not."""
    changed_after: int | None
    confirmed: bool | None
    """Whether it was fooled by the same scene again; None where that was not asked."""
    verified: bool | None
    again: bool | None
    """Control: whether the original scene, asked again, got the same answer; None where not asked."""
    legal_moves: int
    """Distinct legal scenes tried; 0 means that no legal move was found."""
    fooling: int
    """Distinct scenes that fooled the player."""
    committed: bool | None = None
    """Whether the player is right on the one scene that the adversary committed itself to; None where it did not."""
    committed_confirmed: bool | None = None
    """Whether it was wrong on that scene again, and `committed_verified` whether the verifier finds the scene fair;
    None where it was right or that was not asked."""
    committed_verified: bool | None = None
    scenes: float | None = None
    """Accuracy on all moved scenes it was asked about in the search, and `late` on the last quarter of them; None where
    there are none."""
    late: float | None = None
    draws: int | None = None
    """Moves tried, refused and repeated ones included, and `legal_draws` without the refused ones; None where an
    earlier version played."""
    legal_draws: int | None = None
    updates: int | None = None
    """Steps of the game in which something was tried on it: of an adversary that learns, its updates."""
    entropy: float | None = None
    """Of the adversary's policy when it last drew from it, as a share of a uniform policy's; None without a policy."""
    out_of_draws: bool = False
    """Whether its draws were spent before its queries."""
    uniform: BoardSummary | None = None
    """The control of an adversary that learns: what became of the question in the hands of one that draws in the same
    way, by the same rules, from a policy that stays uniform."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> BoardSummary:
        """From `asdict`."""
        control = stored.get("uniform")
        return cls(**{**stored, "uniform": None if control is None else cls.of(control)})

    @property
    def one_scene(self) -> bool | None:
        """`committed`, where a wrong answer counts if it was given again, and an unfair scene not at all."""
        if self.committed is False and self.committed_verified is False:
            return None
        return True if self.committed is False and self.committed_confirmed is False else self.committed


@dataclass(frozen=True)
class Round:
    """A finished mini-game."""

    table: Any
    """pyarrow Table with COLUMNS."""
    boards: tuple[BoardSummary, ...]
    curve: tuple[Mapping[str, float], ...]
    illegal: Mapping[str, int]
    nonsense: int
    failed: int = 0
    """Queries the player had no answer to."""
    failures: tuple[tuple[str, str], ...] = ()
    """Their questions and what went wrong."""
    unanswered: int = 0
    """Questions left out because the player had no answer to them as they stand."""
    run: int = 0
    game: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answered(self) -> tuple[BoardSummary, ...]:
        """Of the questions that the player answered as they stand: the others are missing from all numbers."""
        return tuple(board for board in self.boards if board.old_answer is not None)

    @property
    def about(self) -> dict[str, Any]:
        """What is no row of the table, as dictionaries."""
        about = {name: value for name, value in vars(self).items() if name != "table"}
        return {**about, "boards": [asdict(board) for board in self.boards]}

    @classmethod
    def of(cls, table: Any, about: Mapping[str, Any]) -> Round:
        """From its table, or None, and `about`."""
        boards = tuple(BoardSummary.of(board) for board in about["boards"])
        # Notes of trials have the number alone: a question without an answer has no trial.
        unanswered = _unanswered(boards) or about.get("unanswered", 0)
        failures = tuple((question, error) for question, error in about.get("failures", ()))
        parts = {
            "table": table, "boards": boards, "curve": tuple(about["curve"]), "unanswered": unanswered,
            "failures": failures,
        }  # fmt: skip
        return cls(**{**about, **parts})


def limits_of(rules: GameRules) -> Limits:
    """The verifier's limits for the rules of a game."""
    legality = rules.in_force
    return Limits(
        gap=legality.gap,
        radius=dict(legality.radius),
        cube_factor=legality.cube_factor,
        margin=legality.margin,
        bound=legality.bound,
        pixels=legality.min_pixels,
        width=rules.width or DEFAULT_WIDTH,
        height=rules.height or DEFAULT_HEIGHT,
        objects=(rules.min_objects, rules.max_objects),
    )


def settle(game: MiniGame, control: bool) -> Round:
    """Verify what fooled the player, ask once more where `control`, and write everything down."""
    boards, limits = game.boards, limits_of(game.rules)
    again, confirmed, repeated = ask_again(game) if control else ({}, {}, {})
    moves = game.moves()
    verdicts: dict[int, Verdict] = {}
    for at, move in enumerate(moves):
        if move.status in (FOOLED, CHANGED):
            verdicts[at] = _verdict(boards[move.board], move.positions, limits)
    shared = [_of_question(game, number) for number in range(len(boards))]
    rows = [
        {**shared[move.board], **_of_move(game, move, verdicts.get(at), confirmed)} for at, move in enumerate(moves)
    ]
    tried = grouped(enumerate(moves), lambda numbered: numbered[1].board)
    summaries = []
    for number, board in enumerate(boards):
        mine = tried.get(number, [])
        old, fooled, changed = game.old_answer(number), game.fooled(number), game.changed(number)
        checked = [verdicts[at].fair for at, move in mine if move is fooled]
        wrong = [game.was_wrong_on(move) for _, move in sorted(mine, key=lambda one: one[1].query)]
        right = [1.0 - answer for answer in wrong if answer is not None]
        shown = game.committed_to(number) if game.committed(number) is False else None
        summaries.append(
            BoardSummary(
                example_id=board.example.id,
                image_id=board.example.cluster,
                question_type=board.example.question_type or board.example.answer_type,
                objects=len(board),
                relates=board.program.relates,
                truth=board.truth_text,
                old_answer=None if old is None else old.text,
                right=game.was_right(number),
                queries=game.queries(number),
                fooled_after=None if fooled is None else fooled.query,
                changed_after=None if changed is None else changed.query,
                confirmed=confirmed.get(number),
                verified=checked[0] if checked else None,
                again=again.get(number),
                legal_moves=sum(move.status != INVALID for _, move in mine),
                fooling=sum(move.status == FOOLED for _, move in mine),
                committed=game.committed(number),
                committed_confirmed=repeated.get(number),
                committed_verified=None if shown is None else _verdict(board, shown, limits).fair,
                scenes=float(np.mean(right)) if right else None,
                late=float(np.mean(right[-max(1, len(right) // 4) :])) if right else None,
                draws=game.draws(number),
                legal_draws=game.legal_draws(number),
                updates=game.updates(number),
                entropy=game.entropy.get(number),
                out_of_draws=game.out_of_draws(number),
            )
        )
    curve = tuple(asdict(point) for point in _thinned(game.curve))
    return Round(
        _table(rows),
        tuple(summaries),
        curve,
        dict(game.illegal),
        game.nonsense,
        unanswered=_unanswered(summaries),
    )


def _unanswered(boards: Iterable[BoardSummary]) -> int:
    return sum(board.old_answer is None for board in boards)


def _verdict(board: Board, positions: Floats, limits: Limits) -> Verdict:
    return verify(board.record(board.start), board.record(positions), board.program.to_json(), board.truth_text, limits)


def ask_again(game: MiniGame) -> tuple[dict[int, bool], dict[int, bool], dict[int, bool]]:
    """Ask a second time: which originals get the same answer, and which fooling scenes and which scenes that the
    adversary committed itself to, where they got a wrong one, a wrong one again."""
    numbers = range(len(game.boards))
    old = {n: game.old_answer(n) for n in numbers}
    starts = {n: game.boards[n].start for n in numbers if old[n] is not None}
    again = {n: same_answer(said.text, old[n].text) for n, said in game.answers(starts, 1).items()}  # type: ignore[union-attr]
    fooled = {n: move.positions for n in numbers if (move := game.fooled(n)) is not None}
    confirmed = _wrong_again(game, fooled)
    shown = {n: one for n in numbers if game.committed(n) is False and (one := game.committed_to(n)) is not None}
    same = {n for n in shown if n in fooled and np.array_equal(shown[n], fooled[n])}
    repeated = _wrong_again(game, {n: one for n, one in shown.items() if n not in same})
    return again, confirmed, {**repeated, **{n: confirmed[n] for n in same if n in confirmed}}


def _wrong_again(game: MiniGame, layouts: Mapping[int, Floats]) -> dict[int, bool]:
    said = game.answers(layouts, 1)
    return {n: not same_answer(answer.text, game.boards[n].truth_text) for n, answer in said.items()}


def _of_question(game: MiniGame, number: int) -> dict[str, Any]:
    """What the rows of a question have in common."""
    board, old = game.boards[number], game.old_answer(number)
    return {
        "run": 0, "game": 0, "example_id": board.example.id, "image_id": board.example.image_id,
        "question": storable(board.example.question), "question_type": board.example.question_type,
        "program": json.dumps(board.program.to_json()),
        "scene": json.dumps(board.record(board.start), sort_keys=True), "before": board.start.ravel().tolist(),
        "truth": board.truth_text, "old_answer": None if old is None else storable(old.text),
    }  # fmt: skip


def _of_move(game: MiniGame, move: Move, verdict: Verdict | None, confirmed: Mapping[int, bool]) -> dict[str, Any]:
    return {
        "step": move.step, "query": move.query, "after": move.positions.ravel().tolist(),
        "camera": list(game.boards[move.board].camera_at(move.positions)),
        "new_answer": None if move.answer is None else storable(move.answer),
        "legal": move.status != INVALID, "refused_by": move.refused_by, "status": move.status,
        "fooled": move.status == FOOLED, "changed": move.status in (FOOLED, CHANGED),
        "confirmed": confirmed.get(move.board) if move is game.fooled(move.board) else None,
        "verified": None if verdict is None else verdict.fair,
        "problems": "" if verdict is None else "; ".join(verdict.problems), "reward": move.reward,
    }  # fmt: skip


def _thinned(curve: list[Any]) -> list[Any]:
    """At most `POINTS` of them, the first and the last among them."""
    if len(curve) <= POINTS:
        return curve
    return [curve[i] for i in np.unique(np.linspace(0, len(curve) - 1, POINTS).astype(int))]


def _table(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    kinds = {"floats": pa.list_(pa.float64())}
    schema = pa.schema(
        [(name, kinds[kind] if kind in kinds else getattr(pa, kind)()) for name, kind in COLUMNS.items()]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def round_bytes(played: Round) -> bytes:
    """A round as a Parquet file; what is not a row travels in the metadata."""
    import pyarrow as pa

    table = played.table
    for name in ("run", "game"):
        column = pa.array(np.full(len(table), getattr(played, name)), pa.int32())
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table_bytes(table.replace_schema_metadata({"pfungst": json.dumps(jsonable(played.about))}))


def table_bytes(table: Any) -> bytes:
    """A pyarrow Table as a Parquet file."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, **PARQUET_WRITING)
    return buffer.getvalue()


def read_round(path: Path) -> Round:
    import pyarrow.parquet as pq

    with reading(path, "Delete it, and run the same command again."):
        table = pq.read_table(path, **PARQUET_READING)
        about = json.loads((table.schema.metadata or {})[b"pfungst"])
        return Round.of(table.replace_schema_metadata(None), about)


def read_moves(run: Path) -> Any:
    """All manipulated scenes of a run, a pyarrow Table with COLUMNS."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = run / "game" / MOVES
    try:
        return pq.read_table(path, **PARQUET_READING)
    except FileNotFoundError:
        read_config(run)  # says what is wrong where this is no run folder at all
        raise PfungstError(f"{run} has no finished game: it has no {path.relative_to(run)}.") from None
    except (OSError, pa.ArrowException) as error:
        raise PfungstError(f"{path} cannot be read ({error}). Run the same command again to rewrite it.") from error


def fooled_rows(table: Any) -> list[dict[str, Any]]:
    """Rows of moves.parquet (pyarrow Table) that fooled the player and passed the verifier; one per question."""
    rows: dict[str, dict[str, Any]] = {}
    for row in table.to_pylist():
        if row["fooled"] and row["verified"] is not False and row["confirmed"] is not False:
            rows.setdefault(row["example_id"], row)
    return list(rows.values())


def scenes_of(row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The two scenes of a row, before and after, as published dictionaries."""
    return json.loads(row["scene"]), scene_after(row)


def image_of(scene: Mapping[str, Any]) -> SceneImage:
    """The image of a scene as a player saw it, in the size the scene says."""
    width, height = scene.get("image_size") or (DEFAULT_WIDTH, DEFAULT_HEIGHT)
    return SceneImage(scene, int(width), int(height))


def scene_after(row: Mapping[str, Any]) -> dict[str, Any]:
    """The manipulated scene of a row as a published dictionary, relationships computed anew."""
    scene = json.loads(row["scene"])
    scene["camera"] = list(row["camera"])
    return Scene.from_json(scene).moved(np.reshape(row["after"], (-1, 2))).to_json()
