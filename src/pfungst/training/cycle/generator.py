"""G: the visual question generation module (Section 3.1, Figure 2b)."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pfungst.core.files import write_json
from pfungst.models import load_tensors, save_tensors
from pfungst.models.base import END, PAD, START, UNKNOWN
from pfungst.models.trained import reading_record
from pfungst.training.cycle.config import CycleConfig


class QuestionGenerator(nn.Module):
    """Writes a question from what was looked at and what was answered.

    condition c = W_v v + W_a a + noise,   v (B, D) image features, a (B, A) distribution over answers
    word t ~ softmax(W_o h_t),             h = LSTM(E[word t-1] + c), from START to END

    The paper sums the two encodings and the noise and passes the sum through the LSTM; we add it to every word that
    goes in, so that a long question does not forget what it is about.
    """

    def __init__(self, words: int, answers: int, picture: int, config: CycleConfig, length: int = 0) -> None:
        super().__init__()
        self.config = config
        self.length: int = length
        self.count: int = words
        self.picture: nn.Linear = nn.Linear(picture, config.size)
        self.answer: nn.Linear = nn.Linear(answers, config.size)
        self.words = nn.Linear(length, config.size) if length else nn.Embedding(words, config.size, padding_idx=PAD)
        self.writer: nn.LSTM = nn.LSTM(config.size, config.hidden, batch_first=True)
        self.choose: nn.Linear = nn.Linear(config.hidden, length or words)
        if length:
            self.register_buffer("vectors", torch.zeros(words, length))
            self.register_buffer("learnt", torch.ones(words, dtype=torch.bool))
            self.register_buffer("allowed", torch.ones(words, dtype=torch.bool))

    vectors: Tensor
    """(V, length): what words are read and written by, where G is tied to vectors."""
    learnt: Tensor
    """(V,) bool: words of the training questions, which L_G is taken over."""
    allowed: Tensor
    """(V,) bool: words that may be written."""

    def tie(self, vectors: Tensor, learnt: Tensor, allowed: Tensor | None = None) -> None:
        """Set the vectors (V, length) and which words training shows (V,); `allowed` more may be written, else all."""
        with torch.no_grad():
            self.vectors.copy_(vectors)
            self.learnt.copy_(learnt)
            self.allowed.copy_(torch.ones_like(learnt) if allowed is None else allowed | learnt)

    def table(self) -> Tensor:
        """(V, size): the words as the LSTM reads them."""
        table: Tensor = self.words(self.vectors) if self.length else self.words.weight
        return table

    def scores(self, hidden: Tensor) -> Tensor:
        """(..., hidden) -> (..., V)."""
        scores: Tensor = self.choose(hidden)
        return scores @ self.vectors.T if self.length else scores

    def condition(self, picture: Tensor, answer: Tensor, noise: float | None = None) -> Tensor:
        """c (B, size); noise is drawn anew, with the configured spread unless another is given."""
        mean: Tensor = self.picture(picture) + self.answer(answer)
        spread = self.config.noise if noise is None else noise
        return mean + spread * torch.randn_like(mean) if spread else mean

    def forward(self, condition: Tensor, question: Tensor) -> Tensor:
        """Logits of every word given those before it (teacher forcing): (B, T) -> (B, T + 1, words), END included."""
        start = torch.full_like(question[:, :1], START)
        inputs = F.embedding(torch.cat([start, question], 1), self.table()) + condition[:, None]
        # Not packed: what stands behind END is never asked for, and the fused kernels want a whole rectangle.
        outputs, _ = self.writer(inputs)
        return self.scores(outputs)

    def loss(self, logits: Tensor, question: Tensor) -> Tensor:
        """L_G: mean negative log likelihood of the words and the END behind them."""
        if self.length:
            logits = logits.masked_fill(~self.learnt, -1e4)
        return F.cross_entropy(logits.float().flatten(0, 1), targets(question).flatten(), ignore_index=PAD)

    @torch.no_grad()
    def write(
        self, condition: Tensor, length: int, *, temperature: float | None = None, greedy: bool = False
    ) -> Tensor:
        """A question of up to `length` words, (B, length); padding, unknown and start are never written."""
        heat = self.config.temperature if temperature is None else temperature
        count = len(condition)
        lstm = self.writer
        # One step of the LSTM by hand: what words and condition add to its gates is the same in every step.
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        into, back, bias, more = (getattr(lstm, name) for name in names)
        table = self.table() @ into.T + bias + more
        asked = condition @ into.T
        hidden = condition.new_zeros(count, self.config.hidden)
        cell = torch.zeros_like(hidden)
        word = torch.full((count,), START, device=condition.device)
        size = self.count
        # A draw is an argmax with Gumbel noise added; all of it at once, and forbidden words carry -inf in it.
        noise = torch.zeros(length, 1 if greedy else count, size, device=condition.device)
        if not greedy:
            noise = -heat * noise.exponential_().clamp(min=1e-20).log()
        noise[..., [PAD, UNKNOWN, START]] = -torch.inf
        if self.length:
            noise[..., ~self.allowed] = -torch.inf
        noise[0, :, END] = -torch.inf  # an empty question asks nothing
        written: list[Tensor] = []
        for place in range(length):
            gates = torch.addmm(table[word] + asked, hidden, back.T)
            open_gates = gates.sigmoid()
            enter, forget, _, leave = open_gates.chunk(4, -1)
            cell = forget * cell + enter * gates.chunk(4, -1)[2].tanh()
            hidden = leave * cell.tanh()
            word = (self.scores(hidden).float() + noise[place]).argmax(-1)
            written.append(word)
        words = torch.stack(written, 1)
        return words.masked_fill((words == END).cumsum(1) > 0, PAD)

    @torch.no_grad()
    def substitute(self, logits: Tensor, question: Tensor) -> Tensor:
        """A word for every place, drawn given the original words before it: as long as the original, (B, T)."""
        logits = logits[:, : question.shape[1]].float().clone()
        logits[..., [PAD, UNKNOWN, START, END]] = -torch.inf
        if self.length:
            logits[..., ~self.allowed] = -torch.inf
        # Drawn by the Gumbel trick: no look at the device, as a multinomial takes.
        noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(1e-20, 1 - 1e-7)))
        return (logits / self.config.temperature + noise).argmax(-1).masked_fill(question == PAD, PAD)


def targets(question: Tensor) -> Tensor:
    """What G must say: the words, then END, then padding. (B, T) -> (B, T + 1)."""
    longer = F.pad(question, (0, 1), value=PAD)
    lengths = (question != PAD).sum(-1, keepdim=True)
    return longer.scatter(1, lengths, END)


WEIGHTS, RECORD = "generator.safetensors", "generator.json"


def save_generator(generator: QuestionGenerator, folder: str | Path) -> None:
    """Write generator.safetensors and generator.json to the folder of its model."""
    save_tensors(Path(folder) / WEIGHTS, {name: value.cpu() for name, value in generator.state_dict().items()})
    sizes = {
        "words": generator.count,
        "answers": generator.answer.in_features,
        "picture": generator.picture.in_features,
        "length": generator.length,
    }
    write_json(Path(folder) / RECORD, {"format": 1, **sizes, "config": dataclasses.asdict(generator.config)})


def load_generator(folder: str | Path) -> QuestionGenerator:
    """Read back what `save_generator` wrote; DataError where there is none or it does not fit."""
    path = Path(folder) / RECORD
    with reading_record(path, "question generator", "Train one: pfungst train MODEL --cycle."):
        record = json.loads(path.read_bytes())
        generator = QuestionGenerator(
            record["words"],
            record["answers"],
            record["picture"],
            CycleConfig(**record["config"]),
            record.get("length", 0),
        )
        tensors, _ = load_tensors(Path(folder) / WEIGHTS)
        generator.load_state_dict(tensors)
    return generator.eval()
