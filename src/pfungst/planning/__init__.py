"""What a command would take, before it runs: queries, tokens, cost, time, memory, disk.

`plan` counts what an exam would ask; inside `trying(20)` it also asks twenty of these queries, whose answers are kept,
and measures. `plan_rank`, `plan_decoys`, `plan_audit` and `plan_experiment` measure a small part of the work.
"""

from pfungst.planning.exams import Plan, ProbePlan, plan
from pfungst.planning.trying import trials_wanted, trying
from pfungst.planning.work import WorkPlan, plan_audit, plan_decoys, plan_experiment, plan_rank

__all__ = [
    "Plan",
    "ProbePlan",
    "WorkPlan",
    "plan",
    "plan_audit",
    "plan_decoys",
    "plan_experiment",
    "plan_rank",
    "trials_wanted",
    "trying",
]
