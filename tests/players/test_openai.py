"""Players behind HTTP, against a real server that fails in every way it can."""

import base64
import hashlib
import io
import json
import logging
import threading
import time
from email.utils import formatdate
from typing import Any

import numpy as np
import PIL.Image
import pytest

from pfungst.core import Answer, BytesImage, DataError, PlayerDied, PlayerError, Query, UsageError
from pfungst.core.asker import LONGEST_ANSWER
from pfungst.core.errors import QueriesFailed
from pfungst.core.images import as_rgb
from pfungst.players import OpenAIOptions, OpenAIPlayer, PartialAnswers, check_player, resolve
from pfungst.players.openai import split_address
from tests.players.api_server import Exchange, serving

KEY = "sk-secret-0123456789"


def picture(color: tuple[int, ...] = (200, 30, 30), mode: str = "RGB", kind: str = "PNG", **more: Any) -> BytesImage:
    buffer = io.BytesIO()
    PIL.Image.new(mode, (9, 7), color).save(buffer, format=kind, **more)
    return BytesImage(buffer.getvalue())


def asking(url: str, **options: Any) -> OpenAIPlayer:
    return OpenAIPlayer("model", url, OpenAIOptions(**{"backoff": 0.01, "connect_timeout": 2.0, **options}))


def echo(exchange: Exchange) -> None:
    exchange.say(f"said {exchange.prompt}")


def questions(n: int) -> list[Query]:
    return [Query(f"question {index}", picture((index % 256, 0, 0))) for index in range(n)]


# What is sent


def test_a_png_travels_as_the_very_bytes_it_was() -> None:
    seen = []
    image = picture()
    with serving(lambda x: (seen.append(x.image_url), x.say("red"))[1]) as server:
        assert asking(server.url).answer([Query("what?", image)]) == [Answer("red")]
    assert seen == ["data:image/png;base64," + base64.b64encode(image.read()).decode()]


@pytest.mark.parametrize(
    ("mode", "kind", "color"),
    [("RGB", "JPEG", (200, 30, 31)), ("L", "JPEG", (77,)), ("RGB", "BMP", (1, 2, 3)), ("RGBA", "WEBP", (9, 8, 7, 255))],
)
def test_other_formats_travel_as_png_with_the_decoded_pixels(mode: str, kind: str, color: tuple[int, ...]) -> None:
    seen: list[bytes] = []
    image = picture(color if len(color) > 1 else color[0], mode, kind)  # type: ignore[arg-type]
    with serving(lambda x: (seen.append(base64.b64decode(x.image_url.split(",")[1])), x.say("x"))[1]) as server:  # type: ignore[union-attr]
        asking(server.url).answer([Query("what?", image)])
    assert seen[0].startswith(b"\x89PNG")
    received, expected = PIL.Image.open(io.BytesIO(seen[0])), image.pil()
    assert (received.mode, received.size) == (expected.mode, expected.size)
    assert received.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF", "palette", "colour"])
def test_a_transparent_image_is_sent_on_white_as_the_probe_picture_disturbs_it(kind: str) -> None:
    pixels = PIL.Image.new("RGBA", (9, 7), (0, 0, 0, 0))
    pixels.putpixel((4, 3), (200, 30, 30, 255))
    more: dict[str, Any] = {}
    if kind in ("palette", "GIF"):
        pixels = pixels.convert("RGB").quantize(4)
        more = {"transparency": pixels.getpixel((0, 0))}
    elif kind == "colour":
        pixels, more = pixels.convert("RGB"), {"transparency": (0, 0, 0)}
    buffer = io.BytesIO()
    pixels.save(buffer, format=kind if kind in ("WEBP", "GIF") else "PNG", lossless=True, **more)
    image = BytesImage(buffer.getvalue())
    seen: list[bytes] = []
    with serving(lambda x: (seen.append(base64.b64decode(x.image_url.split(",")[1])), x.say("x"))[1]) as server:  # type: ignore[union-attr]
        asking(server.url).answer([Query("what?", image)])
    received = PIL.Image.open(io.BytesIO(seen[0]))
    assert received.mode == "RGB" and "transparency" not in received.info
    assert received.tobytes() == as_rgb(image).tobytes()
    assert received.getpixel((0, 0)) == (255, 255, 255) and received.getpixel((4, 3)) == (200, 30, 30)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_an_opaque_png_with_an_alpha_channel_travels_as_the_very_bytes_it_was(mode: str) -> None:
    seen = []
    image = picture((9, 8, 7, 255) if mode == "RGBA" else (9, 255), mode)
    with serving(lambda x: (seen.append(x.image_url), x.say("red"))[1]) as server:
        asking(server.url).answer([Query("what?", image)])
    assert seen == ["data:image/png;base64," + base64.b64encode(image.read()).decode()]


def test_a_turned_photograph_is_set_upright_and_carries_no_metadata() -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    image = picture(kind="JPEG", exif=exif.tobytes())
    seen: list[bytes] = []
    with serving(lambda x: (seen.append(base64.b64decode(x.image_url.split(",")[1])), x.say("x"))[1]) as server:  # type: ignore[union-attr]
        asking(server.url).answer([Query("what?", image)])
    received = PIL.Image.open(io.BytesIO(seen[0]))
    assert received.size == (7, 9) and not received.getexif()


def test_an_x_ray_of_sixteen_bits_travels_with_eight() -> None:
    buffer = io.BytesIO()
    PIL.Image.fromarray(np.arange(4096, dtype=np.uint16).reshape(64, 64)).save(buffer, format="PNG")
    seen: list[bytes] = []
    with serving(lambda x: (seen.append(base64.b64decode(x.image_url.split(",")[1])), x.say("x"))[1]) as server:  # type: ignore[union-attr]
        asking(server.url).answer([Query("what?", BytesImage(buffer.getvalue()))])
    received = PIL.Image.open(io.BytesIO(seen[0])).convert("RGB")
    assert len(np.unique(np.asarray(received))) == 256


def test_request_holds_model_prompt_settings_and_a_seed_for_every_take() -> None:
    bodies: list[dict[str, Any]] = []
    with serving(lambda x: (bodies.append(x.body), x.say("x"))[1]) as server:
        player = asking(
            server.url,
            prompt="Q: {question} {not a field}",
            system="be brief",
            temperature=0.5,
            max_tokens=7,
            seed=10,
            concurrency=1,
            extra={"top_k": 3},
        )
        player.answer([Query("why {braces}?"), Query("why {braces}?", take=2)])
    first, second = bodies
    assert (
        first["model"] == "model" and first["temperature"] == 0.5 and first["max_tokens"] == 7 and first["top_k"] == 3
    )
    assert first["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "Q: why {braces}? {not a field}"},
    ]
    assert (first["seed"], second["seed"]) == (10, 12)


def test_settings_that_are_none_are_not_sent() -> None:
    bodies: list[dict[str, Any]] = []
    with serving(lambda x: (bodies.append(x.body), x.say("x"))[1]) as server:
        asking(server.url, temperature=None, max_tokens=None, seed=None).answer([Query("what?")])
    assert set(bodies[0]) == {"model", "messages"}


def test_half_a_surrogate_pair_in_a_question_does_not_break_the_request() -> None:
    with serving(echo) as server:
        assert "\ud83d" in asking(server.url).answer([Query("what \ud83d?")])[0].text


# What comes back


def test_multiple_choice_is_lettered_and_the_reply_is_kept_as_it_was_said() -> None:
    from pfungst.scores.matchers import read

    replies = {"one": "B.", "two": "(A) red", "three": "I think it is blue or red"}

    def behave(x: Exchange) -> None:
        assert "A. red\nB. blue" in x.prompt
        x.say(replies[x.prompt.split("\n")[0]])

    choices = ("red", "blue")
    with serving(behave) as server:
        player = asking(server.url)
        answers = player.answer([Query(q, None, choices) for q in replies])
    assert [answer.reply for answer in answers] == list(replies.values())
    assert [read(answer.reply, choices, matcher=player.matcher) for answer in answers] == ["blue", "red", None]


def test_thinking_stop_reason_tokens_and_time_are_kept() -> None:
    def behave(x: Exchange) -> None:
        x.say(None, message={"content": " red\n", "reasoning_content": "Hm."}, finish_reason="length")

    with serving(behave) as server:
        (answer,) = asking(server.url).answer([Query("what?")])
    assert (answer.text, answer.reply, answer.thinking, answer.stop) == ("red", " red\n", "Hm.", "length")
    assert (answer.input_tokens, answer.output_tokens) == (100, 2) and 0 < (answer.seconds or 0) < 60


def test_confidence_is_the_probability_of_the_whole_reply() -> None:
    logprobs = {"content": [{"token": "r", "logprob": -0.5}, {"token": "ed", "logprob": -0.25}]}
    with serving(lambda x: x.say("red", logprobs=logprobs if x.body["logprobs"] else None)) as server:
        answer = asking(server.url, logprobs=True).answer([Query("what?")])[0]
    assert answer.confidence == pytest.approx(0.4723665527)  # exp(-0.75)


@pytest.mark.parametrize("logprobs", [None, {}, {"content": []}, {"content": [{"logprob": "x"}]}, {"content": [3]}, 5])
def test_unusable_log_probabilities_leave_the_confidence_unknown(logprobs: Any) -> None:
    with serving(lambda x: x.say("red", logprobs=logprobs)) as server:
        assert asking(server.url, logprobs=True).answer([Query("what?")]) == [Answer("red")]


def test_text_in_parts_refusals_and_filtered_replies_are_answers() -> None:
    def behave(x: Exchange) -> None:
        if x.prompt.startswith("parts"):
            x.say([{"type": "text", "text": " re"}, {"type": "text", "text": "d "}])
        elif x.prompt.startswith("refusal"):
            x.say(None, message={"content": None, "refusal": "I cannot"})
        else:
            x.say(None, finish_reason="content_filter")

    with serving(behave) as server:
        answers = asking(server.url).answer([Query("parts"), Query("refusal"), Query("filter")])
    assert [answer.text for answer in answers] == ["red", "I cannot", ""]


def test_an_answer_that_never_began_says_to_raise_max_tokens() -> None:
    with (
        serving(lambda x: x.say("", finish_reason="length")) as server,
        pytest.raises(PlayerError, match="Raise the option max_tokens"),
    ):
        asking(server.url).answer([Query("what?")])


# Failures that pass


def fails_at_first(exchange: Exchange) -> None:
    """Three in ten requests fail, in one of six ways decided by question and attempt; none fails forever."""
    draw = hashlib.sha256(f"{exchange.prompt}/{exchange.attempt}".encode()).digest()
    if draw[0] < 77 and exchange.attempt < 8:
        [
            lambda: exchange.fail(429, "slow down", {"Retry-After": "0.05"}),
            lambda: exchange.fail(429, "slow down", {"Retry-After": formatdate(usegmt=True)}),
            lambda: exchange.fail(500),
            exchange.cut,
            exchange.hang_up,
            lambda: time.sleep(2.0),
        ][draw[1] % 6]()
        exchange.handler.close_connection = True
        return
    exchange.say(f"said {exchange.prompt}")


def test_no_answer_is_lost_or_doubled_when_three_in_ten_requests_fail() -> None:
    asked = questions(200)
    with serving(fails_at_first) as server:
        whole: dict[str, int] = {}
        inner = server.behave

        def counting(exchange: Exchange) -> None:
            say = exchange.say

            def counted(text: Any, **more: Any) -> None:
                say(text, **more)
                with server.lock:
                    whole[exchange.prompt] = whole.get(exchange.prompt, 0) + 1

            exchange.say = counted  # type: ignore[method-assign]
            inner(exchange)

        server.behave = counting
        player = asking(server.url, concurrency=16, timeout=1.5, retries=10)
        received = list(player.answer_iter(asked))
        requests = server.count
    assert sorted(index for index, _ in received) == list(range(200))
    assert all(
        answer.text == f"said question {index}\nAnswer in one word or a short phrase." for index, answer in received
    )
    failed = requests - 200
    assert failed > 40, "the server must have failed often for this test to mean anything"
    assert sum(whole.values()) == 200 and set(whole.values()) == {1}
    # A request on a connection the server has just closed is sent but never seen there.
    assert player.usage.requests >= requests and player.usage.retries >= failed and player.usage.answers == 200


@pytest.mark.parametrize(
    "break_it",
    [
        lambda x: x.fail(429),
        lambda x: x.fail(500),
        lambda x: x.fail(503),
        lambda x: x.fail(408),
        Exchange.cut,
        Exchange.hang_up,
        lambda x: x.send(b"<html>gateway</html>"),
        lambda x: x.send(b'{"choices": [{"mess'),
        lambda x: x.send(b'{"choices": [{"message": {"content": "r\xe9d"}}]}'),
        lambda x: x.send(b"[" * 100_000),
        lambda x: x.json([1, 2]),
        lambda x: x.json({"choices": []}),
        lambda x: x.json({"choices": None}),
        lambda x: x.json({"choices": [{"message": None}]}),
        lambda x: x.json({"choices": [{"message": {"content": None}}]}),
        lambda x: x.send(b"not gzip", headers={"Content-Encoding": "gzip"}),
        lambda x: x.drip(3.0),
        lambda x: time.sleep(1.5),
    ],
)
def test_every_passing_failure_is_tried_again(break_it: Any) -> None:
    with serving(lambda x: break_it(x) if x.attempt == 0 else x.say("red")) as server:
        player = asking(server.url, timeout=1.0)
        assert player.answer([Query("what?")]) == [Answer("red")]
        assert server.count == 2 and player.usage.retries == 1


def test_a_reply_that_is_never_utf_8_is_counted_as_failed() -> None:
    latin = b'{"choices": [{"message": {"content": "caf\xe9"}}]}'
    with serving(lambda x: x.send(latin) if "question 1" in x.prompt else echo(x)) as server:
        with pytest.raises(PartialAnswers, match=r"failed 2 times .*not UTF-8: .*caf\\xe9") as caught:
            asking(server.url, retries=1).answer(questions(3))
        assert sorted(caught.value.answers) == [0, 2]


def test_retries_are_bounded_and_the_other_answers_survive() -> None:
    with serving(lambda x: x.fail(500, "broken") if "question 3" in x.prompt else echo(x)) as server:
        player = asking(server.url, retries=2, concurrency=2)
        received = []
        with pytest.raises(PlayerError, match=r"'question 3' failed 3 times .*500: broken"):
            for pair in player.answer_iter(questions(10)):
                received.append(pair)
        assert sorted(index for index, _ in received) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
        assert server.count == 9 + 3


def test_answer_carries_what_was_received_in_its_error() -> None:
    with serving(lambda x: x.fail(500) if "question 1" in x.prompt else echo(x)) as server:
        with pytest.raises(PartialAnswers) as caught:
            asking(server.url, retries=1).answer(questions(3))
        assert sorted(caught.value.answers) == [0, 2]


def test_retry_after_in_seconds_holds_everybody_back() -> None:
    def behave(x: Exchange) -> None:
        if not behaved.is_set():
            behaved.set()
            x.fail(429, headers={"Retry-After": "0.6"})
        else:
            echo(x)

    behaved = threading.Event()
    with serving(behave) as server:
        asking(server.url, concurrency=1).answer(questions(4))
        waits = [later - earlier for earlier, later in zip(server.times, server.times[1:], strict=False)]
    assert waits[0] >= 0.6 and max(waits[1:]) < 0.6


def test_retry_after_as_a_date_is_read_by_the_servers_clock() -> None:
    long_ago = 1_000_000_000

    # The handler sends its own Date first; a header written twice is joined, so this reply is written by hand.
    def behave(x: Exchange) -> None:
        if x.attempt:
            x.say("red")
            return
        x.handler.wfile.write(
            b"HTTP/1.1 503 No\r\nContent-Length: 0\r\nDate: %b\r\nRetry-After: %b\r\n\r\n"
            % (formatdate(long_ago, usegmt=True).encode(), formatdate(long_ago + 1, usegmt=True).encode())
        )

    with serving(behave) as server:
        asking(server.url).answer([Query("what?")])
        assert 1.0 <= server.times[1] - server.times[0] < 10


def test_a_wait_longer_than_max_wait_stops_at_once() -> None:
    with serving(lambda x: x.fail(429, headers={"Retry-After": "3600"})) as server:
        with pytest.raises(PlayerError, match=r"asks to wait 3600 s.*Run again later"):
            asking(server.url).answer([Query("what?")])
        assert server.count == 1


# Failures that last


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (400, "question 0"),
        (401, "api_key_env"),
        (403, "api_key_env"),
        (404, "serves the model 'model'"),
        (501, "Check the options"),
    ],
)
def test_lasting_refusals_stop_at_once_with_a_sentence(status: int, sentence: str) -> None:
    with serving(lambda x: x.fail(status, "because")) as server:
        with pytest.raises(PlayerError, match=rf"\({status}: because\).*{sentence}"):
            asking(server.url, concurrency=1).answer(questions(20))
        assert server.count == 1


def test_spent_quota_is_not_tried_again() -> None:
    with serving(lambda x: x.fail(429, "pay", code="insufficient_quota")) as server:
        with pytest.raises(PlayerError, match="no quota"):
            asking(server.url, concurrency=1).answer([Query("what?")])
        assert server.count == 1


def test_redirects_are_not_followed() -> None:
    with serving(lambda x: x.fail(307, headers={"Location": "http://elsewhere/v1"})) as server:
        with pytest.raises(PlayerError, match="elsewhere"):
            asking(server.url).answer([Query("what?")])
        assert server.count == 1


def refusing_first(status: int, **error: Any) -> Any:
    refused = threading.Event()

    def behave(x: Exchange) -> None:
        if x.prompt.startswith("question 0"):
            time.sleep(0.1)
            refused.set()
            x.fail(status, **error)
        else:
            refused.wait(5)
            time.sleep(0.1)
            echo(x)

    return behave


def test_answers_under_way_are_kept_when_the_server_asks_for_too_long_a_wait() -> None:
    with serving(refusing_first(429, headers={"Retry-After": "3600"})) as server:
        received = []
        with pytest.raises(PlayerError, match="429|asks to wait"):
            for pair in asking(server.url, concurrency=4).answer_iter(questions(40)):
                received.append(pair)
        assert sorted(index for index, _ in received) == [1, 2, 3]
        assert server.count == 4


def test_a_question_that_is_refused_costs_no_other_where_others_are_answered() -> None:
    with serving(refusing_first(400)) as server:
        received = []
        with pytest.raises(QueriesFailed, match="400") as caught:
            for pair in asking(server.url, concurrency=4).answer_iter(questions(40)):
                received.append(pair)
        assert sorted(index for index, _ in received) == list(range(1, 40))
        assert list(caught.value.failed) == [0] and server.count == 40


def test_where_all_that_is_under_way_is_refused_nothing_more_is_asked() -> None:
    with serving(lambda x: x.fail(400, "because")) as server:
        with pytest.raises(PlayerDied, match="400: because"):
            asking(server.url, concurrency=4).answer(questions(40))
        assert server.count <= 4


@pytest.mark.parametrize("code", ["content_filter", "content_policy_violation"])
def test_a_question_that_a_filter_keeps_from_the_model_is_an_empty_answer(code: str) -> None:
    with serving(lambda x: x.fail(400, "filtered", code=code) if "question 1" in x.prompt else echo(x)) as server:
        answers = asking(server.url).answer(questions(3))
        assert [(answer.text != "", answer.stop) for answer in answers] == [
            (True, "stop"),
            (False, "content_filter"),
            (True, "stop"),
        ]
        assert server.count == 3


@pytest.mark.parametrize(
    "break_it",
    [
        lambda x: x.fail(500, "broken"),
        lambda x: x.say(None),
        lambda x: x.say("x" * (LONGEST_ANSWER + 1)),
        Exchange.hang_up,
        Exchange.cut,
        lambda x: time.sleep(0.5),
    ],
    ids=["500", "no text", "too long", "hangs up", "cut", "never replies"],
)
def test_questions_that_always_fail_do_not_bring_down_a_server_that_answers_all_others(break_it: Any) -> None:
    def behave(x: Exchange) -> None:
        if int(x.prompt.split()[1]) % 10 == 3:
            break_it(x)
        else:
            echo(x)

    with serving(behave) as server:
        player, received = asking(server.url, retries=4, timeout=0.3), []
        with pytest.raises(QueriesFailed) as caught:
            for pair in player.answer_iter(questions(40)):
                received.append(pair)
        assert len(received) == 36 and sorted(caught.value.failed) == [3, 13, 23, 33]
        before = server.count
        with pytest.raises(QueriesFailed):  # and not where nothing else is left to ask
            player.answer([questions(40)[index] for index in (3, 13, 23, 33)])
        assert server.count - before <= 4 * 5


def test_questions_that_always_fail_do_not_keep_others_from_being_asked() -> None:
    def behave(x: Exchange) -> None:
        x.fail(500, "broken") if int(x.prompt.split()[1]) < 8 else echo(x)

    with serving(behave) as server:
        player, received = asking(server.url, retries=4, concurrency=4), []
        with pytest.raises(QueriesFailed, match="broken") as caught:
            for pair in player.answer_iter(questions(40)):
                received.append(pair)
    assert len(received) == 32 and sorted(caught.value.failed) == list(range(8))


def test_a_server_that_replies_to_everything_with_an_error_is_soon_considered_down() -> None:
    with serving(lambda x: x.fail(500, "broken")) as server:
        with pytest.raises(PlayerDied, match=r"considered down \(last: 500: broken\)"):
            asking(server.url, concurrency=4).answer(questions(100))
        assert server.count <= 10 + 4 + 3


def test_an_answer_that_never_began_is_empty_where_others_did() -> None:
    def behave(x: Exchange) -> None:
        x.say("", finish_reason="length") if x.prompt.startswith("question 5") else echo(x)

    with serving(behave) as server:
        player = asking(server.url, concurrency=1)
        answers = player.answer(questions(10))
    assert [answer.text for answer in answers].count("") == 1 and answers[5].stop == "length"
    assert player.notes == (
        "1 reply reached max_tokens before an answer began. To let the model finish, raise the option max_tokens.",
    )


@pytest.mark.parametrize(
    "reply",
    [
        lambda x: x.send(b'\xef\xbb\xbf{"choices": [{"message": {"content": "red"}}]}'),
        lambda x: x.json({"choices": [{"message": {"content": "red"}}]}, status=201),
    ],
)
def test_a_byte_order_mark_and_other_kinds_of_success_are_no_failures(reply: Any) -> None:
    with serving(reply) as server:
        assert asking(server.url).answer([Query("what?")]) == [Answer("red")]


def test_a_dead_server_stops_the_run_soon_and_says_so() -> None:
    with serving(echo) as server:
        url = server.url
    player = asking(url, concurrency=4)
    start = time.monotonic()
    with pytest.raises(PlayerError, match=r"considered down .*no connection.*check the address"):
        player.answer(questions(100))
    assert time.monotonic() - start < 20
    assert 10 <= player.usage.requests <= 10 + 4


def test_a_server_that_dies_half_way_leaves_the_answers_before_it() -> None:
    served = []

    def behave(x: Exchange) -> None:
        if len(served) >= 20:
            x.hang_up()
        else:
            served.append(x.prompt)
            echo(x)

    with serving(behave) as server:
        received = []
        with pytest.raises(PlayerError, match="considered down"):
            for pair in asking(server.url, concurrency=1, backoff=0.001).answer_iter(questions(60)):
                received.append(pair)
    assert len(received) == 20


def test_rate_limits_do_not_make_a_server_dead() -> None:
    with serving(lambda x: x.fail(429) if x.attempt < 3 else x.say("red")) as server:
        assert len(asking(server.url, breaker=5, concurrency=8).answer(questions(8))) == 8


def test_one_success_between_failures_keeps_the_breaker_closed() -> None:
    with serving(lambda x: x.fail(500) if x.attempt < 3 else x.say("red")) as server:
        assert len(asking(server.url, breaker=4, concurrency=1, backoff=0.001).answer(questions(6))) == 6


# Housekeeping


def test_no_more_requests_are_under_way_than_allowed() -> None:
    with serving(lambda x: (time.sleep(0.02), echo(x))[1]) as server:
        asking(server.url, concurrency=3).answer(questions(24))
        assert server.most_under_way == 3


def test_usage_counts_tokens_and_spend() -> None:
    with serving(echo) as server:
        player = asking(server.url, price_in=2.0, price_out=10.0)
        player.answer(questions(5))
    usage = player.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (500, 10)
    assert usage.spend == pytest.approx((500 * 2 + 10 * 10) / 1e6)
    assert "5 requests" in str(usage)


def test_budget_stops_asking() -> None:
    with serving(echo) as server:
        player = asking(server.url, price_in=1e6, budget=250.0, concurrency=1)
        received = []
        with pytest.raises(PlayerError, match="budget of 250 is spent"):
            for pair in player.answer_iter(questions(10)):
                received.append(pair)
        assert len(received) == 3 and server.count == 3


def test_a_budget_is_not_kept_in_silence_where_the_server_counts_no_tokens() -> None:
    def behave(x: Exchange) -> None:
        x.json({"choices": [{"message": {"content": "red"}}]})

    with serving(behave) as server:
        player = asking(server.url, price_in=1.0, budget=250.0, concurrency=1)
        with pytest.raises(PlayerError, match="how many tokens its replies take, so the budget cannot be kept"):
            player.answer(questions(10))
        assert server.count == 3


def test_leaving_early_asks_nothing_more() -> None:
    with serving(echo) as server:
        iterator = asking(server.url, concurrency=2).answer_iter(questions(50))
        next(iterator)
        iterator.close()  # type: ignore[attr-defined]
        time.sleep(0.2)
        count = server.count
        assert count < 50
        time.sleep(0.2)
        assert server.count == count


def test_key_is_sent_and_appears_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_KEY", KEY + "\n")
    caplog.set_level(logging.DEBUG)
    headers: list[str] = []

    def behave(x: Exchange) -> None:
        headers.append(x.headers.get("Authorization", ""))
        x.fail(401, f"Incorrect API key provided: {KEY}")

    with serving(behave) as server:
        player = resolve(f"openai:model@{server.url}", api_key_env="MY_KEY")
        assert isinstance(player, OpenAIPlayer)
        with pytest.raises(PlayerError) as caught:
            player.answer([Query("what?")])
    assert headers == [f"Bearer {KEY}"]
    seen = [caplog.text, str(caught.value), repr(caught.value), player.fingerprint, repr(player), repr(vars(player))]
    assert "[key]" in str(caught.value)
    assert not [text for text in seen if KEY in text]
    chain: BaseException | None = caught.value
    while chain is not None:
        assert KEY not in repr(chain.args)
        chain = chain.__cause__


def test_the_openai_key_is_not_sent_to_other_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    headers: list[dict[str, str]] = []
    with serving(lambda x: (headers.append(x.headers), x.say("x"))[1]) as server:
        asking(server.url).answer([Query("what?")])
    assert "Authorization" not in headers[0]


def test_missing_key_variable_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(PlayerError, match="NO_SUCH_KEY"):
        resolve("openai:m@http://localhost:1/v1", api_key_env="NO_SUCH_KEY")


def test_fingerprint_follows_what_can_change_an_answer() -> None:
    url = "http://localhost:1/v1"
    base = asking(url).fingerprint
    assert asking(url, concurrency=2, timeout=3, retries=1, price_in=4, name="x").fingerprint == base
    assert asking(url + "/").fingerprint == base
    others = [
        asking(url, temperature=0.1),
        asking(url, prompt="{question}"),
        asking(url, seed=1),
        asking(url, extra={"top_k": 1}),
        asking("http://localhost:2/v1"),
        asking(url, version="a"),
        OpenAIPlayer("other", url),
    ]
    assert len({base, *(player.fingerprint for player in others)}) == 8
    assert asking(url, version="a").fingerprint == asking("http://localhost:2/v1", version="a").fingerprint


def test_address_is_split_at_the_last_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert split_address("org/m@2@http://h:1/v1") == ("org/m@2", "http://h:1/v1")
    assert split_address("gpt") == ("gpt", "https://api.openai.com/v1")
    with pytest.raises(PlayerError, match="which model"):
        split_address("@http://h/v1")
    with pytest.raises(PlayerError, match="password"):
        resolve("openai:m@http://user:secret@host/v1")
    with pytest.raises(PlayerError, match="not the address"):
        OpenAIPlayer("m", "ftp://host")


@pytest.mark.parametrize(
    ("behind", "address"),
    [
        ("localhost:18201/v1", "http://localhost:18201/v1"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("HTTP://localhost:1/v1", "http://localhost:1/v1"),
        ("localhost", "http://localhost"),
        ("http://a:1/v1,b:2/v1", "http://a:1/v1,http://b:2/v1"),
    ],
)
def test_an_address_without_its_scheme_means_http(behind: str, address: str) -> None:
    assert split_address(f"m@{behind}") == ("m", address)
    assert resolve(f"openai:m@{behind}").fingerprint == resolve(f"openai:m@{address}").fingerprint


@pytest.mark.parametrize(
    "behind", ["htp://localhost:1/v1", "//h/v1", "002", "server", "ftp://h", "h:port/v1", "http//h:1"]
)
def test_what_is_no_address_is_refused_and_not_asked_of_the_default(behind: str) -> None:
    with pytest.raises(PlayerError, match="no address behind the @.*Give one with its scheme"):
        resolve(f"openai:m@{behind}")


def test_half_an_address_gets_a_sentence() -> None:
    for url in ("http://[::1", "http://h:99999/v1", "http://h:x/v1"):
        with pytest.raises(PlayerError, match="not the address of a server"):
            resolve(f"openai:m@{url}")


def test_the_first_request_names_where_it_goes(caplog: pytest.LogCaptureFixture) -> None:
    with serving(echo) as server, caplog.at_level("INFO", "pfungst.players"):
        player = asking(server.url)
        for _ in range(2):
            player.answer([Query("Is it?")])
    assert caplog.messages == [f"model is asked at {server.url}."]


def test_options_arrive_as_words() -> None:
    player = resolve(
        "openai:m@http://localhost:1/v1",
        concurrency="3",
        temperature="none",
        logprobs="yes",
        extra='{"a": 1}',
        timeout="2.5",
    )
    assert isinstance(player, OpenAIPlayer)
    assert player.options == OpenAIOptions(concurrency=3, temperature=None, logprobs=True, extra={"a": 1}, timeout=2.5)
    for wrong in (
        {"concurrency": "many"},
        {"logprobs": "perhaps"},
        {"extra": "[1]"},
        {"concurrency": 0},
        {"budget": "3"},
    ):
        with pytest.raises(UsageError):
            resolve("openai:m@http://localhost:1/v1", **wrong)


def test_an_image_that_cannot_be_read_does_not_cost_the_other_answers() -> None:
    with serving(echo) as server:
        received = []
        with pytest.raises(DataError):
            for pair in asking(server.url).answer_iter([Query("a"), Query("b", BytesImage(b"no image")), Query("c")]):
                received.append(pair)
        assert sorted(index for index, _ in received) == [0, 2] and server.count == 2


def test_the_player_keeps_the_promises_of_a_player() -> None:
    with serving(lambda x: x.say(hashlib.sha256(json.dumps(x.body["messages"]).encode()).hexdigest()[:6])) as server:
        assert check_player(asking(server.url)) == []
