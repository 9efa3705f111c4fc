"""pfungst cache"""

from __future__ import annotations

from typing import Annotated

import typer

from pfungst.cli.examine import Json


def cache(
    names: Annotated[list[str] | None, typer.Argument(help="Only these folders of the cache.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Delete what they hold.")] = False,
    as_json: Json = False,
) -> None:
    """Show what is cached, or clear it. Runs are not part of it, and files of others are never touched.

    What is cleared is made again when it is needed. What was paid for (`rephrasings`) is cleared only when it is named.
    """
    from pfungst.cli.show import print_json, print_table
    from pfungst.core.files import cache_root
    from pfungst.helping import clear as clear_cache
    from pfungst.helping import kept
    from pfungst.helping.cache import sized

    found = clear_cache(names or ()) if clear else kept(names or ())
    size = sum(one.size for one in found)
    if as_json:
        print_json({"folder": cache_root(), "cleared": clear, "size": size, "kept": found})
        return
    rows = [(one.name, one.about, f"{one.files:,}", sized(one.size)) for one in found]
    if rows:
        print_table("", ("folder", "what it holds", "files", "size"), rows)
    print(f"{cache_root()}: {sized(size)}{' cleared' if clear else ''}.")
    for one in found:
        if one.foreign:
            print(f"{one.folder} holds {one.foreign} files that are not of Pfungst; they stay.")
