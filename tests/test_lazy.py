"""Names that are imported late."""

import sys

import pytest

from pfungst._lazy import lazy


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
    assert "answer" in dir(latecomer)
    first = latecomer.answer
    assert "latecomer._home" in sys.modules
    assert vars(latecomer)["answer"] is first


def test_an_unknown_name_is_an_attribute_error() -> None:
    get, _ = lazy("pfungst.models", {"build": "_registry"})
    with pytest.raises(AttributeError, match=r"module 'pfungst.models' has no attribute 'bild'"):
        get("bild")
