"""report.html: one self-contained file that opens offline.

What is told about its cases is kept in the run folder. The trials hold questions and choices; a player that chats puts
them into a prompt of its own, and probes may say how.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from pfungst.core import Answer, Asker, Dataset, Image, Player, Query, Run
from pfungst.core.files import write_atomic, write_json
from pfungst.core.images import as_rgb
from pfungst.core.run import read_numbers, stored
from pfungst.core.spec import labelled
from pfungst.core.types import as_player
from pfungst.report.attention import overlay, picture_weights
from pfungst.report.card import (
    CARD_COLUMNS,
    P_NOTE,
    SUMMARY_COLUMNS,
    SUMMARY_TITLE,
    Row,
    card_rows,
    clean_sides,
    dashed,
    how_many,
    number,
    read_extras,
    read_kept,
    summary_rows,
    table_rows,
    too_few,
    verdict,
)
from pfungst.report.cases import MOST_WORDS, PER_KIND, Case, Sample, Tools, draw_case, sample_of
from pfungst.report.page import Thumbnail, data_url, drawn_block, figure_block, render, table_block, webp
from pfungst.report.plots import draw_narrow, draw_wide

MOST_OPTIONS = 200
"""Choices of a filter; beyond it the words of the question find more."""
MOST_BYTES = 9_500_000
"""Of a report: with fewer cases of a kind where it would be larger."""
MOST_CONFIG = 60_000
"""Characters of the configuration that are shown."""


def write_report(run: Path, data: Dataset | None = None, label: str = "") -> Path:
    """Write `run`/report.html from the numbers in the run folder. `data` brings the images of the cases.

    label: of a second reading of the run, see `pfungst.rescore`; it is part of the file's name.
    """
    read, numbers = Run.open(run, label), read_numbers(run, label)
    per_kind = PER_KIND
    while True:
        html = _page(read, numbers, data, per_kind)
        if len(html) <= MOST_BYTES or per_kind == 1:
            break
        per_kind //= 2
    path = labelled(run / "report.html", label)
    write_atomic(path, html)
    return path


def _page(read: Run, numbers: Mapping[str, Any], data: Dataset | None, per_kind: int) -> bytes:
    """The report with at most so many cases of one kind and probe. numbers: what findings.json says."""
    findings, judge = numbers["findings"], numbers.get("judge")
    run, config, label = read.path, read.config, read.label
    sample = sample_of(read, per_kind)
    tools = Tools(run, data=data)
    stem = dashed(config["player"]["name"])[:40] or "player"
    told = [*findings, *([{**judge, "probe": "The judge"}] if judge is not None else [])]
    # An id in the page for each probe; names of third parties may hold anything.
    anchors = {one["probe"]: f"probe-{at}-{dashed(one['probe'])}" for at, one in enumerate(told, 1)}
    again = [name for one in config["probes"] for name in one["settings"].get("again") or ()]
    rows = summary_rows(findings, again)
    summary = None
    if rows:
        drawings = (draw_wide(rows), draw_narrow(rows))
        summary = drawn_block(
            SUMMARY_TITLE, drawings, SUMMARY_COLUMNS, table_rows(rows), stem, _reading(rows, findings, read.left_out)
        )
    looks, prompts = read_kept(run / LOOKS), read_kept(run / PROMPTS)
    said = stored(run, (row["key"] for case in sample.cases for row in case.rows))
    cases = [_case(case, tools, said, looks, prompts, sample.cases) for case in sample.cases]
    return render(
        "report.html",
        config=config,
        config_text=_config_text(config),
        label=label,
        asked=how_many(config),
        verdict=f"{verdict(config['player']['name'], rows, findings)} {read.missing}".rstrip(),
        summary=summary,
        card=_card(read, findings, stem),
        anchors=anchors,
        sections=[_section(run, one, anchors, stem, cases) for one in told],
        cases=cases,
        images=tools.images.all(),
        sampled=_sampled(sample, tools, run, config["seed"]),
        counts=[(probe, kind, f"{some:,}", f"{total:,}") for (probe, kind), (some, total) in sample.counts.items()],
        options={
            "probe": _options([one["case"].probe for one in cases]),
            "kind": _options([one["case"].kind for one in cases]),
            "answer_type": _options([one["case"].clean["answer_type"] for one in cases]),
            "question_type": _options([one["case"].clean["question_type"] for one in cases]),
        },
    )


def _section(
    run: Path, one: Mapping[str, Any], anchors: Mapping[str, str], stem: str, cases: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    extras = read_extras(run, one["probe"])
    stem = f"{stem}-{dashed(one['probe'])}"
    return {
        "probe": one["probe"],
        "anchor": anchors[one["probe"]],
        "verdict": one["verdict"],
        "figures": [figure_block(figure, stem) for figure in one["figures"]],
        "tables": [
            table_block(table["title"], table["columns"], table["rows"], stem, table.get("note", ""))
            for table in (*one["tables"], *extras["tables"])
        ],
        "albums": {
            title: [data_url("image/webp", webp(run / path)) for path in paths]
            for title, paths in extras["albums"].items()
        },
        "cases": sum(case["case"].probe == one["probe"] for case in cases),
    }


def _card(read: Run, findings: Sequence[Mapping[str, Any]], stem: str) -> Any:
    """The report card; its last column, the verdict, is a line of its own on the page and left out of the downloads."""
    note = f"Square brackets: 95% interval. Drop: clean minus disturbed on the same questions. {P_NOTE}"
    if any(one["role"] == "control" for one in findings):
        note += " Compare every drop with the control row, which disturbs nothing."
    elif any(one["probe"] != "conditions" for one in findings):
        note += " This exam ran without the control probe, so nothing tells how much of a drop is sampling noise."
    logs = read.config.get("logs", {}).get("notes", ())
    told = [note, clean_sides(findings, read.left_out), too_few(findings), *logs]
    note = " ".join(filter(None, told))
    rows = card_rows(findings)
    return replace(table_block("Report card", CARD_COLUMNS[:-1], [row[:-1] for row in rows], stem, note), rows=rows)


def _case(
    case: Case,
    tools: Tools,
    said: Mapping[str, Answer],
    looks: Mapping[str, Any],
    prompts: Mapping[str, str],
    cases: Sequence[Case],
) -> dict[str, Any]:
    example = tools.examples.get(case.example_id)
    shown = [case.clean] if case.disturbed is case.clean else [case.clean, case.disturbed]
    return {
        "case": case,
        "image": tools.images.of(case.clean["image"] or case.example_id, example.image if example else None),
        "drawing": draw_case(case, tools),
        "seen": tools.seen(case, cases) if case.probe != "game" else [],
        "looks": draw_looks(case, looks, tools, cases),
        "told": [_told(row, said.get(row["key"], Answer("")), prompts.get(row["key"], "")) for row in shown],
    }


def _told(row: Mapping[str, Any], said: Answer, prompt: str) -> dict[str, Any]:
    """What was asked and said in one variant, to the letter, and what else is known about the reply."""
    facts = []
    if row["score"] is not None:
        facts.append(f"score {row['score']:.3g}")
    if row["confidence"] is not None:
        facts.append(f"confidence {number(row['confidence'])}")
    if row["reply"] != row["answer"]:
        facts.append("not read" if row["unread"] else f"read as {row['answer']!r:.200}")
    if said.scores and row["choices"] and len(said.scores) == len(row["choices"]):
        pairs = zip(row["choices"], said.scores, strict=True)
        facts.append("scores " + ", ".join(f"{choice:.60} {score:.3g}" for choice, score in pairs))
    if said.stop:
        facts.append(f"ended by {said.stop}")
    if said.output_tokens is not None:
        facts.append(f"{said.output_tokens} tokens")
    if said.seconds is not None:
        facts.append(f"{said.seconds:.2f} s")
    reply = row["reply"]
    cut = max(len(row["question"]), len(reply), len(said.thinking)) > MOST_WORDS
    return {
        "variant": row["variant"],
        "question": row["question"][:MOST_WORDS] or "(no question)",
        "choices": row["choices"] or [],
        "prompt": prompt if prompt != row["question"] else "",
        "reply": reply[:MOST_WORDS] or "(nothing)",
        "thinking": said.thinking[:MOST_WORDS],
        "facts": facts,
        "cut": cut,
    }


def _sampled(sample: Sample, tools: Tools, run: Path, seed: int) -> str:
    """What of the run is shown here, in words."""
    if sample.complete:
        told = f"All {sample.total:,} trials in which something is wrong or changed."
    else:
        told = (
            f"{len(sample.cases):,} of {sample.total:,} trials in which something is wrong or changed: what each probe "
            f"points at, and a random sample of the rest (seed {seed}), by probe and by what became of the answer. "
            f"To list every one: pfungst show {run.name} --wrong --most 0."
        )
    if tools.images.left_out:
        told += f" {tools.images.left_out:,} images are left out to keep the file small."
    return told


def _reading(rows: Sequence[Row], findings: Sequence[Mapping[str, Any]], left_out: Mapping[str, int]) -> str:
    told = ""
    if any(row.drop is not None for row in rows):
        told = "Red: the disturbance costs accuracy beyond chance (p < 0.05, Holm over the drops of all probes)."
    if any(row.is_control for row in rows):
        told += " Grey: the control, the same question twice."
    if any(row.removes for row in rows):
        told += " Without evidence: what should matter is taken away, and a large drop is as it should be."
    return f"{told} {clean_sides(findings, left_out)}".strip()


def _options(values: Sequence[str]) -> list[str]:
    found = sorted({value for value in values if value})
    return found[:MOST_OPTIONS] if len(found) > 1 else []


def _config_text(config: Mapping[str, Any]) -> str:
    text = json.dumps(config, indent=2, ensure_ascii=False)
    if len(text) <= MOST_CONFIG:
        return text
    return f"{text[:MOST_CONFIG]}\n... {len(text) - MOST_CONFIG:,} more characters in exam.json"


# --- what is kept of a player besides its answers: where it looks, and what it was sent, word for word ----------------


LOOKS, PROMPTS = "looks.json", "prompts.json"
"""Files: key of an answer -> the weights over its image, and what the player was sent for it."""
MOST_LOOKS = 48
"""Cases whose maps are drawn, taken from the probes in turn."""
MOST_PROMPTS = 1_000_000
"""Characters of all prompts that are kept: a report must stay small."""
_LOGGER = logging.getLogger("pfungst")


def add_looks(run: Path, player: Player, data: Dataset) -> None:
    """Note where a player that can tell looks, for cases that its report will show. Others have no such file."""
    player = as_player(player)
    if not player.has("look"):
        return
    sample = sample_of(Run.open(run))
    tools = Tools(run, data=data)
    asked: dict[str, tuple[Mapping[str, Any], Query]] = {}
    for case in _in_turn(sample.cases)[:MOST_LOOKS]:
        for row in (case.clean, case.disturbed):
            image = tools.image(row, case, sample.cases)
            # Who reads scenes is asked about the one of the example alone: that of another image is not kept.
            own = row["image"] == case.clean["image"]
            if image is not None and (own or not player.reads_scenes):
                scene = tools.examples[case.example_id].scene if own else None
                query = Query(row["question"], image, tuple(row["choices"] or ()), scene)
                asked.setdefault(row["key"], (row, query))
    if not asked:
        return
    rows, queries = zip(*asked.values(), strict=True)
    try:
        maps = player.look(queries)
    except Exception as error:  # of a player: the exam is finished, and its report must not be lost
        _LOGGER.warning(f"The report has no attention maps: {error}.")
        return
    drawn = {row["key"]: picture_weights(maps, at) for at, row in enumerate(rows)}
    found = {key: np.round(weights, 2).tolist() for key, weights in drawn.items() if weights is not None}
    if found:
        write_json(run / LOOKS, found)


def draw_looks(
    case: Case, looks: Mapping[str, Any], tools: Tools, cases: Sequence[Case]
) -> list[tuple[str, Thumbnail]]:
    """The images of a case under the player's attention, before and after."""
    found: dict[str, tuple[str, Thumbnail]] = {}
    for row in (case.clean, case.disturbed):
        if row["key"] not in looks or row["key"] in found or tools.images.room <= 0:
            continue
        seen = tools.image(row, case, cases)
        if seen is not None:
            picture = as_rgb(seen).copy()
            picture.thumbnail((320, 320))
            image = tools.images.of(f"look {row['key']}", overlay(picture, np.asarray(looks[row["key"]], np.float64)))
            if image is not None:
                found[row["key"]] = (f"where it looks, {row['variant']}: {row['answer'] or '(no answer)'}", image)
    return list(found.values())


def _in_turn(cases: Sequence[Case]) -> list[Case]:
    """The cases, one of each probe in turn."""
    probes = list(dict.fromkeys(case.probe for case in cases))
    place = dict.fromkeys(probes, 0)
    order = []
    for case in cases:
        order.append((place[case.probe], probes.index(case.probe)))
        place[case.probe] += 1
    return [case for _, case in sorted(zip(order, cases, strict=True), key=lambda one: one[0])]


def add_prompts(run: Path, player: Player, data: Dataset) -> None:
    """Note what a player that can tell was sent, for cases that its report will show. Others have no such file."""
    player = as_player(player)
    if not player.has("prompt"):
        return
    cases = sample_of(Run.open(run)).cases
    asker = Asker(player)
    wanted = {row["key"]: row for case in cases for row in (case.clean, case.disturbed)}
    found: dict[str, str] = {}
    length = 0
    for query in _queries(wanted, found, cases, Tools(run, data=data)):
        query = asker.visible(query)
        key = query.key(asker.fingerprint)
        if key in wanted and key not in found and length < MOST_PROMPTS:
            found[key] = player.prompt(query)[:MOST_WORDS]
            length += len(found[key])
    if found:
        write_json(run / PROMPTS, found)


def _queries(
    wanted: Mapping[str, Mapping[str, Any]], found: Mapping[str, str], cases: Sequence[Case], tools: Tools
) -> Iterator[Query]:
    """The queries behind these rows. Where a probe says how to ask, which rows do not tell, it makes them anew."""
    for row in wanted.values():
        # The key of a query needs no more of an image than its digest.
        image = cast(Image, SimpleNamespace(digest=row["image"])) if row["image"] else None
        yield Query(row["question"], image, tuple(row["choices"] or ()), take=row["take"])
    for probe in dict.fromkeys(case.probe for case in cases):
        mine = [case for case in cases if case.probe == probe]
        if any(row["key"] not in found for case in mine for row in (case.clean, case.disturbed)):
            yield from tools.queries(probe, mine)
