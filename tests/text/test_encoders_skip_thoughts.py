"""Our own skip-thoughts: loading, hard sentences."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.text.encoders import EncoderError, SkipThoughts, check_encoder, get_encoder
from pfungst.text.encoders.base import MAX_WORDS
from pfungst.text.encoders.vectors import EMBEDDED


@pytest.fixture(scope="module")
def encoder():
    return SkipThoughts.load(EMBEDDED)


def test_a_file_is_an_encoder_by_its_path(tmp_path):
    shutil.copy(EMBEDDED, tmp_path / "mine.safetensors")
    name = f"skip-thoughts:{tmp_path / 'mine.safetensors'}"
    assert get_encoder(name) is get_encoder(name)
    assert get_encoder(name).fingerprint == get_encoder("skip-thoughts").fingerprint


def test_numpy_and_torch_give_the_same_vectors(encoder):
    sentences = ["Is the car old?", "What color is it?", "zebra", "no"]
    np.testing.assert_allclose(encoder.to("cpu").encode(sentences), encoder.encode(sentences), atol=1e-5)


@pytest.mark.parametrize("content", [b"", b"junk" * 100])
def test_a_file_that_is_no_model_is_an_error(content, tmp_path):
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(EncoderError, match=r"x\.safetensors"):
        SkipThoughts.load(tmp_path / "x.safetensors")


def test_a_foreign_or_incomplete_model_is_an_error(tmp_path):
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file

    save_file({"a": np.zeros(3)}, tmp_path / "foreign.safetensors")
    with pytest.raises(EncoderError, match="not a skip-thoughts model"):
        SkipThoughts.load(tmp_path / "foreign.safetensors")
    tensors = load_file(EMBEDDED)
    with safe_open(EMBEDDED, framework="numpy") as file:
        notes = {name: text for name, text in file.metadata().items() if name != "sha256"}  # other tensors, other sum
    save_file({k: v for k, v in tensors.items() if k != "0.forward.U"}, tmp_path / "b.safetensors", notes)
    with pytest.raises(EncoderError, match=r"incomplete.*0\.forward\.U"):
        SkipThoughts.load(tmp_path / "b.safetensors")
    save_file({**tensors, "0.forward.U": np.zeros((2, 2), np.float32)}, tmp_path / "c.safetensors", notes)
    with pytest.raises(EncoderError, match="has the shape"):
        SkipThoughts.load(tmp_path / "c.safetensors")


def test_it_passes_the_check_of_encoders(encoder):
    check_encoder(encoder)
    check_encoder(encoder.to("cpu"))


def test_only_the_first_thousand_words_are_read(encoder):
    words = ["car", "dog"] * MAX_WORDS
    rows = encoder.encode([" ".join(words[:MAX_WORDS]), " ".join(words), " ".join(words[: MAX_WORDS - 1])])
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)
    assert np.abs(rows[0] - rows[2]).max() > 1e-6


def test_case_punctuation_and_kinds_of_apostrophes_do_not_matter(encoder):
    rows = encoder.encode(["Isn't the car old?", "isn’t THE car old", "  isn't the car, old ?!"])
    np.testing.assert_allclose(rows, np.repeat(rows[:1], 3, axis=0), atol=1e-6)


def test_unknown_words_of_any_script_have_vectors_of_their_own(encoder):
    rows = encoder.encode(["зебра", "斑马在哪里", "zebra", "zebras", "xylophone"])
    assert (np.linalg.norm(rows, axis=1) > 0.5).all()
    assert np.abs(rows[0] - rows[1]).max() > 1e-3


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=5))
def test_any_text_gives_finite_vectors_and_a_row_is_its_own(encoder, sentences):
    rows = encoder.encode(sentences)
    assert rows.shape == (len(sentences), encoder.dim)
    assert np.isfinite(rows).all()
    for row, sentence in zip(rows, sentences, strict=True):
        np.testing.assert_allclose(row, encoder.encode([sentence])[0], atol=1e-5)
