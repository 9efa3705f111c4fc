"""Pfungst: does a visual question answering model reason, or is it a Clever Hans?

    import pfungst
    run = pfungst.examine(my_function, "world", out="runs/mine")

See `pfungst.core` for the vocabulary, `pfungst.data.load` for data sets, `pfungst.players` for models.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Run", "__version__", "compare", "examine", "rescore"]

if TYPE_CHECKING:
    from pfungst.api import Run, examine, rescore
    from pfungst.report.compare import compare

_WHERE = {"Run": "api", "examine": "api", "rescore": "api", "compare": "report.compare"}


def __getattr__(name: str) -> Any:
    # Late imports keep `import pfungst` and `pfungst --help` quick.
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(f"pfungst.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'pfungst' has no attribute {name!r}")
