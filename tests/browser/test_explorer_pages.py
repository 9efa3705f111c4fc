"""The explorer and the live game in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import png

pytest.importorskip("starlette", reason="the explorer needs the extra web")


@pytest.fixture(scope="module")
def address(runs: list[Path], chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over the runs of the report tests."""
    from pfungst.web import WebSettings
    from tests.browser.conftest import SHOTS
    from tests.web.conftest import serving

    players = ("san", "film") if SHOTS else ("prior", "oracle")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PFUNGST_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        settings = WebSettings((runs[0].parent,), players=players, data="world?scenes=8")
        with serving(settings) as one:
            yield one.address


@pytest.mark.parametrize(
    ("name", "options"), [("light", {}), ("dark-phone", {"color_scheme": "dark", "width": 390, "height": 844})]
)
def test_no_page_breaks_a_rule_of_accessibility_or_is_too_wide(
    visit: Any, violations: Any, shoot: Any, address: str, runs: list[Path], name: str, options: dict[str, Any]
) -> None:
    run = runs[0].name
    pages = {"runs": "/", "run": f"/run?run={run}", "answers": f"/answers?run={run}&probe=noise&flip=right+to+wrong",
             "example": f"/example?run={run}&id=q0000", "ask": "/ask", "game": "/game", "notes": "/notes"}  # fmt: skip
    page = visit(address, **options)
    for kind, path in pages.items():
        page.goto(address + path, wait_until="networkidle" if kind == "game" else "load")
        if kind == "answers" and name == "light":
            page.wait_for_load_state("networkidle")
            shoot(page, "explorer")
        if name == "light" or kind in ("answers", "game"):
            assert violations(page) == [], kind
        assert page.evaluate("() => document.documentElement.scrollWidth") <= options.get("width", 1280), kind


def test_from_a_number_to_an_example_and_back(visit: Any, address: str, runs: list[Path]) -> None:
    page = visit(address)
    page.click(f"a[href='/run?run={runs[0].name}']")
    page.locator("section a", has_text="right to wrong").first.click()
    page.wait_for_url(re.compile("/answers"))
    assert page.locator("h1").inner_text().lower().startswith("right to wrong, ")
    question = page.locator(".answer .q").first.inner_text()
    page.locator(".answer .q a").first.click()
    page.wait_for_url(re.compile("/example"))
    assert page.locator("h1").inner_text() == question
    assert page.locator("tr.here").count() == 1
    page.locator(".crumbs a", has_text="answers").click()
    page.wait_for_url(re.compile("/answers"))
    assert "flip=right" in page.url and page.locator(".answer .q").first.inner_text() == question


def test_filters_apply_at_once_and_stand_in_the_address(visit: Any, address: str, runs: list[Path]) -> None:
    page = visit(f"{address}/answers?run={runs[0].name}")
    page.select_option("select[name=probe]", "control")
    page.wait_for_url(re.compile("probe=control"))
    assert set(page.locator(".answer .tags li:first-child").all_inner_texts()) == {"control"}
    page.fill("input[name=text]", "are there")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"text=are\+there"))
    assert all("are there" in one.lower() for one in page.locator(".answer .q").all_inner_texts())
    assert "variant=&" not in page.url


def test_a_tag_is_written_found_and_exported(visit: Any, address: str, runs: list[Path]) -> None:
    from playwright.sync_api import expect

    page = visit(f"{address}/example?run={runs[0].name}&id=q0000")
    row = page.locator("#control tr", has_text="again")
    row.locator("summary", has_text="Add").click()
    row.locator("input[name=tags]").fill("look <b>twice</b>")
    row.locator("button").click()
    expect(page.locator(".tags li.own")).to_have_text(["look", "<b>twice</b>"])
    page.goto(f"{address}/notes?tag=look")
    with page.expect_download() as got:
        page.click("text=Download as a data set")
    from pfungst.data import load

    saved = Path(got.value.path()).rename(Path(got.value.path()).with_suffix(".jsonl"))
    assert len(load(saved)) == 1


def test_an_uploaded_image_is_asked_about(visit: Any, address: str) -> None:
    page = visit(f"{address}/ask")
    page.set_input_files("input[type=file]", {"name": "<x>.png", "mimeType": "image/png", "buffer": png(7).read()})
    page.fill("input[name=question]", "What color is the cube?")
    page.click("form.ask button")
    page.wait_for_selector("h2:has-text('says')", timeout=120_000)
    assert page.locator("section:has(h2:text-is('Basic questions')) mark").count() == 7
    page.click("text=Save as a run row")
    page.wait_for_selector("text=Saved in the run")


def test_an_object_is_dragged(visit: Any, address: str) -> None:
    from playwright.sync_api import expect

    page = visit(f"{address}/game")
    expect(page.locator("[data-answer]")).not_to_have_text("…", timeout=60_000)
    before = page.locator(".seen img").get_attribute("src")
    thing = page.locator(".thing").first
    box, other = thing.bounding_box(), page.locator(".thing").nth(1).bounding_box()
    start = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(other["x"] + other["width"] / 2, other["y"] + other["height"] / 2, steps=6)
    page.mouse.up()
    expect(page.locator("[data-rules] li[data-rule=gap]")).to_be_visible(timeout=60_000)
    expect(page.locator("svg.plan-live")).to_have_class(re.compile("forbidden"))
    expect(page.locator("[data-outcome]")).to_contain_text("Not a fair scene", timeout=60_000)
    assert page.locator(".seen img").get_attribute("src") != before
    page.click("[data-reset]")
    expect(page.locator("[data-rules]")).to_contain_text("all kept")
    thing.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".plan-live line")).to_have_count(1)


def test_the_adversary_tries_and_its_scene_is_saved(visit: Any, shoot: Any, address: str) -> None:
    from playwright.sync_api import expect

    from tests.browser.conftest import SHOTS

    page = visit(f"{address}/game")
    questions = page.locator("select[name=id] option").evaluate_all("all => all.map((one) => one.value)")
    for question in questions[: 12 if SHOTS else 1]:  # a screenshot shows a player that is fooled
        page.goto(f"{address}/game?id={question}")
        page.click("[data-search]")
        told = page.locator("[data-search-told]")
        expect(told).to_contain_text(re.compile("Fooled|withstood|gave another"), timeout=120_000)
        if "Fooled" in told.inner_text():
            break
    assert page.locator("[data-moves] li").count() > 0
    expect(page.locator("[data-rules]")).to_contain_text("all kept", timeout=60_000)
    expect(page.locator("[data-answer]")).not_to_have_text("…", timeout=60_000)
    shoot(page, "explorer-game")
    page.click("[data-save]")
    expect(page.locator("[data-saved]")).to_contain_text("Saved in the run", timeout=60_000)
    page.locator("[data-saved] a").click()
    assert page.locator("h1").count() == 1


def test_pages_read_well_without_script(visit: Any, address: str, runs: list[Path]) -> None:
    page = visit(f"{address}/answers?run={runs[0].name}", java_script_enabled=False)
    page.select_option("select[name=probe]", "control")
    page.click("button:has-text('Show')")
    page.wait_for_url(re.compile("probe=control"))
    assert page.locator(".answer").count() > 0


def test_a_static_copy_opens_from_the_disk(visit: Any, runs: list[Path], tmp_path: Path) -> None:
    from pfungst.web import bundle

    bundle([runs[1]], tmp_path / "copy", most=10)
    page = visit(tmp_path / "copy" / "index.html")
    page.locator("tbody th a").first.click()
    page.locator("a", has_text="All answers").click()
    page.locator(".answer .q a").first.click()
    picture = page.locator(".look img")
    assert picture.evaluate("(one) => one.complete && one.naturalWidth > 0")
    colour = page.evaluate("() => getComputedStyle(document.querySelector('.look img')).borderTopLeftRadius")
    assert colour == "12px", "the style is there"
