"""What CoNES does by default: the covariance, and the settings that go with it.

| dimensions | covariance | fed by |
| --- | --- | --- |
| up to 40 | full | an evolution path and a quadratic model |
| up to 60 | full | an evolution path |
| up to 10 000 | diagonal, then low rank if a diagonal does not suffice | three balls, then an evolution path |
| more | diagonal | three balls with adaptive radii |
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from cones.beliefs import Belief, Categorical, ExponentialFamily, FullGaussian, Gaussian, Product
from cones.component import component_from
from cones.divergences import Chart, Divergence
from cones.estimators import Elite, Factors, Quadratic, Recombination, ScoreFunction
from cones.optimizers import Direct
from cones.radius import SignalRatio, Smoothing
from cones.steps import Balls, LowRank

__all__ = [
    "adaptive_balls",
    "default_popsize",
    "is_full",
    "is_low_rank",
    "is_mixed",
    "low_rank_rule",
    "path_popsize",
    "with_balls",
    "with_factors",
    "with_path",
]

# Up to here a quadratic model of the loss is fitted in milliseconds.
MODEL_UP_TO = 40
# Up to here a full covariance is learnt in time. Beyond, low rank solves more on bbob-largescale (80-D).
FULL_UP_TO = 60
# Up to here the spread of the diagonal moves no faster than the mean with pairs, so that it does not collapse on kinks.
CAREFUL_UP_TO, CAREFUL_RATE = 100, 0.25
# Beyond, axes cost more memory than a population in chunks.
LOW_RANK_UP_TO = 10_000
# Beyond, the evidence for axes, whose noise falls with 1 / sqrt(n), counts from 10 n evaluations on instead of 30 n.
# Adaptive radii have a plan for ripples there: with fewer dimensions its faster spread collapses.
LARGE = 500
# Candidates per iteration for families other than Gaussians, at least.
LEAST_OF_FAMILIES = 6
# The three balls of `radius="adaptive"` have a full covariance by default up to this dimension. Beyond, learning it on
# separable functions costs them more evaluations than it saves.
FULL_BALLS_UP_TO = 10


def is_full(x0: ArrayLike | Belief, dim: int, given: dict[str, Any]) -> bool:
    """True if these settings mean a full covariance with an evolution path."""
    if given.get("dtype", "float64") != "float64" or given.get("belief", "full") != "full":
        return False
    if not _has_estimator(given, (Quadratic, Recombination)):
        return False
    if isinstance(x0, Belief):
        return isinstance(x0, FullGaussian)
    return "belief" in given or dim <= FULL_UP_TO


def is_low_rank(x0: ArrayLike | Belief, dim: int, given: dict[str, Any]) -> bool:
    """True if these settings mean a diagonal covariance that may become low rank."""
    if isinstance(x0, Belief) or "belief" in given or not _has_estimator(given, (ScoreFunction,)):
        return False
    return FULL_UP_TO < dim <= LOW_RANK_UP_TO


def low_rank_rule(dim: int) -> LowRank:
    """The step rule of a diagonal covariance that may become low rank."""
    if dim > LARGE:
        return LowRank(patience=10.0)
    rule = LowRank()
    return rule if dim > CAREFUL_UP_TO else replace(rule, balls=replace(rule.balls, scale=SignalRatio(CAREFUL_RATE)))


def adaptive_balls(dim: int, divergence: Divergence, chart: Chart) -> Balls:
    """The step rule of `radius="adaptive"`."""
    return Balls(scale=Smoothing() if dim > LARGE else SignalRatio(), divergence=divergence, chart=chart)


def _has_estimator(given: dict[str, Any], kinds: tuple[type, ...]) -> bool:
    """True if the estimator is of one of these classes, or not given."""
    return "estimator" not in given or isinstance(component_from("estimator", given["estimator"]), kinds)


def is_mixed(x0: ArrayLike | Belief) -> bool:
    """True for a belief that is not a Gaussian alone."""
    return isinstance(x0, (ExponentialFamily, Product))


def with_factors(x0: ArrayLike | Belief, given: dict[str, Any]) -> dict[str, Any]:
    """Settings for exponential families and products. A best candidate of a noisy loss may be so by chance."""
    factors = x0.factors if isinstance(x0, Product) else (x0,)
    largest = max((factor.dim for factor in factors if isinstance(factor, Gaussian)), default=0)
    noisy = given.get("noisy") is True
    variables = sum(len(f.choices) if isinstance(f, Categorical) else f.dim for f in factors if isinstance(f, Belief))
    return {
        "popsize": max(path_popsize(variables), LEAST_OF_FAMILIES),
        "antithetic": False,
        "estimator": Factors(
            Quadratic() if largest <= MODEL_UP_TO and not noisy else Recombination(),
            ScoreFunction() if noisy else Elite(),
        ),
        "shaping": "recombination_weights",
        "optimizer": Direct(),
    }


def default_popsize(dim: int) -> int:
    """Default popsize with adaptive radii: 4 + 3 sqrt(dim), at most 100, rounded down to an even number for pairs.

    Example:
        >>> [default_popsize(dim) for dim in (2, 10, 100, 1000)]
        [8, 12, 34, 98]
    """
    popsize = min(100, 4 + int(3.0 * math.sqrt(dim)))
    return popsize - popsize % 2


def path_popsize(dim: int) -> int:
    """Default popsize with an evolution path: 4 + 3 log(dim), as in CMA-ES.

    Example:
        >>> [path_popsize(dim) for dim in (2, 10, 40)]
        [6, 10, 15]
    """
    return 4 + int(3.0 * math.log(dim))


def with_path(x0: ArrayLike | Belief, dim: int, given: dict[str, Any]) -> dict[str, Any]:
    """Settings with an evolution path. Evaluations of a loss that the user calls noisy are not reused."""
    reuse = dim <= MODEL_UP_TO and given.get("noisy") is not True
    defaults: dict[str, Any] = {
        "popsize": path_popsize(dim),
        "antithetic": False,
        "estimator": "quadratic" if reuse else "recombination",
        "shaping": "recombination_weights",
        "optimizer": Direct(),
    }
    return defaults if isinstance(x0, Belief) else {"belief": "full", **defaults}


def with_balls(x0: ArrayLike | Belief, dim: int, given: dict[str, Any]) -> dict[str, Any]:
    """Settings with three balls."""
    defaults: dict[str, Any] = {
        "popsize": default_popsize(dim),
        "antithetic": "auto",
        "shaping": "normal_scores",
        "optimizer": Direct(),
    }
    if dim <= FULL_BALLS_UP_TO and not isinstance(x0, Belief) and given.get("dtype", "float64") == "float64":
        defaults["belief"] = "full"
    return defaults
