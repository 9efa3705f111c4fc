"""Every command takes --json, prints nothing but JSON then, and keeps its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest
import typer

from pfungst.cli.app import app
from tests.cli.conftest import Command


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that name it."""
    if isinstance(command, click.Group) or hasattr(command, "list_commands"):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from leaves(command.get_command(context, name), (*words, name))
    else:
        yield words, command


LEAVES = dict(leaves(typer.main.get_command(app)))

RUN = "examine oracle -d data.jsonl -p control -o {}"
STUDY = "study new rephrase -d data.jsonl --limit 2 -o people"
CHEAP: dict[str, tuple[str, ...]] = {
    "examine": (RUN.format("a"), RUN.format("a") + " --dry-run"),
    "rescore": (RUN.format("a"), "rescore a"),
    "recover": (RUN.format("a"), "recover a"),
    "report": (RUN.format("a"), "report a"),
    "compare": (RUN.format("a"), RUN.format("b"), "compare a b"),
    "show": (RUN.format("a"), "show a", "show a --id q3 --wrong"),
    "export": (RUN.format("a"), "export a --to csv"),
    "bundle": (RUN.format("a"), "bundle a -o site"),
    "gate": (RUN.format("a"), "gate a --require control.drop<=0.5"),
    "import": ("import clean=said.jsonl --data data.jsonl -o imported",),
    "rank": (
        "rank --main data.jsonl --pool data.jsonl --k 3 --ranker rouge --out bqd.json",
        "rank Why? --pool data.jsonl --k 3 --ranker rouge",
    ),
    "list": ("list", "list probes"),
    "results pages": ("results pages",),
    "results check": ("results pages", "results check"),
    "data check": ("data check data.jsonl",),
    "world make": ("world make -o made --scenes 2 --no-images --on local",),
    "check player": ("check player mine:answer",),
    "check probe": ("check probe control",),
    "check metric": ("check metric vqa",),
    "new": ("new player my-model",),
    "doctor": ("doctor",),
    "cache": ("cache",),
    "check ranker": ("check ranker rouge",),
    "decoys": ("decoys data.jsonl --kinds qou --out made.jsonl --vectors vectors.txt",),
    "audit": ("audit data.jsonl --models none --vectors vectors.txt",),
    "play": (
        "play oracle -d made --adversary rsg --size 2 --seeds 1 --budget 2 -o game --dry-run",
        "play oracle -d made --adversary rsg --size 2 --seeds 1 --budget 2 -o game",
    ),
    "study new": (STUDY,),
    "study workers": (STUDY, "study workers people --add 2"),
    "study results": (STUDY, "study results people -o found"),
    "study forget": (STUDY, "study workers people --code ann", "study forget people ann"),
    "games": ("play oracle -d made --adversary rsg --size 2 --seeds 1 --budget 2 -o game", "games game"),
}
"""Command -> lines that it takes; what the earlier ones write is there for the later."""

LONG = {"train", "harden", "results run", "results file", "serve",
        "study serve", "study demo"}  # fmt: skip
"""Their --json is parsed in tests/training, tests/experiments, tests/web and tests/study, where there is
what they need."""


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_has_the_option(words: tuple[str, ...]) -> None:
    assert any("--json" in parameter.opts for parameter in LEAVES[words].params)


def test_every_command_is_run_here_or_with_what_it_needs() -> None:
    named = {" ".join(words) for words in LEAVES}
    assert {name for name in named if not name.startswith("reproduce ")} <= set(CHEAP) | LONG


@pytest.mark.parametrize("name", [name for name in CHEAP if tuple(name.split()) in LEAVES])
def test_what_a_command_prints_is_json(name: str, folder: Any, pfungst: Command) -> None:
    words = ("is", "square", "red", "yes", "no", "1", "2", "3")
    (folder / "vectors.txt").write_text("".join(f"{word} {n % 7} {n % 5} 1\n" for n, word in enumerate(words)))
    rows = [json.loads(line) for line in (folder / "data.jsonl").read_text().splitlines()]
    said = "".join(json.dumps({"question_id": row["id"], "answer": "yes"}) + "\n" for row in rows)
    (folder / "said.jsonl").write_text(said)
    if name in ("play", "games"):
        pfungst(*CHEAP["world make"][0].split(), "--json")
    for line in CHEAP[name]:
        json.loads(pfungst(*line.split(), "--json"))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("examine oracel --json", 2),
        ("examine oracle -d gone.jsonl --json", 1),
        ("rescore gone --json", 1),
        ("list horses --json", 1),
        ("examine oracle -d data.jsonl -p noise:kk=1 --json", 2),
        ("examine --json", 2),
        ("check player broken:Broken --json", 3),
        ("data check bad.jsonl --json", 3),
    ],
)
def test_an_error_exits_with_its_code_and_prints_no_half_json(
    line: str, code: int, folder: Any, pfungst: Command
) -> None:
    (folder / "broken.py").write_text(
        "class Broken:\n    name = 'b'\n    fingerprint = 'b'\n    def answer(self, queries):\n        return []\n"
    )
    (folder / "bad.jsonl").write_text('{"id": "bad"}\n')
    told = pfungst(*line.split(), code=code)
    if code == 3:
        json.loads(told)


def test_what_other_processes_print_is_no_part_of_the_json(folder: Any) -> None:
    (folder / "loud.py").write_text(
        "import os\n\ndef answer(question):\n    os.system('echo asked')\n    return 'yes'\n"
    )
    words = "examine loud:answer -d data.jsonl --limit 2 -p control -o run --json"
    done = subprocess.run(
        [sys.executable, "-m", "pfungst", *words.split()], cwd=folder, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["findings"] and "asked" in done.stderr
