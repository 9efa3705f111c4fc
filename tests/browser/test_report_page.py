"""report.html in a real browser."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

import pfungst
from pfungst.core import Answer, Dataset, Exam, Example
from pfungst.probes.control import Control
from pfungst.report import write_report


@pytest.fixture(scope="module")
def report(runs: list[Path]) -> Path:
    return runs[0] / "report.html"


def _count(page: Any) -> int:
    return int(page.locator("#cases > .count").inner_text().split()[0])


def _saved(page: Any, button: Any) -> bytes:
    with page.expect_download() as got:
        button.click()
    return Path(got.value.path()).read_bytes()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("light", {}),
        ("dark", {"color_scheme": "dark"}),
        ("phone", {"width": 390, "height": 844}),
    ],
)
def test_no_rule_of_accessibility_is_broken(visit, violations, shoot, report, name, options) -> None:
    page = visit(report, **options)
    if name == "light":
        shoot(page, "report")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert violations(page) == []


def test_no_rule_of_accessibility_is_broken_by_an_open_case(visit, violations, report) -> None:
    page = visit(report, color_scheme="dark")
    page.locator(".case:visible .open").first.click()
    page.evaluate("document.querySelectorAll('main > section:not(:has(dialog[open]))').forEach((one) => one.remove())")
    assert page.locator("dialog[open] .full").is_visible()
    assert violations(page) == []


def test_nothing_is_wider_than_a_phone(visit, report) -> None:
    page = visit(report, width=360, height=740)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("svg.narrow").first.is_visible() and not page.locator("svg.wide").first.is_visible()


def test_the_first_screen_holds_the_verdict_and_the_summary(visit, report) -> None:
    page = visit(report)
    for place in ("#verdict", "svg.plot.wide"):
        box = page.locator(place).first.bounding_box()
        assert box is not None and box["y"] + box["height"] < 900


def test_figures_and_tables_are_saved_as_files(visit, report) -> None:
    page = visit(report)
    figure = page.locator("figure").first
    svg = _saved(page, figure.get_by_role("link", name="SVG"))
    assert svg.startswith(b"<svg ") and b"<style>" in svg
    png = _saved(page, figure.get_by_role("button", name="PNG"))
    assert png.startswith(b"\x89PNG") and len(png) > 10_000
    rows = list(csv.DictReader(io.StringIO(_saved(page, figure.get_by_role("link", name="CSV")).decode())))
    assert next(row["probe"] for row in rows) == "control" and {row["probe"] for row in rows} >= {"blind", "game"}
    tex = _saved(page, page.locator("#card").get_by_role("link", name="LaTeX")).decode()
    assert r"\toprule" in tex and "rephrase" in tex


def test_cases_are_filtered_by_probe_kind_types_and_words(visit, report) -> None:
    page = visit(report)
    everything = _count(page)
    for name in ("probe", "kind", "answerType", "questionType"):
        values = page.locator(f"select[name={name}] option").evaluate_all("all => all.map((one) => one.value)")
        counts = []
        for value in values[1:]:
            page.select_option(f"select[name={name}]", value)
            counts.append(_count(page))
        # Every case has one value, and every value has a case.
        assert sum(counts) == everything and min(counts) > 0
        page.get_by_role("button", name="Reset").click()
        page.wait_for_function(
            "(n) => document.querySelector('#cases > .count').innerText.startsWith(n)", arg=str(everything)
        )
    page.fill("input[name=text]", "no such words anywhere")
    assert _count(page) == 0 and page.get_by_text("No case fits").is_visible()


def test_cases_are_sorted(visit, report) -> None:
    page = visit(report)
    page.select_option("select[name=sort]", "question")
    shown = page.locator(".case:visible h3").all_inner_texts()
    assert len(shown) > 3 and shown == sorted(shown, key=str.casefold)
    page.select_option("select[name=sort]", "loss")
    losses = page.locator(".case:visible").evaluate_all("all => all.map((one) => Number(one.dataset.loss))")
    assert losses == sorted(losses, reverse=True) and losses[0] == 1


def test_a_case_opens_large_and_the_keyboard_goes_on(visit, shoot, report) -> None:
    page = visit(report)
    page.select_option("select[name=probe]", "game")
    first = page.locator(".case:visible").first
    first.locator(".open").focus()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog[open]")
    assert dialog.get_by_text("Reply, as it was said").first.is_visible()
    assert dialog.locator("svg.plan .arrow").count() > 0
    shoot(page, "report-case")
    before = dialog.locator(".count").inner_text()
    page.keyboard.press("ArrowRight")
    assert dialog.locator(".count").inner_text() != before or before == "Case 1 of 1"
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


@pytest.mark.parametrize("probe", ["noise", "rephrase", "decoys", "blind"])
def test_each_probe_shows_its_cases_its_own_way(visit, report, probe) -> None:
    page = visit(report)
    page.select_option("select[name=probe]", probe)
    page.locator(".case:visible .open").first.click()
    full = page.locator("dialog[open] .full")
    marks = {"noise": "mark", "rephrase": "text=original", "decoys": ".sets ol .target", "blind": "text=question only"}
    assert full.locator(marks[probe]).first.is_visible()


def test_a_section_leads_to_its_cases(visit, report) -> None:
    page = visit(report)
    page.locator('[data-show="rephrase"]').click()
    shown = "[...document.querySelectorAll('.cases > .case:not([hidden])')]"
    page.wait_for_function(f"{shown}.length > 0 && {shown}.every((one) => one.dataset.probe === 'rephrase')")
    assert page.locator("select[name=probe]").input_value() == "rephrase"


def test_a_report_of_one_probe_leads_to_its_cases_too(visit, tmp_path) -> None:
    page = visit(pfungst.examine("prior", "world", ["control"], tmp_path / "run", limit=20).report)
    assert page.locator("select[name=probe]").count() == 0
    page.fill("input[name=text]", "no such words anywhere")
    page.locator('[data-show="control"]').click()
    page.wait_for_function("document.querySelectorAll('.cases > .case:not([hidden])').length > 0")


def test_everything_can_be_read_without_script(visit, report) -> None:
    page = visit(report, java_script_enabled=False)
    assert page.locator(".case").first.is_visible() and not page.locator("form.filters").is_visible()
    page.locator(".case summary").first.click()
    assert page.locator(".case .full").first.is_visible()
    assert page.locator("figure").first.get_by_role("link", name="CSV").is_visible()


def test_on_paper_there_is_no_navigation_and_the_page_is_light(visit, report) -> None:
    page = visit(report, color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("nav.top").is_visible() and not page.locator("form.filters").is_visible()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(23, 32, 43)"


def test_hostile_text_stays_text_and_inside_a_phone(visit, tmp_path) -> None:
    """Markup, and words of 300 letters, in every place that a data set or a player can write to."""
    hostile = "W" * 300 + '"><script>alert(1)</script><img src=x onerror=alert(1)>'

    class Hostile:
        name, fingerprint = hostile, "hostile"

        def answer(self, queries: Any) -> list[Answer]:
            return [Answer(hostile if query.take else "yes") for query in queries]

    examples = [
        Example(
            f"{n}{hostile}", hostile, answers=("yes",), target="yes", choices=("yes", hostile), question_type=hostile
        )
        for n in range(3)
    ]
    data = Dataset(hostile, examples, "exact", "x")
    Exam(Hostile(), data, [Control()], lambda e, a: float(a.text == e.target), tmp_path).run()
    page = visit(write_report(tmp_path, data), width=360, height=740)
    page.on("dialog", lambda _: pytest.fail("a script of the data set ran"))
    page.locator(".case:visible .open").first.click()
    assert page.locator("dialog[open] h3").inner_text() == hostile
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.querySelector('dialog[open]').scrollWidth") <= 360
    rights = page.locator("dialog[open] .full *").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().right)"
    )
    assert max(rights) <= 360
