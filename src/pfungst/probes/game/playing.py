"""Playing mini-games: who plays which questions, in parallel, stopped and resumed, with everything kept.

In the run folder, below `game/`:

    rounds/          one Parquet file for each finished mini-game
    moves.parquet    all of them: one row for each manipulated scene
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from pfungst.compute import Shard, ShardsFailed, run_shards
from pfungst.core import Asker, Dataset, Example, PfungstError, Place, Player, ProbeError, Source
from pfungst.core.files import jsonable, write_atomic
from pfungst.core.store import AnswerStore
from pfungst.core.types import Progress, no_progress
from pfungst.probes.game.adversaries import TellingAdversary, VersionedAdversary
from pfungst.probes.game.board import boards_of
from pfungst.probes.game.minigame import MiniGame
from pfungst.probes.game.results import Result
from pfungst.probes.game.rows import MOVES, ROUNDS, Round, read_round, settle, write_round
from pfungst.probes.game.settings import GameSettings, playable, sample_games

VERSION = "game-4"
"""Changes when the same settings give another game."""


def play(
    player: Player,
    data: Dataset,
    out: str | Path,
    settings: GameSettings | None = None,
    *,
    seed: int = 0,
    place: Place | None = None,
    progress: Progress = no_progress,
) -> Result:
    """An exam with the game alone; returns its numbers. `pfungst play` adds images and a report to the same folder.

    Finished mini-games are not played again, and in an unfinished one nothing is asked twice. A player that goes down
    costs the mini-games it was in: the others count, `result.failed` says which are missing and why, and the same
    call plays those again.
    """
    from pfungst.core import Exam
    from pfungst.probes.game.probe import Game
    from pfungst.probes.game.tables import read_result
    from pfungst.scores import get_metric

    game = Game(**vars(settings)) if settings is not None else Game()
    exam = Exam(player, data, [game], get_metric(data.metric), Path(out), seed, progress=progress, place=place)
    examined = exam.run()
    return replace(read_result(Path(out)), failed=examined.problems)


def play_rounds(settings: GameSettings, asker: Asker, data: Dataset, seed: int) -> Iterator[Round]:
    """The mini-games, played or read from the folder of the asker where they were finished before.

    Mini-games that could not be finished go to `asker.problems`. Raises PfungstError where none could.
    """
    examples, left_out = playable(data, settings)
    samples = sample_games(examples, settings, seed)
    budget = settings.queries_each()
    adversary = settings.make_adversary()
    notes = {"left out": left_out, "adversary": adversary.about if isinstance(adversary, TellingAdversary) else ""}
    shards = []
    for run in range(settings.seeds):
        game = run % len(samples)
        payload = {"run": run, "game": game, "examples": [example.id for example in samples[game]], "notes": notes}
        shards.append(Shard(run, f"round-{run:05d}.parquet", payload, seed))
    asker.expected = settings.most_queries()
    by_id = {example.id: example for example in examples}
    if asker.folder is None:
        for shard in shards:
            yield play_round(asker, by_id, settings, budget, shard)
        return
    place = asker.place
    if place.on == "local":
        work = partial(_work_here, asker=asker, by_id=by_id, settings=settings, budget=budget)
    elif place.source is not None and asker.store is not None:
        store = str(asker.store.path)
        work = partial(_work_there, source=place.source, settings=settings, budget=budget, store=store)
    else:
        raise ProbeError("Playing in other processes needs a source that makes player and data there.")
    folder = asker.folder / ROUNDS
    failed: dict[str, str] = {}
    try:
        run_shards(
            work,
            shards,
            folder,
            on=place.on,
            workers=place.workers,
            version=_version(asker, settings, budget, examples),
            progress=lambda state: asker.progress("mini-games", state.done + state.failed, state.total),
        )
    except ShardsFailed as failure:
        failed = {shard.name: shard.reason for shard in failure.failures}
        if len(failed) == len(shards):
            raise PfungstError(f"No mini-game could be finished. {failure.failures[0].reason}") from failure
        asker.problems += [f"{name} could not be finished: {reason}" for name, reason in failed.items()]
    rounds = [read_round(folder / shard.name) for shard in shards if shard.name not in failed]
    _write_moves(asker.folder, rounds)
    yield from rounds


def play_round(asker: Asker, by_id: dict[str, Example], settings: GameSettings, budget: int, shard: Shard) -> Round:
    """One mini-game from beginning to end, verified and with its control."""
    boards, _ = boards_of([by_id[name] for name in shard.payload["examples"]], settings.rules)
    before = asker.failed
    game = MiniGame(boards, asker, settings.rules, budget=budget)
    settings.make_adversary().attack(game, shard.rng())
    played = settle(game, settings.control)
    # A game that ended because the player was down is not finished: it is to be played again.
    asker.still_up()
    payload = shard.payload
    return replace(
        played, run=payload["run"], game=payload["game"], failed=asker.failed - before, notes=payload["notes"]
    )


def _work_here(shard: Shard, *, asker: Asker, by_id: dict[str, Example], settings: GameSettings, budget: int) -> bytes:
    return _as_bytes(play_round(asker, by_id, settings, budget, shard))


_LAST: list[tuple[Source, Player, dict[str, Example]]] = []
"""What the last source made. Loading a model once for all rounds of a process is enough."""


def _work_there(shard: Shard, *, source: Source, settings: GameSettings, budget: int, store: str) -> bytes:
    if not _LAST or _LAST[0][0] != source:
        player, examples = source()
        _LAST[:] = [(source, player, {example.id: example for example in examples})]
    _, player, by_id = _LAST[0]
    with AnswerStore(Path(store)) as known:
        return _as_bytes(play_round(Asker(player, known), by_id, settings, budget, shard))


def _as_bytes(played: Round) -> bytes:
    buffer = io.BytesIO()
    write_round(buffer, played)
    return buffer.getvalue()


def _write_moves(folder: Path, rounds: Sequence[Round]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.concat_tables([played.table for played in rounds]), buffer, compression="zstd")
    write_atomic(folder / MOVES, buffer.getvalue())


def _version(asker: Asker, settings: GameSettings, budget: int, examples: Sequence[Example]) -> str:
    plain = {**asdict(settings), "rules": settings.rules.to_json(), "budget": budget}
    for name in ("seeds", "games", "max_queries"):  # the payload says what they decide
        plain.pop(name)
    plain.pop("name", None)
    digest = hashlib.sha256()
    for example in examples:
        parts = [example.id, example.question, example.choices, example.scene, example.program]
        digest.update(json.dumps(parts, default=list).encode())
    known = json.dumps(jsonable(plain), sort_keys=True, default=str)
    adversary = settings.make_adversary()
    weights = adversary.fingerprint if isinstance(adversary, VersionedAdversary) else ""
    return f"{VERSION} {asker.fingerprint} {weights} {digest.hexdigest()} {known}"
