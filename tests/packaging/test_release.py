"""A release is refused with all its reasons; licences and constraints are what their commands write."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from scripts import licences, lock, release

ROOT = Path(__file__).parents[2]
PAGE = licences.PAGE.read_text("utf-8")
ROWS = {line.split(" | ")[0].removeprefix("| "): line for line in PAGE.splitlines() if line.startswith("| ")}


def test_every_package_of_the_lock_has_its_licence_on_the_page() -> None:
    for name, (number, _) in licences.locked().items():
        assert f"| {number} |" in ROWS[name]
        assert len(ROWS[name].split(" | ")[2].strip(" |")) > 1


def test_every_package_that_an_extra_names_has_a_licence_on_the_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = {canonicalize_name(Requirement(line).name) for lines in named for line in lines} - {"pfungst"}
    assert sorted(wanted - ROWS.keys()) == []


def test_every_file_of_weights_has_its_terms_on_the_page() -> None:
    listed = licences.data_files()
    package = ROOT / "src" / "pfungst"
    found = [path for kind in ("*.safetensors", "*.npz", "*.gz") for path in package.rglob(kind)]
    assert sorted(set(found) - listed.keys()) == []
    assert all(f"`{kind.files}`" in PAGE and kind.terms in PAGE for kind in listed.values())


def test_the_page_is_what_the_command_writes() -> None:
    other = licences.not_as_locked()
    if other:
        pytest.skip(f"not installed as requirements.lock says: {', '.join(other[:5])}")
    assert licences.page() == PAGE


def test_constraints_and_lock_pin_the_same_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = {
        canonicalize_name(name): number.split()[0]
        for name, _, number in (line.partition("==") for line in lines)
        if number
    }
    locked = {name: number.partition("+")[0] for name, (number, _) in licences.locked().items()}
    assert {name: number for name, number in locked.items() if pins.get(name, number) != number} == {}


def test_renewed_constraints_keep_the_lines_that_say_so() -> None:
    keep = lock.kept("# head\ntorch==2.0  # kept: because\nrich==1.0\n")
    found = [
        {"metadata": {"name": name, "version": number}} for name, number in (("torch", "3.1+cpu"), ("Rich", "2.0"))
    ]
    assert lock.constrained(found, keep) == f"{lock.HEAD}Rich==2.0\ntorch==2.0  # kept: because\n"


def test_a_bill_of_materials_names_every_part_once_with_checksum_and_licence(tmp_path: Path) -> None:
    if licences.not_as_locked():
        pytest.skip("not installed as requirements.lock says")
    wheel = tmp_path / "pfungst-1-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    bill = release.bill_of_materials("1", [wheel], 0)
    assert bill == release.bill_of_materials("1", [wheel], 0)
    parts = {part["bom-ref"]: part for part in bill["components"]}
    assert len(parts) == len(bill["components"])
    assert all(len(part["hashes"][0]["content"]) == 64 and part["licenses"] for part in parts.values())
    numpy = next(part for part in parts.values() if part["name"] == "numpy")
    assert numpy["scope"] == "required"
    assert parts["pfungst/models/weights/film.safetensors"]["type"] == "machine-learning-model"
    named = {bill["metadata"]["component"]["bom-ref"], *parts}
    assert all({one["ref"], *one["dependsOn"]} <= named for one in bill["dependencies"])


def test_a_release_is_refused_with_all_its_reasons(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n", "utf-8")
    (tmp_path / "CITATION.cff").write_text("version: 0.9\n", "utf-8")
    git("add", ".")
    git("commit", "-m", "first")
    git("tag", "v1.0")
    (tmp_path / "left.over").write_text("", "utf-8")
    said = "\n".join(release.not_ready(tmp_path, "1.0"))
    for reason in (
        "left.over",
        "v1.0 is tagged already",
        "no heading '## 1.0 (YYYY-MM-DD)'",
        "CITATION.cff names another",
    ):
        assert reason in said
    (tmp_path / "left.over").unlink()
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.1 (2026-11-18)\n", "utf-8")
    (tmp_path / "CITATION.cff").write_text("version: 1.1\n", "utf-8")
    git("commit", "-a", "-m", "second")
    assert release.not_ready(tmp_path, "1.1") == []
