"""What stands on the pages that only read: runs, one run, answers, one example. The server and the static copy share
them."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pfungst.core import PfungstError
from pfungst.core.flips import FLIPS, RIGHT_WRONG
from pfungst.report.card import summary_rows, too_few, verdict
from pfungst.report.plots import draw, draw_narrow, draw_wide
from pfungst.web.index import CODED, OUTCOMES, PAGE, SORTS, Place, Wanted
from pfungst.web.pictures import moved_scene
from pfungst.web.runs import NotHere, RunCard, RunFolder, card_of, told_apart
from pfungst.web.site import Site

MOST_BESIDE = 6
"""Players side by side on one example."""
MOST_SAMPLED = 20
_OPTIONS_KEPT = 200


def runs_page(site: Site) -> dict[str, Any]:
    cards = [card_of(site, run) for run in site.runs.all()]
    probes = list(dict.fromkeys(one["probe"] for card in cards for one in card.findings))
    controls = {one["probe"] for card in cards for one in card.findings if one["role"] == "control"}
    probes.sort(key=lambda probe: probe not in controls)
    same: dict[str, list[RunCard]] = {}
    for card in cards:
        if card.fingerprint and card.answers and not card.label:
            same.setdefault(card.fingerprint, []).append(card)
    names = told_apart(cards)
    sets = [
        {"data": some[0].data, "ids": [card.id for card in some], "names": [names[card.id] for card in some]}
        for some in same.values()
        if len(some) > 1
    ]
    alike = {card.id for card in cards if names[card.id] != card.player}
    return {"here": "runs", "runs": cards, "alike": alike, "probes": probes, "sets": sets,
            "home": site.settings.home.name,
            "answers": sum(card.answers for card in cards if not card.label)}  # fmt: skip


def run_page(site: Site, run: RunFolder) -> dict[str, Any]:
    card = card_of(site, run)
    facets = site.index.facets(run)
    summary, told, few = [], "", ""
    if card.findings:
        try:
            rows = summary_rows(card.findings)
            told, few = verdict(card.player, rows, card.findings), too_few(card.findings)
            summary = [Markup(draw_wide(rows)), Markup(draw_narrow(rows))] if rows else []
        except (KeyError, TypeError, ValueError):  # findings of a third party's probe, without what a summary needs
            summary, told, few = [], "", ""
    sections = [_section(one, facets) for one in _controls_first(card)]
    return {
        "here": "run", "run": card, "verdict": told, "few": few, "summary": summary, "sections": sections,
        "has_report": run.file(run.read_as("report.html")) is not None,
        "readings": [card_of(site, one) for one in site.runs.all() if one.path == run.path],
        "sample": _sample(run) if not card.answers else [],
    }  # fmt: skip


def _controls_first(card: RunCard) -> list[Mapping[str, Any]]:
    return sorted(card.findings, key=lambda one: one["role"] != "control")


def _section(one: Mapping[str, Any], facets: Sequence[Any]) -> dict[str, Any]:
    probe = one["probe"]
    variants = list(dict.fromkeys(facet.variant for facet in facets if facet.probe == probe))
    flips: dict[str, dict[str, int]] = {}
    for facet in facets:
        if facet.probe == probe and facet.flip:
            counts = flips.setdefault(facet.variant, {})
            counts[facet.flip] = counts.get(facet.flip, 0) + facet.count
    plots = []
    for figure in one["figures"]:
        try:
            plots.append((figure["title"], Markup(draw(figure))))
        except (KeyError, TypeError, ValueError):
            continue
    numbers = [{**number, **_behind(number, probe, variants, flips)} for number in one["rows"]]
    kinds = [kind for kind in FLIPS if any(kind in counts for counts in flips.values())]
    return {"probe": probe, "anchor": probe, "verdict": one["verdict"], "numbers": numbers, "plots": plots,
            "flips": flips, "kinds": kinds}  # fmt: skip


def _behind(
    number: Mapping[str, Any], probe: str, variants: Sequence[str], flips: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Which answers are behind a number: the query of their page, and words for the link."""
    condition = number.get("condition") or ""
    wanted = {"probe": probe}
    if condition in variants:
        wanted["variant"] = condition
    elif condition:
        return {"wanted": {"probe": probe}, "words": "answers of the probe"}
    if number["name"] == "drop" and RIGHT_WRONG in flips.get(condition, {}):
        return {"wanted": {**wanted, "flip": RIGHT_WRONG}, "words": RIGHT_WRONG}
    return {"wanted": wanted, "words": "answers"}


def _sample(run: RunFolder) -> list[dict[str, Any]]:
    """Some answers of a run that is still going on. The key of the store is a hash: its first rows are a random
    sample."""
    file = run.file("answers.sqlite")
    if file is None:
        return []
    try:
        store = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=1)
        try:
            rows = store.execute(
                "SELECT question, choices, coalesce(raw, text) FROM answers LIMIT ?", (MOST_SAMPLED,)
            ).fetchall()
        finally:
            store.close()
        return [{"question": row[0], "choices": json.loads(row[1]), "reply": row[2]} for row in rows]
    except (sqlite3.Error, ValueError):
        return []


def answers_page(site: Site, ids: Sequence[str], wanted: Wanted, limited: int = 0) -> dict[str, Any]:
    runs = site.runs.all()
    cards = {run.id: card_of(site, run) for run in runs}
    chosen = [run for run in runs if run.id in ids] if ids else [run for run in runs if not run.label]
    if ids and not chosen:
        raise NotHere("There is no such run. It may have been moved or deleted.")
    places = site.notes.places(wanted.tag) if wanted.tag else None
    page = site.index.page(chosen, wanted, places)
    tags = {note.place: note.tags for note in site.notes.all()} if not site.links.static else {}
    for row in page.rows:
        row["tags"] = tags.get(Place.of(row), ())
        row["has_image"] = bool(row["image"]) and not row["image"].startswith("name:")
    last = min(page.pages, limited or page.pages)
    words = [OUTCOMES.get(wanted.outcome, ""), wanted.flip, wanted.probe, wanted.variant, wanted.kind]
    return {
        "here": "answers",
        "runs": list(cards.values()),
        "chosen": [cards[run.id] for run in chosen],
        "ids": [run.id for run in chosen] if ids else [],
        "names": told_apart(cards.values()),
        "wanted": wanted,
        "page": page,
        "last": last,
        "limited": limited * PAGE if 0 < limited * PAGE < page.total else 0,
        "heading": ", ".join(word for word in words if word).capitalize() or "Answers",
        "problems": [(cards[run.id].name, cards[run.id].problem) for run in chosen if cards[run.id].problem],
        "options": _options(site, chosen, wanted),
        "back": wanted.query(page=wanted.page),
        "beside": _beside([run.id for run in chosen] if ids and not site.links.static else []),
    }


def _beside(ids: Sequence[str]) -> Mapping[str, list[str]]:
    """Run -> the others of a list of few runs: they stand beside it on the page of an example, which leads back."""
    few = ids if len(ids) <= MOST_BESIDE else ()
    return defaultdict(list, {one: [other for other in few if other != one] for one in few})


def _options(site: Site, runs: Sequence[RunFolder], wanted: Wanted) -> dict[str, list[tuple[str, str]]]:
    """What can be chosen: only what is there, with how often."""
    known = (*site.index.versions(runs), wanted.probe)
    if known not in site.options:
        if len(site.options) > _OPTIONS_KEPT:
            site.options.clear()
        site.options[known] = _counted(site, runs, wanted)
    tags = [(tag, f"{tag} ({count})") for tag, count in site.notes.tags().items()]
    return {**site.options[known], "tag": tags}


def _counted(site: Site, runs: Sequence[RunFolder], wanted: Wanted) -> dict[str, list[tuple[str, str]]]:
    facets = [facet for run in runs for facet in site.index.facets(run)]
    found: dict[str, list[tuple[str, str]]] = {}
    for field, column in CODED.items():
        counts: dict[str, int] = {}
        for facet in facets:
            if field == "probe" or not wanted.probe or facet.probe == wanted.probe:
                value = getattr(facet, column)
                counts[value] = counts.get(value, 0) + facet.count
        found[field] = [(value, f"{value} ({count:,})") for value, count in counts.items() if value]
    found["flip"].sort(key=lambda one: FLIPS.index(one[0]))
    found["outcome"] = list(OUTCOMES.items())
    found["sort"] = list(SORTS.items())
    return found


def example_page(
    site: Site, run: RunFolder, example_id: str, wanted: Wanted, at: int | None = None, beside: Sequence[str] = ()
) -> dict[str, Any]:
    """Everything that was asked and said about an example, of one player or of several side by side."""
    card = card_of(site, run)
    rows = site.index.example(run, example_id)
    if not rows:
        raise NotHere("This run has no answers about this example.")
    others = [one for one in site.runs.all() if one.id != run.id and _same_data(site, card, one)]
    chosen = [one for one in others if one.id in beside][: MOST_BESIDE - 1]
    listed = [one.id for one in site.runs.all() if one.id in beside and one.id != run.id]
    columns = [(card, rows)] + [(card_of(site, one), site.index.example(one, example_id)) for one in chosen]
    probes: dict[str, list[dict[str, Any]]] = {}
    notes = site.notes.of(run.id, example_id) if not site.links.static else {}
    for number, (_, some) in enumerate(columns):
        trials: dict[str, list[int]] = {}
        for row in some:
            variants = probes.setdefault(row["probe"], [])
            seen = trials.setdefault(row["probe"], [])
            if row["trial"] not in seen:
                seen.append(row["trial"])
            at_trial = seen.index(row["trial"])
            name = f"{row['variant']}, trial {at_trial + 1}" if at_trial else row["variant"]
            known = next((one for one in variants if one["name"] == name), None)
            if known is None:
                known = {"name": name, "question": row["question"], "choices": row["choices"] or [],
                         "other_image": row["other_image"], "no_image": not row["image"],
                         "rows": [None] * len(columns), "note": notes.get((row["probe"], row["variant"])),
                         "here": False}  # fmt: skip
                variants.append(known)
            known["rows"][number] = row
            known["here"] |= number == 0 and row["number"] == at
    order = [str(one["probe"]) for one in _controls_first(card)]
    probes = {probe: probes[probe] for probe in sorted(probes, key=lambda p: order.index(p) if p in order else 99)}
    example = site.pictures.example(run, example_id)
    before, after = site.index.neighbours(run, wanted, at) if at is not None and not wanted.tag else (None, None)
    first = min(rows, key=lambda row: (row["probe"] != order[0] if order else 0, row["place"], row["number"]))
    return {
        "here": "example", "run": card, "id": example_id, "first": first,
        "probes": probes, "columns": [one for one, _ in columns],
        "names": told_apart(one for one, _ in columns), "others": [card_of(site, one) for one in others],
        "beside": [one.id for one in chosen],
        "listed": listed, "at": at,
        "back": wanted.query(page=wanted.page), "before": before, "after": after,
        "has_image": example is not None and example.image is not None,
        "no_image": site.pictures.why_none(run) if example is None or example.image is None else "",
        "playable": example is not None and example.scene is not None and example.program is not None,
        "human": list(dict.fromkeys(example.answers)) if example is not None and len(example.answers) > 1 else [],
        "numbers": {one["probe"]: _headlines(one) for one in card.findings},
        "drawings": _moved(site, run, example_id) if "game" in probes else {},
    }  # fmt: skip


def _headlines(one: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one[name] for name in ("clean", "disturbed", "drop") if one[name]]


def _same_data(site: Site, card: RunCard, other: RunFolder) -> bool:
    try:
        return bool(card.fingerprint) and str(other.config()["data"].get("fingerprint")) == card.fingerprint
    except (PfungstError, KeyError, AttributeError):
        return False


def _moved(site: Site, run: RunFolder, example_id: str) -> dict[str, Any]:
    """The scene that fooled the player, before and after, where a game has one."""
    found = moved_scene(run, example_id)
    if found is None:
        return {}
    images = [
        (words, site.links("moved", run=run.id, id=example_id, which=which))
        for words, which in (("before", "before"), ("after: the right answer is the same", "after"))
    ]
    return {"game": {"images": images, "plan": Markup(found.plan)}}
