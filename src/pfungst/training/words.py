"""What was learnt from text elsewhere as the start of a model: word vectors (GloVe, word2vec), a sentence encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pfungst.models import Model, Vocabulary
from pfungst.models.layers import WordReader
from pfungst.text.encoders import SkipThoughts, WordVectors
from pfungst.text.encoders.skip_thoughts import fill


def start_words(
    model: Model, vocabulary: Vocabulary, vectors: str | Path, *, fixed: bool = False, seed: int = 0
) -> int:
    """Put vectors of a file in place of the model's random word vectors; how many words the file knows.

    Words that training never shows then have a meaning all the same. The file is what
    `pfungst.text.encoders.WordVectors.read` reads. Its vectors are centred and scaled to the spread of fresh ones
    (1 a number); where the model's are of another length, they are turned by a random matrix with orthonormal rows or
    columns, the same for the same seed. Words that the file lacks keep their random vectors.

    fixed : the words do not learn
    """
    found = WordVectors.read(vectors)
    known = [(number, word) for number, word in enumerate(vocabulary.words, start=4) if word in found.rows]
    if not known:
        return 0
    rows = found.of([word for _, word in known]).astype(np.float64)
    rows -= rows.mean(0)
    rows /= max(float(rows.std()), 1e-9)
    numbers = torch.tensor([number for number, _ in known])
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.num_embeddings == vocabulary.size:
            turned = torch.from_numpy(_turned(rows, module.embedding_dim, seed)).to(module.weight)
            with torch.no_grad():
                module.weight[numbers.to(module.weight.device)] = turned
            module.weight.requires_grad_(not fixed)
    return len(known)


def start_reader(model: Model, vocabulary: Vocabulary, encoder: SkipThoughts) -> None:
    """Let a model that reads with a GRU begin with the words and the (first) GRU of an encoder of the same sizes.

    MUTAN and MLB start from skip-thoughts. What stands for unknown words begins as the mean of all words.
    """
    rows = torch.from_numpy(encoder.of(vocabulary.words))
    for module in model.modules():
        if isinstance(module, WordReader):
            with torch.no_grad():
                module.words.weight[4:] = rows
                module.words.weight[1:4] = rows.mean(0)
            fill(module.network, encoder.parts[0].forward)


def _turned(rows: NDArray[np.float64], size: int, seed: int) -> NDArray[np.float64]:
    """(N, D) -> (N, size), angles kept as well as they can be, spread 1."""
    before = rows.shape[1]
    if before == size:
        return rows
    random = np.random.default_rng([seed, before, size]).standard_normal((max(before, size), min(before, size)))
    basis, _ = np.linalg.qr(random)
    turned = rows @ (basis if before > size else basis.T)
    scaled: NDArray[np.float64] = turned / max(float(turned.std()), 1e-9)
    return scaled
