"""Playing mini-games: who plays which questions, in parallel, stopped and resumed, with everything kept.

A run folder of `play`:

    game.json        configuration, fingerprints, and what could not be played
    answers.sqlite   every question and answer; what is in it is never asked again
    rounds/          one Parquet file a finished mini-game
    games.parquet    all of them: one row a manipulated scene
    findings.json    the numbers and tables
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.compute import Progress, ProgressCallback, Shard, ShardsFailed, run_shards
from pfungst.core import Asker, Dataset, Example, PfungstError, Player, ProbeError
from pfungst.core.files import jsonable, write_atomic, write_json
from pfungst.core.store import AnswerStore
from pfungst.probes.game.adversaries import get_adversary
from pfungst.probes.game.board import boards_of
from pfungst.probes.game.minigame import MiniGame
from pfungst.probes.game.results import Result, results_of
from pfungst.probes.game.rows import Round, read_round, settle, write_round
from pfungst.probes.game.rules import GameRules, rules_of

VERSION = "game-3"
"""Changes when the same settings give another game."""


@dataclass(frozen=True)
class PlaySettings:
    """What `play` plays."""

    size: int = 10
    """Questions of a mini-game (the paper plays 10, 100 and 1000)."""
    seeds: int = 30
    """Mini-games played, each by a fresh adversary. They share no question as long as the data set lasts; then samples
    are played again by another adversary (the paper plays each one thirty times)."""
    games: int | None = None
    """Most samples of questions; fewer than `seeds` repeats them. None: as many as there are."""
    adversary: str = "a2c"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the adversary."""
    budget: int | None = None
    """Moved scenes asked about, for each question; None: the adversary's own (RSG 5,000, others 100)."""
    max_queries: int | None = None
    """Most questions the whole run may put to the player; lowers `budget` where needed."""
    preset: str = "paper"
    ood: bool = False
    relate_only: bool = False
    """Leave out questions without `relate`, whose right answer never depends on places."""
    control: bool = True
    """Ask every original and every fooling scene once more, to tell a fooled player from a fickle one."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("size", "seeds"):
            if getattr(self, name) < 1:
                raise ProbeError(f"The game's {name} must be at least 1, not {getattr(self, name)}.")
        for name in ("games", "budget", "max_queries"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ProbeError(f"The game's {name.replace('_', ' ')} must be at least 1, not {value}.")

    @property
    def rules(self) -> GameRules:
        return rules_of(self.preset, ood=self.ood)

    @property
    def repeats(self) -> int:
        """Questions besides the search: the original, the scene the adversary commits itself to, and with `control`
        these and the fooling scene again."""
        return 5 if self.control else 2

    def queries_each(self) -> int:
        """Moved scenes for each question, after `max_queries`. Raises ProbeError where nothing is left."""
        budget = self.budget if self.budget is not None else get_adversary(self.adversary, **self.options).budget
        if self.max_queries is not None:
            most = self.max_queries // (self.seeds * self.size) - self.repeats
            if most < 1:
                raise ProbeError(
                    f"{self.max_queries} queries are too few for {self.seeds} mini-games of {self.size} questions: "
                    f"at least {self.seeds * self.size * (self.repeats + 1)} are needed. Play fewer or smaller ones."
                )
            budget = min(budget, most)
        return budget

    def most_queries(self) -> int:
        """Questions the player can be asked at most."""
        return self.seeds * self.size * (self.queries_each() + self.repeats)


def sample_games(examples: Sequence[Example], settings: PlaySettings) -> list[list[Example]]:
    """Mutually exclusive samples of `size` questions, at random by the seed; as many as fit, at most `seeds`."""
    if len(examples) < settings.size:
        raise ProbeError(
            f"A mini-game of {settings.size} questions cannot be drawn from {len(examples)} that can be played. "
            "Choose a smaller --size or a larger data set."
        )
    order = np.random.default_rng(settings.seed).permutation(len(examples))
    count = min(len(examples) // settings.size, settings.seeds, settings.games or settings.seeds)
    return [[examples[i] for i in sorted(part)] for part in order[: count * settings.size].reshape(count, -1).tolist()]


def playable(data: Sequence[Example], settings: PlaySettings) -> tuple[list[Example], dict[str, int]]:
    """The questions a game can use, and how many were left out for which reason.

    Of a group of rephrasings only the first is played: the others ask the same thing.
    """
    reasons = ("no scene", "no program", "cannot be played", "too few or too many objects", "rephrasing", "no relate")
    left_out = dict.fromkeys(reasons, 0)
    rules = settings.rules
    chosen, groups = [], set()
    for example in data:
        if example.scene is None or example.program is None:
            left_out["no scene" if example.scene is None else "no program"] += 1
        elif example.group and example.group in groups:
            left_out["rephrasing"] += 1
        else:
            boards, _ = boards_of([example], settings.rules)
            if not boards:
                left_out["cannot be played"] += 1
            elif not rules.min_objects <= len(boards[0]) <= rules.max_objects:
                left_out["too few or too many objects"] += 1
            elif settings.relate_only and not boards[0].program.relates:
                left_out["no relate"] += 1
            else:
                groups.add(example.group)
                chosen.append(example)
    return chosen, {reason: count for reason, count in left_out.items() if count}


Source = Callable[[], tuple[Player, Sequence[Example]]]
"""Makes the player and the examples where the work runs. For processes it must be importable by name."""


def play(
    player: Player,
    data: Dataset | Sequence[Example],
    out: str | Path,
    settings: PlaySettings | None = None,
    *,
    source: Source | None = None,
    on: str = "local",
    workers: int | None = None,
    progress: ProgressCallback | None = None,
    on_asked: Callable[[int], None] | None = None,
    words: Mapping[str, Any] | None = None,
    answers: str | Path | None = None,
) -> Result:
    """Play the mini-games that `settings` ask for and write the run folder; returns the numbers.

    Finished mini-games are not played again, and in an unfinished one nothing is asked twice. A player that dies
    costs the mini-games it died in: the others count, `result.failed` says which are missing and why, and the same
    call plays those again.

    source: makes player and data in another process, needed for `on` other than `local`.
    on_asked: called with the number of answers that came in, for progress within a mini-game (`local` only).
    words: how player and data are made anew, noted in game.json.
    answers: the answer store, by default answers.sqlite in `out`; several runs may share one.
    """
    settings = settings or PlaySettings()
    folder = Path(out)
    examples, left_out = playable(data, settings)
    if not examples:
        why = ", ".join(f"{count} x {reason}" for reason, count in left_out.items()) or "there are none"
        raise ProbeError(f"None of the {len(data)} questions can be played: {why}. The game needs scenes and programs.")
    samples = sample_games(examples, settings)
    budget = settings.queries_each()
    folder.mkdir(parents=True, exist_ok=True)
    write_config(folder, player, data, settings, len(examples), left_out, len(samples), words)
    shards = []
    for run in range(settings.seeds):
        game = run % len(samples)
        payload = {"run": run, "game": game, "examples": [one.id for one in samples[game]]}
        shards.append(Shard(run, f"round-{run:05d}.parquet", payload, settings.seed))
    if source is None:
        if on != "local":
            raise ProbeError("Playing in other processes needs a source that makes player and data there.")
        source = partial(_given, player, examples)
    store = str(answers or folder / "answers.sqlite")
    work = partial(play_round, source=source, settings=settings, budget=budget, store=store, on_asked=on_asked)
    version = _version(player, settings, budget, examples)
    failed: list[tuple[str, str]] = []
    try:
        run_shards(work, shards, folder / "rounds", on=on, workers=workers, progress=progress, version=version)
    except ShardsFailed as failure:
        failed = [(one.name, one.reason) for one in failure.failures]
        if len(failed) == len(shards):
            raise PfungstError(f"No mini-game could be finished. {failed[0][1]}") from failure
    missing = {name for name, _ in failed}
    rounds = [read_round(folder / "rounds" / shard.name) for shard in shards if shard.name not in missing]
    return finish(folder, player.name, rounds, settings, left_out, failed)


def finish(
    folder: Path,
    player: str,
    rounds: Sequence[Round],
    settings: PlaySettings,
    left_out: Mapping[str, int] | None = None,
    failed: Sequence[tuple[str, str]] = (),
) -> Result:
    """Write games.parquet and findings.json of finished mini-games."""
    _write_games(folder, rounds)
    result = results_of(player, rounds, settings, left_out, failed)
    write_json(folder / "findings.json", result.to_json())
    return result


def _given(player: Player, examples: Sequence[Example]) -> tuple[Player, Sequence[Example]]:
    return player, examples


_LAST: list[tuple[Source, Player, dict[str, Example]]] = []
"""What the last source made. Loading a model once for all rounds of a process is enough."""


def _made(source: Source) -> tuple[Player, dict[str, Example]]:
    if not _LAST or _LAST[0][0] != source:
        player, examples = source()
        _LAST[:] = [(source, player, {example.id: example for example in examples})]
    return _LAST[0][1], _LAST[0][2]


def play_round(
    shard: Shard,
    *,
    source: Source,
    settings: PlaySettings,
    budget: int,
    store: str,
    on_asked: Callable[[int], None] | None = None,
) -> bytes:
    """One mini-game from beginning to end, as Parquet."""
    player, by_id = _made(source)
    with AnswerStore(Path(store)) as known:
        asker = Asker(player, known, on_asked=on_asked)
        chosen = [by_id[name] for name in shard.payload["examples"]]
        played = play_minigame(asker, chosen, settings, budget, shard.rng())
    played = replace(played, run=shard.payload["run"], game=shard.payload["game"])
    buffer = io.BytesIO()
    write_round(buffer, played)
    return buffer.getvalue()


def play_minigame(
    asker: Asker, examples: Sequence[Example], settings: PlaySettings, budget: int, rng: np.random.Generator
) -> Round:
    """One mini-game, verified and with its control."""
    boards, _ = boards_of(examples, settings.rules)
    game = MiniGame(boards, asker, settings.rules, budget=budget)
    get_adversary(settings.adversary, **settings.options).attack(game, rng)
    played = settle(game, settings.control)
    # A game that ended because the player was gone is not finished: it is to be played again.
    asker.still_up()
    return played


def _write_games(folder: Path, rounds: Sequence[Round]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.concat_tables([one.table for one in rounds]), buffer, compression="zstd")
    write_atomic(folder / "games.parquet", buffer.getvalue())


def _version(player: Player, settings: PlaySettings, budget: int, examples: Sequence[Example]) -> str:
    plain = {**asdict(settings), "rules": settings.rules.to_json(), "budget": budget}
    for name in ("seeds", "games", "max_queries"):  # the payload says what they decide
        plain.pop(name)
    digest = hashlib.sha256()
    for one in examples:
        digest.update(json.dumps([one.id, one.question, one.choices, one.scene, one.program], default=list).encode())
    known = json.dumps(jsonable(plain), sort_keys=True, default=str)
    adversary = getattr(get_adversary(settings.adversary, **settings.options), "fingerprint", "")
    return f"{VERSION} {player.fingerprint} {adversary} {digest.hexdigest()} {known}"


def write_config(
    folder: Path,
    player: Player,
    data: Dataset | Sequence[Example],
    settings: PlaySettings,
    count: int,
    left_out: Mapping[str, int],
    samples: int,
    words: Mapping[str, Any] | None,
) -> None:
    """Write game.json. Raises PfungstError where the folder belongs to another player."""
    path = folder / "game.json"
    if path.exists():
        try:
            before = json.loads(path.read_text("utf-8"))["player"]
        except (ValueError, KeyError, OSError) as error:
            raise PfungstError(f"{path} cannot be read ({error}). Choose another folder.") from error
        if before["fingerprint"] != player.fingerprint:
            raise PfungstError(
                f"{folder} holds games of another player ({before['name']}, {before['fingerprint'][:16]}). "
                "Choose another folder."
            )
    config = {
        "player": {"name": player.name, "fingerprint": player.fingerprint},
        "data": {"name": getattr(data, "name", ""), "fingerprint": getattr(data, "fingerprint", "")},
        "questions": {"playable": count, "left out": dict(left_out)},
        "settings": asdict(settings),
        "rules": settings.rules.to_json(),
        "adversary": getattr(get_adversary(settings.adversary, **settings.options), "about", ""),
        "samples": samples,
        "most_queries": settings.most_queries(),
        "words": dict(words or {}),
    }
    write_json(path, config)


def shown_progress(show: Callable[[str, int, int], None]) -> ProgressCallback:
    """A callback of `run_shards` for the progress bar of the command line."""

    def tell(state: Progress) -> None:
        show("mini-games", state.done + state.failed, state.total)

    return tell
