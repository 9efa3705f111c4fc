"""What comes from data, file names and replies is shown in a terminal, never obeyed."""

from __future__ import annotations

import csv
import json
import re
import shlex
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from pfungst import cli
from pfungst.cli import main
from pfungst.cli.show import visible

EVIL = "\x1b[2J\x1b]0;owned\x07\r\x08\x7f\x9b31m\u202e"
COMMANDS = (
    "data check {data}",
    "data check {broken}",
    "examine mine:answer -d {data} -p control -o run",
    "examine oracle -d {data} -p control -p blind -o other",
    "show run",
    "show run --wrong",
    "show run --id {id}",
    "report run",
    "compare run other",
    "gate run --require control.drop<=0.5",
    "check player mine:answer",
    "import {log} --data {data} -o imported",
    "examine oracle -d {missing} -o nowhere",
    "show run --json",
    "data check {data} --json",
)
PLAYER = f"""
from pfungst.core import Answer

class Hostile:
    name = {EVIL!r}
    fingerprint = "hostile"

    def answer(self, queries):
        return [Answer({EVIL!r} + str(len(query.question))) for query in queries]

answer = Hostile()
"""


def hostile(folder: Path) -> dict[str, str]:
    common = {"category": EVIL, EVIL: "?"}
    rows = [
        {"id": f"q{at}{EVIL}", "question": f"Is it {at}{EVIL}?", "answer": f"x{at % 2}{EVIL}", **common}
        for at in range(6)
    ]
    data, broken, log = (folder / f"{name}\x1b[31m\r.{ending}" for name, ending in
                         (("data", "jsonl"), ("broken", "jsonl"), ("log", "csv")))  # fmt: skip
    data.write_text("\n".join(map(json.dumps, rows)))
    broken.write_text(json.dumps({"question": EVIL, "answer": "c\x1b", "choices": [EVIL, "b"], EVIL: 1}) + "\n{" + EVIL)
    with log.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerows([["id", "reply", EVIL.replace("\r", "")], *([row["id"], EVIL, EVIL] for row in rows)])
    (folder / "mine.py").write_text(PLAYER)
    names = {"data": data, "broken": broken, "log": log, "missing": folder / f"none{EVIL}"}
    return {key: shlex.quote(str(path)) for key, path in names.items()} | {"id": shlex.quote(rows[0]["id"])}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def printed(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """What a command prints, to both streams, however it ends."""
    monkeypatch.setattr(sys, "argv", ["pfungst", *shlex.split(command)])
    with suppress(SystemExit):
        main()
    out, err = capsys.readouterr()
    return out, err


def test_no_control_byte_reaches_the_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names, shown = hostile(folder), Counter[str]()
    for command in COMMANDS:
        text = "".join(printed(command.format(**names), capsys, monkeypatch))
        obeyed = sorted({sign for sign in text if sign != "\n" and visible(sign) != sign})
        assert not obeyed, (command, obeyed, text)
        assert "Traceback" not in text, (command, text)
        shown[command] = text.count("1b")
    foreign = [command for command in COMMANDS if command.startswith(("show", "data check"))]
    assert all(shown[command] for command in foreign), shown


def test_what_json_says_is_what_the_data_say(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, _ = printed(f"data check {hostile(folder)['data']} --json", capsys, monkeypatch)
    assert set(json.loads(out)["top_answers"]) == {f"x0{EVIL}", f"x1{EVIL}"}


def test_commands_print_by_one_helper() -> None:
    prints = re.compile(r"(?<![\w.])print\(|typer\.echo\(|std(out|err)\.write\(")
    files = sorted(Path(cli.__file__).parent.glob("*.py"))
    lines = [f"{file.name}: {line}" for file in files for line in file.read_text().splitlines() if prints.search(line)]
    assert lines == ["show.py:     print(*map(visible, things), end=end, file=file, flush=flush)"]
