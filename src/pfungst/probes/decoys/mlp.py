"""The one-hidden-layer scorer of Eq. 1, with whatever it is allowed to see. Needs torch and numpy alone.

f(c, i) = sigmoid(U max(0, W g(c, i)) + b): g joins the features of the candidate answer c and of the information i,
which is nothing (MLP-A), the question (MLP-QA), the image (MLP-IA) or both (MLP-IQA). It is trained with the binary
logistic loss of telling targets from decoys, and chooses the candidate with the highest score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

INPUTS = ("A", "QA", "IA", "IQA")
Floats = npt.NDArray[np.float32]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MlpConfig:
    """How a scorer is trained. The paper gives the layer, the loss and the features; the rest is ours."""

    hidden: int = 8192
    """Neurons of the hidden layer (Sect. 5.2)."""
    epochs: int = 20
    """At most; the epoch with the best accuracy on held-out training images counts."""
    batch: int = 128
    """Questions a step, each with all its candidates."""
    rate: float = 3e-4
    dropout: float = 0.5
    decay: float = 1e-4
    held_out: float = 0.1
    """Share of the training images kept to choose the epoch."""
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True, eq=False)
class Task:
    """Multiple-choice questions as numbers."""

    candidates: Longs
    """(n, C) rows of `answers`; the target stands first, -1 where there are fewer candidates."""
    question: Longs
    """(n,) rows of `questions`."""
    image: Longs
    """(n,) rows of `images`, or any numbers where there are no images: they say which questions belong together."""
    answers: Floats
    questions: Floats
    images: Floats | None

    def part(self, rows: npt.NDArray[np.int64]) -> Task:
        return replace(self, candidates=self.candidates[rows], question=self.question[rows], image=self.image[rows])


class Scorer(nn.Module):
    """U max(0, W g) + b, with W cut into the columns of answer, question and image."""

    def __init__(self, sizes: dict[str, int], hidden: int, dropout: float, generator: torch.Generator) -> None:
        super().__init__()
        # Each part begins with the same weight, or the longest feature vector would drown the others.
        self.parts = nn.ParameterDict(
            {n: nn.Parameter(_uniform((hidden, size), size * len(sizes), generator)) for n, size in sizes.items()}
        )
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.out = nn.Parameter(_uniform((1, hidden), hidden, generator))
        self.out_bias = nn.Parameter(torch.zeros(1))
        self.dropout = dropout

    def forward(self, seen: dict[str, Tensor], noise: torch.Generator | None = None) -> Tensor:
        """seen: `A` (batch, C, dim), `Q` and `I` (batch, dim). Scores (batch, C) before the sigmoid."""
        total = F.linear(seen["A"], self.parts["A"], self.bias)
        for name in ("Q", "I"):
            if name in seen:
                total = total + F.linear(seen[name], self.parts[name]).unsqueeze(1)
        hidden = torch.relu(total)
        if noise is not None and self.dropout > 0:
            kept = torch.rand(hidden.shape, generator=noise, device=hidden.device) >= self.dropout
            hidden = hidden * kept / (1 - self.dropout)
        scores: Tensor = F.linear(hidden, self.out, self.out_bias).squeeze(-1)
        return scores


def _uniform(shape: tuple[int, int], width: int, generator: torch.Generator) -> Tensor:
    bound = (6 / width) ** 0.5
    found: Tensor = (torch.rand(shape, generator=generator) * 2 - 1) * bound
    return found


@dataclass(frozen=True, eq=False)
class Model:
    """A trained scorer with the scales of its inputs."""

    inputs: str
    scorer: Scorer
    scales: dict[str, tuple[Tensor, Tensor]]
    config: MlpConfig
    epoch: int
    """The epoch that was kept, from 1; 0 where training did not help."""


def train(
    task: Task,
    inputs: str,
    config: MlpConfig | None = None,
    start: Model | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Model:
    """Train a scorer that sees `inputs` (`A`, `QA`, `IA` or `IQA`). `start`: go on from this one (fine-tuning)."""
    config = config or MlpConfig()
    device = torch.device(config.device)
    generator = torch.Generator().manual_seed(config.seed)
    fit, check = _hold_out(task, config)
    if start is None:
        scales = {name: _scale(table, device) for name, table in _tables(task, inputs).items()}
        sizes = {name: table.shape[1] for name, table in _tables(task, inputs).items()}
        scorer = Scorer(sizes, config.hidden, config.dropout, generator).to(device)
    else:
        scales = start.scales
        hidden = int(start.scorer.bias.shape[0])
        sizes = {name: int(one.shape[1]) for name, one in start.scorer.parts.items()}
        scorer = Scorer(sizes, hidden, config.dropout, generator).to(device)
        scorer.load_state_dict(start.scorer.state_dict())
    model = Model(inputs, scorer, scales, config, 0)
    optimizer = torch.optim.AdamW(scorer.parameters(), lr=config.rate, weight_decay=config.decay)
    noise = torch.Generator(device=device).manual_seed(config.seed + 1)
    tables = _on_device(task, model)
    best = float(right(model, check).mean()) if len(check.question) and start is not None else -1.0
    kept = {name: value.clone() for name, value in scorer.state_dict().items()}
    epoch = 0
    for number in range(1, config.epochs + 1):
        order = torch.randperm(len(fit.question), generator=generator).numpy()
        for at in range(0, len(order), config.batch):
            seen, real = _batch(fit, order[at : at + config.batch], tables, device)
            scores = scorer(seen, noise)
            truth = torch.zeros_like(scores)
            truth[:, 0] = 1
            # Every question counts the same, however many candidates it has.
            losses = F.binary_cross_entropy_with_logits(scores, truth, reduction="none") * real
            loss = (losses.sum(1) / real.sum(1)).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        accuracy = float(right(model, check).mean()) if len(check.question) else float(number)
        if accuracy > best:
            best, epoch = accuracy, number
            kept = {name: value.clone() for name, value in scorer.state_dict().items()}
        progress(number, config.epochs)
    scorer.load_state_dict(kept)
    return replace(model, epoch=epoch)


def right(model: Model, task: Task, batch: int = 1024) -> npt.NDArray[np.float64]:
    """1 where the target has the highest score, 1/ties where it shares it, else 0: (n,)."""
    device = torch.device(model.config.device)
    tables = _on_device(task, model)
    result = np.zeros(len(task.question))
    model.scorer.eval()
    with torch.no_grad():
        for at in range(0, len(task.question), batch):
            rows = np.arange(at, min(at + batch, len(task.question)))
            seen, real = _batch(task, rows, tables, device)
            scores = model.scorer(seen).masked_fill(real == 0, float("-inf"))
            best = scores == scores.max(1, keepdim=True).values
            result[rows] = (best[:, 0] / best.sum(1)).cpu().numpy()
    return result


def _tables(task: Task, inputs: str) -> dict[str, Floats]:
    if inputs not in INPUTS:
        raise ValueError(f"a scorer sees A, QA, IA or IQA, not {inputs!r}")
    if "I" in inputs and task.images is None:
        raise ValueError("there are no images to see")
    tables = {"A": task.answers, "Q": task.questions, "I": task.images}
    return {name: table for name, table in tables.items() if name in inputs and table is not None}


def _scale(table: Floats, device: torch.device) -> tuple[Tensor, Tensor]:
    mean, std = table.mean(0), table.std(0)
    return torch.from_numpy(mean).to(device), torch.from_numpy(np.where(std > 1e-6, std, 1).astype(np.float32)).to(
        device
    )


def _on_device(task: Task, model: Model) -> dict[str, Tensor]:
    found = {}
    for name, table in _tables(task, model.inputs).items():
        mean, std = model.scales[name]
        found[name] = (torch.from_numpy(np.ascontiguousarray(table)).to(mean.device) - mean) / std
    return found


def _batch(
    task: Task, rows: npt.NDArray[np.int64], tables: dict[str, Tensor], device: torch.device
) -> tuple[dict[str, Tensor], Tensor]:
    candidates = torch.from_numpy(task.candidates[rows]).to(device)
    seen = {"A": tables["A"][candidates.clamp(min=0)]}
    if "Q" in tables:
        seen["Q"] = tables["Q"][torch.from_numpy(task.question[rows]).to(device)]
    if "I" in tables:
        seen["I"] = tables["I"][torch.from_numpy(task.image[rows]).to(device)]
    return seen, (candidates >= 0).float()


def _hold_out(task: Task, config: MlpConfig) -> tuple[Task, Task]:
    """Training questions, and those of some images to choose the epoch by."""
    images = np.unique(task.image)
    count = round(config.held_out * len(images))
    if count < 1 or count >= len(images):
        return task, task.part(np.zeros(0, np.int64))
    chosen = np.random.default_rng(config.seed).choice(images, count, replace=False)
    held = np.isin(task.image, chosen)
    return task.part(np.flatnonzero(~held)), task.part(np.flatnonzero(held))
