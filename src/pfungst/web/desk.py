"""Where visitors ask: the players they may choose, what these said, and how it is saved.

What was asked and played is saved as an ordinary run folder, `saved-PLAYER`, beside the other runs. Every save adds
rows to its questions and answers, and the exam is run again over all of them with the answers as they were given;
nobody is asked again.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pfungst.api import slug
from pfungst.core import Answer, Asker, Dataset, Exam, Example, ExamSpec, PfungstError, Player, Query
from pfungst.core.files import jsonable, write_atomic
from pfungst.core.scoring import read_as
from pfungst.core.types import Matcher
from pfungst.data import load
from pfungst.players import resolve
from pfungst.players.recorded import LoggedPlayer
from pfungst.probes.conditions import Conditions, member_id
from pfungst.report import write_report
from pfungst.scores import get_metric
from pfungst.scores.matchers import get_matcher
from pfungst.web.security import Refused
from pfungst.web.site import WebSettings

_REMEMBERED = 5000


@dataclass
class Seat:
    """A player at the desk. Models are asked by one visitor at a time."""

    spec: str
    player: Player
    asker: Asker
    matcher: Matcher | None
    """Reads its replies; None where these are the answers."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Desk:
    """Players by their specs; each is made when it is first asked."""

    def __init__(self, settings: WebSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self.probing = threading.Lock()
        """Held while a probe makes its variants: what it keeps in the cache is written by one at a time."""
        self._making: dict[tuple[str, str], threading.Lock] = {}
        self._seats: dict[tuple[str, str], Seat] = {}
        self._said: OrderedDict[str, Answer] = OrderedDict()
        self._data: Dataset | None = None

    @property
    def data(self) -> Dataset:
        """The data set of the game and of the questions."""
        with self._lock:
            if self._data is None:
                self._data = load(self.settings.data)
            return self._data

    def seat(self, spec: str, data: Dataset) -> Seat:
        """The player of this spec: one of those the server was started with, no other."""
        if spec not in self.settings.players:
            raise Refused(400, "This player is not offered here. Start the server with --player to add it.")
        key = (spec, data.fingerprint or data.name)
        with self._lock:
            lock = self._making.setdefault(key, threading.Lock())
        with lock:
            if key not in self._seats:
                player = resolve(spec, data=data.whole)
                reading = player.matcher
                matcher = get_matcher(reading) if reading else None
                self._seats[key] = Seat(spec, player, Asker(player), matcher)
            return self._seats[key]

    def answers(self, seat: Seat, queries: Sequence[Query], example_id: str = "") -> list[Answer]:
        """What the player says, read by its matcher; remembered, so that what is saved is what was seen."""
        seen = [seat.asker.visible(query, example_id) for query in queries]
        keys = [query.key(seat.asker.fingerprint) for query in seen]
        with self._lock:
            known = {key: self._said[key] for key in keys if key in self._said}
        missing = {key: query for key, query in zip(keys, seen, strict=True) if key not in known}
        if missing:
            with seat.lock:
                said = seat.asker.answers(list(missing.values()))
            known.update(zip(missing, said, strict=True))
            with self._lock:
                for key in missing:
                    self._said[key] = known[key]
                while len(self._said) > _REMEMBERED:
                    self._said.popitem(last=False)
        return [_read(seat, known[key], query) for key, query in zip(keys, queries, strict=True)]


def _read(seat: Seat, answer: Answer, query: Query) -> Answer:
    """The answer in a reply, as an exam reads it."""
    if seat.matcher is None or answer.scores is not None:
        return answer
    return read_as(answer, seat.matcher(answer.reply, query.choices, ""))


def find_example(data: Dataset, example_id: str) -> Example:
    """The example of this id."""
    for example in data:
        if example.id == example_id:
            return example
    raise PfungstError(f"The data set {data.name} has no example with this id.")


QUESTIONS, SAID, IMAGES = "questions.jsonl", "said.jsonl", "images"
_SPEC = f"table:{{run}}/{QUESTIONS}"
_lock = threading.Lock()


@dataclass(frozen=True)
class Row:
    """One variant of a question, and what the player said."""

    example: Example
    query: Query
    answer: Answer
    condition: str
    """`clean` first, then what was done."""


def save(home: Path, player: str, rows: Sequence[Row]) -> Path:
    """Add the variants of one question to the run of saved questions of a player; returns the run folder."""
    folder = home / f"saved-{slug(player)}"
    with _lock:
        questions, said = _lines(folder / QUESTIONS), _lines(folder / SAID)
        group = f"saved-{1 + len({json.loads(line)['group'] for line in questions}):04d}"
        for row in rows:
            id_ = group if row is rows[0] else member_id(group, row.condition)
            questions.append(json.dumps(_question(folder, row, id_, group), ensure_ascii=False))
            said.append(json.dumps({"id": id_, **jsonable(row.answer)}, ensure_ascii=False))
        for name, lines in ((QUESTIONS, questions), (SAID, said)):
            write_atomic(folder / name, ("\n".join(lines) + "\n").encode("utf-8", "replace"))
        # The data set has grown, which for any other run folder means another exam: this one begins anew.
        (folder / "exam.json").unlink(missing_ok=True)
        data = replace(load(_SPEC.replace("{run}", str(folder))), name="saved in the explorer")
        answers = {one["id"]: _answer(one) for one in map(json.loads, said)}
        conditions = dict.fromkeys(_condition(json.loads(line)) for line in questions)
        player_said = LoggedPlayer(player, answers, f"saved-1-{player}", "")
        probe = Conditions(tuple(conditions))
        Exam(player_said, data, [probe], get_metric(data.metric), folder, spec=ExamSpec("", _SPEC)).run()
        write_report(folder, data)
    return folder


def _question(folder: Path, row: Row, id_: str, group: str) -> dict[str, Any]:
    example, query = row.example, row.query
    choices = query.choices if example.target is None or example.target in query.choices else ()
    found: dict[str, Any] = {
        "id": id_, "group": group, "question": query.question, "image_id": example.image_id,
        "answers": list(example.answers), "target": example.target, "choices": list(choices),
        "answer_type": example.answer_type, "scene": jsonable(query.scene),
        "program": jsonable(list(example.program)) if example.program is not None else None,
    }  # fmt: skip
    if query.image is not None:
        name = f"{IMAGES}/{query.image.digest[:32]}.png"
        content = query.image.read()
        if not (folder / name).exists():
            write_atomic(folder / name, content)
        found["image"] = name
    return {name: value for name, value in found.items() if value not in (None, "", [])}


def _condition(question: Mapping[str, Any]) -> str:
    id_, group = question["id"], question["group"]
    return "clean" if id_ == group else str(id_).removeprefix(member_id(group, ""))


def _answer(kept: Mapping[str, Any]) -> Answer:
    scores = kept.get("scores")
    return Answer(kept["text"], kept.get("confidence"), None if scores is None else tuple(scores), kept.get("raw"))


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else []
