"""Models that choose among the answers they were trained on (ViLT)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pfungst.core import Answer, Query
from pfungst.players.huggingface.decoding import seeded
from pfungst.players.huggingface.loading import Loaded
from pfungst.players.letters import best_choice, fill
from pfungst.players.options import HuggingFaceOptions


class Classifier:
    """softmax over the model's answer vocabulary.

    A choice is scored by the probability of the label with the same words; where no choice is in the vocabulary, the
    answer is the model's own and no choice has a score.
    """

    needs_picture = True

    def __init__(self, loaded: Loaded, options: HuggingFaceOptions) -> None:
        self._loaded = loaded
        self._options = options
        self._labels = [str(loaded.config.id2label[index]) for index in range(loaded.config.num_labels)]
        self._index: dict[str, int] = {}
        for index, label in enumerate(self._labels):
            self._index.setdefault(_plain(label), index)
        self.longest: int | None = getattr(loaded.config, "max_position_embeddings", None)
        # ViLT draws which patches it looks at where their number is limited: then a batch must not share the draw.
        self.one_by_one = (getattr(loaded.config, "max_image_length", -1) or -1) > 0
        self.settings: dict[str, Any] = {"labels": self._labels}

    def text_of(self, query: Query) -> str:
        return fill(self._options.prompt or "{question}", question=query.question)

    def answer(self, queries: Sequence[Query], pictures: Sequence[Any]) -> list[Answer]:
        inputs = self._loaded.encode([self.text_of(query) for query in queries], pictures, self.longest)
        with torch.inference_mode(), seeded(self._options.seed, self._loaded.device):
            logits = self._loaded.model(**inputs).logits
        chances = torch.softmax(logits.float(), dim=-1).cpu()
        return [self._one(query, row) for query, row in zip(queries, chances, strict=True)]

    def _one(self, query: Query, chances: torch.Tensor) -> Answer:
        places = [self._index.get(_plain(choice)) for choice in query.choices]
        chosen = best_choice(query.choices, [None if place is None else float(chances[place]) for place in places])
        best = int(chances.argmax())
        return chosen or Answer(self._labels[best], confidence=min(1.0, float(chances[best])))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
