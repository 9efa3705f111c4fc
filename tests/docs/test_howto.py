"""The code on the how-to pages does what the pages say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pfungst.core import Answer, Example
from tests.docs.pages import blocks, run_page

PAGES = Path(__file__).parents[2] / "docs" / "howto"


def names(page: str) -> dict[str, Any]:
    """What the python blocks of a page define."""
    found: dict[str, Any] = {"__name__": page}
    for block in blocks((PAGES / f"{page}.md").read_text(encoding="utf-8")):
        if block.kind == "python":
            exec(compile(block.text, page, "exec", dont_inherit=True), found)
    return found


def test_the_format_of_a_data_set_reads_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pfungst.core.registry import Registry
    from pfungst.data import load

    (tmp_path / "a.mine.txt").write_text("What is it?\nWhere is it?\n")
    format_class = names("data")["Mine"]
    monkeypatch.setattr(Registry, "others", lambda self: {"mine": _Entry(format_class)})
    data = load(f"mine:{tmp_path}", images="none")
    assert [example.question for example in data] == ["What is it?", "Where is it?"]


def test_the_metric_is_half_content_with_a_number_that_is_off_by_one() -> None:
    close_enough = names("metric")["close_enough"]
    example = Example("1", "How many?", target="3")
    assert [close_enough(example, Answer(said)) for said in ("3", "4", "5", "red")] == [1.0, 0.5, 0.0, 0.0]


def test_the_probe_keeps_the_rules() -> None:
    from pfungst.probes.check import check_probe

    assert check_probe(names("probe")["Typos"]()) == []


def test_the_encoder_keeps_the_rules() -> None:
    from pfungst.text.encoders import check_encoder

    check_encoder(names("encoder")["Lengths"]())


def test_the_adversary_asks_about_one_legal_scene_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as parquet

    import pfungst
    from pfungst.probes.game.adversaries import ADVERSARIES

    monkeypatch.setitem(ADVERSARIES.builtin, "one-try", names("adversary")["OneTry"])  # type: ignore[arg-type]
    data = "world?scenes=4&rephrasings=0"
    pfungst.examine("oracle", data, probes=["game:adversary=one-try,size=4,seeds=1"], out=tmp_path / "run")
    moves = parquet.read_table(tmp_path / "run" / "game" / "moves.parquet").to_pylist()
    assert 0 < len(moves) <= 4 and all(row["legal"] for row in moves)
    assert len({row["example_id"] for row in moves}) == len(moves)


@pytest.mark.parametrize(("page", "kind", "name"), [("log", "logs", "chats"), ("model", "models", "bag")])
def test_a_part_of_an_installed_package_does_what_its_page_shows(
    page: str, kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_installed(page, tmp_path, monkeypatch)
    words = [sys.executable, "-m", "pfungst", "list", kind, "--json"]
    assert f'"{name}"' in subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout


def test_an_experiment_of_an_installed_package_does_what_its_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pfungst.core.files import read_json
    from pfungst.experiments.ledger import read_protocol

    run_installed("experiment", tmp_path, monkeypatch)
    folder = tmp_path / "runs" / "try"
    assert [row[0] for row in read_json(folder / "result.json")["tables"][0]["rows"]] == [
        "rn-state",
        "state-transformer",
    ]
    (folder / "protocol.toml").write_text(toml_blocks("experiment")[1], encoding="utf-8")
    protocol = read_protocol(folder)
    assert protocol.experiment == "length" and protocol.config == {"models": ["rn-state", "state-transformer"]}


def run_installed(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page in a folder whose files are an installed package, with the entry points that the page declares.

    After a change that is meant to change an output, PFUNGST_WRITE_DOCS=1 writes what came out.
    """
    path = PAGES / f"{page}.md"
    groups = tomllib.loads(toml_blocks(page)[0])["project"]["entry-points"]
    about = folder / "my_package-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1\n")
    lines = [f"[{group}]\n{name} = {value}\n" for group, parts in groups.items() for name, value in parts.items()]
    (about / "entry_points.txt").write_text("".join(lines))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    )
    monkeypatch.setenv("COLUMNS", "110")
    made = run_page(path, folder)
    if os.environ.get("PFUNGST_WRITE_DOCS"):
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made


def toml_blocks(page: str) -> list[str]:
    return re.findall(
        r"^```toml[^\n]*\n(.*?)^```$", (PAGES / f"{page}.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )


class _Entry:
    """An entry point of a package that is not installed."""

    value = "my_package"

    def __init__(self, part: Any) -> None:
        self.load = lambda: part
