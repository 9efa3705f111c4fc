"""One adversary for all questions: learn on thousands of them, then play unseen ones without learning any more.

Measuring CLEVRness trains one adversary for each mini-game and leaves "the arduous training of the universal
Adversarial Player on the whole Game" to the future. Here one network learns on many questions which layouts fool the
player; it is then fixed and tried on questions about scenes that it never met, beside a fresh adversary that learns on
each mini-game and beside random legal scenes, all with the same number of queries per question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import (
    Asker,
    Dataset,
    Exam,
    Example,
    Figure,
    Finding,
    Findings,
    MissingExtra,
    Player,
    ProbeError,
    Series,
    Table,
    UsageError,
)
from pfungst.core.code import own_modules
from pfungst.core.files import jsonable, read_json, write_json
from pfungst.core.stats import interval_of
from pfungst.core.store import AnswerStore
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.base import ENDS, Experiment, argument, option
from pfungst.probes.measure import finding, with_interval

if TYPE_CHECKING:
    from pfungst.probes.game.probe import Game
    from pfungst.probes.game.rows import BoardSummary

VERSION = "universal-3"
WEIGHTS, RECORD = "universal.safetensors", "universal.json"
UNIVERSAL, FRESH, RANDOM = "universal", "fresh", "rsg"
SHOWN = (1, 5, 10, 20, 50, 100)
"""Query budgets of the table."""


@dataclass(frozen=True)
class UniversalConfig:
    """One adversary for all questions: it learns on thousands, is fixed, and plays unseen ones.

    Beside it stand a fresh adversary that learns on each mini-game and random legal scenes, on the same questions and
    with as many queries. OUT is a run folder: `pfungst report OUT` and `pfungst show OUT` read it.
    """

    player: str = argument()
    """A player, such as film, my_module:answer or hf:MODEL."""
    data: str = option("world?scenes=1500", "--data", "-d")
    """Questions with scenes and programs."""
    train: int = option(2000, "--train-questions")
    """Maximum number of questions it learns on."""
    test: int = option(300, "--test-questions")
    """Unseen questions, about other scenes, on which it is tried."""
    train_queries: int = 40
    """Moved scenes to ask about in training, for each question."""
    budget: int = 20
    """Moved scenes to ask about in the test, for each question and each of the three adversaries."""
    size: int = 10
    """Questions of a mini-game; the fresh adversary learns within one."""
    candidates: int = 100
    """Legal layouts of a question it chooses among while it learns."""
    test_candidates: int = 400
    """The same in the test."""
    adversary: str = option("a2c", "--adversary", "-a")
    """The fresh adversary."""
    options: Mapping[str, Any] = option(MISSING, "--setting", factory=dict)
    """A setting of the fresh adversary."""
    preset: str = "paper"
    """The rules: paper, paper-literal or code."""
    ood: bool = False
    """Lift the in-distribution constraints (appendix A.9)."""
    relate_only: bool = False
    """Only questions about places."""
    max_queries: int | None = option(None, free=True)
    """Maximum number of questions to the player; if they are too few, it says so before it asks anything."""
    device: str | None = option(None, free=True)
    """Where the player runs, such as cpu or cuda."""
    seed: int = 0
    """Seed of every random choice."""

    def __post_init__(self) -> None:
        for name in ("train", "test", "train_queries", "budget", "size", "candidates", "test_candidates"):
            if getattr(self, name) < 1:
                raise UsageError(f"The universal game's {name} must be at least 1, not {getattr(self, name)}.")
        if self.size > self.test:
            raise UsageError(f"Mini-games of {self.size} cannot be drawn from {self.test} test questions.")
        if self.max_queries is not None and self.max_queries < self.most_queries():
            raise UsageError(
                f"{self.max_queries} queries are too few for the universal adversary: up to {self.most_queries():,} "
                "are asked. Learn on fewer questions (--train-questions), test on fewer, or lower --budget."
            )

    def most_queries(self) -> int:
        """Questions the player can be asked at most."""
        # In the test the original, the scene that an adversary commits itself to, and repetitions come on top.
        return self.train * (self.train_queries + 1) + 3 * self.test * (self.budget + 5)

    def games(self, weights: Path) -> dict[str, Game]:
        """The three games, by name."""
        from pfungst.probes.game.probe import Game

        played: dict[str, tuple[str, Mapping[str, Any]]] = {
            UNIVERSAL: ("universal", {"weights": str(weights), "candidates": self.test_candidates}),
            FRESH: (self.adversary, self.options),
            RANDOM: ("rsg", {}),
        }
        return {
            name: Game(
                adversary, self.size, self.test // self.size, None, options, self.budget, None, self.preset, self.ood,
                name=name,
            )
            for name, (adversary, options) in played.items()
        }  # fmt: skip


@dataclass(frozen=True)
class UniversalResult:
    """What came of it."""

    config: UniversalConfig
    player: str
    trained_on: int
    """Questions."""
    findings: Mapping[str, Findings]
    """`universal`, `fresh`, `rsg` -> the numbers on the unseen questions."""
    boards: Mapping[str, Sequence[BoardSummary]]
    """What became of every question, likewise."""
    curve: Sequence[Mapping[str, float]]
    """Of the training, round by round."""
    left_out: Mapping[str, int]
    weights: Path
    """The network: `--adversary universal --setting weights=FILE` plays it again."""

    @property
    def tested_on(self) -> int:
        return len(self.boards[UNIVERSAL])

    @property
    def verdict(self) -> str:
        best, chance = self.findings[UNIVERSAL].drop, self.findings[RANDOM].drop
        assert best is not None and chance is not None
        return (
            f"One adversary for all questions, trained on {self.trained_on} and then fixed, takes {self.player} down "
            f"by {with_interval(best)} on {self.tested_on} unseen questions with {self.config.budget} queries each; "
            f"random legal scenes by {with_interval(chance)}."
        )


def run(config: UniversalConfig, out: Path, *, progress: Progress = no_progress) -> UniversalResult:
    """Make player and data, then `play_universal`."""
    from pfungst.data import load
    from pfungst.players import resolve

    own_modules()
    data = load(config.data)
    player = resolve(config.player, data=data, **({"device": config.device} if config.device else {}))
    return play_universal(player, data, out, config, progress=progress)


def play_universal(
    player: Player, data: Dataset, out: str | Path, config: UniversalConfig, *, progress: Progress = no_progress
) -> UniversalResult:
    """Train one adversary on many questions, fix it, and try it on unseen ones; `out` becomes a run folder.

    A second call continues: what was asked is in the answer store, and a network that was trained is loaded.
    """
    from pfungst.probes.game.rows import ROUNDS, read_round
    from pfungst.probes.game.settings import GameSettings, playable
    from pfungst.report import write_report
    from pfungst.scores import get_metric

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    rules = GameSettings(preset=config.preset, ood=config.ood, relate_only=config.relate_only)
    examples, left_out = playable(data, rules)
    learnt, held = split_by_scene(examples, config.train, config.test, config.seed)
    curve = _trained(player, learnt, folder, config, progress)
    games = config.games(folder / WEIGHTS)
    exam = Exam(
        player, data.subset(held), list(games.values()), get_metric(data.metric), folder, config.seed, progress=progress
    )
    examined = exam.run()
    write_report(folder, data)
    boards = {
        name: [
            board
            for file in sorted((folder / name / ROUNDS).glob("round-*.parquet"))
            for board in read_round(file).boards
        ]
        for name in games
    }
    found = dict(zip(games, examined.findings, strict=True))
    return UniversalResult(config, player.name, len(learnt), found, boards, curve, left_out, folder / WEIGHTS)


def split_by_scene(
    examples: Sequence[Example], train: int, test: int, seed: int
) -> tuple[list[Example], list[Example]]:
    """Questions to learn on and questions to be tried on; no scene has questions in both."""
    scenes: dict[str, list[Example]] = {}
    for example in examples:
        scenes.setdefault(example.image_id or example.id, []).append(example)
    names = sorted(scenes)
    order = [names[i] for i in np.random.default_rng(seed).permutation(len(names))]
    held: list[Example] = []
    while order and len(held) < test:
        held += scenes[order.pop()]
    learnt = [example for name in order for example in scenes[name]][:train]
    if not learnt or len(held) < test:
        raise ProbeError(
            f"{len(examples)} questions that can be played are too few to try {test} unseen ones and learn on others. "
            "Take more data (--data 'world?scenes=1500'), or fewer test questions."
        )
    return learnt, held[:test]


def _trained(
    player: Player, examples: Sequence[Example], folder: Path, config: UniversalConfig, progress: Progress
) -> list[dict[str, float]]:
    """Train and save the network, unless it is there; the curve of its training."""
    version = _version(player, examples, config)
    record = folder / RECORD
    if record.exists() and (folder / WEIGHTS).exists() and read_json(record).get("version") == version:
        before: list[dict[str, float]] = read_json(record)["curve"]
        return before
    try:
        from pfungst.experiments.universal_learning import Learning, learn
    except ImportError as error:  # pragma: no cover
        raise MissingExtra("The universal adversary", "torch") from error
    from pfungst.probes.game.board import boards_of
    from pfungst.probes.game.minigame import MiniGame
    from pfungst.probes.game.rules import rules_of

    each = config.train_queries // 4
    how = Learning(config.train_queries - 2 * each, 2, each, config.candidates, device=config.device or "cpu")
    rules = rules_of(config.preset, ood=config.ood)
    boards, _ = boards_of(examples, rules)
    with AnswerStore(folder / "answers.sqlite") as store:
        asker = Asker(player, store)
        game = MiniGame(boards, asker, rules, budget=config.train_queries)
        network, curve = learn(game, how, np.random.default_rng([config.seed, 0x0E]), progress)
        asker.still_up()
    network.save(folder / WEIGHTS, {"player": player.name, "questions": len(boards)})
    write_json(record, {"version": version, "questions": len(boards), "curve": curve})
    return curve


def _version(player: Player, examples: Sequence[Example], config: UniversalConfig) -> str:
    decides = (config.train_queries, config.candidates, config.preset, config.ood, config.seed)
    asked = [[example.id, example.question, example.scene] for example in examples]
    text = json.dumps([VERSION, player.fingerprint, decides, asked], sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()


def tables(result: UniversalResult) -> list[Table]:
    """The three adversaries side by side."""
    config = result.config
    levels = [level for level in SHOWN if level < config.budget] + [config.budget]
    names = {
        UNIVERSAL: f"universal, learnt on {result.trained_on} other questions, fixed",
        FRESH: f"fresh {config.adversary}, learns on each mini-game of {config.size}",
        RANDOM: "random legal scenes (rsg)",
    }
    rows = tuple(
        (names[name], found.clean, found.disturbed, found.drop,
         *(_within(result.boards[name], level) for level in levels))
        for name, found in result.findings.items()
    )  # fmt: skip
    columns = ("adversary", "accuracy before", "after", "drop", *(f"fooled within {level}" for level in levels))
    note = (
        f"{result.tested_on} questions about scenes unseen in training, {config.budget} queries each. {result.verdict}"
    )
    return [Table("The universal adversary on unseen questions", columns, rows, note)]


def figures(result: UniversalResult) -> list[Figure]:
    """How many are fooled within so many queries, and how the network learnt."""
    from pfungst.probes.game.results import LEVELS

    budget = result.config.budget
    grid = [level for level in LEVELS if level < budget] + [budget]
    lines = []
    for name, boards in result.boards.items():
        spans = [_within(boards, level) for level in grid]
        lines.append(Series(name, tuple(grid), *(tuple(getattr(span, end) for span in spans) for end in ENDS)))
    asked = tuple(int(point["queries"]) for point in result.curve)
    learning = tuple(
        Series(label, asked, tuple(point[name] for point in result.curve))
        for label, name in (("drawn at random", "random"), ("chosen", "chosen"))
    )
    return [
        Figure("Success on unseen questions", "line", tuple(lines), "queries per question", "fooled, of those right"),
        Figure("Learning to fool", "line", learning, "queries in training", "wrong answers, of the round's scenes"),
    ]


def _within(boards: Sequence[BoardSummary], queries: int) -> Finding:
    from pfungst.probes.game.results import is_won

    right = [board for board in boards if board.right]
    won = [float(is_won(board) and (board.fooled_after or 0) <= queries) for board in right]
    return finding(f"fooled within {queries}", interval_of(won, [board.image_id for board in right]))


def record(result: UniversalResult) -> dict[str, Any]:
    names = ("player", "trained_on", "tested_on", "left_out", "weights", "verdict", "findings", "curve")
    return {name: jsonable(getattr(result, name)) for name in names}


EXPERIMENT = Experiment("universal", UniversalConfig, run, tables, figures, record, out="runs/{player}-universal")
