"""The parts of Eq. 1 that cycle consistency adds to a model's own loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pfungst.core import PfungstError
from pfungst.models import Batch, Model, Output
from pfungst.models.base import END, PAD, UNKNOWN, answer_loss
from pfungst.training.cycle.config import CycleConfig
from pfungst.training.cycle.generator import QuestionGenerator, save_generator
from pfungst.training.cycle.tap import Tap, word_embedding
from pfungst.training.data import Data
from pfungst.training.loop import Moment

NARROWEST, WIDEST = 64, 512
"""Limits of the widths that a question generator takes from its model."""
MODULE = "generator"
"""Name of G in checkpoints and among the modules of `fit`."""


class Kept(torch.nn.Module):
    """How many generated questions passed the gate. A module, so that a checkpoint can hold it: a resumed run
    continues to count."""

    counts: Tensor
    """Sum of the shares of all steps, and steps."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("counts", torch.zeros(2))

    @torch.no_grad()
    def add(self, keep: Tensor) -> None:
        self.counts += torch.stack([keep.float().mean(), self.counts.new_ones(())])


class Cycle:
    """Cycle-consistent training of any model: a loss for `fit`, and the generator that is trained with it.

        cycle = Cycle.of(model, data, CycleConfig(start=0.5), steps)
        fit(model, data, losses=(model_losses, cycle), modules=cycle.modules)

    The weights of F are the same in both passes. Random numbers come from torch's generator, which `fit` seeds at every
    step: a resumed run repeats them.
    """

    def __init__(self, model: Model, generator: QuestionGenerator, config: CycleConfig, steps: int) -> None:
        self.generator: QuestionGenerator = generator
        self.config: CycleConfig = config
        self.start: int = config.start_step(steps)
        self.tap: Tap = Tap(model)
        self.kept = Kept().to(next(generator.parameters()).device)
        """What `gate_rate` is taken of; give it to `fit` as a module too where the rate must outlive a stop."""

    @classmethod
    def of(
        cls,
        model: Model,
        data: Data,
        config: CycleConfig | None = None,
        steps: int = 0,
        seed: int = 0,
        allowed: Tensor | None = None,
    ) -> Cycle:
        """With a fresh generator, sized by asking the model one question. `steps`: of the whole run; `allowed` (V,):
        words that a tied generator may write beside those of the training questions, else all."""
        config = config or CycleConfig()
        generator = make_generator(model, data, config, seed, allowed)
        return cls(model, generator, config, steps)

    @property
    def modules(self) -> dict[str, torch.nn.Module]:
        """For `fit(modules=...)`."""
        return {MODULE: self.generator}

    def __call__(self, moment: Moment) -> Mapping[str, Tensor]:
        """lambda_G L_G, and lambda_C L_cycle from the step A_iter on."""
        config, batch = self.config, moment.batch
        # Without the columns that are padding in every row.
        question = batch.question[:, : max(1, int((batch.question != PAD).any(0).sum()))]
        chances = answer_chances(moment.model, moment.output)
        condition = self.generator.condition(self.tap.features(moment.output, config.attended).float(), chances)
        logits = self.generator(condition, question)
        losses = {"question": config.lambda_g * self.generator.loss(logits, question)}
        if config.lambda_c and moment.step >= self.start:
            losses["cycle"] = config.lambda_c * self._cycle(moment, question, condition, logits)
        return losses

    def _cycle(self, moment: Moment, question: Tensor, condition: Tensor, logits: Tensor) -> Tensor:
        config, batch, encoding = self.config, moment.batch, self.tap.encoding
        if config.feedback == "forced":
            written = self.generator.substitute(logits, question)
        else:
            written = self.generator.write(condition.detach(), question.shape[1], greedy=config.feedback == "greedy")
        drawn = written
        if config.unknown:
            written = hide_words(written, config.unknown)
        missing = batch.question.shape[1] - written.shape[1]
        again = F.pad(written, (0, missing), value=PAD)
        # The program of the original would tell a module network what to do; it must read the generated question.
        other = dataclasses.replace(batch, question=again, program=None)
        chances: AbstractContextManager[None] = nullcontext()
        if config.through:
            steady = logits if config.feedback == "forced" else self.generator(condition, drawn)
            soft = F.pad(steady[:, : written.shape[1]].float().softmax(-1), (0, 0, 0, missing))
            chances = self.tap.soft_words(soft)
        with chances:
            output = moment.model(other)
        keep = torch.ones(len(batch), dtype=torch.bool, device=again.device)
        if config.gating:
            keep = gate(moment.model, other, output, encoding, self.tap.encoding, config.t_sim)
        self.kept.add(keep)
        return answer_loss(output.logits, batch.answered, moment.model.objective, keep)

    def gate_rate(self) -> float:
        """Share of the generated questions that passed the gate; NaN where none was generated."""
        total, steps = self.kept.counts.tolist()
        return float(total / steps) if steps else float("nan")

    def save(self, folder: str | Path) -> None:
        """Write G beside the model: generator.safetensors and generator.json."""
        save_generator(self.generator, folder)

    def close(self) -> None:
        """Stop listening to the model."""
        self.tap.close()


def make_generator(
    model: Model, data: Data, config: CycleConfig, seed: int = 0, allowed: Tensor | None = None
) -> QuestionGenerator:
    """A fresh generator for a model: the same arguments give the same weights."""
    if model.objective == "choice":
        raise PfungstError("Cycle training needs a model that answers freely; this one scores given choices.")
    training, device = model.training, next(model.parameters()).device
    model.eval()
    with closing(Tap(model)) as tap, torch.no_grad():
        output = model(data.batch(np.arange(min(2, len(data)))).to(device))
        size = tap.features(output, config.attended).shape[1]
        width = tap.encoding.shape[1] if tap.encoding is not None else WIDEST
    model.train(training)
    half, most = (min(WIDEST, max(NARROWEST, one)) for one in (width // 2, 3 * width // 4))
    config = dataclasses.replace(config, size=config.size or half, hidden=config.hidden or most)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        words = word_embedding(model).weight if config.tied else None
        length = 0 if words is None else words.shape[1]
        made = QuestionGenerator(model.sizes.words, output.logits.shape[1], size, config, length)
    if words is not None:
        rows = np.arange(len(data))
        used = np.concatenate(
            [np.unique(data.batch(some).question.cpu()) for some in np.array_split(rows, min(16, len(rows)))]
        )
        learnt = torch.zeros(len(words), dtype=torch.bool)
        learnt[torch.from_numpy(used)] = learnt[END] = True
        made.tie(words.detach().cpu(), learnt, allowed)
    return made.to(device)


def answer_chances(model: Model, output: Output) -> Tensor:
    """A' as G gets it, (B, A): the predicted distribution; for models with a score an answer, these scores."""
    logits = output.logits.float()
    return logits.softmax(-1) if model.objective == "softmax" else logits.sigmoid()


def gate(
    model: Model, batch: Batch, output: Output, encoding: Tensor | None, other: Tensor | None, t_sim: float
) -> Tensor:
    """(B,) bool: answered correctly, or cosine similarity of the two encodings above T_sim (Section 3.2)."""
    keep = model.correct(batch, output) > 0
    if encoding is not None and other is not None:
        keep = keep | (F.cosine_similarity(encoding.float(), other.float(), -1) > t_sim)
    return keep.detach()


def hide_words(question: Tensor, share: float, generator: torch.Generator | None = None) -> Tensor:
    """Words replaced by the unknown one, each with a chance of `share`."""
    draws = torch.rand(question.shape, generator=generator, device="cpu" if generator else question.device)
    return question.masked_fill((draws.to(question.device) < share) & (question != PAD), UNKNOWN)


def hiding(share: float) -> Callable[[Batch, int], Batch]:
    """A transform for `fit` that hides words of the training questions."""

    def apply(batch: Batch, seed: int) -> Batch:
        return dataclasses.replace(
            batch, question=hide_words(batch.question, share, torch.Generator().manual_seed(seed))
        )

    return apply
