"""BLIP for question answering: a question encoder that sees the image, a decoder that writes the answer.

The model's own `generate` lets the decoder attend to the padding of shorter questions (and some versions of
`transformers` ignore the mask that would forbid it), so that an answer depends on what else is in the batch. Here the
parts are called one after the other, and questions of one length are decoded together, without padding. For a single
question this is the same computation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from pfungst.core import Answer, Query
from pfungst.players.huggingface.decoding import (
    end_tokens,
    generation_settings,
    sampling_seed,
    seeded,
    sequence_scores,
    written,
)
from pfungst.players.huggingface.loading import Loaded
from pfungst.players.letters import fill, lettered
from pfungst.players.options import HuggingFaceOptions


class Generator:
    """Writes the answer; choices are scored by log P(choice, end)."""

    needs_picture = True

    def __init__(self, loaded: Loaded, options: HuggingFaceOptions) -> None:
        self._loaded = loaded
        self._options = options
        text = loaded.config.text_config
        self._start, self._end, self._pad = text.bos_token_id, text.sep_token_id, text.pad_token_id
        self._generation = generation_settings(loaded.model.text_decoder.generation_config, options)
        self._generation.eos_token_id, self._generation.pad_token_id = self._end, self._pad
        loaded.processor.tokenizer.padding_side = "right"
        self._by_letters = options.choices == "letters"
        self.one_by_one: bool = options.temperature > 0
        self.longest: int | None = text.max_position_embeddings
        self.settings = {
            "max_new_tokens": options.max_new_tokens,
            "choices": options.choices_prompt if self._by_letters else "likelihood",
            "sampling": [options.temperature, options.seed] if options.temperature > 0 else None,
        }

    def text_of(self, query: Query) -> str:
        if query.choices and self._by_letters:
            return lettered(query.question, query.choices, self._options.choices_prompt)
        return fill(self._options.prompt or "{question}", question=query.question)

    def answer(self, queries: Sequence[Query], pictures: Sequence[Any]) -> list[Answer]:
        with torch.inference_mode():
            states, lengths = self._encode(queries, pictures)
            scored = [bool(query.choices) and not self._by_letters for query in queries]
            answers: dict[int, Answer] = {}
            for length in sorted(set(lengths)):
                free = [row for row in range(len(queries)) if lengths[row] == length and not scored[row]]
                if free:
                    some = self._write([queries[row] for row in free], states[free, :length])
                    answers.update(zip(free, some, strict=True))
            for row, query in enumerate(queries):
                if scored[row]:
                    answers[row] = self._choose(query, states[row : row + 1, : lengths[row]])
        return [answers[row] for row in range(len(queries))]

    def _encode(self, queries: Sequence[Query], pictures: Sequence[Any]) -> tuple[torch.Tensor, list[int]]:
        """Question states (batch, length, width) and how many of them are no padding (batch)."""
        inputs = self._loaded.encode([self.text_of(query) for query in queries], pictures, self.longest)
        model = self._loaded.model
        picture = model.vision_model(pixel_values=inputs["pixel_values"])[0]
        states = model.text_encoder(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            encoder_hidden_states=picture,
            encoder_attention_mask=torch.ones(picture.shape[:-1], dtype=torch.long, device=picture.device),
        )[0]
        return states, inputs["attention_mask"].sum(dim=1).tolist()

    def _write(self, queries: Sequence[Query], states: torch.Tensor) -> list[Answer]:
        with seeded(sampling_seed(self._options.seed, queries[0]), states.device):
            output = self._loaded.model.text_decoder.generate(
                input_ids=torch.full((len(queries), 1), self._start, device=states.device),
                encoder_hidden_states=states,
                encoder_attention_mask=torch.ones(states.shape[:-1], dtype=torch.long, device=states.device),
                generation_config=self._generation,
            )
        answers = []
        for tokens, score in written(output, end_tokens(self._generation)):
            text = self._loaded.processor.tokenizer.decode(tokens, skip_special_tokens=True).strip()
            answers.append(Answer(text, confidence=math.exp(score), output_tokens=len(tokens)))
        return answers

    def _choose(self, query: Query, states: torch.Tensor) -> Answer:
        tokenizer = self._loaded.processor.tokenizer
        room = (self.longest or 512) - 1
        targets = [[*tokenizer(c, add_special_tokens=False).input_ids[:room], self._end] for c in query.choices]
        scores: list[float] = []
        for first in range(0, len(targets), self._options.batch_size):
            some = targets[first : first + self._options.batch_size]
            length = max(map(len, some))
            given = [[self._start, *target[:-1]] for target in some]
            ids = torch.tensor([row + [self._pad] * (length - len(row)) for row in given], device=states.device)
            seen = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in given], device=states.device)
            logits = self._loaded.model.text_decoder(
                input_ids=ids,
                attention_mask=seen,
                encoder_hidden_states=states.expand(len(some), -1, -1),
            ).logits
            scores += sequence_scores(logits, some)
        return chosen(query, scores)


def chosen(query: Query, scores: Sequence[float]) -> Answer:
    """The choice with the highest log-probability; the confidence is its share among the choices."""
    shares = torch.softmax(torch.tensor(scores, dtype=torch.float64), dim=0)
    best = max(range(len(scores)), key=scores.__getitem__)
    return Answer(query.choices[best], confidence=min(1.0, float(shares[best])), scores=tuple(scores))
