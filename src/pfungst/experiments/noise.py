"""Basic questions as noise: Tables 2 to 22 and Figures 5, 6, 8 and 9 of Assessing the Robustness of VQA.

Every player is asked open questions with the basic questions of GBQD and of YNBQD appended, in seven levels, as the
LASSO ranks them and as eight other rankers do; then, by the LASSO over GBQD, with the question cut after 26 words, with
other lambdas, without the papers' preprocessing (Table 8), and by Algorithm 1 (VQABQ, Tables 5 to 7). But for Table 8,
what asks the same as a main question is left out of its pool (`probes.noise.same`), which the papers did not do.

What is asked is one run folder for each player, so every number can be walked back to its answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.compute import Shard
from pfungst.core import Dataset, Exam, Figure, Finding, Findings, Player, Run, Series, Table, UsageError
from pfungst.core.files import read_json, write_atomic, write_json
from pfungst.core.types import BEYOND, Progress, no_progress
from pfungst.experiments.base import Experiment, claim, here, option, run_cells
from pfungst.experiments.basic_questions import POOLS, Made, make, pools_of
from pfungst.experiments.study import cell, line
from pfungst.probes.noise.appending import partition_names
from pfungst.probes.noise.probe import CONTROLS, TYPES

if TYPE_CHECKING:
    from pfungst.probes.noise.probe import Noise, Vqabq
    from pfungst.probes.noise.ranking import RankSettings

RANKERS = ("lasso", "cosine", "bleu1", "bleu2", "bleu3", "bleu4", "rouge", "cider", "meteor")
CUT, UNPREPARED, VQABQ = "gbqd-cut", "gbqd-unprepared", "vqabq"
"""Probes beside those of the pools and rankers."""

PAPERS: Mapping[str, Mapping[str, float]] = {
    "lstm-qi": {"GBQD": 0.19, "YNBQD": 0.08},
    "hiecoatt": {"GBQD": 0.48, "YNBQD": 0.48},
    "hiecoatt-large": {"GBQD": 0.45, "YNBQD": 0.53},
    "mutan": {"GBQD": 0.30, "YNBQD": 0.30},
    "mutan-att": {"GBQD": 0.34, "YNBQD": 0.23},
    "mlb": {"GBQD": 0.36, "YNBQD": 0.37},
}
"""R_score of the six models, Table 4 of Assessing the Robustness of VQA."""
CURVE = ("R_score", "rank correlation", "inversions", "falls at every level")


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
    controls: str = "all"
    """What is asked instead of the first ranker's questions, with as many words: as for the probe `noise`."""
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
    jobs: int = option(1, free=True)
    """Players asked at the same time, each in a process of its own."""
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
    data = chosen(config)
    claim(out, config, data=data.whole.fingerprint)
    ranked = out / "ranked"
    made = _rank(config, data, ranked, progress)
    probes = _probes(config, made, ranked)
    folders = {name: out / "players" / name.replace("/", "-").replace(":", "-") for name in config.players}
    # A player is asked where its folder lies; what is written beside it says that all its answers are there.
    cells = {f"{folder.name}.json": name for name, folder in folders.items()}
    telling = progress if here(config.jobs) else no_progress
    work = partial(_ask, config=config, made=made, out=out.resolve(), progress=telling)
    files = run_cells(work, cells, out / "players", jobs=config.jobs, progress=progress)
    words = {"": _words(data, probes[0], config.words)}
    words |= {name: Words(**read_json(file)) for name, file in zip(config.players, files.values(), strict=True)}
    asked = {name: {one.probe: one for one in Run.open(folder).findings} for name, folder in folders.items()}
    images = len({example.image_id or example.id for example in data})
    return Noised(len(data), images, data.whole.fingerprint, made, _overlap(made, ranked), asked, words)


def _ask(
    shard: Shard, path: Path, *, config: NoiseStudy, made: Mapping[str, Made], out: Path, progress: Progress
) -> None:
    """One player's exam, in a folder of its own; `path` gets how many of the words it does not read."""
    from pfungst.players import resolve
    from pfungst.scores import get_metric
    from pfungst.scores.matchers import get_matcher

    name, data = shard.payload, chosen(config)
    probes = _probes(config, made, out / "ranked")
    player = resolve(name, data=data, **({} if config.device == "cpu" else {"device": config.device}))
    metric = get_metric("exact" if data.metric == "choice" else data.metric)
    matcher = get_matcher(player.matcher) if player.matcher else None
    about = {"player": {"spec": name}}
    place = out / "players" / Path(shard.name).stem
    Exam(player, data, probes, metric, place, config.seed, about, progress, matcher=matcher).run()
    write_json(path, vars(_words(data, probes[0], _reads(player), tokens=True)))


def chosen(config: NoiseStudy) -> Dataset:
    """The main questions: originals only, without choices, as many as were asked for."""
    import numpy as np

    from pfungst.data import load
    from pfungst.data.loading import select

    data = select(load(config.data), open_questions=True).originals
    if config.limit is not None:
        drawn = np.random.default_rng(config.seed).permutation(len(data))[: config.limit]
        data = data.subset([data[place] for place in sorted(drawn.tolist())])
    return data


def _rank(config: NoiseStudy, data: Dataset, folder: Path, progress: Progress) -> dict[str, Made]:
    """Every ranking that is appended, by the name of its probe."""
    from pfungst.probes.noise.bqd import chosen as examples_of
    from pfungst.probes.noise.bqd import main_question
    from pfungst.probes.noise.ranking import LAMBDA, RankSettings
    from pfungst.probes.noise.same import SAME

    device = None if config.device == "cpu" else config.device
    base = RankSettings(config.rankers[0], config.encoder, tol=config.tol, same=SAME)
    lambdas = [lam for lam in config.lambdas if base.ranker == "lasso" and lam != LAMBDA]
    pools = pools_of(POOLS, config.pools, data)
    for pool, questions in pools.items():
        file = _pool_file(folder, pool)
        rows = [{"id": str(n), "question": text, "answer_type": POOLS[pool]} for n, text in enumerate(questions)]
        if not file.exists():
            write_atomic(file, "".join(f"{json.dumps(row)}\n" for row in rows).encode())
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
    known = [*data.whole, *(example for spec in config.pools for example in examples_of(spec, data, "all")[1])]
    return {
        name: make(name, folder, main, pool, settings, progress, device=device, known=known)
        for name, pool, settings in jobs
    }


def _pool_file(folder: Path, pool: str) -> Path:
    """The questions of a pool, as the data set that the control `random` is drawn from."""
    return folder / f"{pool.lower()}-pool.jsonl"


def _name(pool: str, ranker: str | float) -> str:
    return f"{pool.lower()}-{ranker}" if isinstance(ranker, str) else f"{pool.lower()}-lambda-{ranker:g}"


def _probes(config: NoiseStudy, made: Mapping[str, Made], folder: Path) -> list[Noise | Vqabq]:
    from pfungst.probes.noise.probe import Noise, Vqabq

    def probe(name: str) -> Noise:
        # Pool and ranker are named for the report; what is appended stands in the file.
        pool, _, ranker = name.partition("-")
        ranker = ranker if ranker in config.rankers else config.rankers[0]
        ranked = str(folder / f"{name}.parquet")
        return Noise(ranker, pool_type=POOLS[pool.upper()], ranked=ranked, controls="none", name=name)

    def controlled(pool: str) -> Noise:
        questions = str(_pool_file(folder, pool))
        return replace(probe(_name(pool, config.rankers[0])), pool=questions, controls=config.controls)

    first = probe(_name("GBQD", config.rankers[0]))
    cut = replace(first, words=config.words, name=CUT)
    firsts = {one.name: one for one in map(controlled, POOLS)}
    every = [firsts.get(name) or probe(name) for name in made]
    return [*every, cut, Vqabq(first.ranker, ranked=first.ranked, name=VQABQ)]


def _reads(player: Player) -> int | None:
    """Words that a model of the zoo reads of a question; None where nobody knows."""
    trained: Any = getattr(player, "trained", None)
    return None if trained is None else int(trained.inputs.question_length)


def _words(data: Dataset, probe: Noise | Vqabq, limit: int | None, tokens: bool = False) -> Words:
    """tokens: words as the models of the zoo split them, not by spaces."""
    from pfungst.models.trained import split_words

    if limit is None:
        return Words(None, 0.0, 0.0)
    lengths = [
        len(split_words(variant.query.question) if tokens else variant.query.question.split())
        for trial in probe.trials(data, 0)
        for variant in trial.variants[1:]
        if variant.role != "control"
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


def noise_tables(result: Noised) -> list[Table]:
    """As the papers number them: 2 and 3, 4, 9 to 22, 8, the lambdas, the words, 5 to 7."""
    made = [_partitions(result, pool) for pool in POOLS]
    made += [_robustness(result), *_beyond(result), _order(result)]
    made += [_rankers(result, pool) for pool in POOLS]
    made.append(_effective(result))
    first = _first(result, "GBQD")
    lambdas = {_label(name): name for name in result.made if "-lambda-" in name}
    made += [
        _compared(result, "Without preprocessing", "pool", {"prepared": first, "unprepared": UNPREPARED}, "Table 8."),
        _compared(result, "Lambda", "lambda", {"1e-06": first, **lambdas}, "GBQD; the papers' lambda first."),
        _compared(result, "The limit on words", "words", {"all": first, str(result.words[""].limit): CUT}, "GBQD."),
        _cut_off(result),
    ]
    return [*made, *_vqabq(result), _rankings(result)]


def _curve(found: Findings) -> tuple[list[Finding], list[Finding], dict[str, Finding]]:
    """Accuracy and drop at every level, and what sums the curve up."""
    drops = [one for one in found.rows if one.name == "drop"]
    levels = [one for one in found.rows if one.name == "accuracy"][-len(drops) :]
    return levels, drops, {one.name: one for one in found.rows}


def _first(result: Noised, pool: str) -> str:
    """The probe of the first ranker over this pool."""
    return _ranked(result, pool)[0]


def _label(name: str) -> str:
    """The ranker or lambda in a probe's name."""
    return name.split("-", 2)[2] if "-lambda-" in name else name.split("-", 1)[1]


def _ranked(result: Noised, pool: str) -> list[str]:
    """The probes of all rankers over this pool."""
    return [
        name for name in result.made
        if name.startswith(pool.lower() + "-") and "-lambda-" not in name and name != UNPREPARED
    ]  # fmt: skip


def _partitions(result: Noised, pool: str) -> Table:
    number = {"GBQD": "Table 2", "YNBQD": "Table 3"}[pool]
    probe = _first(result, pool)
    rows = []
    for player, found in result.players.items():
        table = next(one for one in found[probe].tables if one.title.startswith("Accuracy by partition"))
        for name, *cells in table.rows:
            rows.append((player, str(name), *(cell(one) for one in cells)))
    about = f"{result.questions:,} questions about {result.images:,} images; 95% intervals over images."
    return Table(
        f"{pool}, ranked by {_label(probe)}",
        ("player", "partition", *(label for _, label in TYPES), "All", "diff"),
        tuple(rows),
        f"Layout of {number}, in percent. The pool has {result.made[probe].pool:,} questions. {about}",
    )


def _robustness(result: Noised) -> Table:
    rows = []
    for player, found in result.players.items():
        paper = PAPERS.get(model_of(player), {})
        cells: list[str] = []
        for pool in POOLS:
            _, drops, shape = _curve(found[_first(result, pool)])
            cells += [cell(drops[0]), cell(shape["R_score"], 2, scale=1), f"{paper[pool]:.2f}" if paper else "–"]
        clean = found[_first(result, "GBQD")].clean
        rows.append((player, cell(clean), *cells))
    columns = [f"{pool}: {what}" for pool in POOLS for what in ("drop", "R_score", "R_score in the paper")]
    return Table(
        "R_score",
        ("player", "clean", *columns),
        tuple(rows),
        "Layout of Table 4, (t, m) = (0.05, 20); the drop is that of the first partition, in points.",
    )


def _beyond(result: Noised) -> list[Table]:
    """What the first ranker's questions cost beyond texts of equal length, where these were asked."""
    rows = []
    for pool in POOLS:
        for player, found in result.players.items():
            every = found[_first(result, pool)].rows
            costs = {one.condition: one for one in every if one.name == "cost of control"}
            beyond = {one.condition.split(", ")[-1]: one for one in every if one.name in (BEYOND, "beyond control")}
            if not costs:
                continue
            levels, drops, _ = _curve(found[_first(result, pool)])
            last = f"random {len(levels)}"
            rows.append(
                (
                    pool, player, cell(drops[0]), *(cell(costs[name]) for name in CONTROLS),
                    cell(beyond["mean of controls"]), cell(drops[-1]),
                    *(cell(some[last]) if last in some else "–" for some in (costs, beyond)),
                )
            )  # fmt: skip
    columns = ("", "player", "first drop", *CONTROLS, "beyond their mean", "last drop", "random, as long", "beyond it")
    note = (
        "Points; 95% intervals over images. Appended instead of the ranked questions, with as many words: "
        + "; ".join(f"{name}: {about}" for name, about in CONTROLS.items())
        + "."
    )
    return [Table("Beyond texts of equal length", columns, tuple(rows), note)] if rows else []


def model_of(player: str) -> str:
    """The model of the papers that a player is: `mlb` of `mlb-vqa2` or `zoo:runs/mlb-daquar.safetensors`."""
    name = Path(player.rpartition(":")[2]).name.removesuffix(".safetensors")
    for suffix in ("-vqa2", "-daquar"):
        name = name.removesuffix(suffix)
    return name


def _order(result: Noised) -> Table:
    rows = []
    for pool in POOLS:
        probe = _first(result, pool)
        known = [
            (PAPERS[model_of(player)][pool], _curve(found[probe])[2]["R_score"])
            for player, found in result.players.items()
            if model_of(player) in PAPERS
        ]
        pairs = list(combinations(known, 2))
        signs = [(a[0] - b[0]) * (a[1].value - b[1].value) for a, b in pairs]
        clear = [
            sign for sign, (a, b) in zip(signs, pairs, strict=True) if a[1].low > b[1].high or b[1].low > a[1].high
        ]
        agree, differ = (sum(sign > 0 for sign in signs), sum(sign < 0 for sign in signs))
        tau = (agree - differ) / len(pairs) if pairs else None
        clearly = f"{sum(sign > 0 for sign in clear)} of {len(clear)}"
        rows.append((pool, len(pairs), agree, differ, "–" if tau is None else f"{tau:+.2f}", clearly))
    return Table(
        "Are the models in the papers' order by R_score?",
        ("", "pairs of models", "as in the paper", "the other way round", "Kendall's tau", "of the clear pairs"),
        tuple(rows),
        "A pair is clear where the intervals of the two R_scores do not overlap.",
    )


def _curves(result: Noised, probes: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for label, probe in probes.items():
        for player, found in result.players.items():
            levels, _, shape = _curve(found[probe])
            cells = [cell(found[probe].clean), *(cell(level) for level in levels)]
            cells += [cell(shape[name], 2, scale=1) for name in CURVE[:3]]
            yield (label, player, *cells, "yes" if falls(levels) else "no")


def falls(levels: Sequence[Finding]) -> bool:
    """Whether every level is less accurate than the one before."""
    return all(after.value < before.value for before, after in pairwise(levels))


def _compared(result: Noised, title: str, what: str, probes: Mapping[str, str], note: str) -> Table:
    levels = len(_curve(next(iter(result.players.values()))[_first(result, "GBQD")])[0])
    return Table(
        title,
        (what, "player", "Original", *partition_names(levels), *CURVE),
        tuple(_curves(result, probes)),
        f"{note} Accuracy in percent; rank correlation of level and accuracy, −1 where every level is less accurate.",
    )


def _rankers(result: Noised, pool: str) -> Table:
    number = {"GBQD": "Figure 6 and Tables 9 to 15", "YNBQD": "Figure 9 and Tables 16 to 22"}[pool]
    probes = {_label(name): name for name in _ranked(result, pool)}
    return _compared(result, f"Rankers over {pool}", "ranker", probes, f"{number}, all answer types together.")


def _effective(result: Noised) -> Table:
    """Over all players."""
    rows = []
    for pool in POOLS:
        for probe in _ranked(result, pool):
            curves = [_curve(found[probe]) for found in result.players.values()]
            shapes = [shape for *_, shape in curves]
            rows.append(
                (
                    pool, _label(probe),
                    f"{_mean([shape['rank correlation'].value for shape in shapes]):+.2f}",
                    f"{_mean([shape['inversions'].value for shape in shapes]):.1f}",
                    f"{sum(shape['change per level'].high < 0 for shape in shapes)} of {len(shapes)}",
                    f"{sum(falls(levels) for levels, *_ in curves)} of {len(shapes)}",
                    f"{100 * _mean([drops[0].value for _, drops, _ in curves]):.1f}",
                    f"{100 * _mean([drops[-1].value for _, drops, _ in curves]):.1f}",
                    f"{result.overlap[probe]:.1f}",
                )
            )  # fmt: skip
    return Table(
        "Does accuracy fall with the level?",
        (
            "", "ranker", "rank correlation", "inversions", "clearly falls", "falls at every level",
            "first drop", "last drop", "shared",
        ),
        tuple(rows),
        "Means over players. Accuracy clearly falls where the interval of its change per level lies below 0. "
        "Drops in points; shared: of the 21 basic questions, those that the first ranker chose, too.",
    )  # fmt: skip


def _cut_off(result: Noised) -> Table:
    tried = result.words[""]
    rows = [
        (name or f"a limit of {tried.limit}", "–" if one.limit is None else one.limit, f"{one.longer:.1%}",
         f"{one.lost:.1f}")
        for name, one in result.words.items()
        if name == "" or one.limit is not None
    ]  # fmt: skip
    return Table(
        "What is cut off",
        ("", "words read", "questions that are longer", "words cut off, on average"),
        tuple(rows),
        "Of main questions with three basic questions of GBQD. The papers say that none has more than 26 words.",
    )


def _vqabq(result: Noised) -> list[Table]:
    found = {player: probes[VQABQ] for player, probes in result.players.items()}
    *same, last = next(iter(found.values())).tables
    rows = tuple((player, *(cell(one) for one in row)) for player, one in found.items() for row in one.tables[-1].rows)
    changes = tuple((player, one.verdict) for player, one in found.items())
    return [
        *(replace(table, title=f"VQABQ: {table.title}") for table in same),
        Table(f"VQABQ: {last.title}", ("player", *last.columns), rows, last.note),
        Table("VQABQ: does it help?", ("player", "in words"), changes),
    ]


def _rankings(result: Noised) -> Table:
    return Table(
        "Rankings",
        ("", "pool", "left out", "time", "gap: median", "largest", "shared", "sha256"),
        tuple(
            (
                name, f"{one.pool:,}", "–" if one.left_out is None else f"{one.left_out:.1f}", f"{one.seconds:,.0f} s",
                *("–" if gap is None else f"{gap:.1e}" for gap in (one.gap, one.largest_gap)),
                f"{result.overlap[name]:.1f}",
                next(iter(one.files.values()))["sha256"][:16],
            )
            for name, one in result.made.items()
        ),
        f"Of {result.questions:,} main questions. Left out: questions of the pool that ask the same, on average. "
        "Shared: of the 21 basic questions, those that the first ranker chose over the same pool, too.",
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def noise_figures(result: Noised) -> list[Figure]:
    """Figure 5 (accuracy of every player over both pools), and Figures 6 and 9 (the rankers, mean over players)."""
    drawn = []
    for pool in POOLS:
        lines = []
        for player, found in result.players.items():
            one = found[_first(result, pool)]
            levels, *_ = _curve(one)
            every = [one.clean or levels[0], *levels]
            names = ("MQ only", *partition_names(len(levels)))
            lines.append(line(player, names, every))
        drawn.append(Figure(f"Accuracy by noise level, {pool}", "line", tuple(lines), "partition", "accuracy"))
    for pool in POOLS:
        lines = []
        for probe in _ranked(result, pool):
            curves = [_curve(found[probe])[0] for found in result.players.values()]
            means = tuple(_mean([level.value for level in step]) for step in zip(*curves, strict=True))
            lines.append(Series(_label(probe), tuple(partition_names(len(means))), means))
        drawn.append(Figure(f"Rankers over {pool}, mean over players", "line", tuple(lines), "partition", "accuracy"))
    return drawn


def record(result: Noised) -> dict[str, Any]:
    """Everything but the failures, which quote the data, and what tables and figures say anyway."""
    players = {
        name: {
            probe: {"verdict": one.verdict, "rows": one.rows}
            for probe, one in found.items()
            if probe.endswith("-lasso")
        }
        for name, found in result.players.items()
    }
    return {**vars(result), "players": players}


EXPERIMENT = Experiment("noise", NoiseStudy, run, noise_tables, noise_figures, record)
