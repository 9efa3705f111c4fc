"""Word vectors in their usual files, averaged words, and TF-IDF."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfungst.core import DataError
from pfungst.text.encoders import AveragedWords, TfIdf, WordVectors, check_encoder, get_encoder
from pfungst.text.encoders.word_vectors import features, load_counts

WORDS = ["car", "old", "é", "is"]
VECTORS = np.array([[1, 2, 3], [4, 5, 6], [-1, 0.5, 0], [0, 0, 1]], np.float32)


def text_lines() -> list[str]:
    return [f"{word} {' '.join(map(str, row))}" for word, row in zip(WORDS, VECTORS.tolist(), strict=True)]


def binary(newline: bytes) -> bytes:
    rows = [word.encode() + b" " + row.tobytes() + newline for word, row in zip(WORDS, VECTORS, strict=True)]
    return b"4 3\n" + b"".join(rows)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("glove.txt", "\n".join(text_lines()).encode() + b"\n"),
        ("glove.txt.gz", gzip.compress("\n".join(text_lines()).encode())),
        ("word2vec.vec", ("4 3\n" + "\n".join(text_lines())).encode()),
        ("word2vec.bin", binary(b"")),
        ("word2vec.bin", binary(b"\n")),
        ("word2vec.bin.gz", gzip.compress(binary(b"\n"))),
    ],
    # Compressed bytes hold the time: as names of tests they would differ between two workers.
    ids=["text", "compressed text", "text with a head", "binary", "binary with line ends", "compressed binary"],
)
def test_the_usual_files_are_read(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    found = WordVectors.read(tmp_path / name)
    assert list(found.words) == WORDS
    np.testing.assert_array_equal(found.vectors, VECTORS)


def test_an_npz_is_read(tmp_path):
    np.savez(tmp_path / "v.npz", words=np.array(WORDS), vectors=VECTORS.astype(np.float16))
    found = WordVectors.read(tmp_path / "v.npz")
    np.testing.assert_array_equal(found.of(["old", "car"]), VECTORS[[1, 0]])
    assert found.vectors.dtype == np.float32


def test_words_with_spaces_are_words(tmp_path):
    (tmp_path / "v.txt").write_text("car 1 2\n. . . 3 4\n")
    assert WordVectors.read(tmp_path / "v.txt").words == ("car", ". . .")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("v.txt", b"car 1 2\nold 3\n", "line 2: not a word and 2 numbers"),
        ("v.txt", b"car 1 2\nold 3 x\n", "line 2: not a word and 2 numbers"),
        ("v.txt", b"car 1 2\nold 3 4 0\n", "line 2: not a word and 2 numbers"),
        ("v.txt", b"2 1\ncar 1 2\nold 3 4\n", "line 2: not a word and 1 numbers"),
        ("v.txt", b"car\t1\t2\n", "line 1: not a word and its numbers, with blanks between them"),
        ("v.txt", b"car 1 nan\n", "word 0.*NaN"),
        ("v.txt", b"", "holds no word vectors"),
        ("v.bin", binary(b"")[:-2], "word 3 of 4.*ends before"),
        ("v.bin", b"hello", "begins with the number of words"),
        ("v.bin", b"9 3\n" + b"x" * 20_000, "has no end"),
        ("v.npz", b"zip?", "arrays `words` and `vectors`"),
        ("v.txt.gz", b"not gzip", "cannot be read"),
    ],
)
def test_bad_files_are_errors_with_a_place(name, content, sentence, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=sentence):
        WordVectors.read(tmp_path / name)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match="no such word vector file"):
        WordVectors.read(tmp_path / "none.txt")


def test_a_sentence_is_the_mean_of_its_known_words(tmp_path):
    (tmp_path / "v.txt").write_text("\n".join(text_lines()))
    encoder = get_encoder(f"words:{tmp_path / 'v.txt'}")
    rows = encoder.encode(["Is THE old car old?", "zebra", ""])
    np.testing.assert_allclose(rows[0], VECTORS[[3, 1, 0, 1]].mean(axis=0))
    assert not rows[1:].any()


def test_averaged_words_pass_the_check_of_encoders(tmp_path):
    words = ("how", "old", "is", "the", "car", "man", "word", "das", "auto")
    rng = np.random.default_rng(0)
    check_encoder(AveragedWords(WordVectors(words, rng.standard_normal((9, 4)).astype(np.float32), "x")))


CORPUS = [
    "How old is the car?", "Is the man smiling?", "Is the old man in the car?", "What color is the car?",
    "What is the man doing?", "How many cars are there?", "Is it sunny?", "What color is the sky?",
]  # fmt: skip


def sklearn_tfidf(fit, sentences):
    vectorizer = pytest.importorskip("sklearn.feature_extraction.text").TfidfVectorizer
    model = vectorizer(
        tokenizer=lambda s: features(s), preprocessor=None, lowercase=False, token_pattern=None, sublinear_tf=True
    )
    return model.fit(fit).transform(sentences)


def test_cosines_are_those_of_scikit_learn_up_to_the_projection():
    expected = sklearn_tfidf(CORPUS, CORPUS)
    expected = (expected @ expected.T).toarray()
    rows = TfIdf.fit(CORPUS, dim=1 << 16).encode(CORPUS)
    np.testing.assert_allclose(rows @ rows.T, expected, atol=0.02)


def test_tfidf_is_an_encoder_and_its_vectors_have_length_one():
    encoder = TfIdf.fit(CORPUS, dim=256)
    check_encoder(encoder)
    np.testing.assert_allclose(np.linalg.norm(encoder.encode(CORPUS), axis=1), 1, rtol=1e-5)


def test_rare_words_weigh_more():
    rows = TfIdf.fit(CORPUS, dim=4096).encode(["the car", "the smiling", "smiling"])
    assert rows[1] @ rows[2] > 0.6


def test_counts_of_a_file_are_those_that_stand_in_it(tmp_path):
    encoder = TfIdf.fit(CORPUS, dim=64)
    lines = [str(encoder.documents), *(f"{feature}\t{count}" for feature, count in encoder.counts.items()), ""]
    (tmp_path / "c.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    again = load_counts(tmp_path / "c.gz", dim=64)
    assert again.fingerprint == encoder.fingerprint
    np.testing.assert_array_equal(again.encode(CORPUS), encoder.encode(CORPUS))


def test_tfidf_of_a_file_counts_its_lines(tmp_path):
    (tmp_path / "corpus.txt").write_text("\n".join(CORPUS) + "\n\n")
    assert get_encoder(f"tfidf:{tmp_path / 'corpus.txt'}").fingerprint == TfIdf.fit(CORPUS).fingerprint


@given(st.lists(st.text(max_size=30), max_size=6))
def test_any_text_gives_finite_vectors(sentences):
    rows = TfIdf.fit(CORPUS, dim=32).encode(sentences)
    assert rows.shape == (len(sentences), 32)
    assert np.isfinite(rows).all()
