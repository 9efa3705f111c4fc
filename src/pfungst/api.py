"""The main job as functions: examine a player, rescore a run."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from pfungst import __version__, core
from pfungst.core import (
    Dataset,
    Exam,
    Example,
    PfungstError,
    Place,
    Player,
    Probe,
    Progress,
    StoredPlayer,
    UsageError,
    read_config,
)
from pfungst.core.estimate import compared
from pfungst.core.exam import Examined, labelled
from pfungst.core.files import file_name, jsonable
from pfungst.core.files import reading as reading_file
from pfungst.core.finished import note
from pfungst.core.progress import shown_in
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


def examine(
    player: Player | Callable[..., str] | str,
    data: Dataset | Sequence[Example] | str | Path = "world",
    probes: Sequence[Probe | str] | None = None,
    out: str | Path | None = None,
    *,
    metric: str | None = None,
    matcher: str | None = None,
    seed: int = 0,
    limit: int | None = None,
    only: Sequence[str] = (),
    open_questions: bool = False,
    data_options: Mapping[str, Any] | None = None,
    player_options: Mapping[str, Any] | None = None,
    max_queries: int | None = None,
    max_errors: int | None = None,
    precision: float | None = None,
    budget: float | None = None,
    place: Place | None = None,
    replicas: int | str | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Ask the player everything the probes want to know, and write the run folder with its report.

    player: a player, a function `(image, question) -> text`, or a spec such as `oracle`, `my_module:answer`,
        `hf:MODEL`, `openai:MODEL@URL`.
    data: a data set, a list of examples, or a spec for `pfungst.data.load`.
    probes: probes or their specs (`blind`, `name:key=value`); `control` and `blind` by default, only `control` for
        recorded answers, which know nothing of a disturbance, and for data without images.
    out: the run folder, by default runs/PLAYER-DATA. Running into the same folder again resumes.
    metric: how answers are judged, by default what the data set names; `judge:PLAYER` lets a player judge them.
    matcher: how replies are read into answers, by default what the player names: `lenient` for models that chat; the
        text of all others is the answer.
    limit, only: the first so many questions, each with all its wordings, or the examples of these ids. Pools (basic
        questions, decoys) are still drawn from the whole data set.
    open_questions: leave out the choices that the data offer, so that any answer may be given.
    max_queries: most queries that may be put to the player; answers it gave before are free.
    max_errors: most queries that may fail (a broken image, an exception of the player). Their trials are left out,
        counted and shown; one more ends the run. Default: 10, or 1% of all queries if that is more; they are then among
        `Run.problems`.
    precision: ask each probe about images in random order, no longer than until its drop is known to plus or minus
        this, such as 0.02. `max_queries` then goes to the probe with the widest interval first.
    budget: most money to spend, in the currency of the player's prices (the options price_in and price_out of a player
        behind a server). It goes to the probe with the widest interval first.
    place: where probes that search, such as the game, do their work, and where rankings are made.
    replicas: ask so many copies of the player at once, each in a process of its own or, where `place` is a Ray cluster,
        there; `auto` for one a GPU or core. Needs a spec. See `pfungst.players.replicate.ReplicaSettings`.
    """
    from pfungst.compute import working
    from pfungst.players.replicate import closing
    from pfungst.report import add_looks, add_prompts, write_report
    from pfungst.scores import get_metric
    from pfungst.scores.matchers import get_matcher

    spec = str(data) if isinstance(data, str | Path) else None
    chosen, part, parts, path = named(
        player, data, probes, out, metric=metric, limit=limit, only=only, open_questions=open_questions,
        data_options=data_options, player_options=_with_money(player, player_options or {}, budget), replicas=replicas,
        on=place.on if place is not None else "local",
    )  # fmt: skip
    reading = matcher or chosen.matcher
    about = {"options": dict(data_options or {}), "limit": limit, "only": list(only), "open": open_questions}
    config = run_config(reading, spec, **about)
    config["player"] = {"spec": player if isinstance(player, str) else None, "options": dict(player_options or {})}
    # With copies of the player it is the asking that is spread: a search runs here and asks all of them.
    search = place if replicas is None else None
    with closing(chosen):
        with shown_in(path, progress) as shown:
            exam = Exam(
                chosen, part, parts, get_metric(part.metric), path, seed, config, shown, max_queries, search,
                get_matcher(reading) if reading else None, max_errors, precision=precision, share=budget is not None,
            )  # fmt: skip
            with working(place or Place()), compared(path) as taken:
                examined = exam.run_in_part()
        if not examined.finished:
            add_looks(path, chosen, part)
            add_prompts(path, chosen, part)
    told = reading_notes(examined, part.metric, reading)
    if not examined.finished:
        told = (*repeated(part), *told)
    if not examined.finished or not (path / "report.html").exists():
        write_report(path, part)
        note(path, told)
    notes, problems = (*chosen.last_words, *told, *taken()), examined.problems
    if max_errors is None:
        problems += unanswered(examined)
    else:
        notes += unanswered(examined)
    return Run(path, notes=notes, problems=problems)


def run_config(matcher: str, data: str | None, **about: Any) -> dict[str, Any]:
    """What a run folder notes about how it was made: by default for answers that somebody gave to a whole data set."""
    return {
        "pfungst": __version__,
        "python": platform.python_version(),
        "matcher": matcher,
        "player": {"spec": None, "options": {}},
        "data": {"spec": data, "options": {}, "limit": None, "only": [], "open": False, **about},
    }


def _with_money(player: object, options: Mapping[str, Any], budget: float | None) -> Mapping[str, Any]:
    """The options of a player that may spend this much, which counts its money itself."""
    if budget is None:
        return options
    if not isinstance(player, str) or not player.startswith("openai:"):
        raise UsageError(
            "A money budget needs a player that counts what it spends: openai:MODEL@URL with the options price_in and "
            "price_out. For any other player limit the queries instead, with max_queries (--max-queries)."
        )
    return {**options, "budget": budget}


def named(
    player: Player | Callable[..., str] | str,
    data: Dataset | Sequence[Example] | str | Path,
    probes: Sequence[Probe | str] | None,
    out: str | Path | None,
    *,
    metric: str | None = None,
    limit: int | None = None,
    only: Sequence[str] = (),
    open_questions: bool = False,
    data_options: Mapping[str, Any] | None = None,
    player_options: Mapping[str, Any] | None = None,
    replicas: int | str | None = None,
    on: str = "local",
) -> tuple[Player, Dataset, list[Probe], Path]:
    """Player, examples, probes and run folder that the arguments of `examine` name."""
    from pfungst.data.selection import select
    from pfungst.players import resolve
    from pfungst.probes import get_probe

    whole = _load(data, data_options or {})
    if metric is not None:
        whole = replace(whole, metric=metric)
    if replicas is None:
        chosen = resolve(player, data=whole, **(player_options or {}))
    else:
        from pfungst.players.replicate import ReplicaSettings, replicate

        spec = str(data) if isinstance(data, str | Path) else None
        chosen = replicate(
            player, whole, player_options or {}, ReplicaSettings.of(replicas), on=on, data_spec=spec,
            data_options=data_options,
        )  # fmt: skip
    part = select(whole, limit, only, open_questions)
    path = Path(out) if out is not None else Path("runs") / f"{slug(chosen.name)}-{slug(whole.name)}"
    if probes is None:
        seen = any(example.image is not None for example in part)
        probes = DEFAULT_PROBES if seen and not chosen.has("knows") else DEFAULT_PROBES[:1]
    return chosen, part, [get_probe(probe) if isinstance(probe, str) else probe for probe in probes], path


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
    )  # fmt: skip
    reading = matcher or config.get("matcher", "")
    score, reader = get_metric(part.metric), get_matcher(reading) if reading else None
    # A judge's own name is shorter than its spec, which holds an address.
    named = [getattr(made, "label", name) for name, made in ((metric, score), (matcher, reader)) if name]
    label = "-".join(map(slug, named))
    exam = Exam(
        player, part, probes, score, path, config["seed"], config, progress, matcher=reader, label=label,
        precision=config.get("precision"), share=config.get("share", False), images=images,
    )  # fmt: skip
    examined = exam.run_in_part()
    write_report(path, part, label)
    notes = (*reading_notes(examined, part.metric, reading, label), *unanswered(examined))
    return Run(path, label, notes, examined.problems)


def repeated(data: Dataset) -> tuple[str, ...]:
    """That questions stand in the data several times, where many do."""
    from pfungst.data.repeats import NOTE

    return (data.notes[NOTE],) if NOTE in data.notes else ()


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
    if not examined.failed:
        return ()
    question, error = examined.failed[0]
    return (
        f"{len(examined.failed):,} queries got no answer, so {examined.left_out:,} trials are left out of all "
        f"numbers. The first: {question[:80]!r}: {error:.300} The same exam tries them again; --max-errors N allows "
        "them.",
    )


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
    from pfungst.data.selection import select_again

    return select_again(data, config["data"])


def _load(data: Dataset | Sequence[Example] | str | Path, options: Mapping[str, Any]) -> Dataset:
    if isinstance(data, Dataset):
        found = data
    elif isinstance(data, str | Path):
        from pfungst.data import load

        found = load(data, **options)
    else:
        from pfungst.data.repeats import NOTE, joined

        examples, told = joined(list(data))
        notes = {NOTE: told} if told else {}
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
