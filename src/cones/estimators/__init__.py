"""Estimators of the gradient of the expected loss."""

from cones.estimators.asebo import Asebo
from cones.estimators.best_directions import BestDirections
from cones.estimators.clipped import Clipped
from cones.estimators.elite import Elite, EliteState
from cones.estimators.estimator import Estimate, Estimator, NoiseLevel, PastPopulation, Sample
from cones.estimators.factors import Factors
from cones.estimators.orthogonal import Orthogonal
from cones.estimators.past_directions import PastDirections
from cones.estimators.quadratic import Quadratic, QuadraticModel
from cones.estimators.rbo import Rbo
from cones.estimators.recombination import Recombination
from cones.estimators.score_function import ScoreFunction
from cones.estimators.shaping import SHAPINGS, Shaping, shaping_from

__all__ = [
    "SHAPINGS",
    "Asebo",
    "BestDirections",
    "Clipped",
    "Elite",
    "EliteState",
    "Estimate",
    "Estimator",
    "Factors",
    "NoiseLevel",
    "Orthogonal",
    "PastDirections",
    "PastPopulation",
    "Quadratic",
    "QuadraticModel",
    "Rbo",
    "Recombination",
    "Sample",
    "ScoreFunction",
    "Shaping",
    "shaping_from",
]
