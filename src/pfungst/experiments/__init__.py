"""What reproduces a table or a figure of the papers: one experiment a file.

    from pfungst.experiments import get_experiment, perform

    cycle = get_experiment("cycle")
    result = perform(cycle, cycle.config(seeds=2, device="cuda"), "runs/cycle")
    cycle.tables(result)

`pfungst reproduce NAME` is made from the same parts: every field of the configuration is an option of the command.
"""

from pfungst.experiments.base import (
    EXPERIMENTS,
    Experiment,
    argument,
    claim,
    get_experiment,
    kept,
    lifted,
    option,
    perform,
    run_cells,
)

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "argument",
    "claim",
    "get_experiment",
    "kept",
    "lifted",
    "option",
    "perform",
    "run_cells",
]
