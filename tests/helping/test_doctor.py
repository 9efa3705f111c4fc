"""The doctor says what is there, what is missing, and what to do."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pfungst.helping import diagnose, machine

ROOT = Path(__file__).parents[2]
FOR_DEVELOPERS = {"dev", "docs", "bench"}


@pytest.fixture
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_every_extra_is_explained(project: dict[str, Any]) -> None:
    assert set(machine.EXTRAS) == set(project["optional-dependencies"]) - FOR_DEVELOPERS


def test_every_extra_stands_in_the_docs() -> None:
    page = (ROOT / "docs" / "howto" / "install.md").read_text("utf-8")
    missing = [name for name, use in machine.EXTRAS.items() if f"| `{name}` | {use} |" not in page]
    assert not missing, "docs/howto/install.md has another table of extras than pfungst.helping.machine"


def test_here_nothing_is_broken() -> None:
    found = {one.what: one for one in diagnose()}
    assert not [one for one in found.values() if one.state == "broken"]
    assert found["weights of the zoo"].state == found["extra torch"].state == "ok"
    assert {"Python", "Pfungst", "BLAS threads", "GPU", "cache", "Chromium"} <= set(found)


def test_what_is_missing_says_its_cost_and_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "installed", lambda package: None if package == "torch" else "99")
    found = {one.what: one for one in diagnose()}
    torch = found["extra torch"]
    assert torch.state == "missing" and "zoo" in torch.costs and torch.cure == "pip install 'pfungst[torch]'"
    assert all(one.costs and one.cure for one in found.values() if one.state != "ok")
    assert found["extra web"].state == "ok"


def test_a_version_that_is_too_old_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "installed", lambda package: "4.57.0" if package == "transformers" else "99")
    assert machine.missing("hf") == ["transformers>=5.0"]


@pytest.mark.parametrize(
    ("old", "new"), [("2.9", "2.10"), ("5.0rc1", "5.1"), ("1", "1.0.1"), ("2.13.0+cpu", "2.13.1"), ("", "0.1")]
)
def test_versions_are_ordered_as_numbers(old: str, new: str) -> None:
    assert machine.numbers(old) < machine.numbers(new)


def test_damaged_weights_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = tmp_path / "models" / "weights"
    weights.mkdir(parents=True)
    (weights / "good.safetensors").write_bytes(b"")
    (weights / "bad.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    names = ("good", "bad", "gone")
    (weights / "SHA256SUMS").write_text("".join(f"{empty}  {name}.safetensors\n" for name in names))
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "helping" / "machine.py"))
    found = {one.what: one for one in diagnose()}["weights of the zoo"]
    assert found.state == "broken" and found.found.startswith("2 of 3") and "good" not in found.found


def test_more_threads_than_cores_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "available_cores", lambda: 0)
    found = {one.what: one for one in diagnose()}["BLAS threads"]
    assert found.state == "missing" and found.cure.startswith("export OMP_NUM_THREADS=")


def test_a_check_that_fails_is_told_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("nvidia-smi is upset")

    monkeypatch.setattr(machine, "visible_gpus", broken)
    found = {one.what: one for one in diagnose()}
    assert found["gpu"].state == "broken" and "nvidia-smi is upset" in found["gpu"].found
    assert found["cache"].state == "ok"


def test_the_command_exits_with_3_where_something_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import typer

    from pfungst.cli.helping import doctor as command

    monkeypatch.setattr(machine, "OLDEST", (99, 0))
    with pytest.raises(typer.Exit) as exit_:
        command(as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert exit_.value.exit_code == 3 and told["ok"] is False
    assert [one["what"] for one in told["checks"] if one["state"] == "broken"] == ["Python"]
