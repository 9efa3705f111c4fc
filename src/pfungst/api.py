"""The main job as functions: examine a player, rescore a run."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from html import escape
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pfungst import core
from pfungst.core import (
    Dataset,
    Exam,
    Example,
    ExamSpec,
    PfungstError,
    Place,
    Player,
    Probe,
    Progress,
    StoredPlayer,
    UsageError,
    read_config,
)
from pfungst.core.exam import Examined
from pfungst.core.files import file_name, jsonable
from pfungst.core.files import reading as reading_file
from pfungst.core.finished import note
from pfungst.core.progress import shown_in
from pfungst.core.settings import describe_settings
from pfungst.core.spec import labelled
from pfungst.core.trials import readings_in
from pfungst.core.types import no_progress

DEFAULT_PROBES = ("control", "blind")


@dataclass(frozen=True, repr=False)
class Run(core.Run):
    """A finished exam."""

    notes: tuple[str, ...] = ()
    """What the player wants the user to know, and what it used."""
    problems: tuple[str, ...] = ()
    """What could not be finished, in sentences; the same call tries it again."""

    @property
    def report(self) -> Path:
        return labelled(self.path / "report.html", self.label)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}: {', '.join(self.probes)}{f', read by {self.label}' if self.label else ''})"

    def _repr_html_(self) -> str:
        """The report card, for notebooks."""
        from pfungst.report.card import CARD_COLUMNS, card_rows

        def row(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in card_rows([jsonable(found) for found in self.findings]))
        return f"<table>{row(CARD_COLUMNS, 'th')}{body}</table><p>{escape(str(self.report))}</p>"


P = ParamSpec("P")
T = TypeVar("T")


def takes_spec(kind: Callable[P, ExamSpec]) -> Callable[[Callable[[ExamSpec], T]], Callable[P, T]]:
    """Makes a function of an `ExamSpec` one that takes what `ExamSpec` takes."""

    def made(function: Callable[[ExamSpec], T]) -> Callable[P, T]:
        @wraps(function)
        def called(*given: P.args, **options: P.kwargs) -> T:
            return function(kind(*given, **options))

        called.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
        about = [f"{one.name}: {one.text}" for one in describe_settings(kind) if one.text]
        called.__doc__ = "\n\n".join([inspect.cleandoc(function.__doc__ or ""), *about])
        return called

    return made


@takes_spec(ExamSpec)
def examine(spec: ExamSpec) -> Run:
    """Ask the player everything the probes want to know, and write the run folder with its report.

    The arguments are the fields of `pfungst.core.ExamSpec`:
    """
    return examine_and(spec)


def examine_and(spec: ExamSpec, extend: Callable[[Path], object] | None = None) -> Run:
    """`examine`; extend: adds to the run folder what the report shall have besides."""
    from pfungst.compute import working
    from pfungst.players.replicate import closing
    from pfungst.report import add_looks, add_prompts, write_report
    from pfungst.scores import get_metric
    from pfungst.scores.matchers import get_matcher

    chosen, part, parts, path = named(spec)
    reading = spec.matcher or chosen.matcher
    allowed = {} if spec.max_errors is None else {"max_errors": spec.max_errors}
    with closing(chosen):
        with shown_in(path, spec.progress) as shown, working(spec.place or Place()):
            examined = Exam(
                chosen, part, parts, get_metric(part.metric), path, spec.seed, {"matcher": reading, **allowed}, shown,
                get_matcher(reading) if reading else None, spec=spec,
            ).run_in_part()  # fmt: skip
        if not examined.finished:
            add_looks(path, chosen, part)
            add_prompts(path, chosen, part)
    told = reading_notes(examined, part.metric, reading)
    if not examined.finished:
        told = (*repeated(part), *told)
    try:
        if extend is not None:
            extend(path)
    finally:
        if extend is not None or not examined.finished or not (path / "report.html").exists():
            write_report(path, part)
    if not examined.finished:
        note(path, told)
    notes, problems = (*chosen.last_words, *told, *filter(None, [examined.reused])), examined.problems
    if spec.max_errors is None:
        problems += unanswered(examined)
    else:
        notes += unanswered(examined)
    return Run(path, notes=notes, problems=problems)


def named(spec: ExamSpec) -> tuple[Player, Dataset, list[Probe], Path]:
    """Player, examples, probes and run folder that the options name."""
    from pfungst.data.loading import select
    from pfungst.players import resolve
    from pfungst.probes import get_probe

    whole = _load(spec.data, spec.data_options)
    if spec.metric is not None:
        whole = replace(whole, metric=spec.metric)
    options = _with_money(spec)
    if spec.replicas is None:
        chosen = resolve(spec.player, data=whole, **options)
    else:
        from pfungst.players.replicate import ReplicaSettings, replicate

        chosen = replicate(
            spec.player, whole, options, ReplicaSettings.of(spec.replicas),
            on="local" if spec.place is None else spec.place.on,
            data_spec=str(spec.data) if isinstance(spec.data, str | Path) else None, data_options=spec.data_options,
        )  # fmt: skip
    part = select(whole, spec.limit, spec.only, spec.open_questions)
    path = Path(spec.out) if spec.out is not None else Path("runs") / f"{slug(chosen.name)}-{slug(whole.name)}"
    probes = spec.probes
    if probes is None:
        seen = any(example.image is not None for example in part)
        probes = DEFAULT_PROBES if seen and not chosen.has("knows") else DEFAULT_PROBES[:1]
    return chosen, part, [get_probe(probe) if isinstance(probe, str) else probe for probe in probes], path


def _with_money(spec: ExamSpec) -> Mapping[str, Any]:
    """The options of the player, with what it may spend: it counts its money itself."""
    if spec.budget is None:
        return spec.player_options
    if not isinstance(spec.player, str) or not spec.player.startswith("openai:"):
        raise UsageError(
            "A money budget needs a player that counts what it spends: openai:MODEL@URL with the options price_in and "
            "price_out. For any other player limit the queries instead, with max_queries (--max-queries)."
        )
    from pfungst.core.adaptive import money

    return {**spec.player_options, "budget": money(spec.budget) if isinstance(spec.budget, str) else spec.budget}


def rescore(
    run: str | Path,
    data: Dataset | None = None,
    probes: Sequence[Probe] | None = None,
    *,
    metric: str | None = None,
    matcher: str | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Recompute every number of a run from its answer store; the player is not asked.

    data, probes: needed only where the run was made with objects instead of specs.
    metric, matcher: judge the same answers by another metric, read the same replies by another matcher. The numbers are
        written beside the old ones, to findings-METRIC.json, findings-MATCHER.json or findings-METRIC-MATCHER.json.
    """
    import pfungst.players  # noqa: F401  judges are players
    from pfungst.probes import probe_again
    from pfungst.report import write_report
    from pfungst.scores import get_metric
    from pfungst.scores.matchers import get_matcher

    path = Path(run)
    config = read_config(path)
    data = _load(data, {}) if data is not None else load_again(config, path)
    part = part_again(replace(data, metric=metric or config["data"]["metric"]), config)
    if probes is None:
        with reading_file(path / "exam.json", "Examine again into another folder."):
            probes = [probe_again(one["name"], one["settings"]) for one in config["probes"]]
    was, before = config["player"], _told(path)
    # Of a finished run: the queries that failed, and with a precision the images that each probe asked about.
    failed = tuple((question, error) for question, error in before.get("failed", []))
    images = {probe: int(stop["images"]) for probe, stop in before.get("precision", {}).items()}
    player = StoredPlayer(
        was["name"], was["fingerprint"], was.get("reads_scenes", False), was.get("reads_ids", False), failed,
        frozenset(was.get("takes", ())), was.get("reads_images", True),
        {key: one for probe in probes for key, one in readings_in(path / "trials" / f"{probe.name}.parquet").items()},
    )  # fmt: skip
    reading = matcher or config.get("matcher", "")
    score, reader = get_metric(part.metric), get_matcher(reading) if reading else None
    # A judge's own name is shorter than its spec, which holds an address.
    named = [getattr(made, "label", name) for name, made in ((metric, score), (matcher, reader)) if name]
    label = "-".join(map(slug, named))
    # Of a budget it matters only that there was one.
    how = ExamSpec("", (), max_errors=0, precision=config.get("precision"), budget=0.0 if config.get("share") else None)
    exam = Exam(player, part, probes, score, path, config["seed"], config, progress, reader, label, how, images)
    examined = exam.run_in_part()
    write_report(path, part, label)
    notes = (*reading_notes(examined, part.metric, reading, label), *unanswered(examined))
    return Run(path, label, notes, examined.problems)


def repeated(data: Dataset) -> tuple[str, ...]:
    """That questions stand in the data several times, where many do."""
    from pfungst.data.loading import REPEATED

    return (data.notes[REPEATED],) if REPEATED in data.notes else ()


def _told(run: Path) -> dict[str, Any]:
    """What findings.json says; nothing where it is damaged, for `rescore` is what mends it."""
    path = run / "findings.json"
    try:
        told: Any = json.loads(path.read_text("utf-8")) if path.exists() else {}
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def reading_notes(examined: Examined, metric: str, matcher: str, label: str = "") -> tuple[str, ...]:
    """What a reader of the numbers must know about how they came about. label: of a second reading, see `rescore`."""
    from pfungst.scores.spelling import spelling_gap

    notes = [*examined.notes]
    if examined.finished:
        return tuple(notes)
    if examined.judge is None:
        examples, said = (example for example, _ in examined.clean), (answer for _, answer in examined.clean)
        gap = spelling_gap(examples, said, metric, matcher)
        some = f"Of the first {len(examined.clean):,} questions: " if len(examined.clean) < examined.most else ""
        notes += [some + gap.sentence] if gap.sentence else []
    if examined.unread:
        verb = "count as wrong" if examined.judge is None else "were judged as written"
        listed = f"`pfungst show RUN --unread{f' --label {label}' if label else ''}` lists them."
        notes.append(
            f"{examined.unread:,} of {examined.total:,} replies could not be read by the matcher {matcher} and {verb}. "
            f"{listed}{' Try --matcher lenient.' if matcher == 'strict' else ''}"
        )
    return tuple(notes)


def unanswered(examined: Examined) -> tuple[str, ...]:
    """That queries got no answer, where some did not."""
    return (f"{examined.lacking} --max-errors N allows them.",) if examined.lacking else ()


def lost_images(data: Dataset) -> bool:
    """Whether the questions of a run are about images of which none is there any more."""
    named = any(example.image_id for example in data)
    return not data.blind and named and all(example.image is None for example in data)


def load_again(config: Mapping[str, Any], run: Path) -> Dataset:
    """The data set of a run, from its configuration; `{run}` in its spec stands for the run folder."""
    spec = config["data"].get("spec")
    if spec is None:
        raise PfungstError("This run was made from a data set in memory: pass the same data to pfungst.rescore().")
    return _load(spec.replace("{run}", str(run)), config["data"].get("options") or {})


def part_again(data: Dataset, config: Mapping[str, Any]) -> Dataset:
    """The part of the data set that a run asked about, from its configuration."""
    from pfungst.data.loading import select_again

    return select_again(data, config["data"])


def _load(data: Dataset | Sequence[Example] | str | Path, options: Mapping[str, Any]) -> Dataset:
    if isinstance(data, Dataset):
        found = data
    elif isinstance(data, str | Path):
        from pfungst.data import load

        found = load(data, **options)
    else:
        from pfungst.data.loading import REPEATED, joined

        examples, told = joined(list(data))
        notes = {REPEATED: told} if told else {}
        found = Dataset(
            "examples", examples, metric="vqa" if any(len(e.answers) > 3 for e in data) else "exact", notes=notes
        )
    return found if found.fingerprint else replace(found, fingerprint=_fingerprint(found))


def _fingerprint(data: Sequence[Example]) -> str:
    digest = hashlib.sha256()
    for e in data:
        digest.update(json.dumps([e.id, e.question, e.image_id, e.answers, e.target, e.choices]).encode())
    return digest.hexdigest()


def slug(name: str) -> str:
    """A name as part of a folder's name."""
    return file_name(name)[:60] or "run"
