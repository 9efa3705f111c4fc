"""Models of lmms-eval, with the real package where it is installed."""

from __future__ import annotations

import io
from typing import Any

import PIL.Image
import pytest

from pfungst.core import Answer, BytesImage, Framing, MissingExtra, PlayerError, Query, UsageError
from pfungst.players import check_player, resolve
from tests.players.api_server import Exchange, serving


def image(color: tuple[int, int, int] = (200, 30, 30)) -> BytesImage:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (9, 7), color).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


def test_without_the_package_the_extra_is_named() -> None:
    try:
        import lmms_eval  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtra, match=r"pfungst\[lmms\]"):
            resolve("lmms:dummy")
    else:
        pytest.skip("lmms-eval is installed")


def test_wrong_options_are_refused_before_anything_is_loaded() -> None:
    for wrong, said in (({"args": "api_key=sk"}, "environment"), ({"batch_size": "0"}, "1 or more")):
        with pytest.raises(UsageError, match=said):
            resolve("lmms:dummy", **wrong)
    with pytest.raises(PlayerError, match="which model"):
        resolve("lmms:")


class TestWithThePackage:
    """What only the real package can show."""

    @pytest.fixture(autouse=True)
    def _package(self) -> None:
        pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")

    @pytest.fixture
    def looking(self, monkeypatch: pytest.MonkeyPatch) -> str:
        """A model that says what it saw, registered as lmms-eval registers its own."""
        from lmms_eval.models import MODEL_REGISTRY_V2
        from lmms_eval.models.registry_v2 import ModelManifest

        place = f"{__name__}.{Looking.__name__}"
        monkeypatch.setitem(
            __import__("sys").modules, __name__, type("module", (), {"__name__": __name__, "Looking": looking_class()})
        )
        MODEL_REGISTRY_V2.register_manifest(ModelManifest("looking", simple_class_path=place), overwrite=True)
        return "lmms:looking"

    def test_question_pixels_and_settings_reach_the_model(self, looking: str) -> None:
        player = resolve(looking, args="tone=calm", max_new_tokens="9", generation='{"top_p": 0.5}')
        asked = [Query("what?", image()), Query("which?", image((0, 9, 0)), ("red", "blue")), Query("blank")]
        said = [answer.text for answer in player.answer(asked)]
        assert said[0] == "calm (200, 30, 30) 9 0.5 what?|Answer in one word or a short phrase."
        assert said[1].startswith("calm (0, 9, 0) 9 0.5 which?|A. red|B. blue|") and said[2].startswith("calm None")

    def test_it_keeps_the_promises_of_a_player(self, looking: str) -> None:
        assert check_player(resolve(looking)) == []

    def test_the_fingerprint_is_complete(self, looking: str, tmp_path: Any) -> None:
        (tmp_path / "model.safetensors").write_bytes(b"one")
        options = [
            {},
            {"args": "tone=calm"},
            {"args": f"pretrained={tmp_path}"},
            {"temperature": "0.5"},
            {"max_new_tokens": "9"},
            {"generation": '{"top_p": 0.5}'},
            {"prompt": "{question}"},
            {"batch_size": "2"},
            {"version": "2"},
        ]
        prints = [resolve(looking, **one).fingerprint for one in options]
        (tmp_path / "model.safetensors").write_bytes(b"other")
        prints.append(resolve(looking, args=f"pretrained={tmp_path}").fingerprint)
        assert len(set(prints)) == len(options) + 1
        assert resolve(looking, name="x").fingerprint == prints[0]

    def test_failures_and_unknown_names_are_sentences(self, looking: str) -> None:
        with pytest.raises(PlayerError, match="failed near the question 'break'.*ValueError: broken"):
            resolve(looking).answer([Query("break")])
        with pytest.raises(PlayerError, match="got no reply: no connection"):
            resolve(looking).answer([Query("gone")])
        with pytest.raises(UsageError, match="no model called 'nobody'"):
            resolve("lmms:nobody")
        with pytest.raises(PlayerError, match="could not make the model looking: TypeError"):
            resolve(looking, args="color=red")

    def test_nothing_is_printed_to_standard_output(self, looking: str, capsys: pytest.CaptureFixture[str]) -> None:
        resolve(looking).answer([Query("loud")])
        assert capsys.readouterr().out == ""

    def test_the_model_openai_asks_a_real_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        urls: list[str | None] = []

        def behave(x: Exchange) -> None:
            urls.append(x.image_url)
            x.say("red")

        with serving(behave) as server:
            args = f"model=m,base_url={server.url},max_retries=1"
            for simple in ("no", "yes"):
                player = resolve("lmms:openai", args=args, simple=simple)
                assert player.answer([Query("what?", image())]) == [Answer("red")]
        assert len(urls) == 2 and all(str(url).startswith("data:image/png;base64,") for url in urls)
        with pytest.raises(PlayerError, match="got no reply"):
            resolve("lmms:openai", args=args).answer([Query("what?", image())])


class Looking:
    """Stands for the class that `looking_class` makes, which needs the package."""


def looking_class() -> type:
    from lmms_eval.api.model import lmms

    class Looking(lmms):  # type: ignore[misc]
        def __init__(self, tone: str = "", pretrained: str = "", batch_size: int = 1, device: str = "") -> None:
            super().__init__()
            self.tone = tone

        def generate_until(self, requests: Any) -> list[str]:
            said = []
            for request in requests:
                text, settings, to_visual, number, task, split = request.args
                if text.startswith("break"):
                    raise ValueError("broken")
                if text.startswith("loud"):
                    print("model is thinking")
                images = to_visual(self.task_dict[task][split][number])
                color = images[0].getpixel((0, 0)) if images else None
                line = text.replace("\n", "|")
                failed = "[LMMS_EVAL_REQUEST_FAILED after 1 retries] no connection"
                what = f"{self.tone} {color} {settings['max_new_tokens']} {settings.get('top_p')} {line}"
                said.append(failed if text.startswith("gone") else what)
            return said

        def loglikelihood(self, requests: Any) -> Any:
            raise NotImplementedError

        def generate_until_multi_round(self, requests: Any) -> Any:
            raise NotImplementedError

    return Looking


def test_the_image_stands_where_the_framing_wants_it() -> None:
    from pfungst.players.lmms_model import _doc, _messages

    for last, kinds in ((False, ["image", "text"]), (True, ["text", "image"])):
        query = Query("what?", image(), framing=Framing("Q {question}", image_last=last))
        (message,) = _messages(_doc("Q what?", query))
        assert [part["type"] for part in message["content"]] == kinds
