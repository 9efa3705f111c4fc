"""The cache is shown and cleared, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pfungst
from pfungst.core import PfungstError, UsageError
from pfungst.core.files import cache_dir
from pfungst.helping import clear, kept, machine

SOURCE = Path(pfungst.__file__).parent
HEX = "0123456789abcdef"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def put(path: Path, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def test_every_folder_that_the_code_makes_is_known() -> None:
    made = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        made |= set(re.findall(r'cache_dir\("([\w-]+)"\)', text))
        made |= set(re.findall(r'cache_root\(\) / "([\w-]+)"', text))
    assert made == set(machine.SHELVES) - {"skip-thoughts"}, "that shelf is of earlier versions"


def test_an_exam_leaves_nothing_that_is_not_known(root: Path, tmp_path: Path) -> None:
    pfungst.examine(
        "oracle", "world?scenes=3", probes=["decoys", "noise:k=3,partitions=1,ranker=rouge"], out=tmp_path / "run"
    )
    found = {one.name: one for one in kept()}
    assert {"world", "decoys", "rankings"} <= set(found)
    assert not [one for one in found.values() if one.foreign]
    assert sum(one.files for one in found.values()) == sum(path.is_file() for path in root.rglob("*"))
    clear()
    assert not [path for path in root.rglob("*") if path.is_file()] and (tmp_path / "run" / "findings.json").exists()


def test_files_of_others_stay(root: Path) -> None:
    ours = put(root / "rankings" / f"{HEX * 4}.npz", 100)
    half = put(root / "rankings" / f".{HEX * 4}.npz.0a1b2c3d.tmp", 5)
    theirs = [put(root / "rankings" / "thesis.npz"), put(root / "world" / "map.json"), put(root / "photos" / "a.png")]
    (found, other) = sorted(kept(), key=lambda one: one.name)
    assert (found.files, found.size, found.foreign) == (2, 105, 1) and (other.files, other.foreign) == (0, 1)
    clear()
    assert not ours.exists() and not half.exists() and all(path.exists() for path in theirs)


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / f"{HEX * 4}.npz")
    (root / "rankings").mkdir(parents=True)
    (root / "rankings" / f"{HEX * 3}{HEX[::-1]}.npz").symlink_to(outside)
    (root / "vectors").mkdir()
    (root / "vectors" / "encoder").symlink_to(outside.parent)
    (root / "world").symlink_to(outside.parent)
    clear()
    assert outside.exists()


def test_what_was_paid_for_is_cleared_only_by_name(root: Path) -> None:
    paid = put(root / "rephrasings" / "answers.sqlite")
    clear()
    assert paid.exists()
    (before,) = clear(["rephrasings"])
    assert before.precious and not paid.exists()


def test_only_the_named_folder_is_cleared(root: Path) -> None:
    gone, stays = put(root / "world" / f"{HEX * 2}.json"), put(root / "rankings" / f"{HEX * 4}.npz")
    clear(["world"])
    assert not gone.exists() and stays.exists()


def test_an_unknown_folder_is_wrong_usage(root: Path) -> None:
    with pytest.raises(UsageError, match="no folder 'runs'"):
        clear(["runs"])


def test_an_empty_cache_is_no_error(root: Path) -> None:
    assert kept() == [] and clear() == []


def test_a_cache_that_cannot_be_made_is_a_sentence_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(PfungstError, match=r"cannot be made \(Not a directory\)\. Name another .* PFUNGST_CACHE"):
        cache_dir("rankings")


def test_sizes_are_words() -> None:
    assert [machine.sized(size) for size in (0, 999, 1_500, 2_340_000_000)] == [
        "0 bytes",
        "999 bytes",
        "1.5 KB",
        "2.3 GB",
    ]
