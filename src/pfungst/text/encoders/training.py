"""Learn skip-thoughts from sentences that stand side by side: the corpus, the network, and the loop.

The loop is its own and not that of `pfungst.training`: that package trains models that answer questions, and stands
above this one, which must not import it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError, MissingExtra
from pfungst.core.files import write_atomic
from pfungst.core.seal import read_sealed, seal
from pfungst.text.encoders.base import EncoderError, gram_buckets, words
from pfungst.text.encoders.skip_thoughts import GRUWeights, Part, SkipThoughts, equation_states
from pfungst.text.encoders.word_vectors import WordVectors

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional as F
except ImportError as error:
    raise MissingExtra("Training skip-thoughts", "torch") from error

NOBODY = -1


def read_corpus(path: str | Path) -> list[list[str]]:
    """Sequences of a text file: one sentence a line, an empty line between two sequences."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError.at(path, "", f"the corpus cannot be read as UTF-8 text ({error}).") from error
    lines = (line.strip() for line in text.splitlines())
    found = [list(sequence) for said, sequence in groupby(lines, bool) if said]
    if not any(len(sequence) > 1 for sequence in found):
        raise DataError.at(
            path,
            "",
            "no two sentences follow each other.",
            "Write one sentence per line, with empty lines between sequences.",
        )
    return found


@dataclass(frozen=True, eq=False)
class Corpus:
    """Distinct sentences, and who stands beside whom."""

    lexicon: tuple[str, ...]
    """All words, most frequent first. The first `known` of them have a vector of their own."""
    known: int
    sentences: NDArray[np.int32]
    """(sentences, longest): distinct sentences as rows of `lexicon`, padded with 0."""
    lengths: NDArray[np.int64]
    """(sentences,): words of each, at least one."""
    triples: NDArray[np.int64]
    """(examples, 3): sentence, the one before it, the one after it; NOBODY where there is none."""

    def grams(self, buckets: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Buckets of every word's letter n-grams (lexicon, longest), and their weights, which sum to 1 in a row."""
        lists = [gram_buckets(word, buckets) for word in self.lexicon]
        longest = max(len(one) for one in lists)
        ids = np.zeros((len(lists), longest), np.int64)
        weights = np.zeros((len(lists), longest), np.float32)
        for row, one in enumerate(lists):
            ids[row, : len(one)] = one
            weights[row, : len(one)] = 1 / len(one)
        return ids, weights

    def batch(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Words of the chosen sentences (words, sentences), padded with 0, and their lengths (0 for NOBODY)."""
        lengths = np.where(chosen == NOBODY, 0, self.lengths[chosen])
        ids = self.sentences[chosen, : max(1, int(lengths.max(initial=1)))]
        return np.where(np.arange(ids.shape[1]) < lengths[:, None], ids, 0).T.astype(np.int64), lengths


def make_corpus(sequences: Iterable[Sequence[str]], *, vocabulary: int, min_count: int, max_words: int) -> Corpus:
    """Cut, count and number. Sentences without words are passed over; their neighbours become neighbours."""
    spoken: dict[tuple[str, ...], int] = {}
    triples: list[tuple[int, int, int]] = []
    for sequence in sequences:
        cut = [tuple(words(sentence)[:max_words]) for sentence in sequence]
        ids = [spoken.setdefault(one, len(spoken)) for one in cut if one]
        around = [NOBODY, *ids, NOBODY]
        if len(ids) > 1:
            triples += [(around[i], around[i - 1], around[i + 1]) for i in range(1, len(ids) + 1)]
    if not triples:
        raise DataError("The corpus has no two sentences that follow each other; there is nothing to learn from.")
    tally: Counter[str] = Counter(word for sentence in spoken for word in sentence)
    ranked = sorted(tally.items(), key=lambda item: (-item[1], item[0]))
    lexicon = tuple(word for word, _ in ranked)
    known = sum(times >= min_count for _, times in ranked[:vocabulary])
    row: dict[str, int] = {word: i for i, word in enumerate(lexicon)}
    if not known:
        raise DataError(f"No word of the corpus occurs {min_count} times; lower min_count.")
    lengths = np.array([len(sentence) for sentence in spoken], np.int64)
    sentences = np.zeros((len(spoken), int(lengths.max())), np.int32)
    for place, sentence in enumerate(spoken):
        sentences[place, : len(sentence)] = [row[word] for word in sentence]
    return Corpus(lexicon, known, sentences, lengths, np.array(triples, np.int64))


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


class Reader(nn.Module):
    """A GRU that gives the state after each sentence's own last word."""

    def __init__(self, size_in: int, size: int, *, reset_after: bool) -> None:
        super().__init__()
        self.reset_after = reset_after
        self.gru: nn.GRU = nn.GRU(size_in, size)
        _, states, bias, second = self.gru.all_weights[0]
        with torch.no_grad():
            bias.zero_()
            second.zero_()
            for block in states.chunk(3):
                nn.init.orthogonal_(block)
        # The published layout has one bias; torch's second one stays at zero.
        second.requires_grad_(False)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(words, sentences, e) and lengths -> (sentences, h)."""
        states = self.gru(x)[0] if self.reset_after else equation_states(self.published(), x)
        last = (lengths - 1).clamp(min=0).view(1, -1, 1).expand(1, -1, states.shape[2])
        return cast(Tensor, states.gather(0, last)[0])

    def published(self) -> dict[str, Tensor]:
        """The weights in the published layout (see `GRUWeights`)."""
        size = self.gru.hidden_size
        inputs, states, b, _ = self.gru.all_weights[0]
        w, u = inputs.T, states.T
        return {
            "W": w[:, : 2 * size], "U": u[:, : 2 * size], "Wx": w[:, 2 * size :],
            "Ux": u[:, 2 * size :], "b": b[: 2 * size], "bx": b[2 * size :],
        }  # fmt: skip

    def weights(self) -> GRUWeights:
        return GRUWeights(
            **{name: t.detach().cpu().float().contiguous().numpy() for name, t in self.published().items()}
        )


class SkipThoughtsNet(nn.Module):
    """Encoder (uni-skip and bi-skip over one table of words), two conditional GRU decoders, one output layer.

    A decoder is given the sentence's vector at every word, which is the papers' C h added to the reset gate, the update
    gate and the new state.
    """

    def __init__(self, config: SkipThoughtsConfig, words: int) -> None:
        super().__init__()
        self.config = config
        e = config.word_size
        self.table: nn.Embedding = nn.Embedding(words, e)
        self.grams: nn.Embedding = nn.Embedding(config.grams, e)
        nn.init.normal_(self.table.weight, std=0.1)
        nn.init.normal_(self.grams.weight, std=0.1)
        half = config.bi // 2
        self.uni = Reader(e, config.uni, reset_after=config.reset_after) if config.uni else None
        self.ahead = Reader(e, half, reset_after=config.reset_after) if half else None
        self.behind = Reader(e, half, reset_after=config.reset_after) if half else None
        dim = config.uni + 2 * half
        self.previous: nn.GRU = nn.GRU(e + dim, config.decoder)
        self.next: nn.GRU = nn.GRU(e + dim, config.decoder)
        self.output: nn.Linear = nn.Linear(config.decoder, words + 1)

    def look_up(self, ids: Tensor, spelled: Tensor, grams: tuple[Tensor, Tensor]) -> Tensor:
        """Word vectors; where `spelled`, from the letter n-grams instead of the table."""
        known = ids.clamp(max=self.table.num_embeddings - 1)
        vectors = cast(Tensor, self.table(known))
        chosen = ids[spelled]
        if chosen.numel():
            buckets, shares = grams[0][chosen], grams[1][chosen]
            made = F.embedding_bag(buckets, self.grams.weight, mode="sum", per_sample_weights=shares)
            vectors = vectors.masked_scatter(spelled.unsqueeze(2), made.to(vectors.dtype))
        return vectors

    def vectors(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Skip-thought vectors (sentences, dim): each part of length 1."""
        parts = []
        if self.uni is not None:
            parts.append(F.normalize(self.uni(x, lengths).float(), dim=1))
        if self.ahead is not None and self.behind is not None:
            # Reversed within each sentence's own length, so that padding is still read last.
            steps = torch.arange(len(x), device=x.device).unsqueeze(1)
            order = torch.where(steps < lengths, lengths - 1 - steps, steps).unsqueeze(2).expand(-1, -1, x.shape[2])
            both = [self.ahead(x, lengths), self.behind(x.gather(0, order), lengths)]
            parts.append(F.normalize(torch.cat(both, dim=1).float(), dim=1))
        return torch.cat(parts, dim=1)

    def decode(self, decoder: nn.GRU, vectors: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        """Mean negative log-likelihood of a neighbour's words, `targets` (words, sentences); -100 is not counted."""
        x = torch.cat([inputs, vectors.to(inputs.dtype).unsqueeze(0).expand(len(inputs), -1, -1)], dim=2)
        states = decoder(x)[0]
        counted = targets != -100
        if not bool(counted.any()):
            return vectors.sum() * 0
        return F.cross_entropy(self.output(states[counted]).float(), targets[counted])


def contrast(one: Tensor, two: Tensor, same: Tensor, temperature: float) -> Tensor:
    """How hard it is to find each sentence's neighbour among all of the batch (Logeswaran and Lee 2018).

    `same` (n, n): pairs that are no wrong answers although they are not the neighbour (equal sentences).
    """
    scores = F.normalize(one, dim=1) @ F.normalize(two, dim=1).T / temperature
    scores = scores.masked_fill(same, float("-inf"))
    right = torch.arange(len(one), device=one.device)
    return (F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)) / 2


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
            return state.encoder()
    encoder = state.encoder()
    encoder.save(target, notes={"config": asdict(config)})
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

    def encoder(self) -> SkipThoughts:
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
