"""Basic questions as noise: Tables 2 to 22 and Figures 5, 6, 8 and 9 of Assessing the Robustness of VQA.

Every player is asked open questions with the basic questions of GBQD and of YNBQD appended, in seven levels, as the
LASSO ranks them and as eight other rankers do; then, by the LASSO over GBQD, with the question cut after 26 words, with
other lambdas, without the papers' preprocessing (Table 8), and by Algorithm 1 (VQABQ, Tables 5 to 7).

What is asked is one run folder for each player, so every number can be walked back to its answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import Dataset, Exam, Findings, Player, UsageError
from pfungst.core.types import Progress
from pfungst.experiments.base import claim, option
from pfungst.experiments.noise_data import POOLS, Made, make, pools_of

if TYPE_CHECKING:
    from pfungst.probes.noise.build import RankSettings
    from pfungst.probes.noise.probe import Noise
    from pfungst.probes.noise.vqabq_probe import Vqabq

RANKERS = ("lasso", "cosine", "bleu1", "bleu2", "bleu3", "bleu4", "rouge", "cider", "meteor")
CUT, UNPREPARED, VQABQ = "gbqd-cut", "gbqd-unprepared", "vqabq"
"""Probes beside those of the pools and rankers."""


@dataclass(frozen=True)
class NoiseStudy:
    """Tables 2 to 22: basic questions as noise, ranked by the LASSO and by text metrics, for several players."""

    players: tuple[str, ...] = option(("lstm-qi", "hiecoatt", "mutan", "mutan-att", "mlb"), free=True)
    """Who is asked."""
    data: str = option("world", "--data", "-d")
    """Data set of the main questions."""
    pools: tuple[str, ...] = option((), "--pool")
    """Data sets, or text files with one question per line, whose questions are appended; none: the examined data."""
    rankers: tuple[str, ...] = RANKERS
    """The first one is examined in depth."""
    lambdas: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)
    """Trade-offs of the LASSO to compare with that of the papers, if it is the first ranker."""
    words: int = 26
    """The limit on the words of a question whose effect is shown: that of most of the papers' models."""
    limit: int | None = None
    """Only this many main questions, drawn at random."""
    encoder: str = ""
    """Sentence encoder of lasso and cosine; empty: the embedded one."""
    tol: float = 1e-3
    """Relative duality gap to certify."""
    device: str = option("cpu", free=True)
    """Where players answer and the LASSO is solved: cpu, cuda."""
    seed: int = 0
    """Seed of the draw and of the intervals."""

    def __post_init__(self) -> None:
        if not self.rankers or not self.players:
            raise UsageError("Name at least one player and one ranker.")
        if self.words < 1 or (self.limit is not None and self.limit < 1):
            raise UsageError("The limits on words and on main questions must be at least 1.")


@dataclass(frozen=True)
class Words:
    """What of the longest questions, those with three basic questions, is not read."""

    limit: int | None
    """Words that are read; None: all, or nobody knows."""
    longer: float
    """Share of questions with more words than that."""
    lost: float
    """Words behind the limit, on average over all questions."""


@dataclass(frozen=True)
class Noised:
    """What came out."""

    questions: int
    images: int
    fingerprint: str
    made: Mapping[str, Made]
    """The rankings, by probe."""
    overlap: Mapping[str, float]
    """How many of the 21 basic questions a ranking has in common with the first ranker's over the same pool."""
    players: Mapping[str, Mapping[str, Findings]]
    """By player and probe."""
    words: Mapping[str, Words]
    """By player; under the empty name, of the limit that was tried."""


def run(config: NoiseStudy, out: Path, *, progress: Progress) -> Noised:
    """Rank, then ask every player; the rankings and each player's run folder stay in OUT."""
    from pfungst.players import resolve
    from pfungst.scores import get_metric
    from pfungst.scores.matchers import get_matcher

    data = chosen(config)
    claim(out, config, data=data.whole.fingerprint)
    ranked = out / "ranked"
    made = _rank(config, data, ranked, progress)
    probes = _probes(config, made, ranked)
    asked: dict[str, Mapping[str, Findings]] = {}
    words = {"": _words(data, probes[0], config.words)}
    for name in config.players:
        progress("players", len(asked), len(config.players))
        player = resolve(name, data=data, **({} if config.device == "cpu" else {"device": config.device}))
        place = out / "players" / name.replace("/", "-").replace(":", "-")
        metric = get_metric("exact" if data.metric == "choice" else data.metric)
        matcher = get_matcher(player.matcher) if player.matcher else None
        about = {"player": {"spec": name}}
        exam = Exam(player, data, probes, metric, place, config.seed, about, progress, matcher=matcher)
        asked[name] = {found.probe: found for found in exam.run().findings}
        words[name] = _words(data, probes[0], _reads(player), tokens=True)
    progress("players", len(asked), len(config.players))
    images = len({example.image_id or example.id for example in data})
    return Noised(len(data), images, data.whole.fingerprint, made, _overlap(made, ranked), asked, words)


def chosen(config: NoiseStudy) -> Dataset:
    """The main questions: originals only, without choices, as many as were asked for."""
    import numpy as np

    from pfungst.data import load
    from pfungst.data.selection import select

    data = select(load(config.data), open_questions=True).originals
    if config.limit is not None:
        drawn = np.random.default_rng(config.seed).permutation(len(data))[: config.limit]
        data = data.subset([data[place] for place in sorted(drawn.tolist())])
    return data


def _rank(config: NoiseStudy, data: Dataset, folder: Path, progress: Progress) -> dict[str, Made]:
    """Every ranking that is appended, by the name of its probe."""
    from pfungst.probes.noise.build import RankSettings, main_question
    from pfungst.probes.noise.ranking import LAMBDA

    device = None if config.device == "cpu" else config.device
    base = RankSettings(config.rankers[0], config.encoder or None, tol=config.tol, device=device)
    lambdas = [lam for lam in config.lambdas if base.ranker == "lasso" and lam != LAMBDA]
    pools = pools_of(POOLS, config.pools, data)
    # Without preprocessing the pool holds the main questions, and they stay in it.
    mixed = [*pools["GBQD"], *(" ".join(example.question.split()) for example in data)]
    jobs: list[tuple[str, list[str], RankSettings]] = [
        (_name(pool, ranker), questions, replace(base, ranker=ranker))
        for pool, questions in pools.items()
        for ranker in config.rankers
    ]
    jobs += [(_name("GBQD", lam), pools["GBQD"], replace(base, lam=lam)) for lam in lambdas]
    jobs.append((UNPREPARED, mixed, replace(base, keep_main_questions=True)))
    main = [main_question(example) for example in data]
    return {name: make(name, folder, main, pool, settings, progress) for name, pool, settings in jobs}


def _name(pool: str, ranker: str | float) -> str:
    return f"{pool.lower()}-{ranker}" if isinstance(ranker, str) else f"{pool.lower()}-lambda-{ranker:g}"


def _probes(config: NoiseStudy, made: Mapping[str, Made], folder: Path) -> list[Noise | Vqabq]:
    from pfungst.probes.noise.probe import Noise
    from pfungst.probes.noise.vqabq_probe import Vqabq

    def probe(name: str) -> Noise:
        # Pool and ranker are named for the report; what is appended stands in the file.
        pool, _, ranker = name.partition("-")
        ranker = ranker if ranker in config.rankers else config.rankers[0]
        return Noise(ranker, pool_type=POOLS[pool.upper()], ranked=str(folder / f"{name}.parquet"), name=name)

    first = probe(_name("GBQD", config.rankers[0]))
    cut = replace(first, words=config.words, name=CUT)
    return [*map(probe, made), cut, Vqabq(first.ranker, ranked=first.ranked, name=VQABQ)]


def _reads(player: Player) -> int | None:
    """Words that a model of the zoo reads of a question; None where nobody knows."""
    trained: Any = getattr(player, "trained", None)
    return None if trained is None else int(trained.inputs.question_length)


def _words(data: Dataset, probe: Noise | Vqabq, limit: int | None, tokens: bool = False) -> Words:
    """tokens: words as the models of the zoo split them, not by spaces."""
    from pfungst.models.vocabulary import split_words

    if limit is None:
        return Words(None, 0.0, 0.0)
    lengths = [
        len(split_words(variant.query.question) if tokens else variant.query.question.split())
        for trial in probe.trials(data, 0)
        for variant in trial.variants[1:]
    ]
    lost = [max(0, length - limit) for length in lengths]
    return Words(limit, sum(one > 0 for one in lost) / len(lost), sum(lost) / len(lost))


def _overlap(made: Mapping[str, Made], folder: Path) -> dict[str, float]:
    from pfungst.probes.noise.bqd import BasicQuestions

    rows = {name: BasicQuestions.read(folder / f"{name}.parquet").rows for name in made}
    common = {}
    for name, mine in rows.items():
        first = rows[next(other for other in rows if other.split("-")[0] == name.split("-")[0])]
        common[name] = sum(len({*basic} & {*first[main][0]}) for main, (basic, *_) in mine.items()) / len(mine)
    return common
