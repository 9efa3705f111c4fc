"""Pfungst: does a visual question answering model reason, or is it a Clever Hans?

    import pfungst
    run = pfungst.examine(my_function, "world", out="runs/mine")

See `pfungst.core` for the vocabulary and `pfungst.players` for models.
"""

import os
from typing import TYPE_CHECKING

from pfungst._lazy import lazy

__version__ = "0.1.0"
__all__ = ["Run", "__version__", "compare", "examine", "import_logs", "load", "rescore"]

if TYPE_CHECKING:
    from pfungst.api import Run, examine, rescore
    from pfungst.data import load
    from pfungst.importing import import_logs
    from pfungst.report.compare import compare

_HOMES = {
    "Run": "api",
    "compare": "report.compare",
    "examine": "api",
    "import_logs": "importing",
    "load": "data",
    "rescore": "api",
}

if os.environ.get("PFUNGST_OFFLINE"):
    from pfungst.core.offline import stay_offline

    stay_offline()

# Late imports keep `import pfungst` and `pfungst --help` quick.
__getattr__, __dir__ = lazy(__name__, _HOMES)
