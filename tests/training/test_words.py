"""Word vectors from elsewhere as the start of a model's words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pfungst.core import DataError
from pfungst.models import Sizes, Vocabulary, build
from pfungst.text import get_encoder
from pfungst.text.encoders.base import words
from pfungst.training.words import start_reader, start_words

VOCABULARY = Vocabulary(("cube", "orb", "sphere", "zyx"), ("yes", "no"))


def vectors(path: Path, size: int = 12) -> Path:
    """`orb` and `sphere` point the same way, `cube` another; `zyx` is not there."""
    rng = np.random.default_rng(0)
    cube, ball = rng.standard_normal((2, size))
    rows = np.stack([ball + 0.05 * rng.standard_normal(size), ball, cube]).astype(np.float32)
    np.savez(path, words=np.array(["orb", "sphere", "cube"]), vectors=rows)
    return path


def model():
    sizes = Sizes(words=VOCABULARY.size, answers=2, image=(3, 24, 32), regions=5)
    return build("butd", sizes, "tiny", seed=3, stem=())


@pytest.mark.parametrize("size", [4, 8, 12])
def test_like_words_stay_alike_whatever_the_lengths(tmp_path: Path, size: int) -> None:
    made = model()
    before = made.reader.words.weight.detach().clone()
    assert start_words(made, VOCABULARY, vectors(tmp_path / "v.npz", size)) == 3
    cube, orb, sphere, unknown = made.reader.words.weight.detach()[4:]
    cosine = torch.nn.functional.cosine_similarity
    assert cosine(orb, sphere, 0) > 0.9 > 0.5 > cosine(orb, cube, 0)
    assert torch.equal(unknown, before[7]) and torch.equal(made.reader.words.weight[:4], before[:4])
    assert float(made.reader.words.weight[4:7].detach().std()) == pytest.approx(1, abs=0.3)


def test_fixed_words_do_not_learn_and_others_do(tmp_path: Path) -> None:
    file = vectors(tmp_path / "v.npz")
    free, fixed = model(), model()
    start_words(free, VOCABULARY, file)
    start_words(fixed, VOCABULARY, file, fixed=True)
    assert free.reader.words.weight.requires_grad and not fixed.reader.words.weight.requires_grad
    assert torch.equal(free.reader.words.weight, fixed.reader.words.weight)


@pytest.mark.parametrize("name", ["mutan", "mutan-att", "mlb"])
def test_a_model_that_starts_from_an_encoder_reads_as_it_does(name: str) -> None:
    questions = ["what colour is the small dog", "is it raining", "how many zebroids are there", "dog"]
    vocabulary = Vocabulary(tuple(sorted({word for one in questions for word in words(one)})), ("yes", "no"))
    sizes = Sizes(words=vocabulary.size, answers=2, image=(8, 2, 2))
    made = build(name, sizes, "features", seed=0, word_size=128, hidden=256)
    encoder = get_encoder("skip-thoughts")
    start_reader(made, vocabulary, encoder)
    with torch.no_grad():
        _, state = made.reader(torch.from_numpy(vocabulary.encode(questions, 8)).long())
    expected = encoder.encode(questions)[:, :256]  # the forward GRU's part, of length 1
    np.testing.assert_allclose(torch.nn.functional.normalize(state), expected, atol=1e-5)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such word vector file"):
        start_words(model(), VOCABULARY, tmp_path / "none.npz")
