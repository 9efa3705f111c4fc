"""What `pfungst` alone says."""

from __future__ import annotations

GREETING = """\
Pfungst {version}: does a visual question answering model reason, or is it a Clever Hans?

Three commands to try:
  pfungst tour                          five minutes through the tool, on a world that comes with it
  pfungst examine rn-state --limit 50   examine a model that comes with it; ends with the path of a report
  pfungst doctor                        what this machine has, and what is missing

All commands: pfungst --help. One of them: pfungst examine --help.
Docs: docs/index.md in the source, tutorials first; `make docs` builds the site."""


def greet() -> None:
    """Print it."""
    from pfungst import __version__

    print(GREETING.format(version=__version__))
