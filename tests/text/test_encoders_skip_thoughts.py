"""Our own skip-thoughts: learning, saving, new words, hard sentences."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import DataError
from pfungst.text.encoders import (
    EncoderError,
    SkipThoughts,
    SkipThoughtsConfig,
    WordVectors,
    check_encoder,
    get_encoder,
    read_corpus,
    train_skip_thoughts,
)
from pfungst.text.encoders.base import MAX_WORDS, unit_rows
from pfungst.text.encoders.training import make_corpus
from tests.forked import finish, start

TINY = SkipThoughtsConfig(
    uni=8,
    bi=8,
    word_size=6,
    vocabulary=50,
    min_count=1,
    grams=64,
    decoder=10,
    epochs=2,
    batch=12,
    contrast=1.0,
    rate=0.01,
)


def corpus(groups: int = 40) -> list[list[str]]:
    """Sequences about one thing each, so that there is something to learn."""
    things, rng = ["car", "man", "dog", "sky", "cake"], np.random.default_rng(0)
    shapes = ["What color is the {}?", "Is the {} old?", "Where is the {}?", "How big is the {}?", "Do you see a {}?"]
    chosen = [(things[i % 5], rng.permutation(5)[:3]) for i in range(groups)]
    return [[shapes[i].format(thing) for i in order] for thing, order in chosen]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train_skip_thoughts(corpus(), tmp_path_factory.mktemp("m") / "a.safetensors", TINY)


def test_training_brings_neighbours_together(tmp_path):
    encoder = train_skip_thoughts(corpus(60), tmp_path / "a.safetensors", replace(TINY, epochs=12, batch=20))
    rows = unit_rows(encoder.encode(["Is the car old?", "What color is the car?", "What color is the dog?"]))
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.1


def test_the_decoders_alone_learn_too(tmp_path):
    losses = []
    config = replace(TINY, contrast=0.0, epochs=8, batch=12, rate=0.03)
    train_skip_thoughts(
        corpus(), tmp_path / "a.safetensors", config, report_every=1, progress=lambda state: losses.append(state.loss)
    )
    assert losses[-1] < 0.75 * losses[0]


@pytest.mark.parametrize("reset_after", [True, False])
def test_the_learnt_network_and_the_encoder_give_the_same_vectors(reset_after, tmp_path):
    import torch

    from pfungst.text.encoders.training import _State

    config = replace(TINY, reset_after=reset_after)
    data = make_corpus(corpus(), vocabulary=20, min_count=1, max_words=30)
    state = _State(config, data, "cpu", None)
    for step in range(3):
        state.learn(step)
    ids, lengths = data.batch(np.arange(12))
    where = torch.from_numpy(ids)
    with torch.no_grad():
        x = state.net.look_up(where, where >= data.known, state.grams)
        expected = state.net.vectors(x, torch.from_numpy(lengths)).numpy()
    sentences = [" ".join(data.lexicon[i] for i in ids[: lengths[k], k]) for k in range(12)]
    np.testing.assert_allclose(state.encoder().encode(sentences), expected, atol=1e-5)
    np.testing.assert_allclose(state.encoder().to("cpu").encode(sentences), expected, atol=1e-5)


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not(tmp_path):
    files = [tmp_path / f"{i}.safetensors" for i in range(3)]
    for file, seed in zip(files, (1, 1, 2), strict=True):
        train_skip_thoughts(corpus(), file, replace(TINY, seed=seed, epochs=1))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes() != files[2].read_bytes()


def test_training_does_not_touch_the_global_random_state(tmp_path):
    import torch

    before = torch.random.get_rng_state()
    train_skip_thoughts(corpus(), tmp_path / "a", replace(TINY, epochs=1))
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_stopped_training_goes_on_and_ends_with_the_same_bytes(tmp_path):
    train_skip_thoughts(corpus(), tmp_path / "whole.safetensors", TINY)
    for _ in range(20):
        train_skip_thoughts(corpus(), tmp_path / "parts.safetensors", TINY, stop_after=7)
        if (tmp_path / "parts.safetensors").exists():
            break
    assert (tmp_path / "parts.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["parts.safetensors", "whole.safetensors"]


def train(path: Path) -> None:
    train_skip_thoughts(corpus(), path, TINY, save_every=3)


@pytest.mark.slow
def test_a_training_killed_twice_ends_with_the_same_bytes(tmp_path):
    state = tmp_path / "k.safetensors.state"
    kills = 0
    for _ in range(2):
        before = state.stat().st_mtime_ns if state.exists() else 0
        process = start(train, tmp_path / "k.safetensors")
        while process.is_alive() and not (state.exists() and state.stat().st_mtime_ns > before):
            time.sleep(0.002)
        process.kill()
        kills += finish(process) == -signal.SIGKILL
    assert kills
    assert finish(start(train, tmp_path / "k.safetensors")) == 0
    train_skip_thoughts(corpus(), tmp_path / "w.safetensors", TINY)
    assert (tmp_path / "k.safetensors").read_bytes() == (tmp_path / "w.safetensors").read_bytes()


def test_a_state_of_another_training_is_refused(tmp_path):
    train_skip_thoughts(corpus(), tmp_path / "a", TINY, stop_after=2)
    with pytest.raises(EncoderError, match="another corpus or configuration"):
        train_skip_thoughts(corpus(), tmp_path / "a", replace(TINY, seed=5))
    (tmp_path / "a.state").write_bytes(b"junk")
    with pytest.raises(EncoderError, match="Delete it to start again"):
        train_skip_thoughts(corpus(), tmp_path / "a", TINY)


def test_word_vectors_are_a_start(tmp_path):
    rng = np.random.default_rng(0)
    vectors = WordVectors(("car", "dog"), rng.standard_normal((2, 4)).astype(np.float32), "x")
    plain = train_skip_thoughts(corpus(), tmp_path / "a", replace(TINY, epochs=1, rate=1e-9))
    begun = train_skip_thoughts(corpus(), tmp_path / "b", replace(TINY, epochs=1, rate=1e-9), word_vectors=vectors)
    moved = np.abs(plain.parts[0].table - begun.parts[0].table).max(axis=1) > 1e-3
    assert {word for word, row in plain.vocabulary.items() if moved[row]} == {"car", "dog"}


def test_a_saved_model_is_the_same_model(trained, tmp_path):
    trained.save(tmp_path / "full.safetensors", half=False)
    again = SkipThoughts.load(tmp_path / "full.safetensors")
    sentences = ["Is the car old?", "zebra"]
    np.testing.assert_array_equal(again.encode(sentences), trained.encode(sentences))
    trained.save(tmp_path / "half.safetensors")
    np.testing.assert_allclose(
        SkipThoughts.load(tmp_path / "half.safetensors").encode(sentences), trained.encode(sentences), atol=5e-3
    )
    name = f"skip-thoughts:{tmp_path / 'half.safetensors'}"
    half = get_encoder(name)
    assert half is get_encoder(name)
    assert half.fingerprint != again.fingerprint
    trained.save(tmp_path / "half.safetensors", half=False)
    assert get_encoder(name).fingerprint == again.fingerprint


@pytest.mark.parametrize("content", [b"", b"junk" * 100])
def test_a_file_that_is_no_model_is_an_error(content, tmp_path):
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(EncoderError, match=r"x\.safetensors"):
        SkipThoughts.load(tmp_path / "x.safetensors")


def test_a_foreign_or_incomplete_model_is_an_error(trained, tmp_path):
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file

    save_file({"a": np.zeros(3)}, tmp_path / "foreign.safetensors")
    with pytest.raises(EncoderError, match="not a skip-thoughts model"):
        SkipThoughts.load(tmp_path / "foreign.safetensors")
    trained.save(tmp_path / "a.safetensors", half=False)
    tensors = load_file(tmp_path / "a.safetensors")
    with safe_open(tmp_path / "a.safetensors", framework="numpy") as file:
        notes = {name: text for name, text in file.metadata().items() if name != "sha256"}  # other tensors, other sum
    save_file({k: v for k, v in tensors.items() if k != "0.forward.U"}, tmp_path / "b.safetensors", notes)
    with pytest.raises(EncoderError, match=r"incomplete.*0\.forward\.U"):
        SkipThoughts.load(tmp_path / "b.safetensors")
    save_file({**tensors, "0.forward.U": np.zeros((2, 2), np.float32)}, tmp_path / "c.safetensors", notes)
    with pytest.raises(EncoderError, match="has the shape"):
        SkipThoughts.load(tmp_path / "c.safetensors")


def test_expansion_finds_the_linear_map(trained):
    rng = np.random.default_rng(0)
    table = trained.parts[0].table
    known = list(trained.vocabulary)
    # Vectors that ARE an affine image of the table (6 dimensions into 6), so the right map is known.
    matrix, shift = rng.standard_normal((6, 6)), rng.standard_normal(6)
    hidden = rng.standard_normal((2, 6)).astype(np.float32)
    vectors = np.concatenate([table, hidden]).astype(np.float64) @ matrix + shift
    source = WordVectors((*known, "lorry", "automobile"), vectors.astype(np.float32), "v")
    bigger = trained.expand_vocabulary(source)
    for word, expected in zip(("lorry", "automobile"), hidden, strict=True):
        for part in bigger.parts:
            np.testing.assert_allclose(part.table[bigger.vocabulary[word]], expected, atol=2e-3)
    sentence = ["Is the car old?"]
    np.testing.assert_array_equal(bigger.encode(sentence), trained.encode(sentence))
    assert bigger.fingerprint != trained.fingerprint


def test_expansion_needs_words_in_common(trained):
    with pytest.raises(EncoderError, match="Only 1 words are known to both"):
        trained.expand_vocabulary(WordVectors(("car", "x"), np.zeros((2, 5), np.float32), "v"))


def test_it_passes_the_check_of_encoders(trained):
    check_encoder(trained)
    check_encoder(trained.to("cpu"))


def test_only_the_first_thousand_words_are_read(trained):
    words = ["car", "dog"] * MAX_WORDS
    rows = trained.encode([" ".join(words[:MAX_WORDS]), " ".join(words), " ".join(words[: MAX_WORDS - 1])])
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)
    assert np.abs(rows[0] - rows[2]).max() > 1e-6


def test_case_punctuation_and_kinds_of_apostrophes_do_not_matter(trained):
    rows = trained.encode(["Isn't the car old?", "isn’t THE car old", "  isn't the car, old ?!"])
    np.testing.assert_allclose(rows, np.repeat(rows[:1], 3, axis=0), atol=1e-6)


def test_unknown_words_of_any_script_have_vectors_of_their_own(trained):
    rows = trained.encode(["зебра", "斑马在哪里", "zebra", "zebras", "xylophone"])
    assert (np.linalg.norm(rows, axis=1) > 0.5).all()
    assert np.abs(rows[0] - rows[1]).max() > 1e-3


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=5))
def test_any_text_gives_finite_vectors_and_a_row_is_its_own(trained, sentences):
    rows = trained.encode(sentences)
    assert rows.shape == (len(sentences), trained.dim)
    assert np.isfinite(rows).all()
    for row, sentence in zip(rows, sentences, strict=True):
        np.testing.assert_allclose(row, trained.encode([sentence])[0], atol=1e-5)


def test_a_corpus_file_is_sequences_between_empty_lines(tmp_path):
    (tmp_path / "c.txt").write_text("one two\nthree\n\n\n four\nfive \n")
    assert read_corpus(tmp_path / "c.txt") == [["one two", "three"], ["four", "five"]]


@pytest.mark.parametrize(("content", "sentence"), [(b"a\n\nb\n", "no two sentences"), (b"\xff\xfe\x00", "UTF-8")])
def test_a_corpus_without_neighbours_or_text_is_an_error(content, sentence, tmp_path):
    (tmp_path / "c.txt").write_bytes(content)
    with pytest.raises(DataError, match=sentence):
        read_corpus(tmp_path / "c.txt")


def test_neighbours_are_counted_right():
    data = make_corpus([["a b", "c", "?!", "a b"], ["d"]], vocabulary=2, min_count=1, max_words=5)
    assert data.triples.tolist() == [[0, -1, 1], [1, 0, 0], [0, 1, -1]]
    assert data.lexicon[: data.known] == ("a", "b")
    ids, lengths = data.batch(np.array([1, -1, 0]))
    assert lengths.tolist() == [1, 0, 2]
    assert ids[:, 1].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("sequences", "changes", "sentence"),
    [
        ([["a"]], {}, "nothing to learn from"),
        ([["a", "b"]], {"min_count": 9}, "lower min_count"),
        ([["a", "b"]], {"uni": 0, "bi": 0}, "needs dimensions"),
        ([["a", "b"]], {"bi": 3}, "even"),
    ],
)
def test_impossible_trainings_are_refused(sequences, changes, sentence, tmp_path):
    with pytest.raises((DataError, EncoderError), match=sentence):
        train_skip_thoughts(sequences, tmp_path / "x", replace(TINY, **changes))
