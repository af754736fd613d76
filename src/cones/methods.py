"""ES, NES and CoNES: compositions that differ in the step rule and the defaults; and all methods by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, Unpack, get_args

from numpy.typing import ArrayLike

from cones.baselines import CMA, PGPE, OpenES, SepCMA
from cones.beliefs import Belief, ExponentialFamily, LowRankGaussian
from cones.checks import check_vector
from cones.component import component_from
from cones.composition import Settings, Text, compose, declared, given_of, show_settings
from cones.defaults import (
    adaptive_balls,
    is_full,
    is_low_rank,
    is_mixed,
    low_rank_rule,
    with_balls,
    with_factors,
    with_path,
)
from cones.divergences import KL, Ball, Chart, Divergence
from cones.errors import InputError
from cones.mixed import start_in
from cones.optimizers import Direct
from cones.relatives import ARS, MORE, TRCMA, TRES
from cones.solvers import Solver
from cones.space.reading import space_from
from cones.space.space import Space
from cones.steps import Balls, Convex, EvolutionPath, FactorSteps, LowRank, Natural, Plain, StepRule
from cones.strategy import Strategy

__all__ = ["ES", "METHODS", "NES", "CoNES", "Settings", "Text", "settings_of_method"]

CONES = ("radius", "solver", "divergence", "chart", "step")  # its settings besides the shared ones


def sentence_of(setting: str) -> str:
    """The help text of a setting of ES, NES or CoNES."""
    return str(get_args(declared()[setting])[-1]) if setting in declared() else OWN[setting]


@show_settings
def ES(x0: ArrayLike | Belief | Space, sigma0: ArrayLike | None = None, **settings: Unpack[Settings]) -> Strategy:
    """Evolution strategies: the optimizer follows the plain gradient estimate.

    Arguments as for `CoNES`, without `radius`, `solver`, `divergence`, `chart` and `step`.
    """
    x0 = space_from(x0)
    if isinstance(x0, Space):
        return _in_space(ES, x0, sigma0, given_of(settings))
    return compose("ES", x0, sigma0, Plain(), **given_of(settings))


@show_settings
def NES(x0: ArrayLike | Belief | Space, sigma0: ArrayLike | None = None, **settings: Unpack[Settings]) -> Strategy:
    """Natural evolution strategies: the optimizer follows the natural gradient.

    Arguments as for `CoNES`, without `radius`, `solver`, `divergence`, `chart` and `step`.
    """
    x0 = space_from(x0)
    if isinstance(x0, Space):
        return _in_space(NES, x0, sigma0, given_of(settings))
    return compose("NES", x0, sigma0, Natural(), **given_of(settings))


@show_settings
def CoNES(
    x0: ArrayLike | Belief | Space,
    sigma0: ArrayLike | None = None,
    *,
    radius: float | Literal["auto", "adaptive", "paper"] | Balls | None = None,
    solver: Text | Solver | None = None,
    divergence: Text | Divergence | None = None,
    chart: Chart | None = None,
    step: Text | StepRule | None = None,
    **settings: Unpack[Settings],
) -> Strategy:
    """Convex natural evolution strategies: each step is the steepest one inside a KL ball.

    Args:
        x0: initial mean, shape (n,), a belief, such as `FullGaussian(mean, covariance)` or `Bernoulli(probabilities)`,
            or a `cones.Space`, whose candidates are dicts.
        sigma0: initial standard deviation, one number or one per coordinate. By default a quarter of the width between
            two finite bounds, and 1 elsewhere. In a space, a number: the deviations of numbers as a share of their
            ranges.
        radius: "auto": nothing to tune. Up to 60 dimensions, a full covariance with an evolution path
            (`step="evolution_path"`) and, up to 40, a quadratic model (`estimator="quadratic"`); up to 10 000, a
            diagonal covariance, which becomes low rank if the run shows that a diagonal does not suffice
            (`belief="low_rank"`); beyond, a diagonal one with "adaptive" radii. "adaptive": separate balls for mean,
            scale and shape with adaptive radii, without a learning rate. A number: the paper's method, one ball KL <=
            radius^2 and then Adam. "paper": the same with radius sqrt(2 n), which is the paper's 100 at 5000
            dimensions. `cones.Balls(...)`: adaptive, with custom controls. The default is "auto", or "paper" if an
            `optimizer` is given.
        solver: solver for the paper's ball: "dual", exact and fast, or a cone solver: "cvxpy", "clarabel", "scs",
            "mosek".
        divergence: what the ball is of: "kl" (default), "reverse_kl", "chi2", "hellinger", "renyi:ALPHA", or a
            `cones.divergences.Divergence`. One ball is D <= radius^2; of the adaptive balls it is the shape's, and
            "auto" is then "adaptive".
        chart: the parameters in which the loss is linearised: "covariance" (default), "mean_parameters" for "kl",
            "natural_parameters" for "reverse_kl".
        step: a custom step rule instead of `radius`, `solver`, `divergence` and `chart`: an object,
            "name,setting=value" or "module:Class". The step is taken unchanged unless an `optimizer` is given.
        **settings: see `cones.methods.Settings`: belief, popsize, antithetic, estimator, shaping, optimizer, restarts,
            bounds, rng, and the stop criteria.

    Example:
        >>> import numpy as np
        >>> es = CoNES(np.full(5, 3.0), rng=0, ftarget=0.1)
        >>> while not es.stop():
        ...     X = es.ask()
        ...     es.tell(X, (X**2).sum(axis=1))
        >>> es.result.success
        True

    Reference: Veer & Majumdar, CoNES: Convex Natural Evolutionary Strategies, 2020.
    """
    x0 = space_from(x0)
    if isinstance(x0, Space):
        own = {"radius": radius, "solver": solver, "divergence": divergence, "chart": chart, "step": step}
        return _in_space(CoNES, x0, sigma0, {**own, **given_of(settings)})
    size = x0.dim if isinstance(x0, Belief) else check_vector("x0", x0).size
    given = given_of(settings)
    if "optimizer" in given:
        given["optimizer"] = component_from("optimizer", given["optimizer"])
    direct = isinstance(given.get("optimizer", Direct()), Direct)
    if step is not None:
        if any(value is not None for value in (radius, solver, divergence, chart)):
            raise InputError("step: expected neither radius nor solver nor divergence nor chart beside it")
        rule: StepRule = component_from("step", step)
        if isinstance(rule, EvolutionPath):
            return compose("CoNES", x0, sigma0, rule, CONES, **{**with_path(x0, size, given), **given})
        if isinstance(rule, LowRank):
            belief = {} if isinstance(x0, Belief) else {"belief": "low_rank"}
            return compose("CoNES", x0, sigma0, rule, CONES, **{**with_balls(x0, size, given), **belief, **given})
        if isinstance(rule, FactorSteps) and is_mixed(x0):
            return compose("CoNES", x0, sigma0, rule, CONES, **{**with_factors(x0, given), **given})
        if not isinstance(rule, Balls):
            return compose("CoNES", x0, sigma0, rule, CONES, **{**with_balls(x0, size, given), "belief": None, **given})
        radius = rule
    of = component_from("divergence", "kl" if divergence is None else divergence)
    of_paper = isinstance(of, KL) and chart in (None, "covariance")
    chosen: Chart = chart or "covariance"
    if isinstance(x0, ExponentialFamily):
        Ball(of, 0.5, chosen).check_family(type(x0).__name__)
    if radius is None:
        radius = "auto" if direct else "paper"
    if isinstance(radius, Balls) and (divergence is not None or chart is not None):
        raise InputError("divergence: expected none beside radius=cones.Balls(...), which has its own; and no chart")
    if isinstance(radius, str) and radius == "auto" and not of_paper:
        radius = "adaptive"
    if isinstance(radius, str) and radius == "auto":
        if direct and solver in (None, "dual") and is_mixed(x0):
            return compose("CoNES", x0, sigma0, FactorSteps(), CONES, **{**with_factors(x0, given), **given})
        if direct and solver in (None, "dual") and is_full(x0, size, given):
            return compose("CoNES", x0, sigma0, EvolutionPath(), CONES, **{**with_path(x0, size, given), **given})
        if is_low_rank(x0, size, given):
            given["belief"] = "low_rank"
        radius = "adaptive"
    if isinstance(radius, Balls) or (isinstance(radius, str) and radius == "adaptive"):
        if solver not in (None, "dual"):
            raise InputError(f"solver: expected 'dual' with adaptive radii, got {solver!r}")
        if not direct:
            raise InputError(
                f"optimizer: expected none with adaptive radii, got {given['optimizer']!r}; "
                "the paper's method uses one: radius='paper'"
            )
        balls = radius if isinstance(radius, Balls) else adaptive_balls(size, of, chosen)
        rule = FactorSteps(balls, balls) if is_mixed(x0) else balls
        if given.get("belief") == "low_rank" or isinstance(x0, LowRankGaussian):
            if isinstance(radius, str):
                low_rank = low_rank_rule(size)
                rule = replace(low_rank, balls=replace(low_rank.balls, divergence=of, chart=chosen))
            else:
                rule = LowRank(balls=balls)
        return compose("CoNES", x0, sigma0, rule, CONES, **{**with_balls(x0, size, given), **given})
    if isinstance(radius, str):
        if radius != "paper":
            raise InputError(f"radius: expected 'auto', 'adaptive', 'paper' or a number, got {radius!r}")
        radius = math.sqrt(2.0 * size)
    convex = Convex(radius, component_from("solver", solver or "dual"), of, chosen)
    if is_mixed(x0):
        convex.ball.check_family(type(x0).__name__)
    return compose("CoNES", x0, sigma0, convex, CONES, **given)


METHODS: dict[str, Callable[..., Strategy]] = {
    "es": ES, "nes": NES, "cones": CoNES, "ars": ARS, "tres": TRES, "more": MORE, "trcma": TRCMA,
    "cma": CMA, "sepcma": SepCMA, "openes": OpenES, "pgpe": PGPE,
}  # fmt: skip
OWN = {
    "sigma0": "Initial standard deviation, one number or one per coordinate.",
    "radius": 'CoNES: "auto" (nothing to tune), "adaptive" (three balls with adaptive radii), "paper" (one KL ball of '
    "radius sqrt(2 n), then Adam), or the radius of that ball.",
    "solver": 'CoNES: solver of the paper\'s ball: "dual" (default, exact), "cvxpy", "clarabel", "scs" or "mosek".',
    "divergence": 'CoNES: what that ball is of: "kl" (default), "reverse_kl", "chi2", "hellinger", "renyi:ALPHA", or '
    '"module:Class".',
    "chart": 'CoNES: parameters in which the loss is linear: "covariance" (default), "mean_parameters" (of "kl"), '
    '"natural_parameters" (of "reverse_kl").',
    "step": 'CoNES: a step rule instead of radius, solver, divergence and chart: "evolution_path", "balls", '
    '"low_rank", "convex,radius=R", or "module:Class". ARS, TRES, MORE and TRCMA: the step rule, by default "ars", '
    '"plain", "more" and "tr_cma".',
    "diagonal": "CMA: a diagonal covariance throughout.",
    "options": "CMA: further options of PyCMA by name. OpenES and PGPE: another optimizer with its settings.",
}


@lru_cache
def settings_of_method(method: str) -> tuple[str, ...]:
    """The keyword arguments of a method, in the order of its signature."""
    parameters = inspect.signature(METHODS[method]).parameters.values()
    return tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)


def _in_space(make: Callable[..., Strategy], space: Space, sigma0: Any, given: dict[str, Any]) -> Strategy:
    """The strategy in a space."""
    for name in ("bounds", "dtype"):
        if given.get(name) is not None:
            raise InputError(f"{name}: expected none in a space, got {given[name]!r:.80}")
    x0, deviations, box = start_in(space, sigma0, given.get("belief"))
    if isinstance(x0, Belief):
        given = {name: value for name, value in given.items() if name != "belief"}
    elif make is CoNES and is_full(x0, space.dim, given) and box.whole is not None:
        given = {"estimator": "recombination", **given}  # rounding leaves a quadratic model too little to fit
    strategy = make(x0, deviations, **{**given, "bounds": box})
    strategy.space = space
    best = space.best_known()
    if best is not None:
        strategy.state = replace(strategy.state, best_x=best[0], best_fun=best[1])
    return strategy
