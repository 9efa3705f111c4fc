"""What every experiment has, and what keeps its finished parts.

An experiment is a file with a frozen configuration (a doc line under each field: it is the help of the option), a
function `run(config, out, *, progress)` and a function `tables(result)`, which may have a file of its own. The last of
them ends with the `Experiment` that names all three, and is named in `EXPERIMENTS` below. The top of these files
imports nothing heavy: `pfungst reproduce --help` reads it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pfungst.core import Figure, Place, Table, UsageError, files
from pfungst.core.files import file_name, jsonable, read_json, write_atomic, write_json
from pfungst.core.registry import Registry
from pfungst.core.settings import REQUIRED, settings_of
from pfungst.core.stats import Interval
from pfungst.core.types import Progress, no_progress

EXPERIMENTS = Registry(
    "experiment",
    "pfungst.experiments",
    {
        "attention": "pfungst.experiments.attention:EXPERIMENT",
        "basic-questions": "pfungst.experiments.noise_data:EXPERIMENT",
        "clevr": "pfungst.experiments.clevr:EXPERIMENT",
        "committee": "pfungst.experiments.committee:EXPERIMENT",
        "cycle": "pfungst.experiments.cycle_layout:EXPERIMENT",
        "daquar": "pfungst.experiments.daquar:EXPERIMENT",
        "failure": "pfungst.experiments.failure:EXPERIMENT",
        "games": "pfungst.experiments.games:EXPERIMENT",
        "harden": "pfungst.experiments.harden:EXPERIMENT",
        "matrix": "pfungst.experiments.matrix_table:EXPERIMENT",
        "noise": "pfungst.experiments.noise_table:EXPERIMENT",
        "paraphraser": "pfungst.experiments.paraphraser:EXPERIMENT",
        "photographs": "pfungst.experiments.photographs:EXPERIMENT",
        "questions": "pfungst.experiments.questions:EXPERIMENT",
        "data-limit": "pfungst.experiments.data_limit:EXPERIMENT",
        "decoys": "pfungst.experiments.decoys:EXPERIMENT",
    },
)
"""By name, which is the name of the command."""

ENDS = ("value", "low", "high")
"""What a number with its interval is called, in objects and in JSON."""

C = TypeVar("C")
C_in = TypeVar("C_in", contravariant=True)
R = TypeVar("R")
R_out = TypeVar("R_out", covariant=True)


class Runs(Protocol[C_in, R_out]):
    """Does the work. What is finished stays in `out`, so that the same call goes on where it was stopped."""

    def __call__(self, config: C_in, out: Path, *, progress: Progress) -> R_out: ...


@dataclass(frozen=True)
class Experiment(Generic[C, R]):
    """One experiment. The docstring of its `config` is the help of the command."""

    name: str
    config: type[C]
    """A frozen dataclass. Its fields are the options of the command, see `option`, `argument` and `lifted`."""
    run: Runs[C, R]
    tables: Callable[[R], Sequence[Table]]
    figures: Callable[[R], Sequence[Figure]] = lambda result: ()
    """Drawn as OUT/NAME.svg, OUT/NAME-2.svg ..."""
    record: Callable[[R], Any] = jsonable
    """The result as JSON: an object, which `--json` prints and OUT/result.json holds. Its `missing`, where it has one,
    counts runs that are not finished: the exit code is then 1."""
    out: str = ""
    """Folder of the results where the user names none [runs/NAME]; `{field}` stands for a field of the config."""

    def folder(self, config: C) -> Path:
        """Where the results go if nobody says otherwise."""
        fields = {name: file_name(str(value)) for name, value in vars(config).items()}
        return Path((self.out or f"runs/{self.name}").format(**fields))


def get_experiment(name: str) -> Experiment[Any, Any]:
    """An experiment by its name."""
    found: Experiment[Any, Any] = EXPERIMENTS.get(name)
    return found


def perform(experiment: Experiment[C, R], config: C, out: str | Path = "", *, progress: Progress = no_progress) -> R:
    """Run an experiment; OUT then holds experiment.json (what was run), result.json, tables.md and the figures.

    run.json says with which versions, on which machine, and how long it took.
    """
    from pfungst import __version__
    from pfungst.experiments.environment import noted
    from pfungst.report.plots import draw_alone

    folder = Path(out) if out else experiment.folder(config)
    with noted(folder, device=getattr(config, "device", "cpu")):
        result = experiment.run(config, folder, progress=progress)
    tables, figures = experiment.tables(result), experiment.figures(result)
    write_json(
        folder / "experiment.json", {"experiment": experiment.name, "pfungst": __version__, "config": jsonable(config)}
    )
    write_json(folder / "result.json", {**experiment.record(result), "tables": tables, "figures": figures})
    write_atomic(folder / "tables.md", "\n".join(markdown(table) for table in tables).encode())
    for number, figure in enumerate(figures, 1):
        name = f"{experiment.name}-{number}.svg" if number > 1 else f"{experiment.name}.svg"
        write_atomic(folder / name, draw_alone(figure).encode())
    return result


def markdown(table: Table) -> str:
    """A table as Markdown."""
    from pfungst.report.card import format_cell

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    rows = [line([str(format_cell(jsonable(cell))) for cell in row]) for row in table.rows]
    head = [line(table.columns), "|" + "---|" * len(table.columns)]
    note = ["", table.note] if table.note else []
    return "\n".join([f"### {table.title}", "", *head, *rows, *note]) + "\n"


def in_percent(one: Any, sign: str = "", unit: str = "") -> str:
    """`36.6 [35.1, 38.0]` of a mapping or an object with value, low and high. sign: `+` for a difference."""
    value, low, high = (100 * (one[end] if isinstance(one, Mapping) else getattr(one, end)) for end in ENDS)
    return f"{value:{sign}.1f}{unit} [{low:.1f}, {high:.1f}]"


def span(found: Interval) -> dict[str, float]:
    """An interval as results hold it."""
    return {end: getattr(found, end) for end in ENDS}


def check_known(names: Sequence[str], known: Collection[str], sentence: str) -> None:
    """UsageError for a name that is not known; in the sentence, {0} is the name and {1} are those there are."""
    for name in names:
        if name not in known:
            raise UsageError(sentence.format(name, ", ".join(known)))


def option(default: Any = MISSING, *names: str, factory: Any = MISSING, free: bool = False) -> Any:
    """A field of a configuration that is an option of the command: `limit: int | None = option(None, free=True)`.

    A plain default does the same; this says more.

    names : of the option, where not `--` and the name of the field: `option("world", "--data", "-d")`
    free : may change when a run is continued (a device, more seeds); see `claim`
    """
    return dataclasses.field(default=default, default_factory=factory, metadata={"names": names, "free": free})


def argument(default: Any = MISSING, *, free: bool = False) -> Any:
    """A field that is given by its place, not by a name: `pfungst reproduce failure MODEL MODEL`. `free` as in
    `option`."""
    return dataclasses.field(default=default, metadata={"argument": True, "free": free})


def lifted(default: Any, *fields: str, names: tuple[str, ...] = ()) -> Any:
    """A field that is itself a configuration. The option takes `key=value`; `fields` are options of their own:

    fit: FitConfig = lifted(FitConfig(steps=4000), "steps", "batch")       # --fit rate=0.01 --steps 500
    """
    return dataclasses.field(default_factory=lambda: default, metadata={"lifted": fields, "names": names})


def claim(out: Path, config: Any, **more: Any) -> None:
    """One folder, one configuration: note it in OUT/settings.json, or refuse to mix this run with another one.

    Fields marked `free` may change. `more` must stay the same too, such as the fingerprint of the data.
    """
    fixed = {field.name for field in dataclasses.fields(config) if not field.metadata.get("free")}
    known = {setting.name: setting.default for setting in settings_of(type(config))}
    defaults = {name: known[name] for name in fixed if known[name] is not REQUIRED}
    files.claim(out / "settings.json", {**{name: getattr(config, name) for name in fixed}, **more}, defaults=defaults)


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """The JSON of a finished part; made and written if the file is not there."""
    if not path.exists():
        write_json(path, make())
    return read_json(path)


def here(jobs: int) -> bool:
    """Whether `run_cells` does its work in this process, where it can tell how far a cell is."""
    from pfungst.compute import place_of_work

    return jobs == 1 and place_of_work().on == "local"


def run_cells(
    work: Callable[[Any], bytes] | Callable[[Any, Path], None],
    cells: Mapping[str, Any],
    out: Path,
    *,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> dict[str, Path]:
    """Do every cell that OUT does not hold yet, `jobs` at a time in processes of their own, or where
    `pfungst.compute.working` says; file name -> file.

    work : `work(shard) -> bytes`, or `work(shard, path)`; `shard.payload` is the cell. With several jobs it must be
        importable (a function at the top of a module, or a partial of one)
    cells : name of the output file -> what the cell is, as JSON holds it
    """
    from pfungst.compute import Shard, place_of_work, run_shards, working

    place = Place("processes", jobs) if jobs > 1 else place_of_work()
    # All have the index 0: more models or seeds, added later, must not make finished cells look like other ones.
    shards = [Shard(0, name, payload) for name, payload in cells.items()]
    with working(place):
        files = run_shards(work, shards, out, progress=progress, what="runs")
    return dict(zip(cells, files, strict=True))
