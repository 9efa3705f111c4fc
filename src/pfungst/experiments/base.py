"""What every experiment has, and what keeps its finished parts.

An experiment is a file with a frozen configuration (a doc line under each field: it is the help of the option), a
function `run(config, out, *, progress)` and a function `tables(result)`, which may have a file of its own. The last of
them ends with the `Experiment` that names all three, and is named in `EXPERIMENTS` below. The top of these files
imports nothing heavy: `pfungst reproduce --help` reads it. run.json says what a run was made with.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeVar

from pfungst.core import Figure, Place, Table, UsageError, files
from pfungst.core.files import file_name, jsonable, read_json, write_atomic, write_json
from pfungst.core.registry import Registry
from pfungst.core.settings import REQUIRED, settings_of
from pfungst.core.settings import argument as argument  # for the configurations of experiments
from pfungst.core.settings import lifted as lifted
from pfungst.core.settings import option as option
from pfungst.core.types import Progress, no_progress

EXPERIMENTS = Registry(
    "experiment",
    "pfungst.experiments",
    {
        "attention": "pfungst.experiments.attention:EXPERIMENT",
        "basic-questions": "pfungst.experiments.basic_questions:EXPERIMENT",
        "cycle": "pfungst.experiments.cycle_table:EXPERIMENT",
        "daquar": "pfungst.experiments.daquar:EXPERIMENT",
        "failure": "pfungst.experiments.failure:EXPERIMENT",
        "games": "pfungst.experiments.games:EXPERIMENT",
        "harden": "pfungst.experiments.harden:EXPERIMENT",
        "matrix": "pfungst.experiments.matrix:EXPERIMENT",
        "label-keeping": "pfungst.experiments.label_keeping:EXPERIMENT",
        "noise": "pfungst.experiments.noise:EXPERIMENT",
        "photographs": "pfungst.experiments.photographs:EXPERIMENT",
        "questions": "pfungst.experiments.questions:EXPERIMENT",
        "data-limit": "pfungst.experiments.data_limit:EXPERIMENT",
        "decoys": "pfungst.experiments.decoys:EXPERIMENT",
    },
)
"""By name, which is the name of the command."""

PACKAGES = ("numpy", "torch", "transformers")
"""Whose versions may change a number."""

C = TypeVar("C")
R = TypeVar("R")


@dataclass(frozen=True)
class Experiment(Generic[C, R]):
    """One experiment. The docstring of its `config` is the help of the command."""

    name: str
    config: type[C]
    """A frozen dataclass. Its fields are the options of the command, see `option`, `argument` and `lifted`."""
    run: Callable[..., R]
    """`run(config, out, *, progress)`. What is finished stays in `out`: the same call goes on where it was stopped."""
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


def check_known(names: Sequence[str], known: Collection[str], sentence: str) -> None:
    """UsageError for a name that is not known; in the sentence, {0} is the name and {1} are those there are."""
    for name in names:
        if name not in known:
            raise UsageError(sentence.format(name, ", ".join(known)))


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


@contextmanager
def noted(folder: Path, *, device: str = "cpu") -> Iterator[None]:
    """Write FOLDER/run.json: when the work inside began, and once it ends, with what it was made and how long it took.

    Work that was stopped is noted as `unfinished`. Where it is continued, the seconds are added up, and machines and
    versions other than the first ones are kept as `later_machines`.
    """
    file = folder / "run.json"
    before = read_json(file) if file.exists() else {}
    began, started = perf_counter(), datetime.now(UTC)
    note = {"started": started.strftime("%Y-%m-%d %H:%M UTC"), "seconds": 0.0, **before, **_code(before)}
    write_json(file, {**note, "unfinished": True})
    unfinished = {"unfinished": True}
    try:
        yield
        unfinished = {}
    finally:
        seconds = round(note.pop("seconds") + perf_counter() - began, 1)
        note.pop("unfinished", None)
        write_json(file, {**_made_with(note, device), "seconds": seconds, **unfinished})


def _made_with(note: Mapping[str, Any], device: str) -> dict[str, Any]:
    """The note with this machine and its versions: as the first, or beside others."""
    from pfungst import __version__

    machine = {
        "pfungst": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": _gpu(device) or _processor(),
        "packages": {name: version(name) for name in PACKAGES if find_spec(name) is not None},
    }
    later = list(note.get("later_machines", ()))
    if {**machine, **note} != {**note, **machine} and machine not in later:
        later.append(machine)
    return {**machine, **note, **({"later_machines": later} if later else {})}


def git(folder: Path, *words: str) -> str:
    """What git says, or nothing where there is no git."""
    try:
        utc = {**os.environ, "TZ": "UTC"}
        done = subprocess.run(["git", *words], cwd=folder, env=utc, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def changed_code() -> bool:
    """Whether the package is under version control and has changes that are not committed."""
    return bool(git(Path(__file__).parent.parent, "status", "--porcelain", "--", "."))


def _code(before: dict[str, Any]) -> dict[str, Any]:
    """The commit that the run began from, and others that it was continued from. Nothing where that is unknown: for
    code that is not under version control, such as an installed package, and runs that began without a note."""
    home = Path(__file__).parent.parent
    if not git(home, "ls-files", "__init__.py") or (before and "commit" not in before):
        return {}
    now = git(home, "rev-parse", "HEAD")
    changed = changed_code() or before.get("uncommitted_changes", False)
    first, *later = dict.fromkeys([before.get("commit", now), *before.get("later_commits", ()), now])
    return {"commit": first, "uncommitted_changes": changed, **({"later_commits": later} if later else {})}


def _gpu(device: str) -> str:
    torch = sys.modules.get("torch")
    if torch is None or not str(device).startswith("cuda") or not torch.cuda.is_available():
        return ""
    return str(torch.cuda.get_device_name(device))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
