"""Learn skip-thoughts from sentences that stand side by side.

The loop is its own and not that of `pfungst.training`: that package trains models that answer questions, and stands
above this one, which must not import it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError, MissingExtra
from pfungst.core.files import write_atomic
from pfungst.core.seal import read_sealed, seal
from pfungst.text.encoders.base import EncoderError
from pfungst.text.encoders.corpus import NOBODY, Corpus, make_corpus
from pfungst.text.encoders.skip_thoughts import Part, SkipThoughts
from pfungst.text.encoders.word_vectors import WordVectors

try:
    import torch

    from pfungst.text.encoders.model import SkipThoughtsNet, contrast
except ImportError as error:
    raise MissingExtra("Training skip-thoughts", "torch") from error


@dataclass(frozen=True, slots=True)
class SkipThoughtsConfig:
    """What is learnt, and how. The published model is uni=2400, bi=2400, word_size=620, vocabulary=20000."""

    uni: int = 256
    """Dimensions of the uni-skip part; 0 leaves it out."""
    bi: int = 256
    """Dimensions of the bi-skip part, both directions together; 0 leaves it out."""
    word_size: int = 128
    vocabulary: int = 8000
    """Words with a vector of their own; all others are spelled from letter n-grams."""
    min_count: int = 3
    """Times a word must occur for a vector of its own."""
    grams: int = 8192
    """Buckets of letter n-grams."""
    decoder: int = 512
    """State of the decoders; they are not needed after training."""
    max_words: int = 30
    """Words of a sentence that are read, as in the published program."""
    reset_after: bool = True
    """Where the reset gate is applied: as in the released weights (fast), or, if False, as in Eq. 3."""
    decode: float = 1.0
    """Weight of the two decoders' loss (Kiros et al. 2015)."""
    contrast: float = 0.0
    """Weight of finding the neighbour among the sentences of the batch (Logeswaran and Lee 2018)."""
    temperature: float = 0.05
    spell: float = 0.1
    """Share of known words that are spelled from n-grams while learning, which teaches the n-grams."""
    epochs: int = 5
    batch: int = 256
    rate: float = 1e-3
    """Learning rate of Adam; rises over the first 2% of the steps, then falls to 0 as a half cosine."""
    clip: float = 5.0
    """Longest gradient."""
    seed: int = 0
    half_precision: bool = False
    """bfloat16 arithmetic where the device has it."""


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """What the progress callback is told after each step."""

    step: int
    steps: int
    epoch: int
    loss: float
    """Mean over the steps since the callback was last told."""


def train_skip_thoughts(
    corpus: Iterable[Sequence[str]],
    out: str | os.PathLike[str],
    config: SkipThoughtsConfig | None = None,
    *,
    device: str = "cpu",
    word_vectors: WordVectors | None = None,
    save_every: int = 500,
    report_every: int = 50,
    progress: Callable[[TrainingStep], None] | None = None,
    stop_after: int | None = None,
    name: str = "skip-thoughts",
    notes: dict[str, Any] | None = None,
) -> SkipThoughts:
    """Learn an encoder from sentence sequences and write it to the file `out` (safetensors).

    The same corpus, configuration and machine give the same bytes. The state is saved every `save_every` steps beside
    `out`; the same call after a kill goes on from there, and ends with the same bytes.

    Parameters
    ----------
    corpus : sequences of sentences; those that stand side by side predict each other. `read_corpus` reads a text file.
    word_vectors : the words' first vectors are set from these where they are known (by a fixed random rotation if the
        sizes differ)
    stop_after : end after this many steps of this call, the state saved; for time limits
    """
    config = config or SkipThoughtsConfig()
    if config.uni + config.bi < 2 or config.bi % 2:
        raise EncoderError("The model needs dimensions: uni and bi must not both be 0, and bi must be even.")
    data = make_corpus(corpus, vocabulary=config.vocabulary, min_count=config.min_count, max_words=config.max_words)
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    state = _State(config, data, device, word_vectors)
    saved = target.with_name(target.name + ".state")
    state.restore(saved)
    total, told = 0.0, 0
    for seen, step in enumerate(range(state.step, state.steps), start=1):
        total += state.learn(step)
        last = step + 1 == state.steps
        stopping = stop_after is not None and seen >= stop_after
        if progress is not None and ((step + 1) % report_every == 0 or last):
            progress(TrainingStep(step + 1, state.steps, step // state.steps_an_epoch, total / (seen - told)))
            total, told = 0.0, seen
        if ((step + 1) % save_every == 0 or stopping) and not last:
            state.save(saved)
        if stopping and not last:
            return state.encoder(name)
    encoder = state.encoder(name)
    encoder.save(target, notes={**(notes or {}), "config": asdict(config)})
    saved.unlink(missing_ok=True)
    return SkipThoughts.load(target)


class _State:
    """Everything that changes while learning, and how it changes."""

    def __init__(self, config: SkipThoughtsConfig, data: Corpus, device: str, vectors: WordVectors | None) -> None:
        self.config, self.data, self.device = config, data, device
        self.steps_an_epoch = -(-len(data.triples) // config.batch)
        self.steps = self.steps_an_epoch * config.epochs
        self.step = 0
        # torch draws first weights from its global state; this borrows it and gives it back.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            net = SkipThoughtsNet(config, data.known)
        if vectors is not None:
            _begin_with(net, data, vectors, config.seed)
        self.net = net.to(device)
        self.learnt = [p for p in self.net.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(self.learnt, lr=config.rate)
        ids, shares = data.grams(config.grams)
        self.grams = (torch.from_numpy(ids).to(device), torch.from_numpy(shares).to(device))
        self.epoch, self.order = -1, np.zeros(0, np.int64)
        self.identity = hashlib.sha256(
            json.dumps([asdict(config), list(data.lexicon), data.triples.shape], sort_keys=True).encode()
            + data.triples.tobytes()
            + data.sentences.tobytes()
            + (vectors.fingerprint.encode() if vectors else b"")
        ).hexdigest()

    def rate(self, step: int) -> float:
        rise = max(1, self.steps // 50)
        return self.config.rate * min((step + 1) / rise, 0.5 * (1 + math.cos(math.pi * step / self.steps)))

    def learn(self, step: int) -> float:
        chosen = self._examples(step)
        rng = np.random.default_rng([self.config.seed, 2, step])
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        kind = torch.device(self.device).type
        with torch.autocast(kind, torch.bfloat16, enabled=self.config.half_precision):
            loss = self._loss(chosen, rng)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.learnt, self.config.clip)
        self.optimizer.step()
        self.step = step + 1
        return float(loss.detach())

    def _examples(self, step: int) -> NDArray[np.int64]:
        """The triples of a step: a shuffle that depends on seed and epoch alone, so a resumed run sees the same."""
        epoch, place = divmod(step, self.steps_an_epoch)
        if epoch != self.epoch:
            self.epoch = epoch
            self.order = np.random.default_rng([self.config.seed, 1, epoch]).permutation(len(self.data.triples))
        size = self.config.batch
        return self.data.triples[self.order[place * size : (place + 1) * size]]

    def _words(self, sentences: NDArray[np.int64], rng: np.random.Generator) -> tuple[Any, Any, Any]:
        """Word vectors (words, sentences, e), lengths, and the words themselves."""
        ids, lengths = self.data.batch(sentences)
        spelled = (ids >= self.data.known) | (rng.random(ids.shape) < self.config.spell)
        where = torch.from_numpy(ids).to(self.device)
        x = self.net.look_up(where, torch.from_numpy(spelled).to(self.device), self.grams)
        return x, torch.from_numpy(lengths).to(self.device), where

    def _loss(self, chosen: NDArray[np.int64], rng: np.random.Generator) -> torch.Tensor:
        config, net, n = self.config, self.net, len(chosen)
        # For the contrast one neighbour a sentence: the one after it, or at the end of a sequence the one before it.
        other = np.where(chosen[:, 2] != NOBODY, chosen[:, 2], chosen[:, 1])
        # All four lists in one pass: on a GPU the time goes by the number of calls.
        x, lengths, ids = self._words(np.concatenate([chosen[:, 0], other, chosen[:, 1], chosen[:, 2]]), rng)
        read = 2 * n if config.contrast else n
        vectors = net.vectors(x[:, :read], lengths[:read])
        loss = vectors.sum() * 0
        if config.decode:
            for side, decoder in ((2, net.previous), (3, net.next)):
                span = slice(side * n, (side + 1) * n)
                inputs, targets = self._shifted(x[:, span], lengths[span], ids[:, span])
                loss = loss + config.decode * net.decode(decoder, vectors[:n], inputs, targets)
        if config.contrast:
            same = (other[None, :] == other[:, None]) | (other[None, :] == chosen[:, :1])
            np.fill_diagonal(same, False)
            wrong = torch.from_numpy(same).to(self.device)
            loss = loss + config.contrast * contrast(vectors[:n], vectors[n:], wrong, config.temperature)
        return loss

    def _shifted(self, y: Any, lengths: Any, ids: Any) -> tuple[Any, Any]:
        """Inputs of a decoder, one word behind its targets; the last target is the end of the sentence."""
        none = y.new_zeros(1, y.shape[1], y.shape[2])
        inputs = torch.cat([none, y])
        steps = torch.arange(len(inputs), device=y.device).unsqueeze(1)
        padded = torch.cat([ids, ids.new_zeros(1, ids.shape[1])])
        # Words without a vector of their own cannot be predicted, and are not asked for.
        targets = torch.where(padded < self.data.known, padded, -100)
        targets = torch.where(steps == lengths, self.data.known, targets)
        return inputs, torch.where((steps <= lengths) & (lengths > 0), targets, -100)

    def save(self, path: Path) -> None:
        from safetensors.torch import save

        tensors = {f"net.{name}": value.contiguous() for name, value in self.net.state_dict().items()}
        for number, values in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": value.contiguous() for name, value in values.items()}
        write_atomic(path, seal(save(tensors, metadata={"pfungst": json.dumps([self.identity, self.step])})))

    def restore(self, path: Path) -> None:
        """Go on from a saved state, if there is one of the same corpus and configuration."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        if not path.is_file():
            return
        try:
            content, metadata = read_sealed(path)
            identity, step = json.loads(metadata.get("pfungst", "[null, 0]"))
            if identity != self.identity:
                raise EncoderError(
                    f"{path} belongs to a training with another corpus or configuration. Delete it to start over, or "
                    "choose another output."
                )
            tensors = load(content)
        except (OSError, SafetensorError, DataError, ValueError, TypeError) as error:
            raise EncoderError(
                f"{path}: the saved training cannot be read ({error}). Delete it to start again."
            ) from error
        self.net.load_state_dict({name[4:]: value for name, value in tensors.items() if name.startswith("net.")})
        adam: dict[int, dict[str, Any]] = {}
        for key, value in tensors.items():
            if key.startswith("adam."):
                _, number, name = key.split(".")
                adam.setdefault(int(number), {})[name] = value
        known = self.optimizer.state_dict()
        self.optimizer.load_state_dict({"state": adam, "param_groups": known["param_groups"]})
        self.step = int(step)

    def encoder(self, name: str) -> SkipThoughts:
        """The encoder alone; the decoders have done their work."""
        net = self.net
        table = net.table.weight.detach().cpu().float().numpy()
        parts = [Part(table, net.uni.weights())] if net.uni is not None else []
        if net.ahead is not None and net.behind is not None:
            parts.append(Part(table, net.ahead.weights(), net.behind.weights()))
        return SkipThoughts(
            parts=tuple(parts),
            vocabulary={word: row for row, word in enumerate(self.data.lexicon[: self.data.known])},
            tokens="words",
            grams=net.grams.weight.detach().cpu().float().numpy(),
            reset_after=self.config.reset_after,
            name=name,
            source=f"{self.identity[:16]}-{self.step}",
        )


def _begin_with(net: SkipThoughtsNet, data: Corpus, vectors: WordVectors, seed: int) -> None:
    """Set the table where words are known, in the scale of its other rows."""
    known = [(row, word) for row, word in enumerate(data.lexicon[: data.known]) if word in vectors.rows]
    size, given = net.config.word_size, vectors.dim
    rows = vectors.of([word for _, word in known])
    rows = rows - rows.mean(axis=0)
    if size != given:
        matrix = np.random.default_rng([seed, 3]).standard_normal((max(size, given), max(size, given)))
        rotation = np.linalg.qr(matrix)[0][:given, :size]
        rows = rows @ rotation.astype(np.float32)
    rows *= 0.1 / rows.std()
    with torch.no_grad():
        net.table.weight[[row for row, _ in known]] = torch.from_numpy(rows.astype(np.float32))
