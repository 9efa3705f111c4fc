"""Names that are imported late."""

import sys

import pytest

from pfungst._lazy import declared, lazy


def test_a_name_is_imported_once_from_its_home_and_listed_before(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "latecomer"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from pfungst._lazy import lazy\n__getattr__, __dir__ = lazy(__name__, {'answer': '_home'})\n"
    )
    (folder / "_home.py").write_text("answer = object()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import latecomer  # type: ignore[import-not-found]

    assert "latecomer._home" not in sys.modules
    assert "answer" in dir(latecomer) and "lazy" not in dir(latecomer)
    first = latecomer.answer
    assert "latecomer._home" in sys.modules
    assert vars(latecomer)["answer"] is first


def test_names_are_read_from_the_imports_for_type_checkers(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "declaring"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
        "    from declaring.inner.home import answer as answer\n    from declaring.other import A, B\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import declaring  # type: ignore[import-not-found]

    assert declared(declaring.__name__) == {"answer": "inner.home", "A": "other", "B": "other"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    get, _ = lazy("pfungst.models", {"build": "_registry"})
    with pytest.raises(AttributeError, match=r"module 'pfungst.models' has no attribute 'bild'"):
        get("bild")


def test_the_package_shows_what_is_public_and_nothing_else() -> None:
    import pfungst

    assert [name for name in dir(pfungst) if not name.startswith("__")] == sorted(
        set(pfungst.__all__) - {"__version__"}
    )
