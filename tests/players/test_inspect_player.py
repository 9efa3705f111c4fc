"""Models of inspect_ai, with the real package where it is installed."""

from __future__ import annotations

import base64
import io
from typing import Any

import PIL.Image
import pytest

from pfungst.core import Answer, BytesImage, Framing, MissingExtra, PlayerDied, PlayerError, Query, UsageError
from pfungst.players import check_player, resolve
from pfungst.players.options import InspectOptions
from tests.players.api_server import Exchange, serving


def image() -> BytesImage:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (9, 7), (200, 30, 30)).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


def test_without_the_package_the_extra_is_named() -> None:
    try:
        import inspect_ai  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtra, match=r"pfungst\[inspect\]"):
            resolve("inspect:mockllm/model")
    else:
        pytest.skip("inspect_ai is installed")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"config": '{"cache": true}'}, "cache"),
        ({"config": '{"temperature": 1}'}, "own option"),
        ({"args": '{"api_key": "sk"}'}, "environment variable"),
        ({"prompt": "no field"}, "{question}"),
        ({"concurrency": "0"}, "1 or more"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_loaded(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        resolve("inspect:mockllm/model", **wrong)


def reply(text: str) -> Any:
    from inspect_ai.model import ModelOutput, ModelUsage

    output = ModelOutput.from_content("mockllm/model", text)
    output.usage = ModelUsage(input_tokens=5, output_tokens=1)  # inspect downloads a tokeniser where it is missing
    return output


class TestWithThePackage:
    """What only the real package can show."""

    @pytest.fixture(autouse=True)
    def _package(self) -> None:
        pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")

    def mock(self, said: Any, **options: Any) -> Any:
        from pfungst.players.inspect_model import InspectPlayer

        return InspectPlayer("mockllm/model", InspectOptions(args={"custom_outputs": said}, **options))

    def test_prompt_image_and_settings_reach_the_model(self) -> None:
        seen = []

        def say(messages: Any, tools: Any, choice: Any, config: Any) -> Any:
            seen.append((messages, config))
            return reply(" red\n")

        picture = image()
        player = self.mock(say, system="be brief", max_tokens=7, seed=10, config={"top_p": 0.5})
        assert player.answer([Query("what?", picture, take=2)]) == [Answer("red", raw=" red\n")]
        ((messages, config),) = seen
        assert messages[0].role == "system" and messages[0].content == "be brief"
        shown, text = messages[1].content
        assert base64.b64decode(shown.image.split(",")[1]) == picture.read()
        assert text.text == "what?\nAnswer in one word or a short phrase."
        assert (config.max_tokens, config.temperature, config.seed, config.top_p) == (7, 0.0, 12, 0.5)

    def test_a_framing_reaches_the_model(self) -> None:
        seen = []

        def say(messages: Any, *_: Any) -> Any:
            seen.append(messages[-1].content)
            return reply("2")

        buffer = io.BytesIO()
        image().pil().save(buffer, "JPEG")
        framing = Framing("Q: {question}\n{options}", "1)", image_last=True, as_is=True)
        self.mock(say).answer([Query("what?", BytesImage(buffer.getvalue()), ("red", "blue"), framing=framing)])
        ((text, shown),) = seen
        assert text.text == "Q: what?\n1) red\n2) blue"
        kind, _, data = shown.image.partition(";base64,")
        assert kind == "data:image/jpeg" and base64.b64decode(data) == buffer.getvalue()

    def test_it_keeps_the_promises_of_a_player_and_names_its_matcher(self) -> None:
        def say(messages: Any, *_: Any) -> Any:
            return reply(str(len(messages[-1].text) % 7))

        player = self.mock(say)
        assert check_player(player) == [] and player.matcher == "lenient" and not player.samples

    def test_one_failure_costs_one_answer_and_ten_in_a_row_the_run(self) -> None:
        def say(messages: Any, *_: Any) -> Any:
            if "bad" in messages[-1].text:
                raise ValueError("broken")
            return reply("red")

        player, received = self.mock(say, concurrency=2), []
        with pytest.raises(PlayerError, match="'bad' *: ValueError: broken"):
            for pair in player.answer_iter([Query("a"), Query("bad"), Query("c")]):
                received.append(pair[0])
        assert sorted(received) == [0, 2]
        with pytest.raises(PlayerDied, match="considered down"):
            list(player.answer_iter([Query("bad") for _ in range(50)]))

    def test_the_fingerprint_is_complete(self) -> None:
        options = [
            {},
            {"temperature": "0.5"},
            {"max_tokens": "9"},
            {"config": '{"top_p": 0.5}'},
            {"args": '{"x": 1}'},
            {"base_url": "http://localhost:1/v1"},
            {"system": "x"},
            {"version": "2"},
        ]
        prints = [resolve("inspect:mockllm/model", **one).fingerprint for one in options]
        assert len(set(prints)) == len(options)
        assert resolve("inspect:mockllm/model", concurrency="3", timeout="9", name="x").fingerprint == prints[0]
        assert resolve("inspect:mockllm/other").fingerprint not in prints

    def test_a_provider_that_does_not_exist_is_a_sentence(self) -> None:
        with pytest.raises(PlayerError, match="could not make the model nobody/model"):
            resolve("inspect:nobody/model")
        with pytest.raises(PlayerError, match="which model of which provider"):
            resolve("inspect:gpt-4o")

    def test_the_openai_provider_asks_a_real_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("openai", reason="inspect's openai provider needs the package openai")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        picture, urls = image(), []

        def behave(x: Exchange) -> None:
            urls.append(x.image_url)
            x.say("B" if "A. red" in x.prompt else "red")

        with serving(behave) as server:
            player = resolve("inspect:openai/gpt-4o", base_url=server.url, args='{"responses_api": false}')
            answers = player.answer([Query("what?", picture), Query("which?", picture, ("red", "blue"))])
        assert [answer.text for answer in answers] == ["red", "B"]
        assert [(answer.input_tokens, answer.output_tokens, answer.stop) for answer in answers] == [
            (100, 2, "stop")
        ] * 2
        assert {base64.b64decode(str(url).split(",")[1]) for url in urls} == {picture.read()}
