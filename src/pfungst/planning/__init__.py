"""What a command would take, before it runs: queries, tokens, cost, time, memory, disk.

`plan` counts what an exam would ask; inside `trying(20)` it also asks twenty of these queries, whose answers are kept,
and measures. `plan_rank`, `plan_decoys`, `plan_audit`, `plan_train` and `plan_world` measure a small part of the work;
`plan_experiment` tells what published runs took.
"""

from pfungst.planning.exams import Plan, ProbePlan, plan
from pfungst.planning.trying import trials_wanted, trying
from pfungst.planning.work import (
    WorkPlan,
    plan_audit,
    plan_decoys,
    plan_experiment,
    plan_rank,
    plan_train,
    plan_world,
)

__all__ = [
    "Plan",
    "ProbePlan",
    "WorkPlan",
    "plan",
    "plan_audit",
    "plan_decoys",
    "plan_experiment",
    "plan_rank",
    "plan_train",
    "plan_world",
    "trials_wanted",
    "trying",
]
