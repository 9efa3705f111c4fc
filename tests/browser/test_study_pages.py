"""Whole studies in a real browser: two workers, one at a keyboard and one on a phone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="studies need the extra study")
pytest.importorskip("uvicorn", reason="serving needs the extra web")

from pfungst.study import StudySettings, new_study, study_results
from tests.conftest import png
from tests.study.conftest import serving

HOSTILE = '<img src=x onerror="alert(1)"> what is <b>it</b>?'
PHONE = {"width": 390, "height": 780, "has_touch": True, "is_mobile": True}
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Makes a study and serves it: the study and its address."""
    rows = [{"id": n, "question": f"Which animal is number {n}?", "image": "0.png", "answer": "dog", "image_id": n,
             "choices": ["dog", "cat", "cow"]} for n in range(4)]  # fmt: skip
    (tmp_path / "0.png").write_bytes(png(60, (320, 240)).read())
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    servers = []

    def new(kind: str, limit: int, **settings: Any) -> tuple[Any, str]:
        study = new_study(
            tmp_path / "study",
            StudySettings(kind, str(tmp_path / "data.jsonl"), pass_training=0, min_seconds=0, **settings),
            limit=limit,
        ).study
        server = serving(study)
        servers.append(server)
        return study, server.__enter__()

    yield new
    for server in servers:
        server.__exit__(None, None, None)


def link(study: Any, address: str, code: str) -> str:
    worker = study.book.join(code)
    return f"{address}/w/{study.keys.token(worker.id, worker.code)}"


READY = """was => {
  const turn = document.querySelector("[name=turn]");
  if (!turn) return !!document.querySelector(".code");
  return turn.value !== was && !!document.querySelector(".keys:not([hidden])");
}"""
"""Another item than before is there, and its script runs; or the end."""


def agree(page: Any) -> None:
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Begin").click()
    page.locator("[name=turn]").wait_for(state="attached")


def press(page: Any, *keys: str) -> None:
    """Answer an item with these keys, and wait for the next."""
    page.wait_for_function(READY, arg="")
    turn = page.locator("[name=turn]").input_value()
    for key in (*keys, "Enter"):
        page.keyboard.press(key)
    page.wait_for_function(READY, arg=turn)


def test_two_workers_write_and_validate_rephrasings(start: Any, visit: Any, violations: Any) -> None:
    study, address = start("rephrase:count=2", 1, wanted=1, check_every=0)
    ann = visit(link(study, address, "ann"))
    assert violations(ann) == []
    agree(ann)
    for _ in range(3):  # practice, by the keyboard alone
        assert "Practice" in ann.title()
        press(ann, "1", "1", "1")
    assert "The grammar is wrong." in ann.get_by_role("status").inner_text()
    ann.get_by_label("First new question").fill(HOSTILE)
    ann.get_by_label("Second new question").fill("What sort of animal do you see?")
    assert violations(ann) == []
    ann.get_by_role("button", name="Save and continue").click()
    ann.get_by_text("Your completion code").wait_for()

    bob = visit(link(study, address, "bob"), **PHONE)
    agree(bob)
    for number in range(5):
        bob.get_by_text(f"{3 - number} left" if number < 3 else f"{number - 3} done").wait_for()
        bad = HOSTILE in bob.locator(".question").inner_text()
        for group in bob.locator("fieldset").all():
            group.get_by_text("No" if bad else "Yes", exact=True).tap()
        assert bob.evaluate(WIDER) is False
        bob.get_by_role("button", name="Save and continue").tap()
    bob.get_by_label("New question", exact=True).fill("Tell me, which animal?")  # what failed is written again
    assert violations(bob) == []
    bob.get_by_role("button", name="Save and continue").tap()
    bob.get_by_text("Your completion code").wait_for()

    ann.reload()
    for group in ann.locator("fieldset").all():
        group.get_by_text("Yes", exact=True).click()
    ann.get_by_role("button", name="Save and continue").click()
    ann.get_by_text("Your completion code").wait_for()
    results = study_results(study)
    assert (results.items, results.complete) == (5, 5)
    assert results.outcome.tables[0].rows[0][1:] == (3, 3, 2, 1)


def test_choices_by_key_a_break_and_the_admin(start: Any, visit: Any, violations: Any) -> None:
    study, address = start("withheld:training=1,conditions=IQA", 3, wanted=1, check_every=2)
    page = visit(link(study, address, "ann"))
    agree(page)
    press(page, "1")
    page.get_by_role("button", name="Take a break").click()
    page.get_by_role("link", name="Continue").click()
    page.wait_for_function(READY, arg="")
    assert violations(page) == []
    tab = page.context.new_page()
    tab.goto(page.url)
    for number in range(4):
        wanted = re.search("choose “(.)”", page.locator(".task").inner_text())
        assert (wanted is None) == (number != 2), "the check comes after two items"
        press(page, wanted[1] if wanted else str(number % 3 + 1))
    press(tab, "2")
    assert "You answered this already" in tab.get_by_role("status").inner_text()
    page.get_by_text("Your completion code").wait_for()
    results = study_results(study)
    assert (results.complete, results.workers[0].passed) == (3, 1)
    page.goto(f"{address}/admin")
    page.get_by_label("Admin token").fill(study.keys.admin)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("3 of 3 items have all their answers").wait_for()
    assert violations(page) == []
