"""The page on which visitors ask questions of their own, put to a player as the probes would put them.

The question is an example like any other: the probes make their variants of it, with the data set behind it as pool.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from pfungst.core import Answer, Dataset, Example, Image, PfungstError, Probe, Query, Trial
from pfungst.probes.decoys.probe import Decoys
from pfungst.probes.measure import clean_query
from pfungst.probes.noise.probe import Noise
from pfungst.probes.rephrase.probe import Rephrase
from pfungst.report.page import data_url
from pfungst.scores import get_metric, same_answer
from pfungst.web.desk import Desk, Row, Seat, find_example
from pfungst.web.pictures import LARGE, SMALL, checked_image, encode
from pfungst.web.runs import NotHere
from pfungst.web.security import Form

if TYPE_CHECKING:
    from pfungst.web.app import Explorer


BASIC_QUESTIONS = 7
SUGGESTED = 60
_TICKETS = 200
"""Answered questions that can still be saved."""
_MOST_CHOICES = 26


@dataclass(frozen=True)
class Said:
    """One variant and what the player said to it."""

    name: str
    query: Query
    answer: Answer
    score: float | None
    """By the metric of the data; None where the right answer is not known."""
    changed: bool
    detail: str = ""
    """What the variant adds: an appended question with its score."""


@dataclass(frozen=True)
class Part:
    """The variants of one probe."""

    title: str
    about: str
    said: tuple[Said, ...] = ()
    problem: str = ""
    """Why the probe found nothing to ask, in a sentence."""


@dataclass(frozen=True)
class Asked:
    """All that a question brought to light."""

    example: Example
    clean: Said
    parts: tuple[Part, ...]
    target: str | None
    own_target: bool
    """The decoys stand beside the player's own answer, because the right one is not known."""


def own_id(question: str, target: str | None, image: str) -> str:
    """The id of a visitor's question. What the probes keep in caches goes by ids, so another question has another."""
    return "mine-" + hashlib.sha256(json.dumps([question, target, image]).encode()).hexdigest()[:16]


def ask(desk: Desk, seat: Seat, example: Example, data: Dataset) -> Asked:
    """Ask the question as it stands, with basic questions appended, in other words, and among decoys."""
    example = replace(example, group="", wording="")
    query = clean_query(example)
    answer = desk.answers(seat, [query], example.id)[0]
    clean = _said("as it stands", query, answer, example, answer, data.metric)
    parts = [_part(desk, seat, example, data, answer, title, about, probe) for title, about, probe in _probes(example)]
    target = example.target if example.target is not None else answer.text
    if target.strip():
        id_ = own_id(example.question, target, example.image_id) if example.target is None else example.id
        judged = replace(example, id=id_, target=target, answers=example.answers or (target,))
        parts.append(_decoys(desk, seat, judged, data, answer))
    return Asked(example, clean, tuple(parts), example.target, example.target is None)


def _probes(example: Example) -> list[tuple[str, str, Probe]]:
    writer = "world" if example.program is not None else "rules"
    return [
        (
            "Basic questions",
            "The most similar questions of the data set, each appended to yours. The answer should stay the same.",
            Noise(k=BASIC_QUESTIONS, partitions=BASIC_QUESTIONS, keep_main_questions=False, controls="none"),
        ),
        ("Rephrasings", "The same question in other words.", Rephrase(generator=writer)),
    ]


def _decoys(desk: Desk, seat: Seat, example: Example, data: Dataset, clean: Answer) -> Part:
    about = "The answer among wrong choices that fit the question (QoU), the image (IoU), or both."
    probe = Decoys(circular="none")
    part = _part(desk, seat, example, data, clean, "Decoys", about, probe)
    return replace(part, said=tuple(one for one in part.said if one.query.choices))


def _part(
    desk: Desk, seat: Seat, example: Example, data: Dataset, clean: Answer, title: str, about: str, probe: Probe
) -> Part:
    try:
        with desk.probing:
            alone = replace(data.whole, examples=[example], parent=data.whole)
            trial = next(iter(probe.trials(alone, 0)))
        variants = trial.variants[1:]
        answers = desk.answers(seat, [variant.query for variant in variants], example.id)
    except PfungstError as error:
        return Part(title, about, problem=str(error))
    details = _details(trial, example, [variant.query for variant in variants])
    said = tuple(
        _said(variant.name, variant.query, answer, example, clean, data.metric, detail)
        for variant, answer, detail in zip(variants, answers, details, strict=True)
    )
    return Part(title, about, said, "" if said else "There is nothing to ask.")


def _details(trial: Trial, example: Example, queries: Sequence[Query]) -> list[str]:
    """The appended question of each variant, with its score in the ranking where there is one."""
    scores: Sequence[Any] = next(
        (note["scores"] for note in trial.notes.values() if isinstance(note, dict) and "scores" in note), ()
    )
    found = []
    for at, query in enumerate(queries):
        appended = query.question.removeprefix(example.question).strip() if query.question != example.question else ""
        if not query.question.startswith(example.question):
            appended = ""
        known = f" (score {float(scores[at]):.2f})" if appended and at < len(scores) else ""
        found.append(appended + known)
    return found


def _said(
    name: str, query: Query, answer: Answer, example: Example, clean: Answer, metric: str, detail: str = ""
) -> Said:
    score: float | None = None
    if example.target is not None:
        asked = replace(example, choices=query.choices)
        score = get_metric("exact" if not example.answers or len(example.answers) == 1 else metric)(asked, answer)
        score = None if score != score else score
    return Said(name, query, answer, score, not same_answer(answer.text, clean.text), detail)


class AskPages:
    """Asking, and saving what was said."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self.desk = explorer.desk
        self._tickets: OrderedDict[str, tuple[Seat, Asked, str]] = OrderedDict()

    def routes(self) -> list[Route]:
        action = self._explorer.actions.action
        return [
            Route("/ask", self.show), Route("/ask/image", self.image), action("/ask/upload", self.ask),
            action("/ask/save", self.save),
        ]  # fmt: skip

    def show(self, request: Request) -> Response:
        query = request.query_params
        run, id_ = query.get("run", ""), query.get("id", "")
        filled: dict[str, Any] = {}
        if id_:
            example = find_example(self._explorer.data(run), id_)
            filled = {"question": example.question, "target": example.target or "",
                      "choices": ", ".join(example.choices)}  # fmt: skip
        return self._explorer.page(request, "ask.html", **self._page(run=run, id=id_, **filled))

    def image(self, request: Request) -> Response:
        """The image of an example that can be asked about."""
        query = request.query_params
        image = find_example(self._explorer.data(query.get("run", "")), query.get("id", "")).image
        if image is None:
            raise NotHere("There is no such image.")
        return self._explorer.image(request, image, SMALL)

    def ask(self, form: Form) -> Response:
        run, id_, player = form.text("run"), form.text("id"), form.text("player")
        given = {name: form.text(name) for name in ("question", "target", "choices")}
        page = self._page(run=run, id=id_, player=player, **given)
        data = self._explorer.data(run)
        try:
            example = self._example(form, data, given, id_)
            seat = self.desk.seat(player, data)
            asked = ask(self.desk, seat, example, data)
        except PfungstError as error:
            return self._html(form, page | {"problem": str(error)}, 400)
        ticket = secrets.token_urlsafe(12)
        self._tickets[ticket] = (seat, asked, form.session.id)
        while len(self._tickets) > _TICKETS:
            self._tickets.popitem(last=False)
        return self._html(form, page | {"asked": asked, "image": _shown(example.image), "ticket": ticket})

    def save(self, form: Form) -> Response:
        seat, asked, owner = self._tickets.get(form.text("ticket"), (None, None, ""))
        if seat is None or asked is None or owner != form.session.id:
            raise NotHere("These answers are gone. Ask again, then save.")
        rows = [Row(asked.example, asked.clean.query, asked.clean.answer, "clean")]
        for part in asked.parts:
            rows += [
                Row(asked.example, one.query, one.answer, f"{part.title.lower()}: {one.name}") for one in part.said
            ]
        run = self._explorer.save(seat.player.name, rows)
        page = self._page(player=seat.spec, question=asked.example.question)
        found = page | {"asked": asked, "image": _shown(asked.example.image), "saved": run.id}
        return self._html(form, found)

    def _example(self, form: Form, data: Dataset, given: Mapping[str, str], id_: str) -> Example:
        if not given["question"]:
            raise PfungstError("Type a question.")
        choices = tuple(dict.fromkeys(one.strip() for one in given["choices"].split(",") if one.strip()))
        if len(choices) == 1 or len(choices) > _MOST_CHOICES:
            raise PfungstError(f"Give no choices, or 2 to {_MOST_CHOICES} of them, separated by commas.")
        target = given["target"] or None
        if choices and target is not None and target not in choices:
            choices = (*choices, target)
        mine = Example("", given["question"], target=target, answers=(target,) if target else (), choices=choices)
        upload = form.files.get("image", b"")
        if upload:
            settings = self._explorer.settings
            image: Image = checked_image(upload, settings.max_upload, settings.max_pixels)
            name = image.digest[:16]
            return replace(mine, id=own_id(mine.question, target, name), image=image, image_id=name)
        if not id_:
            raise PfungstError("Choose an image: upload one, or name an example of the data set.")
        base = find_example(data, id_)
        if base.question == mine.question and base.target == target:
            return replace(base, choices=choices)
        return replace(
            mine, id=own_id(mine.question, target, base.image_id), image=base.image, image_id=base.image_id,
            scene=base.scene, program=base.program if base.question == mine.question else None,
        )  # fmt: skip

    def _page(self, **given: Any) -> dict[str, Any]:
        data = self._explorer.data(given.get("run", ""))
        seen = [example for example in data.originals if example.image is not None]
        step = max(1, len(seen) // SUGGESTED)
        players = self._explorer.settings.players
        known: dict[str, Any] = {"here": "ask", "players": players, "player": players[0], "data_name": data.name,
                                 "examples": seen[::step][:SUGGESTED], "question": "", "target": "", "choices": "",
                                 "run": "", "id": "", "asked": None, "problem": "", "image": "", "ticket": "",
                                 "saved": ""}  # fmt: skip
        return known | given

    def _html(self, form: Form, page: dict[str, Any], status: int = 200) -> Response:
        return HTMLResponse(self._explorer.html(form.session, "ask.html", **page), status)


def _shown(image: Image | None) -> str:
    if image is None:
        return ""
    content, kind = encode(image, LARGE)
    return data_url(kind, content)
