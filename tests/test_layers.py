"""Parts that are named by a string obey the import contract too."""

from __future__ import annotations

import configparser
from importlib import import_module
from pathlib import Path

import pytest

from pfungst.core.registry import Registry

ROOT = Path(__file__).parents[1]


def layers() -> dict[str, int]:
    """Package -> how far down it is, as .importlinter says."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    lines = parser["importlinter:contract:road"]["layers"].split("\n")
    rows = [line.replace(":", " ").replace("|", " ").split() for line in lines if line.strip()]
    return {package: depth for depth, row in enumerate(rows) for package in row}


def depth(module: str) -> int:
    known = layers()
    package = ".".join(module.split(".")[:2])
    assert package in known, f"{package} is missing in .importlinter"
    return known[package]


def registries() -> list[tuple[str, str]]:
    """Module and name of every registry of the package."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for line in path.read_text().splitlines():
            name, equals, value = line.partition(" = ")
            if equals and name.isidentifier() and value.startswith("Registry("):
                parts = path.relative_to(ROOT / "src").with_suffix("").parts
                found.append((".".join(part for part in parts if part != "__init__"), name))
    return found


def test_all_registries_are_found() -> None:
    assert len(registries()) >= 11
    assert ("pfungst.probes.rephrase.generators", "REPHRASERS") in registries()


@pytest.mark.parametrize(("module", "name"), registries())
def test_no_registry_names_a_part_that_its_package_may_not_import(module: str, name: str) -> None:
    pytest.importorskip("torch")
    registry = getattr(import_module(module), name)
    assert isinstance(registry, Registry)
    for part, place in registry.builtin.items():
        if isinstance(place, str) and place.startswith("pfungst."):
            home = place.partition(":")[0]
            assert depth(home) >= depth(module), f"{module}.{name} names {place} for {part}"
            assert callable(registry.get(part)) or hasattr(registry.get(part), "run")
