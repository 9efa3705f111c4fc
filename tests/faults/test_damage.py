"""Files of ours that were cut short, emptied, or have one flipped bit: noticed, and made again or refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pfungst
from pfungst.compute import make_shards, run_shards
from pfungst.core import PfungstError
from pfungst.core.errors import PfungstWarning
from tests.compute import compute_jobs as jobs
from tests.conftest import squares
from tests.faults.players import Noting

Harm = Callable[[bytes], bytes]


def flipped(content: bytes) -> bytes:
    """One bit, somewhere in the second half, where content stands and not headers."""
    data = bytearray(content)
    data[len(data) * 3 // 4] ^= 4
    return bytes(data)


HARMS: dict[str, Harm] = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "flipped bit": flipped,
    "zeros": lambda content: bytes(len(content)),
}


@pytest.fixture(params=HARMS)
def harm(request: pytest.FixtureRequest) -> Harm:
    return HARMS[request.param]


def spoil(path: Path, harm: Harm) -> None:
    path.write_bytes(harm(path.read_bytes()))


# --- answer store -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    pfungst.examine(Noting(str(place / "log")), squares(60), ["control"], place / "run")
    return place


def test_a_damaged_answer_store_is_refused_or_what_is_damaged_asked_again(
    whole: Path, harm: Harm, tmp_path: Path
) -> None:
    """Whatever happens to the file, either a sentence comes or the numbers are those of the whole run."""
    run = _copied(whole / "run", tmp_path / "run")
    spoil(run / "answers.sqlite", harm)
    try:
        pfungst.examine(Noting(str(tmp_path / "log")), squares(60), ["control"], run)
    except PfungstError as error:
        assert "answers.sqlite" in str(error)
    else:
        assert (run / "findings.json").read_bytes() == (whole / "run" / "findings.json").read_bytes()


def test_no_flipped_bit_in_the_store_changes_a_number(whole: Path, tmp_path: Path) -> None:
    """Forty places all over the file: never another result, and never a traceback."""
    import warnings

    rng = random.Random(3)
    content = (whole / "run" / "answers.sqlite").read_bytes()
    numbers = (whole / "run" / "findings.json").read_bytes()
    ended = {"the same": 0, "refused": 0}
    for number in range(40):
        run = _copied(whole / "run", tmp_path / str(number))
        (run / "findings.json").unlink()
        data = bytearray(content)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (run / "answers.sqlite").write_bytes(bytes(data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PfungstWarning)
            try:
                pfungst.examine(Noting(str(tmp_path / "log")), squares(60), ["control"], run)
            except PfungstError as error:
                assert str(error)
                ended["refused"] += 1
                continue
        assert (run / "findings.json").read_bytes() == numbers
        ended["the same"] += 1
    assert ended["the same"], "no flipped bit was mended"


def test_no_flipped_bit_in_the_trials_changes_an_answer_or_a_score(whole: Path, tmp_path: Path) -> None:
    from pfungst.core import Run

    rng = random.Random(4)
    run = _copied(whole / "run", tmp_path / "run")
    file = run / "trials" / "control.parquet"
    content, right = file.read_bytes(), list(Run.open(run).rows())
    refused = 0
    for _ in range(150):
        data = bytearray(content)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        file.write_bytes(bytes(data))
        try:
            assert list(Run.open(run).rows()) == right
        except PfungstError as error:
            assert "control.parquet" in str(error)
            refused += 1
    assert refused


def _copied(run: Path, to: Path) -> Path:
    import shutil

    shutil.copytree(run, to)
    return to


# --- shards -----------------------------------------------------------------------------------------------------------


def test_a_damaged_shard_is_done_again(harm: Harm, tmp_path: Path) -> None:
    shards = make_shards(list(range(4)), seed=5)
    files = run_shards(jobs.draw, shards, tmp_path)
    right = [file.read_bytes() for file in files]
    spoil(files[1], harm)
    spoil(tmp_path / ".done" / f"{files[2].name}.json", harm)
    assert [file.read_bytes() for file in run_shards(jobs.draw, shards, tmp_path)] == right


# --- caches -----------------------------------------------------------------------------------------------------------


def test_damaged_vectors_in_the_cache_are_encoded_again(
    harm: Harm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pfungst.text import encode

    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path))
    sentences = [f"Is thing {n} red?" for n in range(50)]
    right = np.array(encode(sentences))
    (file,) = (tmp_path / "vectors").rglob("*.npy")
    spoil(file, harm)
    assert np.array_equal(np.array(encode(sentences)), right)


def test_a_damaged_ranking_in_the_cache_is_made_again(
    harm: Harm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pfungst.probes.noise import ranked
    from pfungst.probes.noise.probe import Noise

    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path))
    probe, data = Noise(ranker="rouge", k=1), squares(4, 3)
    monkeypatch.setattr(ranked, "_latest", None)
    right = probe.rankings(data)
    (file,) = (tmp_path / "rankings").rglob("*.npz")
    spoil(file, harm)
    monkeypatch.setattr(ranked, "_latest", None)
    assert probe.rankings(data) == right


def test_a_damaged_world_in_the_cache_is_made_again(
    harm: Harm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pfungst.world import embedded

    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path))
    right = [(example.id, example.question, example.target) for example in embedded(2)]
    (file,) = (tmp_path / "world").glob("*.json")
    spoil(file, harm)
    assert [(example.id, example.question, example.target) for example in embedded(2)] == right


# --- weights ----------------------------------------------------------------------------------------------------------


def test_damaged_weights_are_refused(harm: Harm, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from pfungst.models import load_tensors, save_tensors

    file = tmp_path / "some.safetensors"
    save_tensors(file, {"a": torch.arange(500.0), "b": torch.zeros(3, 4)}, {"model": "x"})
    assert load_tensors(file)[1] == {"model": "x"}
    spoil(file, harm)
    with pytest.raises(PfungstError, match=r"some\.safetensors"):
        load_tensors(file)


def test_weights_of_others_without_a_checksum_are_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    from pfungst.models import load_tensors

    save_file({"a": torch.ones(3)}, tmp_path / "theirs.safetensors")
    assert load_tensors(tmp_path / "theirs.safetensors")[0]["a"].tolist() == [1, 1, 1]


def test_saved_weights_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from pfungst.models import save_tensors

    notes = {name: name for name in "zyxabc"}
    for name in ("one", "two"):
        save_tensors(tmp_path / name, {"b": torch.ones(2), "a": torch.zeros(2)}, notes)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_all_weights_of_the_package_have_a_checksum() -> None:
    """`sha256sum *.safetensors > SHA256SUMS` in their folder, or saved by `save_tensors`, which writes one."""
    from pfungst.core.seal import SUMS, check_sum
    from pfungst.models.names import SHIPPED
    from pfungst.text.encoders.vectors import EMBEDDED

    for folder in (SHIPPED, EMBEDDED.parent):
        listed = {line.split()[1] for line in (folder / SUMS).read_text().splitlines()}
        for file in sorted(folder.glob("*.safetensors")):
            content = file.read_bytes()
            check_sum(file, content)
            assert file.name in listed or b'"sha256"' in content[:100_000], f"{file.name} has no checksum"


def test_a_published_file_that_differs_from_its_sum_is_refused(tmp_path: Path) -> None:
    import shutil

    from pfungst.core.seal import SUMS
    from pfungst.text.encoders.skip_thoughts import SkipThoughts
    from pfungst.text.encoders.vectors import EMBEDDED

    for name in (EMBEDDED.name, SUMS):
        shutil.copy(EMBEDDED.parent / name, tmp_path)
    spoil(tmp_path / EMBEDDED.name, flipped)
    with pytest.raises(PfungstError, match="SHA256SUMS"):
        SkipThoughts.load(tmp_path / EMBEDDED.name)


def test_damaged_features_in_the_cache_are_never_used(harm: Harm, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from pfungst.models.features.cache import FeatureCache

    class Means:
        name = fingerprint = "means"
        shape = (2, 2, 2)
        count = 0

        def extract(self, images: Any) -> Any:
            self.count += len(images)
            return np.stack([np.full(self.shape, sum(image.read()) % 251, np.float16) for image in images])

    images = [example.image for example in squares(40, 1)]
    right = FeatureCache(Means(), tmp_path).get(images)
    again = Means()
    assert np.array_equal(FeatureCache(again, tmp_path).get(images), right) and again.count == 0
    spoil(tmp_path / "features.bin", harm)
    try:
        assert np.array_equal(FeatureCache(Means(), tmp_path).get(images), right)
    except PfungstError as error:
        assert "the feature cache is damaged" in str(error)
    else:
        mended = Means()
        assert np.array_equal(FeatureCache(mended, tmp_path).get(images), right) and mended.count == 0
