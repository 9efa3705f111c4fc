"""pfungst doctor"""

from __future__ import annotations

import typer

from pfungst.cli.examine import Json


def doctor(as_json: Json = False) -> None:
    """Look at this machine: what is there, what is missing, what that costs, and how to get it.

    Exits with 3 where something keeps Pfungst from working; what is merely optional does not count.
    """
    from pfungst.cli import PROBLEMS_FOUND
    from pfungst.cli.show import print_json, print_table
    from pfungst.helping import diagnose

    found = diagnose()
    broken = [one for one in found if one.state == "broken"]
    if as_json:
        print_json({"ok": not broken, "checks": found})
    else:
        present = [one for one in found if one.state == "ok"]
        lacking = [one for one in found if one.state != "ok"]
        if present:
            print_table("There", ("what", "found", "note"), [(one.what, one.found, one.costs) for one in present])
        if lacking:
            rows = [(one.what, one.state, one.found, one.costs, one.cure) for one in lacking]
            print_table("Missing", ("what", "", "found", "what it costs", "how to get it"), rows)
        print(
            "Something keeps Pfungst from working: see the rows marked broken." if broken else "Pfungst can work here."
        )
    if broken:
        raise typer.Exit(PROBLEMS_FOUND)
