"""The protocol probe: what players receive, how replies are read, and what is found."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import pfungst
from pfungst.core import Answer, BytesImage, Dataset, Example, Framing, ProbeError, Query, UsageError
from pfungst.core.images import as_rgb
from pfungst.planning import plan
from pfungst.players.options import in_words, lettered
from pfungst.probes import check_probe, get_probe
from pfungst.probes.protocol.templates import TEMPLATES, JPEGImage, Reader, are_free, ordered, style_for, with_letters
from pfungst.report.compare import read_runs
from pfungst.report.profile import harness_pairs
from tests.players.api_server import Exchange, Server, serving

COLORS = ("red", "blue", "green", "black")


def png(shade: int) -> BytesImage:
    buffer = io.BytesIO()
    pixels = np.add.outer(np.arange(12) * 9, np.arange(16) * 5)[:, :, None] % 256 + [shade, 0, 40]
    pixels = pixels.clip(0, 255).astype(np.uint8)
    PIL.Image.fromarray(pixels).save(buffer, "PNG")
    return BytesImage(buffer.getvalue())


def multiple_choice(count: int = 12) -> Dataset:
    examples = [
        Example(f"q{at}", f"What color is shape {at}?", png(at), f"i{at}", (COLORS[at % 4],), COLORS[at % 4],
                choices=COLORS)
        for at in range(count)
    ]  # fmt: skip
    return Dataset("shapes", examples, metric="exact", fingerprint="shapes-1")


def open_ended(count: int = 12) -> Dataset:
    return Dataset("shapes", [Example(f"q{at}", f"What color is shape {at}?", png(at), f"i{at}", ("red",), "red")
                              for at in range(count)], metric="exact", fingerprint="open-1")  # fmt: skip


# --- how a query is put -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("style", "options", "called"),
    [
        ("A.", "A. red\nB. blue", "letter"),
        ("A)", "A) red\nB) blue", "letter"),
        ("(a)", "(a) red\n(b) blue", "letter"),
        ("1)", "1) red\n2) blue", "number"),
        ("text", "red\nblue", "text"),
        ("", "A. red\nB. blue", "letter"),
    ],
)
def test_options_are_labelled_and_the_instruction_follows(style: str, options: str, called: str) -> None:
    template = "{question}\n{options}\nAnswer with the letter only."
    assert lettered("Which?", ("red", "blue"), template, style) == f"Which?\n{options}\nAnswer with the {called} only."


def test_a_framing_takes_the_place_of_the_players_own_prompt() -> None:
    query = Query("Which?", choices=("red", "blue"), framing=Framing(template="Q: {question}\n{options}", options="1)"))
    assert in_words(query, "own {question}", "own {question} {options}") == "Q: Which?\n1) red\n2) blue"
    assert in_words(Query("Which?", framing=Framing(image_last=True)), "own {question}", "") == "own Which?"


def test_a_framing_makes_another_query_and_none_keeps_the_old_key() -> None:
    plain = Query("Which?")
    framed = [Query("Which?", framing=one) for one in (Framing("x {question}"), Framing(image_last=True))]
    assert len({one.key("p") for one in (plain, *framed)}) == 3
    assert Framing("x", "1)", True, True).within(frozenset({"image_last"})) == Framing(image_last=True)
    assert Framing("x").within(frozenset()) is None


@pytest.mark.parametrize(
    ("choices", "free"),
    [
        (("red", "blue"), True),
        (("red", "none of the above"), False),
        (("red", "blue", "both"), False),
        (("A", "B", "C"), False),
        (("2", "3"), True),
        (("only A and B", "red"), False),
        (("red",), False),
    ],
)
def test_options_that_refer_to_others_stay_as_they_are(choices: tuple[str, ...], free: bool) -> None:
    assert are_free(choices) is free


def test_numbers_are_not_numbered() -> None:
    assert style_for("1)", ("2", "3")) == "A)" and style_for("1)", ("two", "three")) == "1)"


def test_orders_are_permutations() -> None:
    for order in ("as given", "reversed", "rotated", "shuffled"):
        assert Counter(ordered(COLORS, order, "0 q1")) == Counter(COLORS)
    assert ordered("abcde", "rotated", "") == ("d", "e", "a", "b", "c")
    assert ordered("abcde", "shuffled", "0 q1") == ordered("abcde", "shuffled", "0 q1")


@pytest.mark.parametrize(
    ("style", "reply", "read"),
    [
        ("1)", "2", "blue"),
        ("1)", "2) blue", "blue"),
        ("1)", "The answer is 2.", "blue"),
        ("1)", "(3)", "green"),
        ("(a)", "(b)", "blue"),
        ("(a)", "b", "blue"),
        ("(a)", "b) blue", "blue"),
        ("(a)", "The correct option is (c).", "green"),
        ("A.", "B", "blue"),
        ("text", "blue", "blue"),
    ],
)
@pytest.mark.parametrize("matcher", ["lenient", "lmms-eval", "vlmevalkit"])
def test_every_matcher_reads_every_label(style: str, reply: str, read: str, matcher: str) -> None:
    assert Reader(matcher, style)(reply, COLORS, "") == read


def test_words_are_not_taken_for_labels() -> None:
    assert with_letters("a dog", "(a)", COLORS) == "a dog"
    assert with_letters("There are 2 dogs.", "1)", COLORS) == "There are 2 dogs."
    assert with_letters("7", "1)", COLORS) == "7", "there is no seventh option"
    assert with_letters("2", "1)", ("2", "two")) == "2", "it is an option itself"


def test_jpeg_is_made_once_asked_for_and_names_its_content() -> None:
    image = png(1)
    made = JPEGImage(image)
    assert made.read()[:3] == b"\xff\xd8\xff" and made.digest == JPEGImage(png(1)).digest != image.digest
    off = np.abs(np.asarray(made.pil(), int) - np.asarray(as_rgb(image), int))
    assert 0 < off.mean() < 10


# --- what a server receives -------------------------------------------------------------------------------------------


def first_option(exchange: Exchange) -> None:
    """Says whatever label stands first: a model that does not look at the options."""
    lines = exchange.prompt.splitlines()
    at = next(at for at, line in enumerate(lines) if any(line.endswith(color) for color in COLORS))
    exchange.say(lines[at].split()[0].strip("."))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, pfungst.Run, Dataset]]:
    with serving(first_option) as server:
        data = multiple_choice()
        run = pfungst.examine(
            f"openai:first@{server.url}", data, ["protocol"], tmp_path_factory.mktemp("run") / "first",
            player_options={"concurrency": 4},
        )  # fmt: skip
        yield server, run, data


def test_servers_receive_every_form(asked: tuple[Server, pfungst.Run, Dataset]) -> None:
    server, _, data = asked
    sent = [json.loads(raw)["messages"][-1]["content"] for raw in server.requests]
    places = Counter(parts[0]["type"] for parts in sent)
    assert places == {"text": 8 * len(data), "image_url": 8 * len(data)}
    urls = [part["image_url"]["url"] for parts in sent for part in parts if part["type"] == "image_url"]
    kinds = Counter(url.partition(";")[0] for url in urls)
    assert kinds == {"data:image/png": 8 * len(data), "data:image/jpeg": 8 * len(data)}
    jpeg = next(url for url in urls if url.startswith("data:image/jpeg"))
    known = {JPEGImage(png(at)).read() for at in range(len(data))}
    assert base64.b64decode(jpeg.partition(",")[2]) in known, "the bytes as the probe made them"
    texts = [next(part["text"] for part in parts if part["type"] == "text") for parts in sent]
    for mark in ("A. ", "(a) ", "1) "):
        assert sum(mark in text for text in texts) >= 4 * len(data)
    assert sum(text.startswith("Question: ") for text in texts) == 4 * len(data), "the layout of VLMEvalKit"
    assert sum("number of the" in text for text in texts) > 0, "numbered options are asked for by number"


def test_reading_again_costs_no_query(asked: tuple[Server, pfungst.Run, Dataset]) -> None:
    server, run, data = asked
    rows = run.answers("protocol")
    assert server.count == 16 * len(data) and len(rows) == (1 + 3 * 16) * len(data)


def test_a_model_that_takes_the_first_option_depends_on_their_order(
    asked: tuple[Server, pfungst.Run, Dataset],
) -> None:
    """Right answers go round: under each order it is right about other questions, a quarter of them each time but for
    shuffled options. What varies is which: so that few are right under all."""
    _, run, _ = asked
    (found,) = run.findings
    assert found.probe == "protocol" and found.clean is not None and found.clean.value == 0.25
    rows = {(row.name, row.condition): row for row in found.rows}
    assert rows["worst of n", ""].value == 0.0
    assert "order" in {row.condition for row in found.rows if row.name == "harness"}
    assert "cannot be varied" not in found.verdict
    assert found.tables[0].title == "By factor" and len(found.tables[2].rows) == 48


def test_a_rescored_run_is_the_same(asked: tuple[Server, pfungst.Run, Dataset]) -> None:
    server, run, data = asked
    before, count = (run.path / "findings.json").read_bytes(), server.count
    pfungst.rescore(run.path, data)
    assert (run.path / "findings.json").read_bytes() == before and server.count == count


def test_the_dry_run_counts_what_is_asked(asked: tuple[Server, pfungst.Run, Dataset], tmp_path: Path) -> None:
    server, _, data = asked
    planned = plan(f"openai:first@{server.url}", data, ["protocol"], tmp_path / "new")
    assert planned.to_ask == 16 * len(data), "one row of the array is the clean query"


# --- what is found ----------------------------------------------------------------------------------------------------


class Says:
    """A player that takes any framing and answers as a function of the query."""

    takes = frozenset({"template", "options", "image_last", "as_is"})
    matcher = "lenient"

    def __init__(self, name: str, say: Callable[[Query], str]) -> None:
        self.name = self.fingerprint = name
        self._say = say

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer(self._say(query)) for query in queries]


def template_of(query: Query) -> str:
    return query.framing.template if query.framing is not None else ""


def test_the_factor_that_matters_is_named(tmp_path: Path) -> None:
    """Right under the player's own prompt and under none at all, wrong under both others: half of all harnesses."""
    bare = {"", TEMPLATES["none"].open, TEMPLATES["none"].choices}
    player = Says("picky", lambda query: "red" if template_of(query) in bare else "blue")
    (found,) = pfungst.examine(player, open_ended(40), ["protocol"], tmp_path / "run").findings
    by = {row.condition: row.value for row in found.rows if row.name == "harness"}
    assert by[""] == pytest.approx(0.5) == by["template"]
    assert by["place"] == pytest.approx(0.0, abs=1e-9) == by["encoding"]
    assert "The largest part is the template: 100%" in found.verdict
    assert "labels of options" not in found.verdict, "open questions have none"
    assert found.disturbed is not None and found.disturbed.value == pytest.approx(0.5)


def test_a_player_without_prompt_is_told_what_does_not_apply(tmp_path: Path) -> None:
    class Plain(Says):
        takes = frozenset()
        matcher = ""

    seen: list[Query] = []
    player = Plain("plain", lambda query: seen.append(query) or "red")  # type: ignore[func-returns-value]
    (found,) = pfungst.examine(player, multiple_choice(), ["protocol"], tmp_path / "run").findings
    assert all(query.framing is None for query in seen) and len(seen) <= 8 * 12, "four orders, two encodings"
    assert "The prompt, the labels of options and the place of the image cannot be varied" in found.verdict
    assert "All matchers read its answers alike." in found.verdict
    assert {row.condition for row in found.rows if row.name == "harness"} == {"", "order", "encoding", "together"}


def test_precision_stops_early(tmp_path: Path) -> None:
    player = Says("steady", lambda query: "red")
    run = pfungst.examine(player, open_ended(200), ["protocol"], tmp_path / "run", precision=0.1)
    told = json.loads((run.path / "findings.json").read_text())["precision"]["protocol"]
    assert told["images"] < told["of"] == 200


def test_matchers_are_a_factor_of_their_own(tmp_path: Path) -> None:
    """`Yes, no doubt.` is a yes for `lenient`, and both yes and no by the rules of VLMEvalKit."""
    asked = [Example(f"q{at}", "Is it red?", None, f"i{at}", ("yes",), "yes", "yes/no") for at in range(30)]
    player = Says("talker", lambda query: "Yes, no doubt.")
    probe = "protocol:factors=,matchers=lenient+vlmevalkit"
    (found,) = pfungst.examine(player, Dataset("red", asked, "exact"), [probe], tmp_path / "run").findings
    assert {row.condition: row.value for row in found.rows if row.name == "harness"} == pytest.approx(
        {"": 0.5, "matcher": 0.5}
    )
    assert "All of it is the matcher." in found.verdict


def test_the_order_of_two_players_by_harness(tmp_path: Path) -> None:
    bare = {"", TEMPLATES["none"].open}
    runs = []
    for name, right in (("one", True), ("other", False)):
        words = ("red", "blue") if right else ("blue", "red")
        player = Says(name, partial(lambda said, query: said[template_of(query) not in bare], words))
        runs.append(pfungst.examine(player, open_ended(40), ["protocol"], tmp_path / name).path)
    compared, _ = read_runs(runs)
    (pair,) = harness_pairs(compared)
    assert (pair.ahead, pair.behind, pair.harnesses) == (12, 12, 24)
    assert (pair.least, pair.most) == (-1.0, 1.0) and pair.surely_ahead == 12 == pair.surely_behind
    assert pair.difference.value == 0.0
    assert pair.sentence == (
        "one is ahead of other under 12 of 24 harnesses and behind under 12, significantly both ways: by -100.0 to "
        "+100.0 points."
    )


def test_the_probe_keeps_its_contract() -> None:
    assert check_probe(get_probe("protocol")) == []
    trials = list(get_probe("protocol").trials(multiple_choice(), 0))
    for trial in trials:
        for variant in trial.variants:
            assert Counter(variant.query.choices) == Counter(COLORS)


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "are not a JSON file"),
        ("{}", "one to three templates"),
        ('{"own": {"open": "{question}", "choices": "{question}{options}"}}', "always tried too"),
        ('{"mine": {"open": "{question}"}}', 'give "open" and "choices"'),
        ('{"mine": {"open": "{question}", "choices": "{question}"}}', "must contain {options}"),
    ],
)
def test_templates_that_would_lose_the_question_are_refused(content: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(content)
    with pytest.raises(UsageError, match=told.replace("{", r"\{").replace("}", r"\}")):
        get_probe(f"protocol:templates={file}")


def test_templates_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"card": {"open": "<q> {question}", "choices": "<q> {question} {options}"}}))
    trials = list(get_probe(f"protocol:templates={file}").trials(open_ended(), 0))
    told = {template_of(variant.query) for trial in trials for variant in trial.variants}
    assert told == {"", "<q> {question}"}


def test_what_cannot_be_varied_is_told() -> None:
    text = Dataset("text", [Example("q", "Why?", answers=("x",), target="x")])
    with pytest.raises(ProbeError, match="nothing to vary on text"):
        list(get_probe("protocol:factors=order,matchers=lenient").trials(text, 0))
    for wrong in ("protocol:factors=color", "protocol:factors=order+order", "protocol:matchers="):
        with pytest.raises(UsageError, match="of the probe protocol are different names"):
            get_probe(wrong)
