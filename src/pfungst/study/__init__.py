"""Studies: what people are asked, from a link to a table. `pfungst study`.

    from pfungst.study import new_study, open_study, study_results, serve

Every name is loaded when it is first used.
"""

from __future__ import annotations

from typing import Any

from pfungst._lazy import lazy

_HOMES = {
    "KINDS": "kinds",
    "Results": "results",
    "Rules": "settings",
    "Study": "folder",
    "StudySettings": "settings",
    "export_study": "results",
    "make_app": "app",
    "make_demo": "folder",
    "new_study": "folder",
    "open_study": "folder",
    "serve": "app",
    "study_results": "results",
}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

_get, __dir__ = lazy(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    try:
        return _get(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("sqlalchemy", "starlette", "uvicorn"):
            raise
        from pfungst.core import MissingExtra

        raise MissingExtra("pfungst study", "study") from None
