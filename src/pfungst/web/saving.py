"""What visitors asked and played, as an ordinary run folder: `saved-PLAYER`, beside the other runs.

Every save adds rows to its questions and answers, and the exam is run again over all of them with the answers as they
were given; nobody is asked again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pfungst.api import slug
from pfungst.core import Answer, Exam, Example, ExamSpec, Query
from pfungst.core.files import jsonable, write_atomic
from pfungst.data import load
from pfungst.players.recorded import LoggedPlayer
from pfungst.probes.conditions import Conditions, member_id
from pfungst.report import write_report
from pfungst.scores import get_metric

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
