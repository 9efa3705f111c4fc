"""The report: complete, escaped, self-contained."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pfungst.core import Answer, Exam, Figure, PfungstError, Series
from pfungst.core.files import jsonable
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control
from pfungst.report import write_report
from pfungst.report.card import format_finding, too_few
from pfungst.report.plots import draw
from tests.conftest import squares

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>"\'&amp;{{ config }}{% raw %}</style></title>'


class Hostile:
    name, fingerprint = HOSTILE, "hostile"

    def answer(self, queries):
        return [Answer(HOSTILE + str(query.take) if query.take else "yes") for query in queries]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text, self.starts = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.starts.append((tag, attributes))
        self.attributes += attributes

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def page(tmp_path):
    data = squares(10, 2, choices=("yes", "no", HOSTILE))
    data = replace(
        data,
        name=HOSTILE,
        examples=[replace(e, question=HOSTILE, id=e.id + HOSTILE, question_type=HOSTILE) for e in data],
    )
    Exam(Hostile(), data, [Control(), Blind()], lambda e, a: float(a.text == e.target), tmp_path).run()
    html = write_report(tmp_path, data).read_text()
    parsed = Tags()
    parsed.feed(html)
    return html, parsed


def test_hostile_text_becomes_text(page):
    _html, parsed = page
    assert parsed.tags.count("script") == parsed.tags.count("style") == 1
    assert not [name for name, _ in parsed.attributes if name.startswith("on") or name == "style"]
    assert any(HOSTILE in text for text in parsed.text)


def test_the_page_loads_nothing_from_outside(page):
    html, parsed = page
    sources = [value for name, value in parsed.attributes if name in ("src", "href")]
    assert sources and all(value.startswith(("data:", "#")) for value in sources)
    links = [dict(attributes) for tag, attributes in parsed.starts if tag == "a"]
    assert all(link.get("download") for link in links if link["href"].startswith("data:"))
    assert "default-src &#39;none&#39;" in html and "unsafe" not in html


def test_the_policy_names_our_style_and_our_script_and_nothing_else(page):
    html, _parsed = page
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)[1].replace("&#39;", "'")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for name, tag in (("style-src", "style"), ("script-src", "script")):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    assert set(rules) == {"default-src", "img-src", "style-src", "script-src", "base-uri", "form-action"}


def test_the_page_shows_card_figures_failures_and_configuration(page):
    _html, parsed = page
    text = " ".join(parsed.text)
    for words in ("Report card", "Shortcut ledger", "Cases", "Configuration", "95% interval"):
        assert words in text
    assert parsed.text and "image" in parsed.tags


def test_a_report_without_data_has_no_pictures_but_all_numbers(tmp_path):
    data = squares(10, 2)
    Exam(Hostile(), data, [Control()], lambda e, a: float(a.text == e.target), tmp_path).run()
    html = write_report(tmp_path).read_text()
    assert "data:image/webp" not in html and "Report card" in html


def test_a_folder_without_findings_is_a_sentence(tmp_path):
    with pytest.raises(PfungstError, match="not a run folder"):
        write_report(tmp_path)


def test_a_table_over_few_images_is_told_of_where_the_card_has_enough():
    def row(condition, behind, **more):
        return {"name": "accuracy", "condition": condition, "value": 0.5, "clusters": 40, "effective": behind, **more}

    section = {"probe": "blind", "clean": row("clean", 38.2), "disturbed": None, "drop": None, "rows": [], "tables": []}
    assert too_few([section]) == ""
    few = {"title": "By type", "rows": [["number", row("number", 3.2)], ["other", row("other", 1.4, low=None)]]}
    told = too_few([{**section, "tables": [few], "rows": [row("clean", 38.2)]}])
    assert told.startswith(
        "2 of the 3 numbers rest on few images, the fewest: blind, By type: accuracy other on as many as 1.4"
    )
    old = {**row("clean", None), "clusters": 4}
    assert "1 of the 1 numbers rest" in too_few([{**section, "clean": old}]), "runs of before have no effective images"


def test_unknown_values_are_a_dash():
    assert format_finding({"value": None, "low": None, "high": None}) == "–"
    assert format_finding({"value": 0.5, "low": None, "high": None}) == "50.0%"
    assert format_finding({"value": 0.5, "low": 0.25, "high": 1.0, "unit": ""}) == "0.5 [0.25, 1]"


@pytest.mark.parametrize("kind", ["bar", "line"])
def test_a_bar_is_as_high_as_its_value(kind):
    figure = Figure("t", kind, (Series("s", ("a", "b"), (1.0, 0.5), (0.9, float("nan")), (1.0, float("nan"))),))
    svg = draw(jsonable(figure))
    if kind == "bar":
        first, second = (float(h) for h in re.findall(r'<rect class="f0"[^>]* height="([\d.]+)"', svg))
        assert first == pytest.approx(2 * second, rel=0.01)
    else:
        assert svg.count("<circle") == 2
    assert svg.count('class="whisker"') == 1


def test_the_name_of_what_lies_side_by_side_stands_apart_from_the_scale():
    long = tuple(f"a condition with a long name, number {n}" for n in range(4))
    svg = draw(jsonable(Figure("t", "bar", (Series("s", long, (1.0, 0.5, 0.2, 0.1)),))))
    (name,) = re.findall(r'y="([\d.]+)"[^>]*>condition<', svg)
    (zero,) = re.findall(r'y="([\d.]+)"[^>]*>0%<', svg)
    assert float(name) - float(zero) >= 14


def test_a_figure_of_unknown_values_says_so():
    assert "no known values" in draw(jsonable(Figure("t", "bar", (Series("s", ("a",), (float("nan"),)),))))
