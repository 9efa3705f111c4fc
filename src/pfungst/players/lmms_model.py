"""Models of lmms-eval as players: `lmms:qwen2_5_vl`, `lmms:llava_hf`, `lmms:openai` ..."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pfungst.core import Answer, MissingExtra, PfungstError, Player, PlayerError, Query, UsageError
from pfungst.core.fingerprint import digest
from pfungst.core.images import as_rgb
from pfungst.core.types import Terms
from pfungst.players.options import LmmsOptions

_TASK, _SPLIT = "pfungst", "test"
_FAILED = "[LMMS_EVAL_REQUEST_FAILED"
"""How the text begins that lmms-eval's clients of servers give instead of a reply."""


@dataclass(frozen=True, slots=True)
class _Doc:
    """What stands for a record of a data set while a model of lmms-eval is asked."""

    text: str
    images: tuple[Any, ...]
    image_last: bool = False


class LmmsPlayer(Player):
    """A model of lmms-eval, asked by its `generate_until`. lmms-eval brings the model, its chat template and its
    processing of images; its response cache is not used. Images are handed over as RGB pixels."""

    matcher = "lenient"

    def __init__(self, model: str, options: LmmsOptions | None = None) -> None:
        if find_spec("lmms_eval") is None:
            raise MissingExtra("A model of lmms-eval", "lmms")
        self.options = options = options or LmmsOptions()
        given = {"batch_size": options.batch_size, "device": options.device or None}
        with _quiet():
            from lmms_eval.models import get_model, list_available_models

            if model not in list_available_models(include_aliases=True):
                raise UsageError(f"lmms-eval {version('lmms-eval')} has no model called '{model}'.")
            try:
                made = get_model(model, force_simple=options.simple)
                self._model = made.create_from_arg_string(options.args, given)
            except Exception as error:  # of a model: anything, a missing package most of all
                raise PlayerError(f"lmms-eval could not make the model {model}: {_one_line(error)}") from error
        self.name: str = options.name or model
        # Models of the simple kind place the image themselves; all get pixels.
        self.takes: frozenset[str] = frozenset(
            {"template", "options", *(() if self._model.is_simple else ("image_last",))}
        )
        self.batch_size: int = max(32, options.batch_size)
        self.samples: bool = options.temperature > 0
        settings = options.settings()
        what = f"{made.__module__}.{made.__qualname__}"
        self.terms = Terms(most_output=options.max_new_tokens)
        self.fingerprint: str = f"lmms-1-{digest(model, what, version('lmms-eval'), settings, _weights(options.args))}"

    def prompt(self, query: Query) -> str:
        """What is asked, in words."""
        return self.options.text(query)

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        from lmms_eval.api.instance import Instance, unwrap_generation_output

        docs = [_doc(self.prompt(query), query) for query in queries]
        self._model.task_dict = {_TASK: {_SPLIT: docs}}
        requests = [
            Instance(
                request_type="generate_until",
                arguments=self._arguments(doc, index),
                idx=0,
                metadata={"task": _TASK, "doc_id": index, "repeats": 1},
            )
            for index, doc in enumerate(docs)
        ]
        began = time.monotonic()
        try:
            with _quiet():
                replies = list(self._model.generate_until(requests))
        except PfungstError:
            raise
        except Exception as error:  # of a model: anything
            raise PlayerError(
                f"{self.name} failed near the question '{queries[0].question:.80}': {_one_line(error)}. "
                f"Run again: answers already received are kept."
            ) from error
        finally:
            self._model.task_dict = {}
        if len(replies) != len(queries):
            raise PlayerError(f"{self.name} was asked {len(queries)} questions and gave {len(replies)} answers.")
        seconds = (time.monotonic() - began) / max(1, len(queries))
        said = (unwrap_generation_output(reply) for reply in replies)
        return [self._read(text, tokens, seconds) for text, tokens in said]

    def _arguments(self, doc: _Doc, index: int) -> tuple[Any, ...]:
        settings = {
            "max_new_tokens": self.options.max_new_tokens,
            "temperature": self.options.temperature,
            "do_sample": self.options.temperature > 0,
            **(self.options.generation or {}),
        }
        if self._model.is_simple:
            return (doc.text, settings, _visual, index, _TASK, _SPLIT)
        return (doc.text, _messages, settings, index, _TASK, _SPLIT)

    def _read(self, text: Any, tokens: Any, seconds: float) -> Answer:
        if not isinstance(text, str):
            raise PlayerError(f"{self.name} answered with {type(text).__name__}, not with text.")
        if text.startswith(_FAILED):
            raise PlayerError(f"{self.name} got no reply: {text.partition(']')[2].strip()[:300]}")
        plain = text.strip()
        return Answer(
            plain,
            raw=text if text != plain else None,
            input_tokens=getattr(tokens, "input_tokens", None),
            output_tokens=getattr(tokens, "output_tokens", None),
            seconds=seconds,
        )


def _doc(text: str, query: Query) -> _Doc:
    images = () if query.image is None else (as_rgb(query.image),)
    return _Doc(text, images, query.framing is not None and query.framing.image_last)


def _visual(doc: _Doc) -> list[Any]:
    return list(doc.images)


def _messages(doc: _Doc) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = [{"type": "image", "url": image} for image in doc.images]
    content.insert(0 if doc.image_last else len(content), {"type": "text", "text": doc.text})
    return [{"role": "user", "content": content}]


def _weights(args: str) -> str:
    """The content of the folder that `pretrained` names, where it is one."""
    from pfungst.players.huggingface.loading import folder_digest

    for part in args.split(","):
        name, _, value = part.partition("=")
        if name.strip() in ("pretrained", "model", "model_version") and Path(value.strip()).is_dir():
            return folder_digest(Path(value.strip()))
    return ""


@contextmanager
def _quiet() -> Iterator[None]:
    """What lmms-eval prints goes to standard error: standard output is for results."""
    with redirect_stdout(sys.stderr):
        yield


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
