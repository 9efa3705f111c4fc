"""The program generator of IEP and TbD: question -> program."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from pfungst.models.base import END, PAD, START, Batch
from pfungst.models.layers import WordReader
from pfungst.models.programs import ANSWERS, MAX_PROGRAM, least_lengths, tokens

REMEMBERED = 100_000
"""Questions whose programs are kept."""


class ProgramGenerator(nn.Module):
    """Sequence to sequence, two LSTMs (Johnson et al. 2017): the state after the last word starts the writer.

    question (B, T) -> token logits (B, P, F).

    Unlike the published generator it writes by the grammar: of the tokens that fit the kind of input that is due and
    can still be finished in time it takes the likeliest, so every program can be run.
    """

    def __init__(self, words: int, word_size: int, hidden: int, layers: int, functions: int) -> None:
        super().__init__()
        self.reader = WordReader(words, word_size, hidden, layers=layers)
        self.tokens = nn.Embedding(functions, word_size, padding_idx=PAD)
        self.writer = nn.LSTM(word_size, hidden, layers, batch_first=True)
        self.choose = nn.Linear(hidden, functions)
        self.known: dict[bytes, NDArray[np.int64]] | None = None
        """The programs written so far, by question, where the weights stay as they are (`quick`)."""

    def forward(self, question: Tensor, program: Tensor) -> Tensor:
        """Logits of every token given the ones before it: program (B, P) -> (B, P, F)."""
        _, state = self.reader.states(question)
        start = torch.full_like(program[:, :1], START)
        outputs, _ = self.writer(self.tokens(torch.cat([start, program[:, :-1]], 1)), state)
        logits: Tensor = self.choose(outputs)
        return logits

    def programs(self, batch: Batch, training: bool) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """The programs of a batch, the same where they can be planned, and what the loss needs.

        In training those given, which the generator learns from; else those it writes.
        """
        if batch.program is None or not training:
            if self.known is None:
                written = self.write(batch.question)
                return written, written, {}
            written = torch.from_numpy(self._recalled(batch.question, self.known))
            return written.to(batch.question.device, non_blocking=True), written, {}
        # Copied before more work is queued on the device, so that planning overlaps with it.
        to_run = batch.program.cpu()
        return batch.program, to_run, {"program": self(batch.question, batch.program)}

    def loss(self, logits: Tensor, program: Tensor) -> Tensor:
        """Mean over the tokens, END included."""
        return F.cross_entropy(logits.float().flatten(0, 1), program.flatten(), ignore_index=PAD)

    def _recalled(self, question: Tensor, known: dict[bytes, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Programs (B, length), each question's written once: a game asks the same question a hundred times."""
        asked = [np.trim_zeros(row, "b").tobytes() for row in question.cpu().numpy()]
        new = {key: at for at, key in enumerate(asked) if key not in known}
        if new:
            if len(known) + len(new) > REMEMBERED:
                known.clear()
                new = {key: at for at, key in enumerate(asked)}
            written = self.write(question[list(new.values())]).cpu().numpy()
            known.update(zip(new, written, strict=True))
        return np.stack([known[key] for key in asked])

    @torch.no_grad()
    def write(self, question: Tensor, length: int = MAX_PROGRAM) -> Tensor:
        """The likeliest program, token by token, by the grammar: (B, length)."""
        _, state = self.reader.states(question)
        device = question.device
        fits, takes, push, after, least = (torch.from_numpy(table).to(device) for table in _grammar())
        # The kinds of input that are still to be written, the next one on top; first the answer.
        stack = torch.zeros(len(question), length + 3, dtype=torch.int64, device=device)
        depth = torch.ones(len(question), 1, dtype=torch.int64, device=device)
        needed = torch.zeros(len(question), 1, dtype=torch.int64, device=device)
        token = torch.full((len(question), 1), START, device=device)
        written = torch.zeros(len(question), length, dtype=torch.int64, device=device)
        for place in range(length):
            writing = depth > 0
            if not bool(writing.any()):
                break
            outputs, state = self.writer(self.tokens(token), state)
            top = (depth - 1).clamp(min=0)
            due = stack.gather(1, top)
            waiting = needed - least[due]
            allowed = torch.where(writing, fits[due[:, 0]] & (waiting + after + 1 <= length - 1 - place), after < 0)
            token = self.choose(outputs[:, 0]).float().masked_fill(~allowed, -torch.inf).argmax(-1, keepdim=True)
            written[:, place] = token[:, 0]
            stack.scatter_(1, torch.cat([top, top + 1], 1), push[token[:, 0]])
            needed = torch.where(writing, waiting + after[token], needed)
            depth = torch.where(writing, depth - 1 + takes[token], depth)
        return _ended(written)


def _ended(written: Tensor) -> Tensor:
    """One END behind the last function, PAD behind that."""
    functions = (written > END).sum(-1)
    places = torch.arange(written.shape[1], device=written.device)
    written = written.masked_fill(places >= functions[:, None], PAD)
    return written.masked_fill(places == functions[:, None], END)


@cache
def _grammar() -> tuple[NDArray[Any], ...]:
    """Tables of K kinds of input, the first of which is the answer, and F tokens.

    fits (K, F) bool: which tokens give a kind. takes (F,): inputs of a token. push (F, 2): the kinds of its inputs, the
    first on top. after (F,): tokens that its inputs take at least, -1 for END. least (K,): tokens of a kind at least.
    """
    shortest = least_lengths()
    kinds = ["", *shortest]
    fits = np.zeros((len(kinds), len(tokens())), np.bool_)
    takes, after = np.zeros((2, len(tokens())), np.int64)
    push = np.zeros((len(tokens()), 2), np.int64)
    for number, token in enumerate(tokens()):
        if token is not None:
            inputs, output = token.signature.inputs, token.signature.output
            fits[kinds.index(output), number] = True
            fits[0, number] = output in ANSWERS
            takes[number], after[number] = len(inputs), sum(shortest[kind] for kind in inputs)
            push[number, : len(inputs)] = [kinds.index(kind) for kind in reversed(inputs)]
    after[END] = -1
    return fits, takes, push, after, np.array([0, *shortest.values()])
