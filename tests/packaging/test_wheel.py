"""What `pip install pfungst` brings is complete, and the same bytes whoever builds it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripts.release import JUNK, LARGEST_WHEEL, wrong_files

pytest.importorskip("hatchling", reason="the build backend is not installed (extra dev)")

ROOT = Path(__file__).parents[2]
EPOCH = "1700000000"


@dataclass(frozen=True)
class Built:
    wheel: Path
    archive: Path


def build(source: Path, out: Path, kind: str) -> Path:
    words = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(out)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    subprocess.run(words, cwd=source, env=environment, check=True, capture_output=True)
    [made] = out.iterdir()
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    out = tmp_path_factory.mktemp("built")
    return Built(build(ROOT, out / "wheel", "wheel"), build(ROOT, out / "archive", "sdist"))


def test_a_wheel_built_from_the_source_archive_has_the_bytes_of_one_built_from_the_tree(
    built: Built, tmp_path: Path
) -> None:
    with tarfile.open(built.archive) as packed:
        packed.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").iterdir()
    again = build(source, tmp_path / "again", "wheel")
    assert again.name == built.wheel.name
    assert again.read_bytes() == built.wheel.read_bytes()


def test_the_wheel_is_small_enough_and_holds_all_that_is_no_code(built: Built) -> None:
    assert built.wheel.stat().st_size <= LARGEST_WHEEL
    names = set(zipfile.ZipFile(built.wheel).namelist())
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and not JUNK.search(path.relative_to(source).as_posix())
    }
    assert sorted(wanted - names) == []
    some = ("py.typed", "models/weights/film.safetensors", "report/templates/report.html", "study/templates/item.html",
            "helping/skeletons/player.py.txt", "text/wordnet_data/wordnet30.npz")  # fmt: skip
    assert {f"pfungst/{name}" for name in some} <= names
    assert not [name for name in names if JUNK.search(name)]


def test_the_source_archive_holds_what_belongs_to_the_project_and_no_junk(built: Built) -> None:
    with tarfile.open(built.archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"tests/packaging/test_wheel.py", "docs/index.md", "README.md", "LICENSE", "constraints.txt"} <= names
    assert not [name for name in names if JUNK.search(name)]
    assert {name.partition("/")[0] for name in names} <= {path.name for path in ROOT.iterdir()} | {"PKG-INFO"}


def bring_compiled_kernels(site: Path) -> None:
    """What numba has compiled for the sources here it takes for the same sources there, by their size and time."""
    source = ROOT / "src"
    for path in source.rglob("__pycache__/*.nb[ic]"):
        there = site / path.relative_to(source)
        there.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, there)
    for path in source.rglob("*.py"):
        if (site / path.relative_to(source)).read_bytes() == path.read_bytes():
            os.utime(site / path.relative_to(source), ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))


def test_an_empty_environment_with_the_wheel_alone_examines_a_player(built: Built, tmp_path: Path) -> None:
    """An environment of its own that finds the packages of this one, but nothing of the source folder."""
    home = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    python = home / "bin" / "python"
    [site] = home.glob("lib/python*/site-packages")
    # A path named in a .pth file is searched, but its own .pth files (the editable install) are not read.
    (site / "others.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("-packages")), "utf-8")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--no-compile", str(built.wheel)], check=True)
    bring_compiled_kernels(site)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    words = ["examine", "rn-state", "--limit", "20", "--out", "first"]
    done = subprocess.run(
        [str(home / "bin" / "pfungst"), *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "first" / "report.html").stat().st_size > 10_000
    where = subprocess.run(
        [str(python), "-c", "import pfungst, sys; print(pfungst.__file__); print(*sys.path, sep='\\n')"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert Path(where[0]).is_relative_to(home)
    assert str(ROOT / "src") not in where[1:]


def test_a_file_missing_from_the_wheel_and_one_too_many_are_named(tmp_path: Path) -> None:
    wheel, archive = tmp_path / "pfungst-1-py3-none-any.whl", tmp_path / "pfungst-1.tar.gz"
    with zipfile.ZipFile(wheel, "w") as opened:
        opened.writestr("pfungst/__init__.py", "")
        opened.writestr("pfungst/left.over", "")
        opened.writestr("pfungst-1.dist-info/RECORD", "")
    extra = tmp_path / "runs" / "exam.json"
    extra.parent.mkdir()
    extra.write_text("{}", "utf-8")
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(extra, "pfungst-1/runs/exam.json")
    said = wrong_files([wheel, archive], {"src/pfungst/__init__.py", "src/pfungst/py.typed"})
    assert "The wheel lacks pfungst/py.typed." in said
    assert "The wheel has pfungst/left.over, which git does not know." in said
    assert "The source archive has runs/exam.json, which git does not know." in said
    assert "The source archive lacks src/pfungst/__init__.py." in said
