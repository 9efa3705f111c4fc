"""compare.html in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pfungst.api import load_again
from pfungst.report.compare import leaderboard
from pfungst.report.compare_html import write_comparison


@pytest.fixture(scope="module")
def comparison(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    board = leaderboard(runs)
    data = load_again(board.runs[0].run.config, board.runs[0].path)
    return write_comparison(board, tmp_path_factory.mktemp("compare") / "compare.html", data)


@pytest.mark.parametrize(
    ("name", "options"), [("light", {}), ("dark-phone", {"color_scheme": "dark", "width": 390, "height": 844})]
)
def test_no_rule_of_accessibility_is_broken(visit, violations, shoot, comparison, name, options) -> None:
    page = visit(comparison, **options)
    if name == "light":
        shoot(page, "compare")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= options.get("width", 1280)


def test_flips_between_two_runs_are_browsed(visit, comparison) -> None:
    page = visit(comparison)

    def shown(first: str, second: str, pair: str) -> list[str]:
        for name, value in (("first", first), ("second", second), ("pair", pair)):
            page.select_option(f"select[name={name}]", value)
        return page.locator(".case:visible").evaluate_all("all => all.map((one) => one.dataset.right)")

    lost = shown("0", "2", "lost")
    assert lost and all(right[0] == "1" and right[2] == "0" for right in lost)
    won = shown("0", "2", "won")
    assert all(right[0] == "0" and right[2] == "1" for right in won)
    assert shown("2", "0", "won") == lost
    assert all(right[0] == right[1] == "0" for right in shown("0", "1", "both"))


def test_a_case_shows_what_every_run_said(visit, comparison, runs) -> None:
    page: Any = visit(comparison)
    page.locator(".case:visible .open").first.click()
    assert page.locator("dialog[open] dt").count() == len(runs) + 1
