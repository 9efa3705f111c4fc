"""What an exam is: its options, and exam.json, which says them again.

`ExamSpec` is at once the arguments of `pfungst.examine`, the options of `pfungst examine` and of its dry run, and what
exam.json keeps. A new option is a field here, and the place that uses it.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from pfungst.core.asker import Place
from pfungst.core.errors import PfungstError
from pfungst.core.files import jsonable, write_json
from pfungst.core.settings import argument, option, shaped
from pfungst.core.types import (
    Dataset,
    Example,
    Player,
    Probe,
    Progress,
    no_progress,
)


@dataclass(frozen=True)
class ExamSpec:
    """Ask the player everything the probes want to know, and write the run folder with its report."""

    player: str | Player | Callable[..., str] = argument()
    """A player: oracle, my_module:answer, hf:MODEL, openai:MODEL@URL ... In Python also a player itself, or a function
    `(image, question) -> text`."""
    data: str | Path | Dataset | Sequence[Example] = option("world", "--data", "-d")
    """The data set: a path, or world. In Python also a data set itself, or a list of examples."""
    probes: Sequence[Probe | str] | None = option(None, "--probe", "-p")
    """A probe, with settings as name:key=value. In Python probes or their specs. By default `control` and `blind`; only
    `control` for recorded answers, which know nothing of a disturbance, and for data without images."""
    out: Path | str | None = option(None, "--out", "-o")
    """The run folder [runs/PLAYER-DATA]. Running into the same folder again resumes."""
    _: KW_ONLY
    metric: str | None = None
    """How answers are judged [what the data set says]. `judge:PLAYER` lets a player judge them."""
    matcher: str | None = None
    """How replies are read: lenient, strict ... [what the player says]. Players that chat name `lenient`; the text of
    all others is the answer."""
    seed: int = 0
    """Seed of every random choice."""
    limit: int | None = option(None, least=None)
    """Ask about the first N questions only, each in all its wordings. Pools (basic questions, decoys) are still drawn
    from the whole data set."""
    only: Sequence[str] = ()
    """Only the example with this id. In Python the ids of all."""
    player_options: Mapping[str, Any] = option(MISSING, "--option", factory=dict)
    """A setting of the player, key=value; repeatable."""
    open_questions: bool = option(False, "--open")
    """Leave out the choices in the data: any answer may be given."""
    max_queries: int | None = option(None, least=0)
    """Maximum number of queries to ask the player. Answers it gave before are free."""
    max_errors: int | None = option(None, least=0)
    """How many queries may fail before the run stops [10, or 1% if that is more; the exit code is then 1]; a broken
    image counts once. Trials that lack an answer are left out, counted and shown; without a number they are among
    `Run.problems`."""
    precision: float | None = option(None, kept=True, least=None)
    """Stop a probe once its drop is known to plus or minus this, such as 0.02. Images come in random order, and
    `max_queries` goes to the probe with the widest interval first."""
    budget: str | float | None = None
    """Maximum amount to spend, such as 5$; the probe with the widest interval is asked next. It is in the currency of
    the player's prices (the options price_in and price_out of a player behind a server)."""
    data_options: Mapping[str, Any] = option(MISSING, factory=dict, shown=False)
    """Options of `pfungst.data.load`."""
    place: Place | None = option(None, shown=False)
    """Where probes that search, such as the game, do their work, and where rankings are made."""
    replicas: str | int | None = None
    """Copies of the player that are asked at once: a number, or auto for one per GPU or core; with settings as
    4:timeout=600,memory=8. Each has a process of its own, or runs on the Ray cluster that `place` names; the player
    must be a spec."""
    progress: Progress = option(no_progress, shown=False)
    """Told how far it is."""

    def __post_init__(self) -> None:
        for name in ("player_options", "data_options"):
            object.__setattr__(self, name, getattr(self, name) or {})  # None is as good as none

    def kept(self) -> dict[str, Any]:
        """The options that stand in exam.json by their own names."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.metadata.get("kept")}
        return {name: value for name, value in given.items() if value is not None}


def exam_config(
    spec: ExamSpec,
    player: Player,
    data: Dataset,
    probes: Sequence[Probe],
    seed: int,
    matcher: str,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """What exam.json says of an exam. `more`: further things to remember, also of the player and the data."""
    return {
        "pfungst": sys.modules[__name__.partition(".")[0]].__version__,
        "python": platform.python_version(),
        "matcher": matcher,
        **more,
        "player": {
            "spec": (spec.player or None) if isinstance(spec.player, str) else None,
            "options": dict(spec.player_options),
            **more.get("player", {}),
            "name": player.name,
            "fingerprint": player.fingerprint,
            "reads_scenes": bool(player.reads_scenes),
            "reads_ids": bool(player.reads_ids),
            **({} if player.reads_images else {"reads_images": False}),
            **({"takes": sorted(player.takes)} if player.takes else {}),
        },
        "data": {
            "spec": str(spec.data) if isinstance(spec.data, str | Path) else None,
            "options": dict(spec.data_options),
            "limit": spec.limit,
            "only": list(spec.only),
            "open": spec.open_questions,
            **more.get("data", {}),
            "name": data.name,
            "metric": data.metric,
            "fingerprint": data.fingerprint,
            "examples": len(data),
            "originals": len(data.originals),
            "skipped": data.skipped,
        },
        "probes": [{"name": probe.name, "settings": jsonable(_settings(probe))} for probe in probes],
        "seed": seed,
        **spec.kept(),
        **({} if spec.budget is None else {"share": True}),
    }


def _settings(probe: Probe) -> dict[str, Any]:
    return {one.name: getattr(probe, one.name) for one in fields(probe)} if is_dataclass(probe) else {}


def write_config(run: Path, config: Mapping[str, Any], free: bool) -> None:
    """Write exam.json; refuse a folder that holds the exam of another player or of other data, unless it is free."""
    path = run / "exam.json"
    if path.exists() and not free:
        before = read_config(run)
        for part in ("player", "data"):
            if before[part]["fingerprint"] != config[part]["fingerprint"]:
                raise PfungstError(
                    f"{run} holds the exam of another {part} ({before[part]['name']}, "
                    f"{before[part]['fingerprint'][:16]}). Choose another run folder."
                )
    write_json(path, config)


def read_config(run: Path) -> dict[str, Any]:
    """What the exam.json of a run folder says."""
    path = run / "exam.json"
    try:
        config: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if (run / "game.json").exists():
            raise PfungstError(
                f"{run} was written by `pfungst play` of an earlier version, whose folders this version cannot read. "
                "Play again into a new folder."
            ) from None
        raise PfungstError(f"{run} is not a run folder: it has no exam.json.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise PfungstError(f"{path} cannot be read ({error}).") from error
    try:
        shaped(config, _Config, "the file")
    except ValueError as error:
        raise PfungstError(f"{path} is not the configuration of an exam ({error}).") from None
    return config


def labelled(path: Path, label: str) -> Path:
    """`findings.json` with the label `exact` is `findings-exact.json`."""
    return path.with_name(f"{path.stem}-{label}{path.suffix}") if label else path


# --- what exam.json says, as far as other parts of the package rely on it ---------------------------------------------


@dataclass(frozen=True)
class _Player:
    name: str
    fingerprint: str
    spec: str | None = None
    options: dict[str, Any] | None = None
    reads_scenes: bool = False
    reads_ids: bool = False
    reads_images: bool = True
    takes: list[str] | None = None


@dataclass(frozen=True)
class _Data:
    name: str
    metric: str
    fingerprint: str
    examples: int
    originals: int | None = None
    skipped: int = 0
    spec: str | None = None
    options: dict[str, Any] | None = None
    limit: int | None = None
    only: list[str] | None = None
    open: bool = False


@dataclass(frozen=True)
class _Probe:
    name: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class _Config:
    player: _Player
    data: _Data
    probes: list[_Probe]
    seed: int
    matcher: str | None = None
    precision: float | None = None
    share: bool = False
