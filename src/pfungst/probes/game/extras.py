"""What `pfungst play` adds to a game: images before and after, the player from inside, fairness, transfer.

It stands beside the findings, in `game/extras.json` of the run folder; the report shows it below the game.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pfungst.core import Dataset, Player, Table, read_config
from pfungst.core.files import write_json
from pfungst.core.store import AnswerStore
from pfungst.probes.game.rows import fooled_rows, read_moves
from pfungst.probes.game.transfer import Tried, transfer_table

EXTRAS = "extras.json"
STRIPS, INSIDE = "Before and after", "Inside the player, before and after"


def add_extras(
    run: Path,
    player: Player,
    data: Dataset,
    *,
    strips: int = 8,
    fairness: str = "auto",
    transfer: Sequence[Path] = (),
) -> list[Tried]:
    """Write game/extras.json of a run, and return what was tried for the transfer: `transfer.check_answered` says
    whether it is whole.

    strips: so many fooled scenes are drawn before and after; for models of the zoo also what they looked at.
    fairness: the Slot Attention that checks what can be seen (B.6): `auto`, `none`, or a folder.
    transfer: other runs, whose fooling scenes are tried on this player as their own player saw them.
    """
    from pfungst.probes.game.inside import write_insides
    from pfungst.probes.game.strips import write_strips

    moves = read_moves(run)
    rows = fooled_rows(moves)
    tables: list[Table] = []
    tried: list[Tried] = []
    if transfer:
        from pfungst.probes.game.tables import read_result

        clear = len({one.name for one in transfer}) == len(transfer)
        with AnswerStore(run / "answers.sqlite") as store:
            for one in transfer:
                name = f"{read_config(one)['player']['name']} ({one.name if clear else one})"
                found = fooled_rows(read_moves(one))
                tried.append(Tried.of(name, found, player, data, read_result(one).settings.rules, store))
        tables.append(transfer_table(tried))
    if rows and fairness != "none":
        from pfungst.probes.game.fairness import check_fairness, load_detector

        tables.append(check_fairness(moves, load_detector("" if fairness == "auto" else fairness)).table())
    folder = run / "game"
    albums = {STRIPS: write_strips(folder, rows, strips), INSIDE: write_insides(folder, rows, player, strips)}
    named = {title: [str(path.relative_to(run)) for path in paths] for title, paths in albums.items() if paths}
    write_json(folder / EXTRAS, {"tables": tables, "albums": named})
    return tried
