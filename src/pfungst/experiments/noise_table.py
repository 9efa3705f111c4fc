"""The tables and figures of `pfungst reproduce noise`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from pfungst.core import Figure, Finding, Findings, Series, Table
from pfungst.experiments.base import ENDS, Experiment, in_percent
from pfungst.experiments.noise import CUT, UNPREPARED, VQABQ, Noised, NoiseStudy, run
from pfungst.experiments.noise_data import POOLS
from pfungst.probes.noise.appending import partition_names
from pfungst.probes.noise.probe import TYPES

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


def noise_tables(result: Noised) -> list[Table]:
    """As the papers number them: 2 and 3, 4, 9 to 22, 8, the lambdas, the words, 5 to 7."""
    made = [_partitions(result, pool) for pool in POOLS]
    made += [_robustness(result), _order(result)]
    made += [_rankers(result, pool) for pool in POOLS]
    made.append(_effective(result))
    first = _first(result, "GBQD")
    lambdas = {_label(name): name for name in result.made if "-lambda-" in name}
    made += [
        _compared(result, "Without preprocessing", "pool", {"prepared": first, "unprepared": UNPREPARED}, "Table 8."),
        _compared(result, "Lambda", "lambda", {"1e-06": first, **lambdas}, "GBQD; the papers' lambda first."),
        _compared(result, "The limit on words", "words", {"all": first, str(result.words[""].limit): CUT}, "GBQD."),
        _words(result),
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
        for name, *cells in found[probe].tables[0].rows:
            rows.append((player, str(name), *(_percent(cell) for cell in cells)))
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
            cells += [_percent(drops[0]), _plain(shape["R_score"]), f"{paper[pool]:.2f}" if paper else "–"]
        clean = found[_first(result, "GBQD")].clean
        rows.append((player, _percent(clean), *cells))
    columns = [f"{pool}: {what}" for pool in POOLS for what in ("drop", "R_score", "R_score in the paper")]
    return Table(
        "R_score",
        ("player", "clean", *columns),
        tuple(rows),
        "Layout of Table 4, (t, m) = (0.05, 20); the drop is that of the first partition, in points.",
    )


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
            cells = [_percent(found[probe].clean), *(_percent(level) for level in levels)]
            cells += [_plain(shape[name]) for name in CURVE[:3]]
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


def _words(result: Noised) -> Table:
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
    rows = tuple(
        (player, *(_percent(cell) for cell in row)) for player, one in found.items() for row in one.tables[-1].rows
    )
    changes = tuple((player, one.verdict) for player, one in found.items())
    return [
        *(replace(table, title=f"VQABQ: {table.title}") for table in same),
        Table(f"VQABQ: {last.title}", ("player", *last.columns), rows, last.note),
        Table("VQABQ: does it help?", ("player", "in words"), changes),
    ]


def _rankings(result: Noised) -> Table:
    return Table(
        "Rankings",
        ("", "pool", "time", "gap: median", "largest", "shared", "sha256"),
        tuple(
            (
                name, f"{one.pool:,}", f"{one.seconds:,.0f} s",
                *("–" if gap is None else f"{gap:.1e}" for gap in (one.gap, one.largest_gap)),
                f"{result.overlap[name]:.1f}",
                next(iter(one.files.values()))["sha256"][:16],
            )
            for name, one in result.made.items()
        ),
        f"Of {result.questions:,} main questions. Shared: of the 21 basic questions, those that the first ranker chose "
        "over the same pool, too.",
    )  # fmt: skip


def _percent(cell: Any) -> str:
    """A share in percent with its interval; words as they are."""
    return in_percent(cell) if isinstance(cell, Finding) else "–" if cell is None else str(cell)


def _plain(one: Finding) -> str:
    return f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]"


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
            lines.append(Series(player, names, *(tuple(getattr(level, end) for level in every) for end in ENDS)))
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
