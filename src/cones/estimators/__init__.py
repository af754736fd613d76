"""Estimators of the gradient of the expected loss."""

from cones.estimators.asebo import Asebo
from cones.estimators.elite import Elite, EliteState
from cones.estimators.estimator import Estimate, Estimator, NoiseLevel, PastPopulation, Sample
from cones.estimators.factors import Factors
from cones.estimators.quadratic import Quadratic, QuadraticModel
from cones.estimators.recombination import Recombination
from cones.estimators.score_function import ScoreFunction
from cones.estimators.shaping import SHAPINGS, Shaping, shaping_from

__all__ = [
    "SHAPINGS",
    "Asebo",
    "Elite",
    "EliteState",
    "Estimate",
    "Estimator",
    "Factors",
    "NoiseLevel",
    "PastPopulation",
    "Quadratic",
    "QuadraticModel",
    "Recombination",
    "Sample",
    "ScoreFunction",
    "Shaping",
    "shaping_from",
]
