"""Benchmarks run now and then only: what they import has to be there all the time."""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import sys
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).resolve().parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_of_the_package_is_there(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pfungst"):
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name) or importlib.util.find_spec(f"{node.module}.{name.name}")


def test_no_benchmark_hides_a_package_of_its_name():
    for path in BENCHMARKS:
        assert path.stem not in sys.stdlib_module_names
        assert importlib.machinery.PathFinder.find_spec(path.stem) is None
