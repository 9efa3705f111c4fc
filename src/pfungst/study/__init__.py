"""Studies: what people are asked, from a link to a table. `pfungst study`.

    from pfungst.study import new_study, open_study, study_results, serve

Every name is loaded when it is first used.
"""

from __future__ import annotations

from pfungst._lazy import lazy

_HOMES = {
    "KINDS": "kinds",
    "Results": "results",
    "Study": "folder",
    "StudySettings": "settings",
    "back_up": "backup",
    "export_study": "exports",
    "make_app": "app",
    "make_demo": "demo",
    "new_study": "making",
    "open_study": "folder",
    "restore": "backup",
    "serve": "serving",
    "study_results": "results",
}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy(__name__, _HOMES)
