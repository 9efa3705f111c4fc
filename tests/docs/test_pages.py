"""The pages hold together: links lead somewhere, every page is in the navigation, commands are listed as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from markdown.extensions.toc import slugify
from scripts.docs_hooks import MARK, leaves, on_page_markdown

from pfungst.cli.app import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WRITTEN = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "results")
LINK = re.compile(r"\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    named = re.findall(r'^<a id="([\w-]+)"></a>$', text, re.MULTILINE)
    return {slugify(re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title), "-") for title in titles} | {*named}


def test_links_lead_to_pages_and_headings_that_exist() -> None:
    wrong = []
    for page in (*WRITTEN, ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            target, _, anchor = link.partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            place = (page.parent / target).resolve() if target else page
            if not place.exists() or (anchor and place.suffix == ".md" and anchor not in anchors(place)):
                wrong.append(f"{page.name}: {link}")
    assert wrong == []


def test_every_page_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    assert [name for path in WRITTEN if (name := path.relative_to(DOCS).as_posix()) not in nav] == []


def test_a_page_opens_with_a_title_and_what_it_is_for() -> None:
    """Not with a command, a table or a heading: a reader first wants to know whether to read on."""
    wrong = []
    for page in WRITTEN:
        first, second = page.read_text(encoding="utf-8").split("\n\n")[:2]
        if not first.startswith("# ") or second.startswith(("#", "```", "|", "    ")):
            wrong.append(page.name)
    assert wrong == []


def test_the_page_of_commands_has_every_command_and_option() -> None:
    page = on_page_markdown((DOCS / "reference" / "cli.md").read_text(encoding="utf-8"))
    assert MARK not in page
    commands: dict[tuple[str, ...], Any] = dict(leaves(typer.main.get_command(app)))
    assert len(commands) > 30
    for words, command in commands.items():
        part = page.partition(f"\n## pfungst {' '.join(words)}\n")[2].partition("\n## ")[0]
        options = [option for one in command.params for option in one.opts if option.startswith("--")]
        assert part and all(option in part for option in options if option != "--help"), words
