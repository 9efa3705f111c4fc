"""The universal adversary: learn on thousands of questions, then play unseen ones without learning any more.

004_7f4cdb926551102e.txt trains one adversary a mini-game and leaves "the arduous training of the universal Adversarial
Player on the whole Game" to the future. Here one network learns on many questions which layouts fool the player; it is
then fixed and tried on questions about scenes that it never met, beside a fresh adversary that learns on each mini-game
and beside random legal scenes, all with the same number of queries a question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import (
    Asker,
    Dataset,
    Example,
    Figure,
    Finding,
    Findings,
    MissingExtra,
    Player,
    ProbeError,
    Series,
    Table,
)  # fmt: skip
from pfungst.core.files import jsonable, write_json
from pfungst.core.stats import bootstrap
from pfungst.core.store import AnswerStore
from pfungst.probes.game.board import boards_of
from pfungst.probes.game.minigame import MiniGame
from pfungst.probes.game.playing import PlaySettings, play, playable
from pfungst.probes.game.results import LEVELS, Result, is_won
from pfungst.probes.game.rows import BoardSummary, read_round
from pfungst.probes.measure import finding, with_interval

VERSION = "universal-2"
WEIGHTS, RECORD = "universal.safetensors", "universal.json"
UNIVERSAL, FRESH, RANDOM = "universal", "fresh", "rsg"
SHOWN = (1, 5, 10, 20, 50, 100)
"""Query budgets of the table."""


@dataclass(frozen=True)
class UniversalSettings:
    """How one adversary is trained for all questions, and tested."""

    train: int = 2000
    """Questions it learns on, at most."""
    test: int = 300
    """Unseen questions, about other scenes, on which it is tried."""
    train_queries: int = 40
    """Moved scenes asked about in training, for each question."""
    budget: int = 20
    """Moved scenes asked about in the test, for each question and each of the three adversaries."""
    size: int = 10
    """Questions of a mini-game; the fresh adversary learns within one."""
    candidates: int = 100
    """Legal layouts of a question it chooses among while it learns."""
    test_candidates: int = 400
    """The same in the test."""
    adversary: str = "a2c"
    """The fresh adversary beside it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the fresh adversary."""
    preset: str = "paper"
    ood: bool = False
    relate_only: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("train", "test", "train_queries", "budget", "size", "candidates", "test_candidates"):
            if getattr(self, name) < 1:
                raise ProbeError(f"The universal game's {name} must be at least 1, not {getattr(self, name)}.")
        if self.size > self.test:
            raise ProbeError(f"Mini-games of {self.size} cannot be drawn from {self.test} test questions.")

    def most_queries(self) -> int:
        """Questions the player can be asked at most."""
        # In the test the original, two repetitions and the scene that an adversary commits itself to come on top.
        return self.train * (self.train_queries + 1) + 3 * self.test * (self.budget + 4)

    def check_limit(self, most: int | None) -> None:
        """Raise ProbeError where so many queries are not enough: nothing is asked then."""
        if most is not None and most < self.most_queries():
            raise ProbeError(
                f"{most} queries are too few for the universal adversary: up to {self.most_queries():,} are asked. "
                "Learn on fewer questions (--train-questions), test on fewer, or lower --budget."
            )

    def play_settings(self, adversary: str, options: Mapping[str, Any]) -> PlaySettings:
        return PlaySettings(
            self.size, self.test // self.size, None, adversary, options, self.budget, None, self.preset, self.ood,
            seed=self.seed,
        )  # fmt: skip


@dataclass(frozen=True)
class UniversalResult:
    """What came of it."""

    settings: UniversalSettings
    trained_on: int
    """Questions."""
    tested_on: int
    results: Mapping[str, Result]
    """`universal`, `fresh`, `rsg` -> the numbers on the unseen questions."""
    findings: Findings
    weights: Path
    """The network: `--adversary universal --setting weights=FILE` plays it again."""
    about: str = ""
    """What the fresh adversary sees with."""

    def to_json(self) -> dict[str, Any]:
        results = {name: one.to_json()["game"] for name, one in self.results.items()}
        out: dict[str, Any] = jsonable(
            {
                "findings": [self.findings],
                "universal": {
                    "settings": asdict(self.settings),
                    "trained_on": self.trained_on,
                    "tested_on": self.tested_on,
                    "weights": str(self.weights),
                    "about": self.about,
                    "results": results,
                },
            }
        )
        return out


def split_by_scene(
    examples: Sequence[Example], train: int, test: int, seed: int
) -> tuple[list[Example], list[Example]]:
    """Questions to learn on and questions to be tried on; no scene has questions in both."""
    scenes: dict[str, list[Example]] = {}
    for one in examples:
        scenes.setdefault(one.image_id or one.id, []).append(one)
    names = sorted(scenes)
    order = [names[i] for i in np.random.default_rng(seed).permutation(len(names))]
    held: list[Example] = []
    while order and len(held) < test:
        held += scenes[order.pop()]
    learnt = [one for name in order for one in scenes[name]][:train]
    if not learnt or len(held) < test:
        raise ProbeError(
            f"{len(examples)} questions that can be played are too few to try {test} unseen ones and learn on others. "
            "Take more data (--data 'world?scenes=1500'), or fewer test questions."
        )
    return learnt, held[:test]


def play_universal(
    player: Player,
    data: Dataset | Sequence[Example],
    out: str | Path,
    settings: UniversalSettings | None = None,
    *,
    progress: Callable[[str, int, int], None] | None = None,
    on_asked: Callable[[int], None] | None = None,
) -> UniversalResult:
    """Train one adversary on many questions, fix it, and try it on unseen ones; writes the folder `out`.

    A second call goes on: what was asked is in the answer store, a policy that was trained is loaded.
    """
    settings = settings or UniversalSettings()
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    plain = PlaySettings(preset=settings.preset, ood=settings.ood, relate_only=settings.relate_only)
    examples, left_out = playable(data, plain)
    learnt, held = split_by_scene(examples, settings.train, settings.test, settings.seed)
    tell = progress or (lambda what, done, total: None)
    tell("training", 0, 1)
    curve = _trained(player, learnt, folder, settings, on_asked, tell)
    tell("training", 1, 1)
    options = {"weights": str(folder / WEIGHTS), "candidates": settings.test_candidates}
    games = {
        UNIVERSAL: settings.play_settings("universal", options),
        FRESH: settings.play_settings(settings.adversary, settings.options),
        RANDOM: settings.play_settings("rsg", {}),
    }
    results: dict[str, Result] = {}
    for number, (name, how) in enumerate(games.items()):
        results[name] = play(
            player, held, folder / name, how, on_asked=on_asked, answers=folder / "answers.sqlite"
        )  # fmt: skip
        tell("unseen questions", number + 1, len(games))
    boards = {name: _boards(folder / name) for name in games}
    found = _findings(player.name, settings, len(learnt), results, boards, curve)
    about = _about(settings)
    result = UniversalResult(settings, len(learnt), len(held), results, found, folder / WEIGHTS, about)
    write_json(folder / "findings.json", {**result.to_json(), "left_out": dict(left_out)})
    return result


def _about(settings: UniversalSettings) -> str:
    from pfungst.probes.game.adversaries import get_adversary

    return str(getattr(get_adversary(settings.adversary, **settings.options), "about", ""))


def _trained(
    player: Player,
    examples: Sequence[Example],
    folder: Path,
    settings: UniversalSettings,
    on_asked: Callable[[int], None] | None,
    tell: Callable[[str, int, int], None],
) -> list[dict[str, float]]:
    """Train and save the network, unless it is there; the curve of its training."""
    version = _version(player, examples, settings)
    record = folder / RECORD
    if record.exists() and (folder / WEIGHTS).exists():
        known = json.loads(record.read_text("utf-8"))
        if known.get("version") == version:
            before: list[dict[str, float]] = known["curve"]
            return before
    try:
        from pfungst.probes.game.learning import Learning, learn
    except ImportError as error:  # pragma: no cover
        raise MissingExtra("The universal adversary", "torch") from error
    each = settings.train_queries // 4
    how = Learning(first=settings.train_queries - 2 * each, rounds=2, each=each, candidates=settings.candidates)
    boards, _ = boards_of(examples, settings_rules(settings))
    with AnswerStore(folder / "answers.sqlite") as store:
        asker = Asker(player, store, on_asked=on_asked)
        game = MiniGame(boards, asker, settings_rules(settings), budget=settings.train_queries)
        network, curve = learn(game, how, np.random.default_rng([settings.seed, 0x0E]), tell=tell)
        asker.still_up()
    network.save(folder / WEIGHTS, {"player": player.name, "questions": len(boards)})
    write_json(record, {"version": version, "questions": len(boards), "curve": curve})
    return curve


def settings_rules(settings: UniversalSettings) -> Any:
    """The rules of the game."""
    return PlaySettings(preset=settings.preset, ood=settings.ood).rules


def _version(player: Player, examples: Sequence[Example], settings: UniversalSettings) -> str:
    of_the_test = ("test", "budget", "size", "test_candidates", "adversary", "options")
    known = jsonable({name: value for name, value in asdict(settings).items() if name not in of_the_test})
    ids = [[one.id, one.question, one.scene] for one in examples]
    text = json.dumps([VERSION, player.fingerprint, known, ids], sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()


def _boards(folder: Path) -> list[BoardSummary]:
    files = sorted((folder / "rounds").glob("round-*.parquet"))
    return [board for file in files for board in read_round(file).boards]


def _within(boards: Sequence[BoardSummary], queries: int) -> Finding:
    right = [one for one in boards if one.right]
    won = [float(is_won(one) and (one.fooled_after or 0) <= queries) for one in right]
    return finding(f"fooled within {queries}", bootstrap(won, [one.image_id for one in right]))


def _findings(
    player: str,
    settings: UniversalSettings,
    trained_on: int,
    results: Mapping[str, Result],
    boards: Mapping[str, Sequence[BoardSummary]],
    curve: Sequence[Mapping[str, float]],
) -> Findings:
    levels = [level for level in SHOWN if level < settings.budget] + [settings.budget]
    names = {
        UNIVERSAL: f"universal, learnt on {trained_on} other questions, fixed",
        FRESH: f"fresh, learns on each mini-game of {settings.size}",
        RANDOM: "random legal scenes (rsg)",
    }
    rows = tuple(
        (names[name], one.findings.clean, one.findings.disturbed, one.findings.drop,
         *(_within(boards[name], level) for level in levels))
        for name, one in results.items()
    )  # fmt: skip
    columns = ("adversary", "accuracy before", "after", "drop", *(f"fooled within {level}" for level in levels))
    note = f"{len(boards[UNIVERSAL])} questions about scenes unseen in training, {settings.budget} queries each."
    table = Table("The universal adversary on unseen questions", columns, rows, note)
    grid = [level for level in LEVELS if level < settings.budget] + [settings.budget]
    lines = []
    for name, some in boards.items():
        spans = [_within(some, level) for level in grid]
        lines.append(
            Series(name, tuple(grid), *(tuple(getattr(s, part) for s in spans) for part in ("value", "low", "high")))
        )
    success = Figure(
        "Success on unseen questions", "line", tuple(lines), "queries a question", "fooled, of those right"
    )
    asked = tuple(int(point["queries"]) for point in curve)
    learning = Figure(
        "Learning to fool", "line",
        tuple(Series(label, asked, tuple(point[name] for point in curve))
              for label, name in (("drawn at random", "random"), ("chosen", "chosen"))),
        "queries in training", "wrong answers, of the round's scenes",
    )  # fmt: skip
    best, chance = results[UNIVERSAL].findings, results[RANDOM].findings
    drop, clean = best.drop, best.clean
    assert drop is not None and clean is not None and chance.drop is not None
    verdict = (
        f"One adversary for all questions, trained on {trained_on} and then fixed, takes {player} down by "
        f"{with_interval(drop)} on {len(boards[UNIVERSAL])} unseen questions with {settings.budget} queries each; "
        f"random legal scenes by {with_interval(chance.drop)}."
    )
    return Findings("game", best.rows, verdict, clean, best.disturbed, drop, (table, *best.tables), (success, learning))
