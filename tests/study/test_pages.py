"""A study over HTTP: what workers see, and what must not work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pfungst.study import StudySettings, new_study
from tests.study.conftest import HOSTILE, Visitor, serving, visiting

CONTACT = f"ask@example.org {HOSTILE}"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory, questions: Path) -> Any:
    settings = StudySettings(
        "withheld:training=1,conditions=IQA", str(questions), wanted=50, per_worker=3, check_every=0, contact=CONTACT,
        completion_url="https://example.org/done?cc=X",
    )  # fmt: skip
    return new_study(tmp_path_factory.mktemp("served") / "study", settings).study


@pytest.fixture(scope="module")
def address(study: Any) -> Iterator[str]:
    with serving(study) as one:
        yield one


@pytest.fixture
def visitor(address: str) -> Iterator[Visitor]:
    with visiting(address) as one:
        yield one


@pytest.fixture
def link(study: Any, request: pytest.FixtureRequest) -> str:
    """The link of a new worker."""
    worker = study.book.join(f"{request.node.name} {len(study.book.workers())}")
    return f"/w/{study.keys.token(worker.id, worker.code)}"


def agree(visitor: Visitor, link: str) -> str:
    text = visitor.get(link).text
    fields = {"form_token": visitor.token(text), "worker": visitor.field(text, "worker")}
    return visitor.post("/consent", agree="yes", **fields).text


def answer(visitor: Visitor, text: str, **more: Any) -> Any:
    fields = {name: visitor.field(text, name) for name in ("form_token", "worker", "turn")}
    return visitor.post("/answer", **{**fields, "choice": "0", "active": "1.5", **more})


def test_from_consent_to_the_code(visitor: Visitor, link: str, study: Any) -> None:
    text = visitor.get(link).text
    assert "Before you begin" in text
    assert 'name="turn"' not in text, "nothing is asked before somebody agrees"
    text = agree(visitor, link)
    assert "Practice" in text
    text = answer(visitor, text).text
    assert "The right answer is" in text, "practice is followed by what is right"
    for _ in range(2):
        text = answer(visitor, text).text
        assert "Saved:" in text
        assert "The right answer is" not in text
    text = answer(visitor, text).text
    worker = study.book.worker(int(link.split("/")[2].partition("-")[0]))
    assert study.completion(worker.id, worker.code) in text
    assert 'href="https://example.org/done?cc=X"' in text


def test_texts_of_the_data_set_are_escaped(visitor: Visitor, link: str) -> None:
    text = visitor.get(link).text
    for _ in range(5):
        assert "<script>alert" not in text
        text = agree(visitor, link) if 'name="agree"' in text else answer(visitor, text).text
    assert "&lt;script&gt;" in text


def test_a_double_click_and_a_second_tab_give_one_answer(visitor: Visitor, link: str, study: Any) -> None:
    text = answer(visitor, agree(visitor, link)).text
    turn = int(visitor.field(text, "turn"))
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda n: answer(visitor, text, choice=str(n)).text, range(4)))
    assert sum("You answered this already" in reply for reply in replies) == 3
    kept = [row for row in study.book.answers() if row["id"] == turn]
    assert len(kept) == 1
    words = {re.findall(r"<b>(.*?)</b>", reply)[0] for reply in replies}
    assert len(words) == 1, "all of them are told what was saved"


def test_an_incomplete_answer_is_asked_for_again(visitor: Visitor, link: str) -> None:
    text = agree(visitor, link)
    reply = answer(visitor, text, choice="")
    assert reply.status_code == 422
    assert 'role="alert"' in reply.text
    assert visitor.field(reply.text, "turn") == visitor.field(text, "turn")


def test_a_break_keeps_the_place(visitor: Visitor, link: str) -> None:
    text = agree(visitor, link)
    rest = visitor.post("/break", form_token=visitor.token(text), worker=visitor.field(text, "worker"))
    assert "Take your time" in rest.text
    assert visitor.field(visitor.get(link).text, "turn") == visitor.field(text, "turn")


def test_a_token_reaches_only_its_own_items(visitor: Visitor, link: str, study: Any, address: str) -> None:
    text = answer(visitor, agree(visitor, link)).text
    turn = visitor.field(text, "turn")
    assert visitor.get(f"{link}/image/{turn}/0").headers["content-type"].startswith("image/")
    other = study.book.join(f"other {turn}")
    stranger = f"/w/{study.keys.token(other.id, other.code)}"
    with visiting(address) as second:
        theirs = agree(second, stranger)
        assert second.get(f"{stranger}/image/{turn}/0").status_code == 404
        assert answer(second, theirs, turn=turn).status_code == 404
        assert second.get(stranger, saved=turn).text.count("Saved:") == 0
        for strange in ("99999999999999999999", "-1", "x", "1e9"):
            assert second.get(f"{stranger}/image/{strange}/0").status_code == 404
            assert second.get(f"{stranger}/image/{turn}/{strange}").status_code == 404
            assert answer(second, theirs, turn=strange).status_code == 404
            assert second.get(stranger, saved=strange).status_code == 200
        for wrong in (link[:-1] + ("0" if link[-1] != "0" else "1"), "/w/1-", "/w/x", "/w/999999-" + "0" * 32):
            assert second.get(wrong).status_code == 404


def test_an_answer_needs_the_form_of_its_own_visitor(visitor: Visitor, link: str, address: str) -> None:
    text = agree(visitor, link)
    with visiting(address) as second:
        assert answer(second, text).status_code == 403
    assert answer(visitor, text, form_token="0" * 64).status_code == 403
    fields = {name: visitor.field(text, name) for name in ("form_token", "worker", "turn")}
    foreign = visitor.client.post(
        f"{address}/answer", data={**fields, "choice": "0"}, headers={"origin": "https://elsewhere.example"}
    )
    assert foreign.status_code == 403


def test_headers_forbid_scripts_of_others(visitor: Visitor, link: str) -> None:
    headers = visitor.get(link).headers
    assert "script-src 'self'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"


def test_joining_by_the_link_for_all(visitor: Visitor, study: Any) -> None:
    join = f"/join/{study.keys.join}"
    first = visitor.get(join, PROLIFIC_PID="5f0000000000000000000001")
    assert "Before you begin" in first.text
    again = visitor.get(join, worker="5f0000000000000000000001")
    assert again.status_code == 409, "who knows the code of somebody else does not get their page"
    assert visitor.get(join).status_code == 400
    assert visitor.get("/join/guess", worker="x").status_code == 404


def test_the_admin_pages_need_the_admin_token(visitor: Visitor, link: str, study: Any, address: str) -> None:
    code = "=HYPERLINK(1)"
    study.book.join(code)
    assert "Admin token" in visitor.get("/admin").text
    assert visitor.get("/admin/payments.csv").status_code == 403
    token = visitor.token(visitor.get("/admin/sign-in").text)
    worker = link.split("/")[2]
    assert visitor.post("/admin/sign-in", form_token=token, token=worker).status_code == 403
    assert visitor.get("/admin/answers.csv").status_code == 403
    page = visitor.post("/admin/sign-in", form_token=token, token=study.keys.admin).text
    assert "Krippendorff" in page
    payments = visitor.get("/admin/payments.csv").text
    assert f"'{code}" in payments
    assert f"\n{code}" not in payments
    assert visitor.get("/admin/nothing.csv").status_code == 404


def test_guessing_is_limited(study: Any) -> None:
    from pfungst.study.app import Limit
    from pfungst.web.security import Refused

    now = [0.0]
    limit = Limit(0.5, 3, clock=lambda: now[0])
    for _ in range(3):
        limit.check("a")
    with pytest.raises(Refused) as refused:
        limit.check("a")
    assert refused.value.status == 429
    limit.check("b")
    now[0] = 2.0
    limit.check("a")
    with pytest.raises(Refused):
        limit.check("a")


def test_too_much_at_once_is_refused(visitor: Visitor, link: str) -> None:
    text = agree(visitor, link)
    assert answer(visitor, text, choice="x" * 60_000).status_code == 413
