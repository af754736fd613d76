"""Step rules: from a gradient estimate to a proposed change of the belief. ES, NES and CoNES differ only here."""

from cones.steps.ars import Ars
from cones.steps.balls import Balls, BallsState
from cones.steps.convex import Convex
from cones.steps.evolution_path import EvolutionPath
from cones.steps.factors import FactorSteps
from cones.steps.family_path import FamilyPath, FamilyPathState
from cones.steps.low_rank import LowRank, LowRankState
from cones.steps.more import More
from cones.steps.natural import Natural
from cones.steps.plain import Plain
from cones.steps.rule import IterationInfo, StepRule
from cones.steps.tr_cma import TrCma

__all__ = [
    "Ars",
    "Balls",
    "BallsState",
    "Convex",
    "EvolutionPath",
    "FactorSteps",
    "FamilyPath",
    "FamilyPathState",
    "IterationInfo",
    "LowRank",
    "LowRankState",
    "More",
    "Natural",
    "Plain",
    "StepRule",
    "TrCma",
]
