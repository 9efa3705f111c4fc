"""How a committee should rank: which rule, how many candidates, which members.

Of every question many legal scenes are drawn, and all models say how sure they are of the truth on each. Each model in
turn is then the player, and others are the committee: a rule ranks the scenes by what the members think, and what
counts is whether the player is wrong on the scene that stands first. No rule sees the player.

OUT/cells holds what the models think about ten questions each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import PfungstError, Table, UsageError
from pfungst.core.files import read_json
from pfungst.core.stats import compare_paired, interval_of
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, argument, claim, in_percent, option, run_cells, span
from pfungst.experiments.games import NINE

if TYPE_CHECKING:
    from pfungst.compute import Shard
    from pfungst.core import Example
    from pfungst.probes.game.adversaries.committee import Judge

Floats = NDArray[np.float64]
AT_ONCE = 10
"""Questions of a cell."""
FIRST = 5
"""Scenes of a question that the second number is about."""
FOUR = ("film", "mdetr", "tbd", "rn-state")
"""The members that the adversary has by default."""


def _chance(odds: Floats) -> Floats:
    return 1 / (1 + np.exp(-odds))


def _log_chance(odds: Floats) -> Floats:
    return -np.logaddexp(0, -odds)


def _rank(odds: Floats) -> Floats:
    """Place of each scene among those of the question, for every member."""
    places: Floats = np.argsort(np.argsort(odds, 1, kind="stable"), 1, kind="stable").astype(np.float64)
    return places


def _doubts(odds: Floats) -> Floats:
    """How many members hold the truth to be likely; ties are told apart by how sure they are."""
    found: Floats = (odds > 0).mean(0) + 1e-6 * _log_chance(odds).mean(0)
    return found


RULES: dict[str, Callable[[Floats], Floats]] = {
    "mean log odds of the truth": lambda odds: odds.mean(0),
    "mean chance of the truth": lambda odds: _chance(odds).mean(0),
    "mean log chance": lambda odds: _log_chance(odds).mean(0),
    "median log odds": lambda odds: np.median(odds, 0),
    "members that doubt the truth, then mean log chance": _doubts,
    "log odds of the least sure member": lambda odds: odds.min(0),
    "log odds of the surest member": lambda odds: odds.max(0),
    "mean rank": lambda odds: _rank(odds).mean(0),
}
"""Log odds of the truth (members, scenes) -> (scenes,); the scene with the lowest is asked about first."""


@dataclass(frozen=True)
class CommitteeConfig:
    """Try rules, numbers of candidates and sets of members by which a committee can rank legal scenes."""

    players: tuple[str, ...] = argument(NINE)
    """Models of the zoo: each is the player once, and a member for the others."""
    data: str = option("world?seed=5&scenes=40&rephrasings=0", "--data", "-d")
    """Questions with scenes and programs."""
    questions: int = 60
    """Maximum number of questions, taken from the start."""
    candidates: tuple[int, ...] = (10, 30, 60, 100)
    """Legal scenes of a question to rank: the first N that were drawn."""
    preset: str = "paper"
    """The rules of the game: paper, paper-literal or code."""
    seed: int = 0
    """Seed of the scenes."""
    device: str = option("cpu", free=True)
    """cpu, cuda, cuda:1, mps."""
    jobs: int = option(1, free=True)
    """Processes."""

    def __post_init__(self) -> None:
        if len(self.players) < 2:
            raise UsageError("A committee needs at least two models: one is the player, the others are its members.")
        if not self.candidates or min(*self.candidates, self.questions) < 1:
            raise UsageError("Questions and candidates must be at least 1.")


def run(config: CommitteeConfig, out: Path, *, progress: Progress) -> dict[str, Any]:
    """Let all models look at all scenes, then rank."""
    examples = _playable(config)
    claim(out, config, data=[example.id for example in examples])
    starts = range(0, len(examples), AT_ONCE)
    cells = {f"questions-{start:04d}.json": [start, min(start + AT_ONCE, len(examples))] for start in starts}
    files = run_cells(partial(_look, config=config), cells, out / "cells", jobs=config.jobs, progress=progress)
    return rank(config, [row for path in files.values() for row in read_json(path)])


@lru_cache(maxsize=1)
def _playable(config: CommitteeConfig) -> list[Example]:
    from pfungst.data import load
    from pfungst.data.selection import select
    from pfungst.probes.game.playing import playable
    from pfungst.probes.game.rules import GameSettings

    data = select(load(config.data), open_questions=True)
    return playable(data, GameSettings("rsg", 1, 1, preset=config.preset))[0][: config.questions]


@lru_cache(maxsize=1)
def _judges(players: tuple[str, ...], device: str) -> list[Judge]:
    from pfungst.models import Trained, load_shipped, shipped
    from pfungst.probes.game.adversaries.committee import Judge

    return [Judge(load_shipped(one) if one in shipped() else Trained.load(one), device) for one in players]


def _look(shard: Shard, *, config: CommitteeConfig) -> bytes:
    """What every model thinks of the scenes of some questions."""
    from pfungst.probes.game.adversaries.committee import log_odds
    from pfungst.probes.game.board import boards_of
    from pfungst.probes.game.enforcers import Enforcers
    from pfungst.probes.game.layouts import fair_layouts
    from pfungst.probes.game.rules import rules_of

    rules = rules_of(config.preset)
    examples = _playable(config)
    rows = []
    for number in range(*shard.payload):
        board = boards_of([examples[number]], rules)[0][0]
        rng = np.random.default_rng([config.seed, number])
        layouts = fair_layouts(board, Enforcers.of(rules), rng, max(config.candidates))
        odds: list[Sequence[float]] = []
        wrong: list[list[int]] = []
        for judge in _judges(config.players, config.device):
            logits = judge.logits(board, layouts) if len(layouts) else None
            truth = judge.trained.vocabulary.answer_number(board.truth_text)
            sure = [] if logits is None else log_odds(judge.trained, logits, [board.truth_text] * len(layouts)).tolist()
            odds.append([round(value, 4) for value in sure])
            wrong.append([] if logits is None else (logits.argmax(-1) != truth).int().tolist())
        about = {"id": examples[number].id, "image": examples[number].image_id}
        rows.append({**about, "odds": odds, "wrong": wrong})
    return json.dumps(rows).encode()


def rank(config: CommitteeConfig, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How often the players are wrong on the scene that each rule puts first, and within five."""
    most = max(config.candidates)
    full = [row for row in rows if len(row["odds"][0]) >= most]
    if not full:
        raise PfungstError(f"No question has {most} legal scenes: ask for fewer candidates.")
    images = [row["image"] for row in full]
    odds = [np.asarray(row["odds"], np.float64) for row in full]
    wrong = [np.asarray(row["wrong"], np.float64) for row in full]
    players = range(len(config.players))
    others = {p: [q for q in players if q != p] for p in players}

    def scores(rule: str, count: int, members: Mapping[int, Sequence[int]]) -> tuple[Floats, Floats]:
        """(questions, players): wrong on the first scene, and on one of the first five."""
        first, within = [], []
        for sure, missed in zip(odds, wrong, strict=True):
            orders = [np.argsort(RULES[rule](sure[list(members[p]), :count]), kind="stable") for p in players]
            first.append([missed[p, orders[p][0]] for p in players])
            within.append([missed[p, orders[p][:FIRST]].max() for p in players])
        return np.array(first), np.array(within)

    def interval(values: Floats) -> dict[str, float]:
        return span(interval_of(values, images))

    def difference(values: Floats, base: Floats) -> dict[str, float]:
        return span(compare_paired(values, base, images))

    best, *_ = RULES
    base, _ = scores(best, most, others)
    by_rule: dict[str, dict[str, Any]] = {}
    for rule in RULES:
        by_rule[rule] = {}
        for count in config.candidates:
            first, within = (part.mean(1) for part in scores(rule, count, others))
            by_rule[rule][str(count)] = {"first": interval(first), "within": interval(within)}
        by_rule[rule]["difference"] = difference(scores(rule, most, others)[0].mean(1), base.mean(1))
    by_set = {}
    for name, members in {"all others": others, **_sets(config, others)}.items():
        first, within = (part.mean(1) for part in scores(best, most, members))
        by_set[name] = {
            "first": interval(first),
            "within": interval(within),
            "difference": difference(first, base.mean(1)),
        }
    random = np.array([missed[:, :most].mean() for missed in wrong])
    by_player = {}
    for p, name in enumerate(config.players):
        chance = np.array([missed[p, :most].mean() for missed in wrong])
        gain = difference(base[:, p], chance)
        by_player[name] = {"first": interval(base[:, p]), "random": interval(chance), "gain": gain}
    return {
        "questions": len(full),
        "left_out": len(rows) - len(full),
        "images": len(set(images)),
        "players": list(config.players),
        "most": most,
        "random": interval(random),
        "gain": difference(base.mean(1), random),
        "rules": by_rule,
        "members": by_set,
        "by_player": by_player,
    }


def _sets(config: CommitteeConfig, others: Mapping[int, Sequence[int]]) -> dict[str, dict[int, list[int]]]:
    """Sets of members that are tried: the default four, and each model alone where it is not the player."""
    place = {name: number for number, name in enumerate(config.players)}
    found = {}
    if set(FOUR) <= place.keys():
        found[" + ".join(FOUR)] = {p: [place[name] for name in FOUR if place[name] != p] for p in others}
    for name, number in place.items():
        # A model that is the player cannot be its own committee: all others take its place there.
        found[f"{name} alone"] = {p: [number] if number != p else list(others[p]) for p in others}
    return found


_percent = partial(in_percent, unit="%")


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Rules by candidates, sets of members, and players."""
    counts = [name for name in next(iter(result["rules"].values())) if name != "difference"]
    about = (
        f"Wrong on the first scene (within {FIRST}), mean over {len(result['players'])} players; {result['questions']} "
        f"questions about {result['images']} images; {result['left_out']} more have too few legal scenes. A random "
        f"legal scene: {_percent(result['random'])}."
    )
    rules = tuple(
        (
            rule,
            *(f"{100 * one[n]['first']['value']:.1f}% ({100 * one[n]['within']['value']:.1f}%)" for n in counts),
            _percent(one[counts[-1]]["first"]),
            in_percent(one["difference"], "+") if at else "",
        )
        for at, (rule, one) in enumerate(result["rules"].items())
    )
    members = tuple(
        (name, _percent(one["first"]), _percent(one["within"]), in_percent(one["difference"], "+") if at else "")
        for at, (name, one) in enumerate(result["members"].items())
    )
    players = tuple(
        (name, _percent(one["random"]), _percent(one["first"]), in_percent(one["gain"], "+"))
        for name, one in result["by_player"].items()
    )
    best = f"less {next(iter(result['rules']))}"
    return [
        Table(
            "Rules", ("ranking", *(f"{n} candidates" for n in counts), "first scene, 95% interval", best), rules, about
        ),
        Table(
            "Members", ("members", "first scene", f"within {FIRST}", "less all others"), members,
            f"Mean log odds, {result['most']} candidates. Where such a model is the player, all others judge.",
        ),
        Table("Players", ("player", "random legal scene", "first of the committee", "gain"), players,
              f"All others as members, mean log odds, {result['most']} candidates. Intervals over images."),
    ]  # fmt: skip


EXPERIMENT = Experiment("committee", CommitteeConfig, run, tables)
