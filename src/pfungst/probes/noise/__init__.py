"""Basic questions: ranked by the certified LASSO (or another ranker) and appended as noise of a known level."""

from pfungst.probes.noise.ranking import RANKERS, Pool, Ranker, Ranking, check_ranker, rank
from pfungst.probes.noise.same import normalise

__all__ = ["RANKERS", "Pool", "Ranker", "Ranking", "check_ranker", "normalise", "rank"]
