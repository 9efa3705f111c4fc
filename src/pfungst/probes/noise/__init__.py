"""Basic questions: ranked by the certified LASSO (or another ranker) and appended as noise of a known level."""

from pfungst.probes.noise.check import check_ranker
from pfungst.probes.noise.pool import Pool, normalise
from pfungst.probes.noise.ranking import RANKERS, Ranker, Ranking, rank

__all__ = ["RANKERS", "Pool", "Ranker", "Ranking", "check_ranker", "normalise", "rank"]
