"""Several servers of one model: who is asked, who is left, and how much each is given."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from typing import Any

import pytest

from pfungst.core import BytesImage, PlayerError, Query
from pfungst.players import OpenAIOptions, OpenAIPlayer, dispatch, resolve
from pfungst.players.chat_api import DataURLs
from pfungst.players.dispatch import by_image
from pfungst.players.servers import Limit
from tests.players.api_server import Exchange, serving
from tests.players.test_openai import echo, picture, questions


def asking(urls: list[str], **options: Any) -> OpenAIPlayer:
    given = {"backoff": 0.01, "connect_timeout": 2.0, "concurrency": 4, **options}
    return OpenAIPlayer("model", ",".join(urls), OpenAIOptions(**given))


def test_work_goes_to_all_servers_and_each_is_told_of() -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(lambda x: (time.sleep(0.01), echo(x))[1])) for _ in range(3)]
        player = asking([server.url for server in servers])
        assert len(player.answer(questions(60))) == 60
        counts = [server.count for server in servers]
        assert sum(counts) == 60 and min(counts) >= 6
        assert max(server.most_under_way for server in servers) <= 4
    notes = player.last_words[:3]
    assert [f"gave {count} replies" in note for count, note in zip(counts, notes, strict=True)] == [True] * 3


def test_answers_that_nobody_waits_for_any_more_take_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is cancelled before it is sent gives its place back too."""
    with serving(echo) as server:
        player = asking([server.url], concurrency=8)
        # So that the call mostly ends while the next request is on its way to its first step.
        monkeypatch.setattr(player._dispatcher.meter, "check", lambda: time.sleep(0.005))
        for _ in range(10):
            answers = player.answer_iter(questions(24))
            next(answers)
            answers.close()
        until = time.monotonic() + 5
        while player._dispatcher.servers.any().load and time.monotonic() < until:
            time.sleep(0.01)
        assert player._dispatcher.servers.any().load == 0
        assert len(player.answer(questions(8))) == 8


def test_questions_that_wait_for_nothing_end_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "LOOK_SECONDS", 0.05)
    with serving(echo) as server:
        player = asking([server.url], concurrency=2)
        lost = [player._dispatcher.servers.any().place() for _ in range(2)]
        with pytest.raises(PlayerError, match="8 questions to model wait for nothing, which is an error in Pfungst"):
            player.answer(questions(8))
        lost[0].close()
        assert len(player.answer(questions(8))) == 8 == server.count


def test_a_slow_server_gets_less() -> None:
    with serving(lambda x: (time.sleep(0.2), echo(x))[1]) as slow, serving(echo) as quick:
        player = asking([slow.url, quick.url], concurrency=2)
        player.answer(questions(40))
        assert slow.count < quick.count


def test_a_dead_server_is_left_and_the_others_answer_everything() -> None:
    with serving(echo) as gone:
        dead = gone.url
    with serving(echo) as alive:
        player = asking([dead, alive.url])
        assert len(player.answer(questions(50))) == 50
        assert alive.count == 50
    notes = " ".join(player.notes)
    assert all(words in notes for words in ("gave 50 replies", "gave 0 replies", "no connection", "still down"))
    assert player.usage.answers == 50


def test_a_server_that_comes_back_is_asked_again() -> None:
    broken = threading.Event()
    broken.set()

    def limping(x: Exchange) -> None:
        x.fail(500) if broken.is_set() else echo(x)

    def steady(x: Exchange) -> None:
        if steady_count[0] == 20:
            broken.clear()
        steady_count[0] += 1
        time.sleep(0.02)
        echo(x)

    steady_count = [0]
    with serving(limping) as first, serving(steady) as second:
        player = asking([first.url, second.url], concurrency=1, breaker=3)
        assert len(player.answer(questions(120))) == 120
    assert "it went down" in player.notes[0] and "still down" not in player.notes[0]
    assert not player.notes[0].startswith(f"{first.url} gave 0 replies")


def test_a_server_that_refuses_the_model_is_left_for_good_and_costs_no_answer() -> None:
    with serving(lambda x: x.fail(404, "no such model")) as wrong, serving(echo) as right:
        player = asking([wrong.url, right.url])
        assert len(player.answer(questions(30))) == 30
        assert wrong.count <= 4
        assert player.usage.answers == 30 and "no such model" in " ".join(player.notes)


def test_when_all_are_down_the_run_stops_with_a_sentence_about_each() -> None:
    with serving(lambda x: x.fail(500, "broken")) as first, serving(lambda x: x.fail(401, "who?")) as second:
        player = asking([first.url, second.url], breaker=3)
        with pytest.raises(PlayerError, match=r"None of the 2 servers answers.*500: broken.*401: who\?"):
            player.answer(questions(40))
        first.behave = second.behave = echo
        assert len(player.answer(questions(4))) == 4, "mended servers are asked again"


def test_retry_after_of_one_server_does_not_hold_back_the_other() -> None:
    with serving(lambda x: x.fail(429, headers={"Retry-After": "60"})) as closed, serving(echo) as other:
        player = asking([closed.url, other.url], concurrency=1)
        began = time.monotonic()
        assert len(player.answer(questions(20))) == 20
        assert time.monotonic() - began < 40 and (closed.count, other.count) == (1, 20)


def test_a_question_that_failed_at_one_server_is_tried_at_another() -> None:
    asked: dict[str, list[str]] = {"a": [], "b": []}

    def choosy(name: str) -> Any:
        def behave(x: Exchange) -> None:
            asked[name].append(x.prompt)
            x.fail(500) if name == "a" and "question 3" in x.prompt else echo(x)

        return behave

    with serving(choosy("a")) as first, serving(choosy("b")) as second:
        assert len(asking([first.url, second.url], retries=1).answer(questions(8))) == 8


def test_addresses_decide_the_fingerprint_in_any_order_unless_the_deployment_has_a_name() -> None:
    a, b = "http://localhost:1/v1", "http://localhost:2/v1"
    assert asking([a, b]).fingerprint == asking([b, a]).fingerprint != asking([a]).fingerprint
    assert asking([a, b], version="x").fingerprint == asking([a], version="x").fingerprint
    with pytest.raises(PlayerError, match="given only once"):
        asking([a, a])
    with pytest.raises(PlayerError, match="no address behind the @: 'elsewhere'"):
        resolve(f"openai:m@{a},elsewhere")


def test_a_key_goes_only_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-own")
    monkeypatch.setenv("MY_KEY", "sk-mine")
    seen: list[str | None] = []
    with (
        serving(lambda x: (seen.append(x.headers.get("Authorization")), echo(x))[1]) as first,
        serving(lambda x: (seen.append(x.headers.get("Authorization")), echo(x))[1]) as second,
    ):
        asking([first.url, second.url], concurrency=1).answer(questions(4))
        assert set(seen) == {None}
        seen.clear()
        asking([first.url, second.url], concurrency=1, api_key_env="MY_KEY").answer(questions(4))
    assert set(seen) == {"Bearer sk-mine"}


# How much at once


def test_429s_make_it_ask_less_at_once_and_everything_is_answered() -> None:
    lock, busy, refused = threading.Lock(), [0], [0]

    def narrow(x: Exchange) -> None:
        with lock:
            busy[0] += 1
            crowded = busy[0] > 4
            refused[0] += crowded
        time.sleep(0.01)
        with lock:
            busy[0] -= 1
        x.fail(429, headers={"Retry-After": "0.02"}) if crowded else echo(x)

    with serving(narrow) as server:
        player = asking([server.url], concurrency=32, retries=30)
        assert len(player.answer(questions(300))) == 300
    assert 0 < refused[0] < 300, "asked 32 at once all along, seven in eight would be refused"


def simulate(limit: Limit, seconds: Any, replies: int, cap: int = 10**9, now: float = 0.0) -> tuple[float, list[int]]:
    """Feed a limit with the replies of a server: `seconds(n)` is how long one takes with n under way; above `cap` under
    way it says 429. Gives the time at the end and the limit after each reply."""
    under_way: list[tuple[float, float, bool]] = []
    history = []
    for _ in range(replies):
        while len(under_way) < limit.now:
            n = len(under_way) + 1
            under_way.append((now + (0.01 if n > cap else seconds(n)), now, n > cap))
        under_way.sort()
        now, sent, refused = under_way.pop(0)
        limit.pushed_back(sent, now) if refused else limit.answered(now - sent, now)
        history.append(limit.now)
    return now, history


def test_the_limit_settles_below_what_a_server_takes() -> None:
    _, history = simulate(Limit(64), lambda n: 0.1, 5000, cap=20)
    settled = history[1000:]
    assert 10 <= sum(settled) / len(settled) <= 20 and max(settled) <= 22


def test_the_limit_stays_at_the_ceiling_while_nothing_is_wrong() -> None:
    _, history = simulate(Limit(64), lambda n: 0.1 + 0.01 * n, 2000)
    assert set(history) == {64}


def test_a_server_that_grew_slow_is_relieved_without_loss() -> None:
    limit = Limit(64)
    now, _ = simulate(limit, lambda n: 0.1, 500)
    # Now it works on eight at a time, and the rest waits there: it gives 80 replies a second to any limit above eight.
    end, history = simulate(limit, lambda n: 0.1 * max(1.0, n / 8), 6000, now=now)
    settled = history[3000:]
    assert 8 <= sum(settled) / len(settled) <= 24
    assert end - now < 1.05 * 6000 / 80


def test_longer_replies_cost_no_throughput() -> None:
    limit = Limit(64)
    now, _ = simulate(limit, lambda n: 0.1, 500)
    end, history = simulate(limit, lambda n: 1.0, 6000, now=now)
    assert history[-1] >= 60 and end - now < 1.1 * 6000 / 64


# Images


def test_an_image_is_encoded_once_however_many_ask() -> None:
    reads: Counter[str] = Counter()

    class Counted(BytesImage):
        def read(self) -> bytes:
            reads[self.digest] += 1
            time.sleep(0.005)
            return super().read()

    images = [Counted(picture((n, 0, 0), kind="BMP").read()) for n in range(5)]
    asked = [Query(f"question {n}", images[n % 5]) for n in range(100)]
    with serving(echo) as server:
        player = asking([server.url], concurrency=16)
        player.answer(asked)
    assert set(reads.values()) <= {1, 2} and len(reads) == 5  # read to see what it is, read to decode it


def test_threads_that_want_one_image_wait_for_the_one_that_makes_it() -> None:
    made: list[str] = []

    class Slow(BytesImage):
        def read(self) -> bytes:
            made.append("x")
            time.sleep(0.05)
            return super().read()

    urls, image, got = DataURLs(), Slow(picture().read()), []
    threads = [threading.Thread(target=lambda: got.append(urls.of(image))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and len(set(got)) == 1 and len(got) == 8


def test_the_latest_images_are_kept_within_the_limit_and_a_broken_one_is_told_each_time() -> None:
    from pfungst.core import DataError

    urls = DataURLs(limit_bytes=1)
    first, second = picture((1, 1, 1)), picture((2, 2, 2))
    assert urls.of(first) != urls.of(second) and len(urls._kept) == 1
    for _ in range(2):
        with pytest.raises(DataError):
            urls.of(BytesImage(b"no image"))


def test_questions_of_one_image_are_asked_together() -> None:
    a, b = picture((1, 0, 0)), picture((2, 0, 0))
    asked = [Query("1", a), Query("2", b), Query("3"), Query("4", picture((1, 0, 0))), Query("5", b)]
    assert by_image(asked, {}) == [0, 3, 1, 4, 2]


# Processes


FORKING = """
import os, signal, sys
from pfungst.core import Query
from pfungst.players import resolve

def asked(count):
    return len(player.answer([Query(f"question {n}") for n in range(count)]))

player = resolve(f"openai:m@{sys.argv[1]}")
before = asked(4)
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(asked(6))
_, status = os.waitpid(child, 0)
print(before, os.waitstatus_to_exitcode(status), asked(5))
"""


def test_a_forked_process_asks_over_connections_and_threads_of_its_own() -> None:
    with serving(echo) as server:
        line = [sys.executable, "-c", FORKING, server.url]
        told = subprocess.run(line, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["4", "6", "5"], told.stderr
