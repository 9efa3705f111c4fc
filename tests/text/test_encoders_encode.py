"""`pfungst.text.encode`: rules, registry, the cache on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import pfungst.text
from pfungst.core import DataError, MissingExtra
from pfungst.core.files import cache_root
from pfungst.text.encoders import EncoderError, check_encoder, get_encoder
from pfungst.text.encoders import vectors as cache_module
from pfungst.text.encoders.vectors import ENCODERS


class Counting:
    """Encodes a sentence as its length and its first letter, and counts how many it was asked."""

    name = "counting"
    fingerprint = "counting-1"
    dim = 2

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, sentences):
        self.asked += sentences
        rows = [[len(one), ord(one[0])] if one.strip() else [0, 0] for one in sentences]
        return np.array(rows, np.float32).reshape(len(sentences), 2)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def many(count: int) -> list[str]:
    return [f"{chr(97 + i % 26)}{'x' * i}" for i in range(count)]


def test_rows_come_in_the_order_of_the_sentences_and_equal_ones_are_asked_once():
    encoder = Counting()
    rows = pfungst.text.encode(["bb", "a", "bb", "", "a"], encoder)
    assert rows.tolist() == [[2, 98], [1, 97], [2, 98], [0, 0], [1, 97]]
    assert rows.dtype == np.float32
    assert encoder.asked == ["bb", "a", ""]


def test_a_list_is_encoded_once_and_comes_back_as_a_memory_map():
    first, second = Counting(), Counting()
    rows = pfungst.text.encode(many(100), first)
    again = pfungst.text.encode(many(100), second)
    assert isinstance(again, np.memmap)
    assert not again.flags.writeable
    assert (len(first.asked), len(second.asked)) == (100, 0)
    np.testing.assert_array_equal(rows, again)


def test_other_sentences_another_order_or_another_encoder_are_other_vectors(cache):
    pfungst.text.encode(many(50), Counting())
    other = Counting()
    other.fingerprint = "counting-2"
    for sentences, encoder in ((many(51), Counting()), (many(50)[::-1], Counting()), (many(50), other)):
        pfungst.text.encode(sentences, encoder)
        assert len(encoder.asked) == len(sentences)
    assert len(list(cache.rglob("*.npy"))) == 4


def test_lists_that_join_to_the_same_text_are_kept_apart():
    one, two = Counting(), Counting()
    one_key = cache_module.content_key(one, ["ab", "c"])
    assert one_key != cache_module.content_key(two, ["a", "bc"])
    assert one_key != cache_module.content_key(two, ["ab\n1\nc"])


def test_without_the_cache_nothing_is_written(cache):
    pfungst.text.encode(many(100), Counting(), cache=False)
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path / "file"))
    assert pfungst.text.encode(many(100), Counting()).shape == (100, 2)


@pytest.mark.parametrize("damage", [b"", b"junk", b"\x93NUMPY"])
def test_a_damaged_file_is_made_again(damage, cache):
    rows = np.array(pfungst.text.encode(many(60), Counting()))
    next(cache.rglob("*.npy")).write_bytes(damage)
    np.testing.assert_array_equal(pfungst.text.encode(many(60), Counting()), rows)


def test_progress_is_told_by_chunks(monkeypatch):
    monkeypatch.setattr(cache_module, "CHUNK", 40)
    told = []
    pfungst.text.encode(many(100), Counting(), progress=lambda done, total: told.append((done, total)))
    assert told == [(40, 100), (80, 100), (100, 100)]


class Failing(Counting):
    def encode(self, sentences):
        if len(self.asked) >= 80:
            raise RuntimeError("power cut")
        return super().encode(sentences)


def test_an_interrupted_list_goes_on_where_it_was(monkeypatch, cache):
    monkeypatch.setattr(cache_module, "CHUNK", 40)
    with pytest.raises(RuntimeError):
        pfungst.text.encode(many(100), Failing())
    encoder = Counting()
    rows = pfungst.text.encode(many(100), encoder)
    assert encoder.asked == many(100)[80:]
    np.testing.assert_array_equal(rows, Counting().encode(many(100)))
    assert sorted(one.suffix for one in cache.rglob("*.*")) == [".crc", ".npy"]


def test_a_count_of_rows_that_was_cut_short_is_not_believed(monkeypatch, cache):
    monkeypatch.setattr(cache_module, "CHUNK", 40)
    with pytest.raises(RuntimeError):
        pfungst.text.encode(many(100), Failing())
    next(cache.rglob("*.rows")).write_text("8")
    encoder = Counting()
    pfungst.text.encode(many(100), encoder)
    assert len(encoder.asked) == 100


KILLED = """
import sys, time
sys.path.insert(0, sys.argv[1])
import test_encoders_encode as t, pfungst.text
from pfungst.core.files import cache_root
from pfungst.text.encoders import vectors
vectors.CHUNK = 10
class Slow(t.Counting):
    def encode(self, sentences):
        time.sleep(0.02)
        return super().encode(sentences)
encoder = Slow()
pfungst.text.encode(t.many(400), encoder)
print(len(encoder.asked))
"""


def test_a_killed_process_is_continued_by_the_next_with_the_same_vectors(cache):
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent)]
    process = subprocess.Popen(command)
    while not any(int(one.read_text() or 0) > 100 for one in cache.rglob("*.rows")):
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert 0 < int(said) <= 300
    np.testing.assert_array_equal(pfungst.text.encode(many(400), Counting()), Counting().encode(many(400)))


@pytest.mark.parametrize(
    ("sentences", "sentence"),
    [
        ("one sentence", "Put it in a list of one"),
        (["fine", 7], "Sentence 1 is 7 of type int"),
        (["fine", None], "Sentence 1 is None of type NoneType"),
        ([b"bytes"], "type bytes"),
        ([float("nan")], "Sentence 0 is nan of type float"),
    ],
)
def test_what_is_not_a_list_of_text_is_refused_with_its_place(sentences, sentence):
    with pytest.raises(DataError, match=sentence):
        pfungst.text.encode(sentences, Counting())


def test_no_sentences_give_an_empty_array():
    assert pfungst.text.encode([], Counting()).shape == (0, 2)


class Wrong(Counting):
    def __init__(self, rows) -> None:
        super().__init__()
        self.rows = rows

    def encode(self, sentences):
        return self.rows(super().encode(sentences))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [(lambda rows: rows[:-1], "shape"), (lambda rows: rows * np.nan, "NaN or infinity for 'a'")],
)
def test_an_encoder_that_returns_nonsense_is_not_believed(rows, sentence):
    with pytest.raises(EncoderError, match=sentence):
        pfungst.text.encode(["a", "bb"], Wrong(rows))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (lambda rows: rows.astype(np.float64), "float32"),
        (lambda rows: rows[:, :1], "shape"),
        (lambda rows: rows + 1, "zeros for a sentence without words"),
        (lambda rows: rows * 0, "one vector for different"),
        (lambda rows: rows * len(rows), "when it is encoded alone"),
        (lambda rows: rows * np.inf, "NaN or infinity"),
        (lambda rows: np.arange(rows.size, dtype=np.float32).reshape(rows.shape) * (rows > 0), "two vectors for one"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_check_encoder_says_what_is_wrong(rows, sentence):
    with pytest.raises(EncoderError, match=sentence):
        check_encoder(Wrong(rows))


def test_check_encoder_likes_a_good_one():
    check_encoder(Counting())


@pytest.mark.parametrize("name", ENCODERS.names())
def test_every_registered_encoder_that_can_run_here_keeps_the_rules(name, tmp_path):
    words = tmp_path / "vectors.txt"
    rng = np.random.default_rng(0)
    known = ("how", "old", "is", "the", "car", "man", "smiling", "das", "auto", "word")
    words.write_text(
        "".join(f"{word} {' '.join(f'{value:.4f}' for value in rng.standard_normal(8))}\n" for word in known)
    )
    try:
        encoder = get_encoder({"words": f"words:{words}"}.get(name, name))
    except MissingExtra as error:
        pytest.skip(str(error))
    except EncoderError as error:
        assert name == "sentence-transformers" and "NAME" in str(error)  # only with a model of the user's
        return
    check_encoder(encoder)


def test_the_cache_folder_is_the_users_own_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv("PFUNGST_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_root() == tmp_path / "xdg" / "pfungst"


def test_names_that_are_not_known_are_listed():
    with pytest.raises(EncoderError, match=r"no encoder called 'nothing'.*minilm, .*skip-thoughts"):
        get_encoder("nothing")
    with pytest.raises(EncoderError, match="words:FILE"):
        get_encoder("words")


def test_minilm_without_its_package_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pfungst\[minilm\]"):
        get_encoder("minilm")


def test_a_third_party_encoder_is_found_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "my_encoder.py").write_text(
        "import numpy as np\n"
        "class Mine:\n"
        "    name, fingerprint, dim = 'mine', 'mine-1', 3\n"
        "    def __init__(self, argument): self.argument = argument\n"
        "    def encode(self, sentences): return np.ones((len(sentences), 3), np.float32)\n"
        "def broken(argument): return 5\n"
    )
    info = tmp_path / "my_encoder-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: my-encoder\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[pfungst.encoders]\nmine = my_encoder:Mine\nbroken = my_encoder:broken\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "mine" in ENCODERS.names()
    assert get_encoder("mine:x").argument == "x"
    assert pfungst.text.encode(["a"], "mine:y").shape == (1, 3)
    with pytest.raises(EncoderError, match="encoder broken returned none"):
        get_encoder("broken")


def run_without(*modules: str) -> str:
    code = (
        f"import sys\nfor name in {modules!r}: sys.modules[name] = None\n"
        "import pfungst.text\n"
        "rows = pfungst.text.encode(['How old is the car?', ''])\n"
        "print(rows.shape[0], rows.dtype, bool(rows[0].any()), bool(rows[1].any()), 'torch' in sys.modules)"
    )
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    ).stdout


def test_the_default_works_without_torch_and_without_any_other_package():
    assert run_without("torch", "transformers", "sentence_transformers", "sklearn").split()[:4] == [
        "2",
        "float32",
        "True",
        "False",
    ]


def test_the_default_does_not_load_torch():
    code = "import sys, pfungst.text; pfungst.text.encode(['a car']); print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "False"
    )


@pytest.mark.parametrize("name", ["skip-thoughts", "tfidf"])
def test_the_embedded_encoders_pass_the_check(name):
    encoder = get_encoder(name)
    check_encoder(encoder)
    rows = encoder.encode(["How old is the car?", "What is the age of the car?", "Where is the ocean?"])
    assert rows[0] @ rows[1] > rows[0] @ rows[2]


def test_the_embedded_encoder_is_a_few_megabytes():
    from pfungst.text.encoders.vectors import EMBEDDED

    assert EMBEDDED.stat().st_size < 8e6
    assert (EMBEDDED.parent / "README.md").is_file()


def test_what_is_no_encoder_is_told():
    with pytest.raises(EncoderError, match="object is no encoder: one has name, fingerprint, dim and encode"):
        pfungst.text.encode(["How old is the car?"], object())  # type: ignore[arg-type]
