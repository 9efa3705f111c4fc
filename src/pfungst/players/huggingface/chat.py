"""Models that take an image and a text and go on writing: chat models, and those with a plain prompt."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from pfungst.core import Answer, PlayerError, Query
from pfungst.players.huggingface.decoding import (
    end_tokens,
    generation_settings,
    sampling_seed,
    seeded,
    written,
)
from pfungst.players.huggingface.generate import chosen
from pfungst.players.huggingface.loading import Loaded
from pfungst.players.letters import SHORT_PROMPT, in_words
from pfungst.players.options import HuggingFaceOptions

PLAIN_PROMPT = "Question: {question} Answer:"
# Types of models whose answer changes with the padding that a longer question in the same batch brings.
_ALONE = frozenset({"blip", "kosmos-2", "kosmos-2.5", "minicpmv4_6", "minicpmv4_7", "pix2struct"})


class Writer:
    """Asks with the processor's chat template where it has one; the text then goes alone if there is no image."""

    longest: int | None = None

    def __init__(self, loaded: Loaded, options: HuggingFaceOptions) -> None:
        self._loaded = loaded
        self._options = options
        self._tokenizer = loaded.processor.tokenizer
        # The answer is written after the last token, so shorter prompts are filled up in front; where an encoder reads
        # the prompt, places are counted from its first token.
        encodes = getattr(loaded.config, "is_encoder_decoder", False)
        self._tokenizer.padding_side = "right" if encodes else "left"
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        token = getattr(loaded.processor, "image_token", None) or ""
        self._token = token if isinstance(token, str) else str(getattr(token, "content", ""))
        self._chats = bool(getattr(loaded.processor, "chat_template", None))
        # Models with a plain prompt were built for one image and one text, and refuse text alone.
        self.needs_picture: bool = not self._chats
        self._prompt = options.prompt or (SHORT_PROMPT if self._chats else PLAIN_PROMPT)
        self._by_letters = options.choices != "likelihood"
        words = ("template", "options") if self._by_letters else ()
        self.takes: frozenset[str] = frozenset({*words, *(("image_last",) if self._chats else ())})
        self._generation = generation_settings(loaded.model.generation_config, options)
        if self._generation.pad_token_id is None:
            self._generation.pad_token_id = self._tokenizer.pad_token_id
        self._ends = end_tokens(self._generation, self._tokenizer.eos_token_id)
        self.one_by_one: bool = options.temperature > 0 or loaded.config.model_type in _ALONE
        self.settings = {
            "prompt": self._prompt,
            "system": options.system if self._chats else "",
            "max_new_tokens": options.max_new_tokens,
            "choices": options.choices_prompt if self._by_letters else "likelihood",
            "sampling": [options.temperature, options.seed] if options.temperature > 0 else None,
        }

    def text_of(self, query: Query) -> str:
        choices = tuple(map(self._harmless, query.choices)) if self._by_letters else ()
        plain = replace(query, question=self._harmless(query.question), choices=choices)
        return in_words(plain, self._prompt, self._options.choices_prompt)

    def _harmless(self, text: str) -> str:
        """A question that spells the image's own token would count as a second image."""
        return text.replace(self._token, " ".join(self._token)) if self._token else text

    def answer(self, queries: Sequence[Query], pictures: Sequence[Any]) -> list[Answer]:
        answers: dict[int, Answer] = {}
        scored = [bool(query.choices) and not self._by_letters for query in queries]
        for seen in (True, False):
            rows = [r for r, p in enumerate(pictures) if (p is not None) == seen and not scored[r]]
            if rows:
                some = self._write([queries[r] for r in rows], [pictures[r] for r in rows])
                answers.update(zip(rows, some, strict=True))
        for row, query in enumerate(queries):
            if scored[row]:
                answers[row] = self._choose(query, pictures[row])
        return [answers[row] for row in range(len(queries))]

    def _inputs(self, queries: Sequence[Query], pictures: Sequence[Any]) -> tuple[list[str], dict[str, Any]]:
        """Rendered prompts and model inputs; either every query has an image or none has."""
        seen = pictures[0] is not None
        extra: dict[str, Any] = {}
        if self._chats:
            # Rendered one by one and without pixels: some versions would fetch anything that looks like an address.
            prompts = [
                self._loaded.processor.apply_chat_template(
                    self._conversation(query, seen), add_generation_prompt=True, tokenize=False
                )
                for query in queries
            ]
            start = self._tokenizer.bos_token
            if start and prompts[0].startswith(start):
                extra["add_special_tokens"] = False
        else:
            prompts = [self.text_of(query) for query in queries]
        images: Any = ([[picture] for picture in pictures] if self._chats else list(pictures)) if seen else None
        if "mm_token_type_ids" in self._loaded.processor.model_input_names:
            # Some models need to know which tokens are an image's, but are told on request only.
            extra["return_mm_token_type_ids"] = True
        settings = {"padding": True, "return_tensors": "pt", **extra}
        if not seen or self._chats or not self._token or self._token in prompts[0]:
            inputs = self._loaded.processor(text=prompts, images=images, **settings)
        else:
            inputs = self._unplaced(prompts, images, settings)
        return prompts, self._loaded.tensors(inputs)

    def _unplaced(self, prompts: list[str], images: list[Any], settings: dict[str, Any]) -> Any:
        """Inputs for prompts that do not say where the image goes: some processors put it first, others need to be told
        by a chat template or by the prompt."""
        reason = ""
        try:
            inputs = self._loaded.processor(text=prompts, images=images, **settings)
            if (inputs["input_ids"] == self._tokenizer.convert_tokens_to_ids(self._token)).any():
                return inputs
        except (ValueError, IndexError, RuntimeError) as error:
            reason = f" ({' '.join(str(error).split())[:200]})"
        raise PlayerError(
            f"The model has no chat template, and its prompt does not say where the image goes{reason}. If it was "
            f"trained with a chat template, copy that (chat_template.jinja) into its folder; otherwise write the "
            f"image's token into the prompt: --option 'prompt={self._token} {{question}}' (choices_prompt likewise)."
        )

    def _conversation(self, query: Query, seen: bool) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = [{"type": "image"}] if seen else []
        last = query.framing is not None and query.framing.image_last
        content.insert(0 if last else len(content), {"type": "text", "text": self.text_of(query)})
        user = {"role": "user", "content": content}
        if not self._options.system:
            return [user]
        return [{"role": "system", "content": [{"type": "text", "text": self._options.system}]}, user]

    def _write(self, queries: Sequence[Query], pictures: Sequence[Any]) -> list[Answer]:
        _, inputs = self._inputs(queries, pictures)
        seed = sampling_seed(self._options.seed, queries[0])
        with torch.inference_mode(), seeded(seed, self._loaded.device):
            output = self._loaded.model.generate(**inputs, generation_config=self._generation)
        answers = []
        for tokens, score in written(output, self._ends):
            said = self._tokenizer.decode(tokens, skip_special_tokens=True)
            text = said.strip()
            answers.append(Answer(text, math.exp(score), raw=said if said != text else None, output_tokens=len(tokens)))
        return answers

    def _choose(self, query: Query, picture: Any) -> Answer:
        """Scores every choice by having the model write it: its own road through images, masks and caches, whatever
        the architecture, with the tokens given."""
        stop = self._tokenizer.eos_token_id
        end = [stop] if stop is not None else sorted(self._ends)[:1]
        scores: list[float] = []
        for first in range(0, len(query.choices), self._options.batch_size):
            some = query.choices[first : first + self._options.batch_size]
            prompts, inputs = self._inputs([query] * len(some), [picture] * len(some))
            space = "" if prompts[0][-1:].isspace() else " "
            targets = [self._tokenizer(space + c, add_special_tokens=False).input_ids + end for c in some]
            settings = copy.deepcopy(self._generation)
            settings.do_sample, settings.temperature, settings.max_new_tokens = False, None, max(map(len, targets))
            with torch.inference_mode():
                output = self._loaded.model.generate(
                    **inputs, generation_config=settings, logits_processor=[_Dictation(targets)]
                )
            scores += [score for _, score in written(output, self._ends)]
        return chosen(query, scores)


class _Dictation:
    """Lets a model write nothing but the given tokens, a row each."""

    def __init__(self, targets: Sequence[Sequence[int]]) -> None:
        self._targets = targets
        self._step = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        only = torch.full_like(scores, -torch.inf)
        for row, target in enumerate(self._targets):
            only[row, target[min(self._step, len(target) - 1)]] = 0.0
        self._step += 1
        return only
