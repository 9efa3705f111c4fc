"""Playing mini-games: who plays which questions, in parallel, stopped and resumed, with everything kept.

In the run folder, below `game/`:

    rounds/          one Parquet file for each finished mini-game
    moves.parquet    all of them: one row for each manipulated scene
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.compute import Shard, ShardsFailed, run_shards
from pfungst.compute.shards import Store
from pfungst.core import Asker, Dataset, Example, PfungstError, Place, Player, ProbeError, Source
from pfungst.core.files import jsonable, write_atomic
from pfungst.core.store import AnswerStore, StoredPlayer
from pfungst.core.types import Progress, as_player, no_progress
from pfungst.probes.game.adversaries import Adversary, TellingAdversary, VersionedAdversary
from pfungst.probes.game.board import Board, boards_of
from pfungst.probes.game.minigame import MiniGame, matcher_name
from pfungst.probes.game.results import Result
from pfungst.probes.game.rows import MOVES, ROUNDS, Round, read_round, round_bytes, settle, table_bytes
from pfungst.probes.game.rules import GameSettings
from pfungst.scores import same_answer

VERSION = "game-6"
"""Changes when the same settings give another game."""
TOGETHER = 3
"""Players on a GPU that play a mini-game in one piece of work: more share its boards, fewer leave no worker idle at the
end."""


def play(
    player: Player,
    data: Dataset,
    out: str | Path,
    settings: GameSettings | None = None,
    *,
    seed: int = 0,
    place: Place | None = None,
    progress: Progress = no_progress,
    config: Mapping[str, Any] | None = None,
) -> Result:
    """An exam with the game alone; returns its numbers. `pfungst play` adds images and a report to the same folder.

    Finished mini-games are not played again, and in an unfinished one nothing is asked twice. Where some cannot be
    finished, such as by a player that goes down, PfungstError says which and why; the run folder holds the others, and
    the same call plays those again. `config` is more to remember in exam.json: how player and data were made.
    """
    from pfungst.core import Exam, ExamSpec
    from pfungst.probes.game.probe import Game
    from pfungst.probes.game.tables import read_result
    from pfungst.scores import get_metric
    from pfungst.scores.matchers import get_matcher

    player = as_player(player)
    about = {**(config or {})}
    reading = about.get("matcher") or player.matcher
    about |= {"matcher": reading} if reading else {}
    game = Game(**vars(settings)) if settings is not None else Game()
    exam = Exam(
        player, data, [game], get_metric(data.metric), Path(out), seed, about, progress,
        matcher=get_matcher(reading) if reading else None, spec=ExamSpec("", (), max_errors=0, place=place),
    )  # fmt: skip
    if lacking := exam.run().lacking:
        raise PfungstError(f"The game in {out} is not whole. {lacking}")
    return read_result(Path(out))


@dataclass(frozen=True)
class Plan:
    """The mini-games that settings, a player and a data set come to."""

    settings: GameSettings
    examples: Mapping[str, Example]
    shards: tuple[Shard, ...]
    budget: int
    version: str
    """Changes when a finished mini-game would come out differently."""

    @classmethod
    def of(
        cls, settings: GameSettings, fingerprint: str, data: Sequence[Example], seed: int, matcher: str = ""
    ) -> Plan:
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
        version = _version(fingerprint, settings, budget, examples)
        version += f" read by {matcher}" if matcher else ""
        return cls(settings, {example.id: example for example in examples}, tuple(shards), budget, version)

    def boards(self, shard: Shard) -> list[Board]:
        """Those of a mini-game."""
        return boards_of([self.examples[name] for name in shard.payload["examples"]], self.settings.rules)[0]


def play_rounds(settings: GameSettings, asker: Asker, data: Dataset, seed: int) -> Iterator[Round]:
    """The mini-games, played or read from the folder of the asker where they were finished before.

    Mini-games that could not be finished go to `asker.problems`. Raises PfungstError where none could.
    """
    import pyarrow as pa

    reading = matcher_name(asker)
    plan = Plan.of(settings, asker.fingerprint, data, seed, reading)
    asker.expected = settings.most_queries()
    if asker.folder is None:
        for shard in plan.shards:
            yield play_round(asker, plan.boards(shard), settings, plan.budget, shard)
        return
    place = asker.place
    if place.on == "local":
        work: Any = partial(_work_here, asker=asker, plan=plan)
    elif place.source is not None and asker.store is not None:
        job = GameJob(place.source, settings, seed, asker.folder.parent, reading)
        work = partial(_work_there, job=job, budget=plan.budget)
    else:
        raise ProbeError("Playing in other processes needs a source that makes player and data there.")
    folder = asker.folder / ROUNDS
    if not isinstance(asker.player, StoredPlayer):
        _sweep(Store(folder, plan.version), plan.shards)
    failures, failed = [*asker.failures], dict[str, str]()
    try:
        run_shards(
            work,
            plan.shards,
            folder,
            on=place.on,
            workers=place.workers,
            version=plan.version,
            progress=asker.progress,
            what="mini-games",
        )
    except ShardsFailed as failure:
        failed = {shard.name: shard.reason for shard in failure.failures}
        if len(failed) == len(plan.shards):
            raise PfungstError(f"No mini-game could be finished. {failure.failures[0].reason}") from failure
        asker.problems += [f"{name} could not be finished: {reason}" for name, reason in failed.items()]
    rounds = [read_round(folder / shard.name) for shard in plan.shards if shard.name not in failed]
    # Of all mini-games alike: those that were played before or in other processes too.
    asker.failures = [*failures, *(failure for played in rounds for failure in played.failures)]
    if silent := sum(played.unanswered for played in rounds):
        asker.left_out[asker.folder.name] = silent
    write_atomic(asker.folder / MOVES, table_bytes(pa.concat_tables([played.table for played in rounds])))
    yield from rounds


def _sweep(store: Store, shards: Sequence[Shard]) -> None:
    """Remove mini-games of other settings: where the new ones do not come to an end, these would stand for them. Those
    in which queries got no answer are to be played again: only these are asked once more."""
    for shard in shards:
        if not store.finished(shard) or read_round(store.output(shard)).failed:
            store.output(shard).unlink(missing_ok=True)


def play_round(asker: Asker, boards: Sequence[Board], settings: GameSettings, budget: int, shard: Shard) -> Round:
    """One mini-game from beginning to end, verified and with its control."""
    before, answers = len(asker.failures), (asker.asked, asker.recalled)
    played = _attacked(settings.make_adversary(), asker, boards, settings, budget, shard.rng())
    if (untrained := settings.make_control()) is not None:
        beside = _attacked(untrained, asker, boards, settings, budget, shard.rng().spawn(1)[0])
        both = zip(played.boards, beside.boards, strict=True)
        played = replace(played, boards=tuple(replace(board, uniform=control) for board, control in both))
    # A game that ended because the player was down is not finished: it is to be played again.
    asker.still_up(*answers)
    payload, failures = shard.payload, tuple(asker.failures[before:])
    return replace(
        played, run=payload["run"], game=payload["game"], failed=len(failures), failures=failures,
        notes=payload["notes"],
    )  # fmt: skip


def _attacked(
    adversary: Adversary,
    asker: Asker,
    boards: Sequence[Board],
    settings: GameSettings,
    budget: int,
    rng: np.random.Generator,
) -> Round:
    game = MiniGame(boards, asker, settings.rules, budget=budget, draws=settings.draws)
    adversary.attack(game, rng)
    return settle(game, settings.control)


@dataclass(frozen=True)
class GameJob:
    """A game of one player, to be played in other processes: everything it takes to play a mini-game there."""

    source: Source
    settings: GameSettings
    seed: int
    out: Path
    """The run folder."""
    matcher: str = ""
    """Reads the replies; empty: the player's own, if it has one."""


def play_ahead(
    jobs: Sequence[GameJob],
    place: Place,
    staging: Path,
    *,
    together: int = TOGETHER,
    progress: Progress = no_progress,
) -> None:
    """Play the mini-games of many games at once in one set of worker processes, ahead of the exams.

    A mini-game that several players play is one piece of work for up to `together` of them: its boards are prepared
    once, and scenes that all of them are shown are drawn and rendered once. The finished mini-games lie in the run
    folders afterwards, where the exams find them. Raises ShardsFailed where some could not be finished.
    """
    stores, plans = [], []
    groups: dict[str, list[dict[str, Any]]] = {}
    for number, job in enumerate(jobs):
        player, by_id = _made(job.source)
        matcher = job.matcher or player.matcher
        plan = Plan.of(job.settings, player.fingerprint, list(by_id.values()), job.seed, matcher)
        store = Store(job.out / "game" / ROUNDS, plan.version)
        for shard in plan.shards:
            if not store.finished(shard):
                same = json.dumps([repr(job.settings), shard.payload["examples"], shard.payload["run"]])
                groups.setdefault(same, []).append({"job": number, **shard.payload})
        plans.append(plan)
        stores.append(store)
    # Those that ask most first: nothing is left to wait for in the end.
    parts = [members[i : i + together] for members in groups.values() for i in range(0, len(members), together)]
    asked = [[plans[member["job"]].budget * len(member["examples"]) for member in members] for members in parts]
    order = [parts[at] for at in sorted(range(len(parts)), key=lambda at: -sum(asked[at]))]
    shards = [
        Shard(0, f"{hashlib.sha256(json.dumps(members).encode()).hexdigest()[:16]}.zip", members) for members in order
    ]
    version = hashlib.sha256("".join(plan.version for plan in plans).encode()).hexdigest()
    work = partial(_work_ahead, jobs=tuple(jobs), budgets=tuple(plan.budget for plan in plans))
    failed: ShardsFailed | None = None
    try:
        run_shards(
            work, shards, staging, on=place.on, workers=place.workers, version=version, progress=progress,
            what="mini-games, all players",
        )  # fmt: skip
    except ShardsFailed as failure:
        failed = failure
    lost = {shard.name for shard in failed.failures} if failed else set()
    for shard in shards:
        if shard.name not in lost:
            with zipfile.ZipFile(staging / shard.name) as archive:
                for member in shard.payload:
                    job = member["job"]
                    own = plans[job].shards[member["run"]]
                    copy = stores[job].temporary(own)
                    copy.write_bytes(archive.read(str(job)))
                    stores[job].finish(own, copy)
    if failed:
        raise failed


def _work_here(shard: Shard, *, asker: Asker, plan: Plan) -> bytes:
    return round_bytes(play_round(asker, plan.boards(shard), plan.settings, plan.budget, shard))


_MADE: dict[Source, tuple[Player, dict[str, Example]]] = {}
"""What the sources made in this process: loading a model once for all its mini-games is enough."""


def _made(source: Source) -> tuple[Player, dict[str, Example]]:
    if source not in _MADE:
        player, examples = source()
        _MADE[source] = (as_player(player), {example.id: example for example in examples})
    return _MADE[source]


def made_player(source: Source) -> Player:
    """The player of a source, made once in this process."""
    return _made(source)[0]


def _work_there(shard: Shard, *, job: GameJob, budget: int, boards: Sequence[Board] = ()) -> bytes:
    """boards: where they are made already."""
    player, by_id = _made(job.source)
    boards = boards or boards_of([by_id[name] for name in shard.payload["examples"]], job.settings.rules)[0]
    with AnswerStore(job.out / "answers.sqlite") as known:
        asker = Asker(player, known, folder=job.out / "game")
        asker.reading = job.matcher
        return round_bytes(play_round(asker, boards, job.settings, budget, shard))


def _work_ahead(shard: Shard, *, jobs: Sequence[GameJob], budgets: Sequence[int]) -> bytes:
    buffer = io.BytesIO()
    boards: list[Board] = []
    with zipfile.ZipFile(buffer, "w") as archive:
        for member in shard.payload:
            job = jobs[member["job"]]
            by_id = _made(job.source)[1]
            examples = [by_id[name] for name in member["examples"]]
            if [*map(id, examples)] != [id(board.example) for board in boards]:  # else the next player plays on them
                boards = boards_of(examples, job.settings.rules)[0]
            if "torch" in sys.modules:  # else no player here looks through the world's CNN
                from pfungst.models.encode import remember

                remember(budgets[member["job"]] * len(member["examples"]))
            own = Shard(member["run"], f"round-{member['run']:05d}.parquet", member, job.seed)
            name = zipfile.ZipInfo(str(member["job"]))  # without the time of day: the same work gives the same bytes
            archive.writestr(name, _work_there(own, job=job, budget=budgets[member["job"]], boards=boards))
    return buffer.getvalue()


def _version(fingerprint: str, settings: GameSettings, budget: int, examples: Sequence[Example]) -> str:
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
    return f"{VERSION} {fingerprint} {weights} {digest.hexdigest()} {known}"


# --- which questions are played -------------------------------------------------------------------------------------


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
