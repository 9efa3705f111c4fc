"""Greedy or seeded decoding, and the probability of what was written."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from pfungst.core import Query
from pfungst.players.hashing import unit
from pfungst.players.options import HuggingFaceOptions


def generation_settings(own: Any, options: HuggingFaceOptions) -> Any:
    """The model's generation settings with sampling as the options say and one beam, so that it is a plain reading of
    the model's probabilities."""
    settings = copy.deepcopy(own)
    settings.max_length = None
    settings.max_new_tokens = options.max_new_tokens
    settings.min_new_tokens = None
    settings.min_length = 0
    settings.num_beams = 1
    settings.num_return_sequences = 1
    settings.do_sample = options.temperature > 0
    settings.temperature = options.temperature if options.temperature > 0 else None
    settings.top_p = settings.top_k = settings.typical_p = settings.min_p = None
    settings.return_dict_in_generate = True
    settings.output_logits = True
    return settings


def end_tokens(settings: Any, *further: int | None) -> set[int]:
    own = settings.eos_token_id
    ends = set(own) if isinstance(own, list | tuple) else {own}
    return {int(end) for end in ends | set(further) if end is not None}


def written(output: Any, ends: set[int]) -> list[tuple[list[int], float]]:
    """For every row the new tokens, up to and with the end token, and their log-probability (0 or less).

    log P(answer) = sum_t log p(y_t | y_<t, question, image), from the model's raw logits.
    """
    logits = torch.stack(list(output.logits), dim=1).float()  # (batch, steps, vocabulary)
    tokens = output.sequences[:, -logits.shape[1] :]
    chosen = torch.log_softmax(logits, dim=-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    rows = []
    for row, values in zip(tokens.tolist(), chosen.tolist(), strict=True):
        length = next((place + 1 for place, token in enumerate(row) if token in ends), len(row))
        rows.append((row[:length], min(0.0, math.fsum(values[:length]))))
    return rows


def sequence_scores(logits: torch.Tensor, targets: Sequence[Sequence[int]]) -> list[float]:
    """log P of each row's target tokens. `logits` (rows, steps, vocabulary): step t predicts target t."""
    logs = torch.log_softmax(logits.float(), dim=-1)
    return [float(logs[row, range(len(tokens)), list(tokens)].double().sum()) for row, tokens in enumerate(targets)]


def sampling_seed(seed: int, first: Query) -> int:
    """Where a model samples, a query is alone in its batch, and its words, image and take decide the draw."""
    return int(unit(seed, "sample", first) * 2**63)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """torch's generators set to `seed` inside, and as they were afterwards."""
    cuda = [device.index if device.index is not None else torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(seed)
        yield
