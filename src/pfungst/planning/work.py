"""Plans of work that asks nobody: a small part of it is done, and what that took is scaled up."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pfungst.core import Dataset, Example
from pfungst.core.estimate import peak_memory, shown_seconds, size_of
from pfungst.core.files import read_json
from pfungst.core.threads import available_cores

if TYPE_CHECKING:
    from pfungst.experiments import Experiment
    from pfungst.experiments.audit import ScorerConfig
    from pfungst.probes.noise.bqd import MainQuestion
    from pfungst.probes.noise.build import RankSettings
    from pfungst.training import FitConfig, Prepared

MAIN, POOL = 40, 4_000
"""Main questions and questions of the pool that are ranked to measure."""
EXAMPLES = 1_000
"""Examples that decoys are made for, or scorers trained on, to measure."""
SCENES = 4, 16
"""Scenes that are made to measure: few and more, which tells what one takes from what all take together."""
STEPS = 4
"""Training steps to measure, and as many checks."""
PICTURED = 200
"""Examples that are prepared for training to measure: their images may have to be drawn."""
FLOAT = 4


@dataclass(frozen=True)
class WorkPlan:
    """What a command would take."""

    command: str
    amounts: Mapping[str, int] = field(default_factory=dict)
    """What there is to do, by name."""
    seconds: float | None = None
    memory: int | None = None
    disk: int | None = None
    how: tuple[str, ...] = ()
    """What the numbers rest on, and what cannot be told, in sentences."""


def plan_rank(main: Sequence[MainQuestion], pool: Sequence[str], settings: RankSettings) -> WorkPlan:
    """A ranking: a few main questions are ranked on a part of the pool."""
    from pfungst.probes.noise.bqd import write_bqd
    from pfungst.probes.noise.build import SHARD, rank_settings
    from pfungst.probes.noise.pool import Pool

    texts = list(dict.fromkeys(one.text for one in main))
    whole = list(Pool.of(pool).questions)
    part = _spread(whole, max(POOL, 2 * settings.k))
    asked = [replace(main[0], text=text) for text in _spread(texts, MAIN)]
    few, many = asked[: len(asked) // 4 or 1], asked[len(asked) // 4 :] or asked
    with _own_cache():
        rank_settings(few[:2], part[: 2 * settings.k + 2], settings)  # compiles and loads
        cold = _timed(lambda: rank_settings(few, part, settings))
        again = _timed(lambda: rank_settings(few, part, settings))  # from here on the vectors are there
        more = _timed(lambda: rank_settings(many, part, settings))
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "some.parquet"
            sizes = []
            for some in (few, many):
                write_bqd(file, some, part, rank_settings(some, part, settings), asdict(settings))
                sizes.append(file.stat().st_size)
    row = max(0.0, (sizes[1] - sizes[0]) / max(1, len(many) - len(few)))
    disk = max(0.0, sizes[1] - row * len(many)) + row * len(main)
    scale = len(whole) / len(part)
    each = max(0.0, (more - again) / max(1, len(many) - len(few)))
    portion = max(0.0, again - each * len(few))
    once = max(0.0, cold - again)
    vectors = _dimension(settings) * FLOAT * (len(whole) + len(texts))
    return WorkPlan(
        "rank",
        {"main questions": len(main), "distinct": len(texts), "pool": len(whole), "basic questions each": settings.k},
        scale * (once + portion * -(-len(texts) // SHARD) + each * len(texts)),
        peak_memory() + vectors,
        round(disk),
        (
            f"Time: {len(asked)} main questions on {len(part):,} questions of the pool took {each * 1000:.1f} ms each, "
            f"{portion:.2f} s for a portion of {SHARD:,} and {once:.1f} s once; all grow as the pool does. "
            "Vectors that are in the cache already make it shorter.",
            *_busy(),
        ),
    )


def plan_decoys(data: Dataset, make: Callable[[Sequence[Example], Path], int]) -> WorkPlan:
    """Decoys: made for a part of the split, twice, which tells how the time grows.

    make: makes decoys for some examples, writes them to a file and returns its bytes.
    """
    large = _spread(list(data), EXAMPLES)
    small = large[: max(1, len(large) // 2)]
    times = []
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "decoys.parquet"
        with _own_cache():
            make(small[:50], file)
        for some in (small, large):
            with _own_cache():
                began = perf_counter()
                size = make(some, file)
                times.append(perf_counter() - began)
    # Time is a n + b n^2, with a and b from both parts.
    n, m, count = len(small), len(large), len(data)
    square = max(0.0, (times[1] - times[0] * m / n) / (m * m - n * m)) if m > n else 0.0
    linear = max(0.0, times[1] / m - square * m)
    how = (
        f"Time: {n:,} examples took {times[0]:.1f} s and {m:,} took {times[1]:.1f} s; {linear * 1e3:.2f} ms an example "
        f"and {square * 1e9:.1f} ns a pair of examples.",
        *_busy(),
    )
    seconds = linear * count + square * count * count
    return WorkPlan("decoys", {"examples": count}, seconds, peak_memory(), round(size / m * count), how)


def plan_audit(
    train: Dataset, test: Dataset | None, run: Callable[[Sequence[Example], ScorerConfig], object], config: ScorerConfig
) -> WorkPlan:
    """An audit: scorers are trained on a part for one epoch and for two, which tells what an epoch takes."""
    some = _spread(list(train), EXAMPLES)
    short = replace(config, epochs=1, seeds=1)
    with _own_cache():
        run(some[:100], short)
        one = _timed(lambda: run(some, short))
        two = _timed(lambda: run(some, replace(short, epochs=2)))
    epoch = max(0.0, two - one)
    scale = (len(train) + len(test or ())) / len(some)
    rest = max(0.0, one - epoch)
    return WorkPlan(
        "audit",
        {"examples": len(train) + len(test or ()), "epochs at most": config.epochs, "seeds": config.seeds},
        scale * (rest + epoch * config.epochs * config.seeds),
        peak_memory(),
        0,
        (
            f"Time: at most; {len(some):,} examples took {epoch:.2f} s an epoch of all scorers and {rest:.1f} s for "
            "the rest, and scorers may stop early. The time for decoys grows faster than the number of examples: see "
            "`pfungst plan decoys`.",
            *_busy(),
        ),
    )


def plan_world(scenes: int, make: Callable[[int, Path], object]) -> WorkPlan:
    """A world: a few scenes are made, then some more.

    make: makes so many scenes with all that belongs to them, in a folder.
    """
    few, more = (min(count, scenes) for count in SCENES)
    with tempfile.TemporaryDirectory() as place:
        make(1, Path(place) / "first")  # compiles and loads
        first = _timed(lambda: make(few, Path(place) / "few"))
        second = _timed(lambda: make(more, Path(place) / "more"))
        disk = size_of(Path(place) / "more") / more
    each = max(0.0, second - first) / (more - few) if more > few else second / more
    once = max(0.0, second - each * more)
    how = f"Time: {few} scenes took {first:.1f} s and {more} took {second:.1f} s: {each * 1000:.0f} ms each."
    return WorkPlan(
        "world make", {"scenes": scenes}, once + each * scenes, peak_memory(), round(disk * scenes), (how, *_busy())
    )


def plan_train(
    train: Dataset,
    validation: Dataset | None,
    config: FitConfig,
    prepare: Callable[[Dataset, Path], Prepared],
    learn: Callable[[Prepared, Path, FitConfig], object],
) -> WorkPlan:
    """A training: a part of the data is prepared, and a few steps and checks are made with it.

    prepare: writes the arrays of some examples to a folder. learn: trains on them in another, as it is told.
    """
    count, held = len(train), 0.1 * len(train) if validation is None else len(validation)
    some = train.subset(_spread(list(train), PICTURED))
    short = replace(config, steps=STEPS, check_every=3 * STEPS, seconds=0.0, patience=0)
    with tempfile.TemporaryDirectory() as place, _own_cache():
        folder = Path(place)
        prepared = prepare(train.subset(list(some)[: len(some) // 4 or 1]), folder / "few")  # compiles and loads
        began = perf_counter()
        prepared = prepare(some, folder / "data")
        # Images are what takes time and space, and several questions may be about one.
        preparing = (perf_counter() - began) / _pictures(some)
        arrays = size_of(folder / "data") / _pictures(some)
        learn(prepared, folder / "first", replace(short, steps=1))
        base = _timed(lambda: learn(prepared, folder / "base", short))
        longer = _timed(lambda: learn(prepared, folder / "longer", replace(short, steps=3 * STEPS)))
        checked = _timed(lambda: learn(prepared, folder / "checked", replace(short, check_every=1)))
        written = size_of(folder / "base")
    # A step has as many questions in the whole run as the part could fill; a check asks a tenth of the part.
    filled = min(1.0, 0.9 * len(some) / config.batch)
    step = max(0.0, longer - base) / (2 * STEPS) / filled
    check = max(0.0, checked - base) / (STEPS - 1) / (0.1 * len(some))
    learnt = count if validation is not None else count - held
    steps = config.total(round(learnt))
    checks = steps // config.check_every + 2
    pictures = _pictures(train) + _pictures(validation or ())
    return WorkPlan(
        "train",
        {
            "examples": count,
            "images": pictures,
            "steps at most" if config.patience else "steps": steps,
            "checks": checks,
        },
        preparing * pictures + base + step * steps + check * held * checks,
        round(peak_memory() + arrays * pictures),
        round(arrays * pictures + written),
        (
            f"Time: {preparing * 1000:.1f} ms to prepare an image with its questions, {step * 1000:.0f} ms a step of "
            f"{config.batch} questions and {check * 1000:.1f} ms a question in a check, in one process. With --on "
            "processes several share every step.",
            *_busy(),
        ),
    )


def plan_experiment(experiment: Experiment[Any, Any], out: Path, ledger: Path = Path("results")) -> WorkPlan:
    """A reproduction: nothing of it can be done in part, so what is known of other runs is told."""
    how = []
    done = _seconds(out / "run.json")
    if done is not None:
        how.append(f"{out} was worked on for {shown_seconds(done[0])} already; what is finished is not done again.")
    for protocol in sorted(ledger.glob("*/protocol.toml")):
        found = _seconds(protocol.with_name("run.json"))
        if found is not None and _runs(protocol.read_text("utf-8"), experiment.name):
            how.append(f"The published run {protocol.parent.name} took {shown_seconds(found[0])} on {found[1]}.")
    how = how or [f"No run of {experiment.name} is known here."]
    return WorkPlan(
        f"reproduce {experiment.name}", {}, None, None, None,
        (*how, "What it will take here cannot be predicted: it trains, and stops when it has learnt enough."),
    )  # fmt: skip


def _runs(protocol: str, name: str) -> bool:
    return f'experiment = "{name}"' in protocol or f"reproduce {name} " in protocol


def _busy() -> list[str]:
    """What a measurement on a machine that others use is worth."""
    load, cores = os.getloadavg()[0], available_cores()
    if load <= cores + 1:
        return []
    return [
        f"Other work kept this machine busy meanwhile (load {load:.0f} on {cores} cores): on an idle machine it would "
        "be faster."
    ]


def _timed(do: Callable[[], object]) -> float:
    began = perf_counter()
    do()
    return perf_counter() - began


def _seconds(file: Path) -> tuple[float, str] | None:
    if not file.exists():
        return None
    told = read_json(file)
    return float(told.get("seconds", 0)), str(told.get("device", "an unknown machine"))


def _spread(items: list[Any], count: int) -> list[Any]:
    """So many of the items, evenly spread: the first ones are often alike."""
    if len(items) <= count:
        return items
    return [items[number * len(items) // count] for number in range(count)]


def _pictures(data: Iterable[Example]) -> int:
    return len({example.image_id or example.id for example in data})


def _dimension(settings: RankSettings) -> int:
    if settings.ranker not in ("lasso", "cosine"):
        return 0
    from pfungst.text import get_encoder

    return int((get_encoder(settings.encoder) if settings.encoder else get_encoder()).dim)


@contextmanager
def _own_cache() -> Iterator[None]:
    """What was measured once must not be found in the cache the next time."""
    before = os.environ.get("PFUNGST_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PFUNGST_CACHE"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["PFUNGST_CACHE"]
            else:
                os.environ["PFUNGST_CACHE"] = before
