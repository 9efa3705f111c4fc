"""pfungst play PLAYER --universal"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pfungst.core import Example, Player
    from pfungst.probes.game import PlaySettings


def play_universal(
    player: Player,
    examples: Sequence[Example],
    folder: Path,
    given: PlaySettings,
    train: int,
    test: int,
    as_json: bool,
) -> None:
    """Train one adversary on many questions, try it on unseen ones, print and write what came of it."""
    from pfungst.cli.play import counted, show_table
    from pfungst.cli.play_report import write_play_report
    from pfungst.cli.show import print_json, progress_bar
    from pfungst.probes.game import UniversalSettings
    from pfungst.probes.game import play_universal as run

    budget = {} if given.budget is None else {"budget": given.budget}
    settings = UniversalSettings(
        train, test, size=given.size, adversary=given.adversary, options=given.options, preset=given.preset,
        ood=given.ood, relate_only=given.relate_only, seed=given.seed, **budget,
    )  # fmt: skip
    most = settings.most_queries()
    settings.check_limit(given.max_queries)
    if not as_json:
        print(f"at most {most:,} questions to {player.name}: learning on {train}, then {test} unseen ones three times")
    with progress_bar() as show:
        result = run(player, examples, folder, settings, progress=show, on_asked=counted(player, most, show))
    lines = [f"Trained on {result.trained_on} questions, tried on {result.tested_on} about other scenes."]
    lines += [f"The adversary {result.about}."] if result.about else []
    report = write_play_report(folder, f"The universal adversary against {player.name}", lines, result.findings, (), {})
    if as_json:
        print_json({"run": str(folder), **result.to_json(), "report": report})
        return
    for table in result.findings.tables:
        show_table(table)
    for line in lines:
        print(line)
    print(result.findings.verdict)
    print(f"\n{result.weights}\n{report}")
