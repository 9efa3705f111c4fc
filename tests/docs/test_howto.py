"""The code on the how-to pages does what the pages say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pfungst.core import Answer, Example
from tests.docs.pages import blocks

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


class _Entry:
    """An entry point of a package that is not installed."""

    value = "my_package"

    def __init__(self, part: Any) -> None:
        self.load = lambda: part
