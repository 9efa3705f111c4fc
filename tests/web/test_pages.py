"""The pages that only read: from runs to numbers to answers to examples, and back."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import pfungst
from pfungst.core import Answer, Dataset, Run
from pfungst.core.progress import PROGRESS_FILE
from pfungst.report.card import format_finding, format_p
from tests.conftest import png, squares
from tests.web.conftest import HOSTILE, Served

Find = Callable[[str], str]


def links(page: str, start: str) -> list[str]:
    return [html.unescape(one) for one in re.findall(r'href="([^"]+)"', page) if html.unescape(one).startswith(start)]


def test_the_first_page_lists_every_run_with_its_drops(served: Served, run_id: Find, made_runs: Path) -> None:
    page = served.page("/")
    for start in ("prior", "sub", "world"):
        assert f"/run?run={run_id(start)}" in page
    assert "control" in page and "blind" in page
    card = next(one for one in re.findall(r"<tr>.*?</tr>", page, re.DOTALL) if f'run={run_id("prior")}"' in one)
    text = " ".join(re.sub("<[^>]*>", " ", card).split())
    findings = json.loads((made_runs / "prior" / "findings.json").read_text())["findings"]
    for told in (" ".join(format_finding(one["drop"]).split()) for one in findings if one["drop"]):
        assert told in text and "points" in told, (told, text)


def test_a_number_leads_to_the_answers_behind_it(served: Served, run_id: Find, made_runs: Path) -> None:
    findings = json.loads((made_runs / "prior" / "findings.json").read_text())["findings"]
    blind = next(one for one in findings if one["probe"] == "blind")
    clean = next(one for one in blind["rows"] if one["name"] == "accuracy" and one["condition"] == "blank image")
    page = served.page("/run", run=run_id("prior"))
    lost = next(one for one in blind["rows"] if one["name"] == "drop" and one["condition"] == "blank image")
    shown = (html.escape(format_p(lost[name])) for name in ("p", "p_holm"))
    assert '<td class="num">{}</td><td class="num">{}</td>'.format(*shown) in page
    found = links(page, "/answers")
    wanted = next(one for one in found if "variant=blank+image" in one and "flip" not in one and "probe=blind" in one)
    listed = served.client.get(served.address + wanted).text
    assert f"{clean['n']} answers, accuracy <strong>{100 * clean['value']:.1f}%" in listed
    example = next(one for one in links(listed, "/example") if "blank+image" in one)
    shown = served.client.get(served.address + example).text
    back = links(shown, "/answers")
    assert any("variant=blank+image" in one for one in back), "the way back keeps the filter"


@pytest.mark.parametrize("start", ["prior", "sub", "world"])
def test_filters_find_what_the_run_folder_holds(served: Served, run_id: Find, made_runs: Path, start: str) -> None:
    below = ((path.parent.relative_to(made_runs), path.parent) for path in made_runs.rglob("exam.json"))
    run = next(path for name, path in below if str(name).startswith(start))
    rows = Run.open(run).answers()
    total = re.search(r'<p class="lead">([\d,]+) answer', served.page("/answers", run=run_id(start)))
    assert total is not None and int(total[1].replace(",", "")) == len(rows)
    for query, fits in (
        ({"outcome": "wrong"}, lambda row: row["score"] == 0),
        ({"probe": "control", "variant": "again"}, lambda row: (row["probe"], row["variant"]) == ("control", "again")),
        ({"text": "SQUARE 7"}, lambda row: "square 7" in row["question"].lower()),
    ):
        shown = re.search(r'<p class="lead">([\d,]+) answer', served.page("/answers", run=run_id(start), **query))
        assert shown is not None and int(shown[1].replace(",", "")) == sum(map(fits, rows)), query


def test_pages_hold_every_answer_once(served: Served, run_id: Find) -> None:
    run = run_id("prior")
    count = int(re.search(r"Page 1 of (\d+)", served.page("/answers", run=run))[1])  # type: ignore[index]
    found = [
        one for page in range(1, count + 1)
        for one in re.findall(r'class="q"><a href="[^"]*at=(\d+)', served.page("/answers", run=run, page=page))
    ]  # fmt: skip
    assert len(found) == len(set(found)) == 30 * 2 + 30 * 4


def test_several_players_stand_side_by_side_on_one_example(served: Served, run_id: Find) -> None:
    page = served.page("/example", run=run_id("prior"), id="q5", **{"with": run_id("sub")})
    head = re.search(r"<thead>.*?</thead>", page, re.DOTALL)
    assert head is not None and "prior" in head[0] and "flaky" in head[0]
    alone = served.page("/example", run=run_id("prior"), id="q5")
    assert "flaky" not in re.search(r"<thead>.*?</thead>", alone, re.DOTALL)[0]  # type: ignore[index]
    other = served.page("/example", run=run_id("world"), id="q0000", **{"with": run_id("prior")})
    assert "Side by side" not in other, "another data set cannot be compared"


def test_a_list_of_several_players_opens_side_by_side_and_is_found_again(served: Served, run_id: Find) -> None:
    runs = [run_id("prior"), run_id("sub")]
    listed = served.page("/answers", run=runs, probe="control", text="square 5")
    way = re.search(r'class="q"><a href="([^"]+)"', listed)
    assert way is not None
    page = served.client.get(served.address + html.unescape(way[1])).text
    head = re.search(r"<thead>.*?</thead>", page, re.DOTALL)
    assert head is not None and "prior" in head[0] and "flaky" in head[0]
    back = re.search(r'<a href="([^"]+)">answers</a>', page)
    assert back is not None
    query = parse_qs(urlsplit(html.unescape(back[1])).query)
    assert sorted(query.pop("run")) == sorted(runs) and query == {"probe": ["control"], "text": ["square 5"]}


def test_images_are_those_of_the_example_and_of_what_a_probe_showed(served: Served, run_id: Find) -> None:
    import io

    import PIL.Image

    first = served.get("/image", run=run_id("prior"), id="q5")
    assert first.headers["content-type"] == "image/png"
    assert PIL.Image.open(io.BytesIO(first.content)).getpixel((0, 0)) == (40, 215, 40)
    same = served.client.get(first.url, headers={"if-none-match": first.headers["etag"]})
    assert same.status_code == 304
    blank = served.get("/shown", run=run_id("prior"), id="q5", probe="blind", variant="blank image")
    assert blank.status_code == 200 and blank.content != first.content
    assert served.get("/image", run=run_id("prior"), id="nobody").status_code == 404
    other = served.get("/shown", run=run_id("prior"), id="q5", probe="blind", variant="other image")
    assert other.headers["content-type"] == "image/png" and other.content not in (first.content, blank.content)


def test_what_a_run_is_doing_comes_as_an_event(served: Served, run_id: Find, made_runs: Path) -> None:
    run = run_id("world")
    told = made_runs / "world" / PROGRESS_FILE
    try:
        with served.client.stream("GET", served.address + "/events") as events:
            assert events.headers["content-type"].startswith("text/event-stream")
            lines = (line for line in events.iter_lines() if line.startswith("data: "))
            assert json.loads(next(lines)[6:])[run]["state"] == "finished"
            told.write_text(json.dumps({"what": "asking", "done": 3, "total": 9}))
            now = json.loads(next(lines)[6:])[run]
        assert now == {"state": "running", "what": "asking", "done": 3, "total": 9}
        assert 'value="3"' in served.page("/run", run=run)
    finally:
        told.unlink()


def test_an_exam_tells_how_far_it_is_as_long_as_it_runs(tmp_path: Path) -> None:
    from pfungst.core.progress import shown_in

    seen = []
    with shown_in(tmp_path, lambda *told: seen.append(told)) as tell:
        tell("asking", 1, 7)
        assert json.loads((tmp_path / PROGRESS_FILE).read_text()) == {"what": "asking", "done": 1, "total": 7}
    assert seen == [("asking", 1, 7)] and not (tmp_path / PROGRESS_FILE).exists()


def test_a_second_reading_is_shown_beside_the_first(tmp_path: Path, cache: None) -> None:
    from pfungst.web import WebSettings
    from pfungst.web.index import Wanted
    from pfungst.web.site import Site
    from pfungst.web.views import answers_page, example_page, run_page, runs_page

    (tmp_path / "data.jsonl").write_text(
        "".join(json.dumps({"id": f"q{n}", "question": f"Which {n}?", "answer": "cats"}) + "\n" for n in range(4))
    )

    class Cat:
        name, fingerprint = "cat", "cat 1"

        def answer(self, queries: Sequence[Any]) -> list[Any]:
            return [Answer("cats and dogs") for _ in queries]

    run = pfungst.examine(Cat(), str(tmp_path / "data.jsonl"), ["control"], tmp_path / "runs" / "cat")
    assert pfungst.rescore(run.path, metric="contains").label == "contains"
    site = Site(WebSettings((tmp_path / "runs",)))
    try:
        first, second = site.runs.all()
        assert (first.label, second.label) == ("", "contains")
        listed = site.render("runs.html", **runs_page(site))
        assert "1 run, " in listed and "cat (contains)" in listed
        assert answers_page(site, [], Wanted())["page"].total == 8, "the same replies are not counted twice"
        means = [
            answers_page(site, [one.id], Wanted(variant="clean"))["page"].shares[0].mean for one in (first, second)
        ]
        assert means == [0.0, 1.0]
        for one, other in ((first, second), (second, first)):
            page = site.render("run.html", **run_page(site, one))
            assert f"run={other.id}" in page and "read 2 ways" in page
            assert f'href="/report?run={one.id}"' in page
        both = example_page(site, first, "q1", Wanted(), beside=[second.id])
        assert [[row["score"] for row in variant["rows"]] for variant in both["probes"]["control"]] == [[0, 1], [0, 1]]
    finally:
        site.close()


def test_runs_of_one_player_are_told_apart_by_their_folders(tmp_path: Path, cache: None) -> None:
    import shutil

    from pfungst.web import WebSettings
    from pfungst.web.index import Wanted
    from pfungst.web.site import Site
    from pfungst.web.views import answers_page, example_page, runs_page

    (tmp_path / "data.jsonl").write_text('{"id": "q", "question": "Which?", "answer": "cats"}\n')
    runs = tmp_path / "runs"

    class Always:
        def __init__(self, word: str) -> None:
            self.name, self.fingerprint = f"always {word}", word

        def answer(self, queries: Sequence[Any]) -> list[Any]:
            return [Answer(self.fingerprint) for _ in queries]

    for word in ("cats", "dogs"):
        pfungst.examine(Always(word), str(tmp_path / "data.jsonl"), ["control"], runs / word)
    shutil.copytree(runs / "cats", runs / "cats again")
    (runs / "cats again" / "findings.json").write_text("{")
    site = Site(WebSettings((runs,)))
    try:
        first, again, other = site.runs.all()
        cats, dogs = (runs_page(site)["runs"][place].player for place in (0, 2))
        apart = [f"{cats} (cats)", f"{cats} (cats again)"]
        page = site.render("runs.html", **runs_page(site))
        assert page.count('<span class="note">cats</span>') == page.count('<span class="note">cats again</span>') == 1
        assert f"{', '.join([*apart, dogs])}</span>" in page, "side by side"
        several = answers_page(site, [], Wanted())
        assert [several["names"][run.id] for run in (first, again, other)] == [*apart, dogs]
        told = site.render("answers.html", **several)
        assert "cats again: Its findings.json cannot be read: `pfungst rescore` makes it anew." in told
        beside = example_page(site, first, "q", Wanted(), beside=[again.id])
        assert list(beside["names"].values()) == apart
        (runs / "cats again" / "exam.json").write_text("{")
        site.cards.clear()
        listed = runs_page(site)
        assert listed["answers"] == answers_page(site, [], Wanted())["page"].total == 6, "what is listed is counted"
    finally:
        site.close()


def test_wordings_are_no_questions_and_few_images_are_told_of(tmp_path: Path) -> None:
    from pfungst.web import WebSettings
    from pfungst.web.site import Site
    from pfungst.web.views import run_page, runs_page

    data = [replace(one, id=f"{one.id} {end}", question=f"{one.question}{end}", group=one.id)
            for one in squares(8, 1) for end in ("", " Say.", " Well?")]  # fmt: skip
    run = pfungst.examine("oracle", Dataset("worded", data, "exact"), ["control", "rephrase"], tmp_path / "runs" / "a")
    site = Site(WebSettings((tmp_path / "runs",)))
    try:
        (folder,) = site.runs.all()
        pages = [site.render("runs.html", **runs_page(site)), site.render("run.html", **run_page(site, folder))]
    finally:
        site.close()
    assert all("8 questions in 24 wordings" in page and "24 questions" not in page for page in pages)
    few = "numbers rest on few images, the fewest: "
    assert few in pages[1] and few in run.report.read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "told"), [({}, "None of its images was found"), ({"images": "none"}, "of this run has no images")]
)
def test_images_that_were_moved_are_not_taken_for_a_data_set_without(
    tmp_path: Path, cache: None, options: dict[str, Any], told: str
) -> None:
    from pfungst.web import WebSettings
    from pfungst.web.index import Wanted
    from pfungst.web.site import Site
    from pfungst.web.views import example_page

    (tmp_path / "a.png").write_bytes(png(0).read())
    (tmp_path / "data.jsonl").write_text('{"id": "q", "question": "Which?", "answer": "cats", "image": "a.png"}\n')
    pfungst.examine("oracle", str(tmp_path / "data.jsonl"), ["control"], tmp_path / "run", data_options=options)
    (tmp_path / "a.png").unlink()
    site = Site(WebSettings((tmp_path / "run",)))
    try:
        page = example_page(site, site.runs.all()[0], "q", Wanted())
        assert not page["has_image"] and told in page["no_image"]
    finally:
        site.close()


def test_a_run_without_findings_shows_answers_so_far(served: Served, made_runs: Path) -> None:
    import shutil

    half = made_runs / "half"
    try:
        half.mkdir()
        for name in ("exam.json", "answers.sqlite"):
            shutil.copy(made_runs / "prior" / name, half / name)
        page = ""
        wait = threading.Event()
        for _ in range(40):
            if "/run?run=half" in served.page("/"):
                page = served.page("/run", run="half")
                break
            wait.wait(0.1)
        assert "Answers so far" in page and "Is square" in page
    finally:
        shutil.rmtree(half)


def findings(**changes: object) -> str:
    one: dict[str, object] = {"name": "accuracy", "value": 0.5, "n": 3, "low": None, "high": None, "condition": HOSTILE}
    series = {"name": HOSTILE, "x": [HOSTILE], "y": [0.5]}
    figure = {"title": HOSTILE, "kind": "bar", "x_label": HOSTILE, "series": [series, series]}
    headline: dict[str, object] = {"clean": one, "disturbed": None, "drop": one}
    whole = {"probe": HOSTILE, "verdict": HOSTILE, "rows": [one], **headline, "figures": [figure], "tables": []}
    return json.dumps({"findings": [{**whole, **changes}]})


@pytest.mark.parametrize(
    ("exam", "found", "fits"),
    [
        ("{", "{}", False),
        ("[]", "{}", False),
        ('{"player": 3, "data": [], "probes": 1, "seed": 0}', "{}", False),
        ("", '{"findings": [{}]}', False),
        ("", '{"findings": 3}', False),
        ("", findings(clean="x"), False),
        ("", findings(rows=[{"name": "a", "n": 1, "value": "<script>"}]), False),
        ("", findings(figures=[3, {"title": 3, "series": "x"}]), False),
        ("", findings(), True),
    ],
)  # fmt: skip
def test_damaged_runs_are_named_and_do_no_harm(tmp_path: Path, exam: str, found: str, fits: bool) -> None:
    from pfungst.web import WebSettings
    from pfungst.web.site import Site
    from pfungst.web.views import run_page, runs_page

    data = {"name": HOSTILE, "metric": HOSTILE, "examples": 3, "fingerprint": "x"}
    good = json.dumps({"player": {"name": HOSTILE, "fingerprint": "x"}, "data": data, "probes": [], "seed": 0})
    run = tmp_path / "run"
    (run / "trials").mkdir(parents=True)
    (run / "exam.json").write_text(exam or good)
    (run / "findings.json").write_text(found)
    site = Site(WebSettings((tmp_path,)))
    try:
        page = site.render("runs.html", **runs_page(site))
        page += site.render("run.html", **run_page(site, site.runs.all()[0]))
        assert bool(runs_page(site)["runs"][0].problem) is not fits
        assert "<script>alert" not in page and "<img src=x" not in page and "<script>" not in page
    finally:
        site.close()


def test_a_scene_that_did_not_pass_the_verifier_is_not_shown_as_one_that_fooled(
    made_runs: Path, tmp_path: Path
) -> None:
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    from pfungst.web.pictures import moved_scene
    from pfungst.web.runs import RunFolder

    (tmp_path / "game").mkdir()
    row = pq.read_table(made_runs / "world" / "game" / "moves.parquet").to_pylist()[0]
    places = [xy for thing in json.loads(row["scene"])["objects"] for xy in thing["3d_coords"][:2]]
    wrong = [("held", True, True), ("illegal", False, True), ("withdrawn", True, False), ("held", None, None)]
    rows = [
        {
            **row,
            "example_id": name,
            "query": n,
            "fooled": True,
            "verified": verified,
            "confirmed": confirmed,
            "after": places,
        }
        for n, (name, verified, confirmed) in enumerate(wrong)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "game" / "moves.parquet")
    run = RunFolder("x", tmp_path, "x")
    assert [moved_scene(run, name) is not None for name in ("held", "illegal", "withdrawn")] == [True, False, False]
