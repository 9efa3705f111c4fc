"""The program generator of IEP and TbD: question -> program."""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pfungst.models._batch import END, PAD, START
from pfungst.models._layers import WordReader
from pfungst.models.programs import ANSWERS, MAX_PROGRAM, least_lengths, tokens


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

    def forward(self, question: Tensor, program: Tensor) -> Tensor:
        """Logits of every token given the ones before it: program (B, P) -> (B, P, F)."""
        _, state = self.reader.states(question)
        start = torch.full_like(program[:, :1], START)
        outputs, _ = self.writer(self.tokens(torch.cat([start, program[:, :-1]], 1)), state)
        logits: Tensor = self.choose(outputs)
        return logits

    def loss(self, logits: Tensor, program: Tensor) -> Tensor:
        """Mean over the tokens, END included."""
        return F.cross_entropy(logits.float().flatten(0, 1), program.flatten(), ignore_index=PAD)

    @torch.no_grad()
    def write(self, question: Tensor, length: int = MAX_PROGRAM) -> Tensor:
        """The likeliest program, token by token, by the grammar: (B, length)."""
        _, state = self.reader.states(question)
        due = [[""] for _ in range(len(question))]
        token = torch.full((len(question), 1), START, device=question.device)
        written = torch.zeros(len(question), length, dtype=torch.int64, device=question.device)
        for place in range(length):
            if not any(due):
                break
            outputs, state = self.writer(self.tokens(token), state)
            masks = [_allowed(stack[-1] if stack else None, _waiting(stack), length - 1 - place) for stack in due]
            allowed = torch.tensor(masks, device=question.device)
            token = self.choose(outputs[:, 0]).float().masked_fill(~allowed, -torch.inf).argmax(-1, keepdim=True)
            written[:, place] = token[:, 0]
            for stack, number in zip(due, token[:, 0].tolist(), strict=True):
                chosen = tokens()[number]
                if chosen is not None:
                    stack.pop()
                    stack.extend(reversed(chosen.signature.inputs))
        return _ended(written)


def _ended(written: Tensor) -> Tensor:
    """One END behind the last function, PAD behind that."""
    functions = (written > END).sum(-1)
    places = torch.arange(written.shape[1], device=written.device)
    written = written.masked_fill(places >= functions[:, None], PAD)
    return written.masked_fill(places == functions[:, None], END)


def _waiting(stack: list[str]) -> int:
    """Tokens that the inputs behind the next one take at least."""
    return sum(least_lengths()[kind] for kind in stack[:-1])


@cache
def _allowed(due: str | None, waiting: int, left: int) -> tuple[bool, ...]:
    """Which tokens may come next, where `due` is the kind of input to write and `left` tokens fit behind this one."""
    if due is None:
        return tuple(number == END for number in range(len(tokens())))
    mask = []
    for token in tokens():
        fits = token is not None and (token.signature.output == due or (not due and token.signature.output in ANSWERS))
        after = 0 if token is None else sum(least_lengths()[kind] for kind in token.signature.inputs)
        mask.append(fits and waiting + after + 1 <= left)
    return tuple(mask)
