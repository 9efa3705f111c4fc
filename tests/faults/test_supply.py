"""What reaches out, what is unpickled, what archives can do, what is installed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pfungst.core import PfungstError
from pfungst.core.offline import Offline, is_here

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))


def python(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**clean, **environment},
        capture_output=True,
        text=True,
    )


# --- offline ----------------------------------------------------------------------------------------------------------

WORK = """
import os, socket, sys
tried = []
sys.addaudithook(lambda event, arguments: tried.append((event, str(arguments[-1]))) if event in
                 ("socket.connect", "socket.getaddrinfo", "socket.sendto") else None)
import pfungst
from pathlib import Path
Path("main.txt").write_text("Is it red?\\nWhat is it?\\nHow many?\\nIs there a dog?\\n")
rows = "".join('{"id": "q%d", "question": "Is it %d?", "answer": "yes"}\\n' % (n, n) for n in range(5))
Path("data.jsonl").write_text(rows)
pfungst.examine("oracle", "data.jsonl", ["control", "surface"], "run")
pfungst.rescore("run")
from pfungst.probes.noise.bqd import build, read_source
from pfungst.probes.noise.ranking import RankSettings
source = read_source("main.txt")
build(Path("bqd.json"), source.questions, source.texts, RankSettings("rouge", k=2))
assert not tried, tried
for place in (("192.0.2.1", 80), ("2001:db8::1", 80, 0, 0)):
    try:
        socket.socket(socket.AF_INET6 if len(place) > 2 else socket.AF_INET).connect(place)
    except pfungst.core.offline.Offline as error:
        assert "PFUNGST_OFFLINE" in str(error)
    else:
        raise SystemExit("connected")
try:
    socket.getaddrinfo("example.org", 80)
except pfungst.core.offline.Offline:
    pass
else:
    raise SystemExit("looked up")
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
from pfungst.players import resolve
try:
    resolve("openai:m@https://api.example.org/v1").answer([pfungst.core.Query("q")])
except pfungst.core.PfungstError as error:
    assert "PFUNGST_OFFLINE" in str(error), error
else:
    raise SystemExit("asked")
assert os.environ["HF_HUB_OFFLINE"] == "1"
print("offline")
"""


def test_offline_nothing_leaves_this_machine_and_the_work_is_done(tmp_path: Path) -> None:
    ended = python(WORK, tmp_path, PFUNGST_OFFLINE="1", PFUNGST_CACHE=str(tmp_path / "cache"))
    assert ended.stdout.strip() == "offline", ended.stderr[-2000:]


def test_without_the_variable_nothing_is_guarded(tmp_path: Path) -> None:
    code = "import pfungst, pfungst.core.offline as o; print(o.offline(), o._guarded)"
    environment = {"PFUNGST_OFFLINE": "0"}
    assert python(code, tmp_path, **environment).stdout.split() == ["False", "False"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST", ""])
def test_what_this_machine_is(host: str) -> None:
    assert is_here(host)


@pytest.mark.parametrize("host", ["192.168.0.1", "example.org", "127.0.0.1.example.org", "::ffff:8.8.8.8", "0x7f.1"])
def test_what_it_is_not(host: str) -> None:
    assert not is_here(host)
    assert issubclass(Offline, PfungstError)


# --- pickle -----------------------------------------------------------------------------------------------------------

UNPICKLES = {
    *(f"{module}.{name}" for module in ("pickle", "cloudpickle", "dill", "marshal") for name in ("load", "loads")),
    *("pickle.Unpickler", "joblib.load", "shelve.open", "yaml.load", "eval", "exec"),
}


def test_nothing_in_the_package_unpickles_or_evaluates() -> None:
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                words = {word.arg: word.value for word in node.keywords}
                if name in UNPICKLES or name.endswith("read_pickle"):
                    found.append(f"{path}:{node.lineno}: {name}")
                if name in ("np.load", "numpy.load") and _true(words.get("allow_pickle")):
                    found.append(f"{path}:{node.lineno}: a pickled array")
                if name == "torch.load" and not _true(words.get("weights_only")):
                    found.append(f"{path}:{node.lineno}: torch.load without weights_only=True")
                if _true(words.get("trust_remote_code")):
                    found.append(f"{path}:{node.lineno}: remote code")
    assert not found


def _true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


# --- archives ---------------------------------------------------------------------------------------------------------


def bomb(path: Path, members: dict[str, bytes], size: int) -> Path:
    """A zip archive whose first member is followed by one that unpacks to `size` zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        with archive.open("samples/zeros.json", "w") as file:
            for _ in range(size >> 20):
                file.write(bytes(1 << 20))
    return path


@pytest.mark.parametrize("name", ["a.eval", "a.xlsx"])
def test_a_log_that_is_a_bomb_is_refused_before_it_is_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tracemalloc

    from pfungst.logs import read_log
    from pfungst.rows import files

    monkeypatch.setattr(files, "BOMB_FLOOR", 8 << 20)
    parts = (
        {"header.json": b"{}"} if name == "a.eval" else {"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": b"<a/>"}
    )
    path = bomb(tmp_path / name, parts, 64 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(PfungstError, match="unpacks to"):
            read_log(path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_list_of_questions_that_is_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    from pfungst.probes.noise.bqd import read_lines
    from pfungst.rows import files

    monkeypatch.setattr(files, "BOMB_FLOOR", 1 << 20)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b" " * (16 << 20)))
    with pytest.raises(PfungstError, match="unpacks to more than"):
        read_lines(tmp_path / "a.txt.gz")


def test_an_image_in_an_archive_that_is_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pfungst.core import images

    monkeypatch.setattr(images, "MOST_BYTES", 1 << 20)
    path = bomb(tmp_path / "a.zip", {}, 4 << 20)
    with pytest.raises(PfungstError, match="cannot be read from the archive"):
        images.ZipImage(path, "samples/zeros.json").read()


# --- what is installed ------------------------------------------------------------------------------------------------


def test_the_lock_agrees_with_the_constraints() -> None:
    def versions(file: str) -> dict[str, str]:
        lines = (line.split("#")[0].strip() for line in (ROOT / file).read_text("utf-8").splitlines())
        pairs = (line.split()[0].split("==") for line in lines if "==" in line)
        return {name.lower().replace("_", "-").replace(".", "-"): version.split("+")[0] for name, version in pairs}

    fixed, locked = versions("constraints.txt"), versions("requirements.lock")
    assert {name: locked[name] for name in fixed if name in locked and locked[name] != fixed[name]} == {}
    for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines()[1:]:
        assert len(line.partition("--hash=sha256:")[2]) == 64, line
