"""One test for each way in that must be shut."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pfungst.core import PfungstError
from pfungst.web import Runs, WebSettings
from pfungst.web.security import Sessions
from tests.web.conftest import HOSTILE, Served

Find = Callable[[str], str]
NOTE = {"probe": "control", "id": "q5", "variant": "clean", "tags": "seen", "note": ""}


def test_a_server_that_others_can_reach_needs_a_token(tmp_path: Path) -> None:
    from pfungst.web import make_app

    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(PfungstError, match="token"):
            make_app(WebSettings((tmp_path,), host=host))
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        assert WebSettings((tmp_path,), host=host).is_local


def test_a_page_of_another_name_that_leads_here_is_told_nothing(served: Served) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", ""):
        reply = served.client.get(served.address, headers={"host": host})
        assert reply.status_code in (400, 421) and "prior" not in reply.text
    assert served.client.get(served.address, headers={"host": "localhost:1"}).status_code == 200


@pytest.mark.parametrize("path", ["/notes/write", "/ask/upload", "/ask/save", "/game/judge", "/game/answer",
                                  "/game/search", "/game/save", "/sign-in"])  # fmt: skip
def test_nothing_changes_without_a_form_token(served: Served, path: str) -> None:
    for token in ("", "0" * 64, Sessions("x").form_token(Sessions("x").new())):
        assert served.post(path, {"run": "x"}, token=token).status_code == 403
        reply = served.client.post(served.address + path, json={"run": "x"}, headers={"x-form-token": token})
        assert reply.status_code == 403
    assert served.get(path).status_code in (200, 404, 405)


def test_a_form_of_another_site_is_refused_even_with_the_token(served: Served, run_id: Find) -> None:
    token = served.token()
    for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        reply = served.post("/notes/write", {"run": run_id("prior"), **NOTE}, token=token, headers=headers)
        assert reply.status_code == 403


def test_reading_is_open_and_the_rest_needs_the_token(guarded: Served, run_id: Find) -> None:
    import httpx

    form = {"run": run_id("prior"), **NOTE}
    assert guarded.page("/answers", run=run_id("prior"))
    assert guarded.post("/notes/write", form).status_code == 403
    assert "Sign in" in guarded.page("/game")
    guarded_client, guarded.client = guarded.client, httpx.Client(follow_redirects=True, timeout=30)
    try:
        assert guarded.post("/sign-in", {"token": "a wrong token"}).status_code == 403
        assert guarded.post("/notes/write", form).status_code == 403
        before = dict(guarded.client.cookies)
        assert guarded.post("/sign-in", {"token": "a long token"}).status_code == 200
        assert before != dict(guarded.client.cookies), "signing in starts a new session"
        assert guarded.post("/notes/write", form).status_code == 200
        assert guarded.post("/notes/write", {**form, "tags": ""}).status_code == 200
    finally:
        guarded.client.close()
        guarded.client = guarded_client


def test_guessing_the_token_is_slow(settings: WebSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from pfungst.web import app
    from pfungst.web.security import Form, Refused

    explorer = app.Explorer(replace(settings, token="a long token"))
    now = 1000.0
    monkeypatch.setattr(app.time, "monotonic", lambda: now)
    found = []
    for _ in range(app.MOST_WRONG_TOKENS + 5):
        with pytest.raises(Refused) as refused:
            explorer._sign_in(Form({"token": "a guess"}))
        found.append(refused.value.status)
    assert found == [403] * app.MOST_WRONG_TOKENS + [429] * 5
    now += 61
    assert explorer._sign_in(Form({"token": "a long token"})).status_code == 303
    explorer.site.close()


def test_a_session_cannot_be_forged() -> None:
    ours, other = Sessions("a"), Sessions("a")
    session = ours.new()
    value = ours.write(session)
    assert ours.read(value) is not None and not ours.read(value).may_write  # type: ignore[union-attr]
    id_, _, mac = value.split(".")
    for forged in (f"{id_}.w.{mac}", other.write(other.new(may_write=True)), "", "a.w", "a.w.b.c", f"{id_}.r.é"):
        assert ours.read(forged) is None
    assert not ours.is_form_token(session, ours.form_token(ours.new()))


def test_every_answer_carries_the_policy_and_the_cookie_is_kept_from_scripts(served: Served) -> None:
    import httpx

    for path in ("/", "/answers", "/static/explorer.js", "/nowhere", "/game"):
        with httpx.Client() as fresh:
            reply = fresh.get(served.address + path)
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self';" in policy
        assert reply.headers["x-content-type-options"] == "nosniff" and reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["referrer-policy"] == "same-origin"
        if not path.startswith("/static/"):
            cookie = reply.headers["set-cookie"]
            assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/" in cookie


def test_no_page_has_inline_script_style_or_handlers(served: Served, run_id: Find) -> None:
    pages = [
        served.page("/"), served.page("/run", run=run_id("world")), served.page("/answers"), served.page("/ask"),
        served.page("/game"), served.page("/notes"), served.page("/example", run=run_id("prior"), id="q5"),
    ]  # fmt: skip
    for page in pages:
        tags = re.findall(r"<[a-zA-Z][^>]*>", page)
        assert not [tag for tag in tags if re.search(r"\s(on\w+|style)\s*=", re.sub(r'"[^"]*"', '""', tag))]
        assert not re.search(r"<style|<script(?![^>]*src=)", page)


def test_hostile_text_is_text_everywhere(served: Served, run_id: Find) -> None:
    id_ = f"q/../{HOSTILE}"
    pages = [served.page("/"), served.page("/answers"), served.page("/answers", text="it?"), served.page("/notes")]
    for run in (run_id("prior"), run_id("sub")):
        pages += [served.page("/run", run=run), served.page("/example", run=run, id=id_)]
    pages += [served.page("/ask"), served.page("/answers", text=HOSTILE, probe=HOSTILE, tag=HOSTILE, flip=HOSTILE)]
    pages.append(served.get("/run", run=HOSTILE).text)
    assert sum("alert(1)" in page for page in pages) >= 5, "the text is shown"
    for page in pages:
        assert "<script>alert" not in page and "<img src=x" not in page and "<b>flaky" not in page
        assert "{{7*7}}" in page or "49" not in page.replace("0.49", "") or "alert" not in page


def test_hostile_notes_and_tags_are_text(served: Served, run_id: Find) -> None:
    form = {"run": run_id("prior"), **NOTE, "tags": "<u>x</u>", "note": HOSTILE}
    try:
        assert "<u>x" not in served.post("/notes/write", form).text
        page = served.page("/notes")
        assert "<u>x" not in page and "<script>alert" not in page and "alert(1)" in page
    finally:
        served.post("/notes/write", {**form, "tags": "", "note": ""})


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/secret", "/etc/passwd", "a\x00b"]
)
def test_no_address_leads_out_of_the_runs(served: Served, name: str) -> None:
    for path in ("/run", "/report", "/image", "/example"):
        assert served.get(path, run=name, id=name).status_code == 404
    reply = served.client.get(f"{served.address}/static/{name.replace(chr(0), '%00')}")
    assert reply.status_code == 404 and "root:" not in reply.text


def test_links_are_not_followed_out_of_a_run(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "exam.json").write_text("{}")
    (secret / "report.html").write_text("secret")
    runs = tmp_path / "runs"
    (runs / "a").mkdir(parents=True)
    (runs / "a" / "exam.json").write_text("{}")
    (runs / "linked").symlink_to(secret)
    (runs / "a" / "report.html").symlink_to(secret / "report.html")
    (runs / "a" / "trials").symlink_to(secret)
    (runs / "a" / "inside.html").write_text("mine")
    (runs / "a" / "loop").symlink_to(runs / "a" / "loop")
    found = Runs((runs,)).all()
    assert [run.name for run in found] == ["a"]
    assert found[0].file("report.html") is None and found[0].file("loop") is None and found[0].trials() == []
    assert found[0].file("inside.html") is not None
    assert found[0].file("..", "..", "secret", "report.html") is None


def test_the_report_of_a_run_acts_as_a_stranger(served: Served, run_id: Find) -> None:
    reply = served.get("/report", run=run_id("prior"))
    assert reply.status_code == 200
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("sandbox") and "allow-same-origin" not in policy


def test_what_is_too_large_is_refused_with_a_sentence(served: Served) -> None:
    limit = served.settings.max_form
    token = served.token()
    assert served.post("/notes/write", {"note": "x" * (limit + 1)}, token=token).status_code == 413

    def endless() -> Iterator[bytes]:
        for _ in range(limit // 1000 + 50):
            yield b"x" * 1000

    headers = {"content-type": "application/x-www-form-urlencoded"}
    reply = served.client.post(served.address + "/notes/write", content=endless(), headers=headers)
    assert reply.status_code == 413 and "more than the server accepts" in reply.text


def test_errors_tell_nothing_of_the_inside(served: Served, run_id: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    from pfungst.web import views

    def broken(*_: object) -> None:
        raise RuntimeError("a secret path /home/me")

    monkeypatch.setattr(views, "runs_page", broken)
    reply = served.get("/")
    assert reply.status_code == 500 and "secret" not in reply.text and "Traceback" not in reply.text
    assert re.search(r"error [0-9a-f]{8}", reply.text)


def test_nonsense_does_no_harm(served: Served, run_id: Find) -> None:
    run = run_id("prior")
    odd = {"page": "-1 x 99999999999999", "sort": "1;DROP '", "outcome": "' x", "text": "%_\\'\"; \" '", "tag": "'"}
    for query in ({"run": ["", "x"]}, *({name: word} for name, words in odd.items() for word in words.split())):
        assert served.get("/answers", **{"run": run, **query}).status_code in (200, 404), query
    assert served.get("/answers", run=run, probe="' OR 1=1 --").text.count('class="answer"') == 0
    for at in ("-1", "x", "9" * 40):
        assert served.get("/example", run=run, id="q5", at=at).status_code == 200
    token = served.token()
    for body, kind in ((b"{", "application/json"), (b"[1]", "application/json"), (b"x", "text/plain"),
                       (b"--x\r\n", "multipart/form-data; boundary=x"), (b"{}", "")):  # fmt: skip
        headers = {"content-type": kind, "x-form-token": token}
        assert (
            400 <= served.client.post(served.address + "/game/judge", content=body, headers=headers).status_code < 500
        )


def test_half_a_request_is_no_error(served: Served) -> None:
    host, port = served.address.removeprefix("http://").split(":")
    for sent in (
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"\x16\x03\x01 nonsense\r\n\r\n",
        b"POST /ask/upload HTTP/1.1\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=5) as line:
            line.sendall(sent)
    assert served.get("/").status_code == 200


def test_visitors_ask_only_the_players_that_were_named(served: Served) -> None:
    for spec in ("os:system", "evil.py:answer", "hf:gpt2", "random", ""):
        reply = served.json("/game/answer", {"run": "", "id": "q0000", "player": spec, "positions": [[0, 0]] * 3})
        assert reply.status_code == 400


def test_notes_that_cannot_be_written_are_a_sentence(tmp_path: Path) -> None:
    from pfungst.web.index import Place
    from pfungst.web.notes import Note, Notes

    with pytest.raises(PfungstError, match="cannot be opened"):
        Notes(tmp_path).write(Note(Place("a", "b", "c", "d"), "x"))


def test_a_data_set_of_tags_is_no_way_to_read_files(served: Served, run_id: Find) -> None:
    reply = served.get("/notes/export", tag="../../etc/passwd")
    assert reply.status_code == 400 and "root:" not in reply.text
