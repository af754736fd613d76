"""CoNES: convex natural evolution strategies for expensive, high-dimensional black boxes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cones import radius
from cones.baselines import CMA, SepCMA
from cones.beliefs import (
    Belief,
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    FullGaussian,
    Gradient,
    LowRankGaussian,
    Poisson,
    Product,
    Step,
    StepStatus,
)
from cones.component import setting
from cones.errors import CheckpointError, ConesError, InputError, MissingExtraError, StateError
from cones.estimators import Estimate, Estimator
from cones.evaluate import Evaluator
from cones.evaluate.race import Race
from cones.methods import ES, NES, CoNES
from cones.optimizers import SGD, Adam, Direct, Optimizer
from cones.plots import plot
from cones.progress.stopping import StopReason
from cones.relatives import ARS, MORE, TRCMA, TRES
from cones.result import Result
from cones.run.checkpoint import load
from cones.run.journal import Journal, replay
from cones.run.minimize import minimize, scipy_method
from cones.run.resume import resume
from cones.run.warm import start_from
from cones.sampling import Population
from cones.solvers import solve_step
from cones.space.parameters import Choice, Flag, Float, Integer
from cones.space.space import Space
from cones.steps import Balls, StepRule
from cones.strategy import Strategy

if TYPE_CHECKING:
    from cones import experiments as experiments
    from cones import integrations as integrations
    from cones import problems as problems
    from cones import rl as rl
else:

    def __getattr__(name: str) -> Any:
        """Import these packages on first use, so that `import cones` stays fast."""
        if name in ("experiments", "integrations", "problems", "rl"):
            return import_module(f"cones.{name}")
        raise AttributeError(f"module 'cones' has no attribute {name!r}")


__version__ = "1.0.0rc1"

__all__ = [
    "ARS",
    "CMA",
    "ES",
    "NES",
    "SGD",
    "Adam",
    "Balls",
    "Belief",
    "Bernoulli",
    "Categorical",
    "CheckpointError",
    "Choice",
    "CoNES",
    "ConesError",
    "DiagonalGaussian",
    "Direct",
    "Estimate",
    "Estimator",
    "Evaluator",
    "Flag",
    "Float",
    "FullGaussian",
    "Gradient",
    "InputError",
    "Integer",
    "Journal",
    "LowRankGaussian",
    "MORE",
    "MissingExtraError",
    "Optimizer",
    "Poisson",
    "Population",
    "Product",
    "Race",
    "Result",
    "SepCMA",
    "Space",
    "StateError",
    "Step",
    "StepRule",
    "StepStatus",
    "StopReason",
    "Strategy",
    "TRES",
    "TRCMA",
    "__version__",
    "load",
    "minimize",
    "plot",
    "radius",
    "replay",
    "resume",
    "scipy_method",
    "setting",
    "solve_step",
    "start_from",
]
