"""A judge as matcher: which answer a reply gives."""

from pathlib import Path
from typing import Any

import pytest

import pfungst
from pfungst.core import Answer, Dataset, Example, PlayerError, UsageError
from pfungst.players.judging import ReaderSettings, ReplyReader
from pfungst.scores.matchers import get_matcher, read
from tests.conftest import png
from tests.judging.court import Talker, court, data_in, spec
from tests.players.api_server import Exchange, serving


class Says:
    """A player that always says the same."""

    name = "reader"

    def __init__(self, text: str) -> None:
        self.text, self.fingerprint, self.asked = text, f"says {text}", 0

    def answer(self, queries: Any) -> list[Answer]:
        self.asked += len(queries)
        return [Answer(self.text) for _ in queries]


def reading(
    said: str, reply: str, choices: tuple[str, ...] = (), kind: str = "", first: str | None = None
) -> str | None:
    reader = ReplyReader(Says(said), ReaderSettings(first=first))
    return reader.read(Example("q", "Which?", choices=choices, answer_type=kind), Answer(reply))


@pytest.mark.parametrize(
    ("said", "reply", "choices", "kind", "expected"),
    [
        ("B", "I lean to the colour of the sky.", ("red", "blue"), "", "blue"),
        ("(B) blue", "I lean to the colour of the sky.", ("red", "blue"), "", "blue"),
        ("NONE", "Both.", ("red", "blue"), "", None),
        ("NONE", "Both.", ("red", "None"), "", None),
        ("A or B", "Both.", ("red", "blue"), "", None),
        ("D", "The sky.", ("red", "blue"), "", None),
        ("YES", "There is a dog.", (), "yes/no", "yes"),
        ("No.", "Only cats are there.", (), "yes/no", "no"),
        ("NONE", "Hard to say.", (), "yes/no", None),
        ("3", "A dog, and two more behind it, so three dogs.", (), "number", "3"),
        ("4", "A dog, and two more behind it, so three dogs.", (), "number", None),
        ("0", "There are no dogs to be seen.", (), "number", "0"),
        ("NONE", "There are some dogs.", (), "number", None),
        ("tennis racket", "What he holds would be a tennis racket, I suppose.", (), "other", "tennis racket"),
        ("baseball bat", "What he holds would be a tennis racket, I suppose.", (), "other", None),
        ("none.", "I cannot see.", (), "other", None),
    ],
)
def test_a_judge_may_pick_an_answer_out_of_a_reply_but_not_bring_one_along(
    said: str, reply: str, choices: tuple[str, ...], kind: str, expected: str | None
) -> None:
    assert reading(said, reply, choices, kind) == expected


def test_what_the_first_matcher_reads_is_not_asked_about() -> None:
    player = Says("A")
    reader = ReplyReader(player)
    assert reader.read(Example("q", "Which?", choices=("red", "blue")), Answer("B")) == "blue" and player.asked == 0
    assert reader.read(Example("q", "Which?", choices=("red", "blue")), Answer("like a rose")) == "red"
    assert player.asked == 1


def test_an_exam_reads_by_a_judge_once_and_from_the_store_afterwards(tmp_path: Path) -> None:
    data = court(6)

    def behave(exchange: Exchange) -> None:
        told = data_in(exchange.prompt)
        assert set(told) == {"question", "reply"}
        exchange.say("YES" if " yes " in told["reply"] else "NO" if " no " in told["reply"] else "NONE")

    with serving(behave) as server:
        run = pfungst.examine(Talker(data), data, ["control"], tmp_path, matcher=spec(server.url))
        assert server.count == 6
    again = pfungst.rescore(tmp_path, data)
    assert run.findings == again.findings and run.findings[0].clean.value == pytest.approx(4 / 6)  # type: ignore[union-attr]
    assert not any(one["unread"] for one in run.answers())


def test_a_reader_that_fails_stops_the_run_instead_of_counting_replies_as_unread(tmp_path: Path) -> None:
    data = court(6)
    with serving(lambda x: x.fail(500)) as server, pytest.raises(PlayerError):
        pfungst.examine(Talker(data), data, ["control"], tmp_path, matcher=spec(server.url, breaker=100))
    assert not (tmp_path / "findings.json").exists()


def test_judges_may_read_and_score_in_one_exam(tmp_path: Path) -> None:
    data = Dataset("d", [Example(f"q{n}", "Which?", png(n), f"i{n}", target="red", choices=("red", "blue"))
                         for n in range(4)], metric="choice", fingerprint="d")  # fmt: skip

    def behave(exchange: Exchange) -> None:
        exchange.say("CORRECT" if "reference answers" in data_in(exchange.prompt) else "A")

    with serving(behave) as server:
        word = spec(server.url)
        run = pfungst.examine(lambda image, question: "like a rose", data, ["control"], tmp_path, metric=word,
                              matcher=word)  # fmt: skip
        assert server.count == 3  # one reading; one judgement, asked for twice
    assert {one["answer"] for one in run.answers()} == {"red"} and {one["reply"] for one in run.answers()} == {
        "like a rose"
    }
    assert run.findings[0].clean.value == 1.0  # type: ignore[union-attr]


def test_wrong_words_are_wrong_usage() -> None:
    with pytest.raises(UsageError, match="Say who judges: --matcher judge:openai"):
        get_matcher("judge:")
    with pytest.raises(UsageError, match="judge's own settings are: first"):
        get_matcher("judge:openai:m@http://127.0.0.1:1/v1,frist=strict")


def test_a_judge_reads_through_the_function_read_too() -> None:
    with serving(lambda x: x.say("B")) as server:
        assert read("like the sky", ["red", "blue"], matcher=spec(server.url)) == "blue"
