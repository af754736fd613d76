"""ES, NES and CoNES: compositions of components that differ in the step rule and the defaults."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, Unpack, get_args, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from cones.baselines import CMA, SepCMA
from cones.beliefs import Belief, DiagonalGaussian, LowRankGaussian
from cones.checks import check_bool, check_integer, check_non_negative, check_vector
from cones.component import component_from, components, found, suggestion
from cones.defaults import is_full, is_low_rank, is_mixed, low_rank_rule, with_balls, with_factors, with_path
from cones.divergences import KL, Chart, Divergence
from cones.errors import InputError
from cones.estimators import Estimator, Shaping, shaping_from
from cones.evolution import EvolutionStrategy
from cones.iteration import Algorithm
from cones.mixed import start_in
from cones.optimizers import Direct, Optimizer
from cones.progress import CATOL, Descent, State
from cones.progress.stopping import LIMITS, Limits, check_limits, criteria_from
from cones.restarts import Restarts, restarts_from
from cones.sampling import Antithetic, Auto, Design, Independent, NoiseStream, Rng, seed_from
from cones.solvers import Solver
from cones.space.bounds import Box, box_from, check_deviations, check_start, initial_deviations
from cones.space.reading import space_from
from cones.space.space import Space
from cones.steps import Balls, Convex, EvolutionPath, FactorSteps, LowRank, Natural, Plain, StepRule
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["ES", "METHODS", "NES", "CoNES", "Settings", "settings_of_method"]

Text = str | dict[str, Any]  # a component by name, with settings; see `cones.component`


class Settings(Limits, total=False):
    """Keyword arguments that ES, NES and CoNES share. None is the default, but switches a stop criterion off."""

    belief: Annotated[
        Literal["diagonal", "full", "low_rank"] | str | None,
        'Covariance: "diagonal", "full", "low_rank", or "module:Class". CoNES chooses by dimension; see its '
        "`radius`. ES, NES and the paper's method: diagonal by default.",
    ]
    rank: Annotated[
        int | None,
        "Largest rank of a low-rank covariance. By default 4 + 4 log(n), or 1.5 sqrt(n) up to 100 if that is more.",
    ]
    popsize: Annotated[
        int | None,
        "Candidates per iteration. By default 100; CoNES: 4 + 3 log(n) with a full covariance, else 4 + 3 sqrt(n), at "
        "most 100.",
    ]
    antithetic: Annotated[
        bool | Literal["auto"] | None,
        'True: pairs of candidates mirrored at the mean. False: independent candidates. "auto": the better of both in '
        'each iteration. True by default; CoNES: False with a full covariance, else "auto".',
    ]
    estimator: Annotated[
        Text | Estimator | None,
        'Estimator of the gradient: "score_function" (default), "asebo", "recombination" (CoNES with a full '
        'covariance), "quadratic" (the same with a model that reuses evaluations; up to 40 dimensions), or '
        '"module:Class".',
    ]
    shaping: Annotated[
        str | Callable[[Vector], Any] | None,
        'Map from losses to utilities: "centred_ranks", "normal_scores", "recombination_weights", "standardised", '
        '"raw", or a function. Centred ranks by default; CoNES: recombination weights with a full covariance, else '
        "normal scores.",
    ]
    optimizer: Annotated[
        Text | Optimizer[Any] | None,
        'Optimizer of the belief: "adam" (default, with learning rates 0.1), "sgd", or "direct", which takes the step '
        "unchanged. Adaptive radii always use direct.",
    ]
    restarts: Annotated[
        int | Text | Restarts | None,
        "What follows a descent that ends by xtol, ftol, stagnation or divergence while budget is left: a number of "
        'restarts, each with twice the popsize; "auto": large and small populations in turn, from random starts '
        '("bipop"); "growing", or "module:Class". 0 by default; minimize decides from the budget.',
    ]
    noisy: Annotated[
        bool | None,
        "True: the loss is stochastic. minimize then keeps 1% of the budget, at least 10 evaluations, to measure the "
        "loss at the mean. None, the default: unknown.",
    ]
    catol: Annotated[float | None, "Largest violation of a constraint that counts as feasible; 1e-8 by default."]
    bounds: Annotated[Any, "A scipy.optimize.Bounds or (low, high) pairs. Candidates are reflected into the box."]
    rng: Annotated[Rng, "Seed, numpy.random.Generator, SeedSequence or None."]
    dtype: Annotated[DTypeLike | None, "float64 (default) or float32, for all arrays of n numbers."]
    noise_table: Annotated[
        int | None,
        "Size of a noise table that all iterations share, such as 2**25, for very cheap losses or very many "
        "dimensions. 0, the default, draws fresh noise.",
    ]
    chunked: Annotated[
        bool | None,
        "Compute candidates in chunks and redraw their noise, so that memory does not grow with popsize. By default, "
        "only if the population exceeds a gigabyte. The run is the same.",
    ]


F = TypeVar("F", bound=Callable[..., Any])


def _show_settings(function: F) -> F:
    """Add the shared settings to the signature, so that `help()` shows them."""
    own = [p for p in inspect.signature(function).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=LIMITS.get(name), annotation=kind)
        for name, kind in _declared().items()
    ]
    function.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    return function


@lru_cache
def _declared() -> dict[str, Any]:
    return get_type_hints(Settings, include_extras=True)


def sentence_of(setting: str) -> str:
    """The help text of a setting of ES, NES or CoNES."""
    return str(get_args(_declared()[setting])[-1]) if setting in _declared() else OWN[setting]


@_show_settings
def ES(x0: ArrayLike | Belief | Space, sigma0: ArrayLike | None = None, **settings: Unpack[Settings]) -> Strategy:
    """Evolution strategies: the optimizer follows the plain gradient estimate.

    Arguments as for `CoNES`, without `radius`, `solver`, `divergence`, `chart` and `step`.
    """
    x0 = space_from(x0)
    if isinstance(x0, Space):
        return _in_space(ES, x0, sigma0, _given(settings))
    return _compose("ES", x0, sigma0, Plain(), **_given(settings))


@_show_settings
def NES(x0: ArrayLike | Belief | Space, sigma0: ArrayLike | None = None, **settings: Unpack[Settings]) -> Strategy:
    """Natural evolution strategies: the optimizer follows the natural gradient.

    Arguments as for `CoNES`, without `radius`, `solver`, `divergence`, `chart` and `step`.
    """
    x0 = space_from(x0)
    if isinstance(x0, Space):
        return _in_space(NES, x0, sigma0, _given(settings))
    return _compose("NES", x0, sigma0, Natural(), **_given(settings))


@_show_settings
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
            diagonal that opens to a low-rank covariance where the run shows that it must (`belief="low_rank"`); beyond,
            a diagonal one with "adaptive" radii. "adaptive": separate balls for mean, scale and shape with adaptive
            radii, without a learning rate. A number: the paper's method, one ball KL <= radius^2 and then Adam.
            "paper": the same with radius sqrt(2 n), which is the paper's 100 at 5000 dimensions. `cones.Balls(...)`:
            adaptive, with custom controls. The default is "auto", or "paper" if an `optimizer` is given.
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
        return _in_space(CoNES, x0, sigma0, {**own, **_given(settings)})
    size = x0.dim if isinstance(x0, Belief) else check_vector("x0", x0).size
    given = _given(settings)
    if "optimizer" in given:
        given["optimizer"] = component_from("optimizer", given["optimizer"])
    direct = isinstance(given.get("optimizer", Direct()), Direct)
    if step is not None:
        if any(value is not None for value in (radius, solver, divergence, chart)):
            raise InputError("step: expected neither radius nor solver nor divergence nor chart beside it")
        rule: StepRule = component_from("step", step)
        if isinstance(rule, EvolutionPath):
            return _compose("CoNES", x0, sigma0, rule, **{**with_path(x0, size, given), **given})
        if isinstance(rule, LowRank):
            belief = {} if isinstance(x0, Belief) else {"belief": "low_rank"}
            return _compose("CoNES", x0, sigma0, rule, **{**with_balls(x0, size, given), **belief, **given})
        if isinstance(rule, FactorSteps):
            return _compose("CoNES", x0, sigma0, rule, **{**with_factors(x0, given), **given})
        if not isinstance(rule, Balls):
            return _compose("CoNES", x0, sigma0, rule, **{**with_balls(x0, size, given), "belief": None, **given})
        radius = rule
    of = component_from("divergence", "kl" if divergence is None else divergence)
    of_paper = isinstance(of, KL) and chart in (None, "covariance")
    chosen: Chart = chart or "covariance"
    if radius is None:
        radius = "auto" if direct else "paper"
    if isinstance(radius, Balls) and (divergence is not None or chart is not None):
        raise InputError("divergence: expected none beside radius=cones.Balls(...), which has its own; and no chart")
    if isinstance(radius, str) and radius == "auto" and not of_paper:
        radius = "adaptive"
    if isinstance(radius, str) and radius == "auto":
        if direct and solver in (None, "dual") and is_mixed(x0):
            return _compose("CoNES", x0, sigma0, FactorSteps(), **{**with_factors(x0, given), **given})
        if direct and solver in (None, "dual") and is_full(x0, size, given):
            return _compose("CoNES", x0, sigma0, EvolutionPath(), **{**with_path(x0, size, given), **given})
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
        balls = radius if isinstance(radius, Balls) else Balls(divergence=of, chart=chosen)
        rule = FactorSteps(balls, balls) if is_mixed(x0) else balls
        if given.get("belief") == "low_rank" or isinstance(x0, LowRankGaussian):
            if isinstance(radius, str):
                low_rank = low_rank_rule(size)
                rule = replace(low_rank, balls=replace(low_rank.balls, divergence=of, chart=chosen))
            else:
                rule = LowRank(balls=balls)
        return _compose("CoNES", x0, sigma0, rule, **{**with_balls(x0, size, given), **given})
    if isinstance(radius, str):
        if radius != "paper":
            raise InputError(f"radius: expected 'auto', 'adaptive', 'paper' or a number, got {radius!r}")
        radius = math.sqrt(2.0 * size)
    return _compose(
        "CoNES", x0, sigma0, Convex(radius, component_from("solver", solver or "dual"), of, chosen), **given
    )


METHODS: dict[str, Callable[..., Strategy]] = {"es": ES, "nes": NES, "cones": CoNES, "cma": CMA, "sepcma": SepCMA}
OWN = {
    "sigma0": "Initial standard deviation, one number or one per coordinate.",
    "radius": 'CoNES: "auto" (nothing to tune), "adaptive" (three balls with adaptive radii), "paper" (one KL ball of '
    "radius sqrt(2 n), then Adam), or the radius of that ball.",
    "solver": 'CoNES: solver of the paper\'s ball: "dual" (exact), "cvxpy", "clarabel", "scs" or "mosek".',
    "divergence": 'CoNES: what that ball is of: "kl" (default), "reverse_kl", "chi2", "hellinger", "renyi:ALPHA", or '
    '"module:Class".',
    "chart": 'CoNES: parameters in which the loss is linear: "covariance" (default), "mean_parameters" (of "kl"), '
    '"natural_parameters" (of "reverse_kl").',
    "step": 'CoNES: a step rule instead of radius, solver, divergence and chart: "evolution_path", "balls", '
    '"low_rank", "convex,radius=R", or "module:Class".',
    "diagonal": "CMA: a diagonal covariance throughout.",
    "options": "CMA: further options of PyCMA by name.",
}


@lru_cache
def settings_of_method(method: str) -> tuple[str, ...]:
    """The keyword arguments of a method, in the order of its signature."""
    parameters = inspect.signature(METHODS[method]).parameters.values()
    return tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)


def _given(settings: Settings) -> dict[str, Any]:
    """The settings without those that are None, except stop criteria, which None switches off."""
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None or name in LIMITS}
    if "dtype" in given:
        with suppress(TypeError):  # `NoiseStream` reports an invalid dtype by name
            given["dtype"] = np.dtype(given["dtype"]).name
    return given


def _compose(
    method: str,
    x0: ArrayLike | Belief,
    sigma0: ArrayLike | None,
    step: StepRule,
    *,
    belief: str | None = None,
    rank: int | None = None,
    popsize: int = 100,
    antithetic: bool | Literal["auto"] = True,
    estimator: Text | Estimator = "score_function",
    shaping: str | Callable[[Vector], Any] | Shaping = "centred_ranks",
    optimizer: Text | Optimizer[Any] = "adam",
    restarts: int | Text | Restarts = 0,
    noisy: bool | None = None,
    catol: float = CATOL,
    bounds: Any = None,
    rng: Rng = None,
    dtype: Any = "float64",
    noise_table: int = 0,
    chunked: bool | None = None,
    **limits: Any,
) -> Strategy:
    """The strategy with a step rule. In a space, `bounds` is its box."""
    own = ("radius", "solver", "divergence", "chart", "step") if method == "CoNES" else ()
    check_limits(method, limits, (*own, "sigma0", *(name for name in Settings.__annotations__ if name not in LIMITS)))
    noise = NoiseStream(seed_from(rng), dtype, check_integer("noise_table", noise_table, 0))
    mean = x0.mean if isinstance(x0, Belief) else check_vector("x0", x0)
    box = bounds if isinstance(bounds, Box) else box_from(bounds, mean)
    check_start(mean, dtype)
    start = _initial_belief(x0, mean, sigma0, belief, box, dtype)
    if rank is not None:
        if not isinstance(start, LowRankGaussian):
            raise InputError(f"rank: expected none without belief='low_rank', got {rank!r}")
        start = start.with_rank(rank)
    popsize = check_integer("popsize", popsize, 2)
    algorithm = Algorithm(
        _design(antithetic),
        shaping_from(shaping),
        component_from("estimator", estimator),
        step,
        component_from("optimizer", optimizer),
    )
    algorithm.design.check(popsize)
    if dtype != "float64":
        if not isinstance(start, DiagonalGaussian | LowRankGaussian):
            raise InputError(f"dtype: expected 'float64' with this belief, got {dtype!r}")
        check_deviations("x0", start.standard_deviations(), dtype)
        start, box = start.as_type(dtype), None if box is None else box.as_type(dtype)
    policy = restarts_from(restarts)
    plan = None if policy is None else policy.first_plan()
    return EvolutionStrategy(
        method=method,
        state=State(start, popsize=popsize, descent=Descent(plan=plan), catol=check_non_negative("catol", catol)),
        start=None if policy is None else start,
        noise=noise,
        algorithm=algorithm,
        chunked=None if chunked is None else check_bool("chunked", chunked),
        restarts=policy,
        noisy=None if noisy is None else check_bool("noisy", noisy),
        box=box,
        criteria=criteria_from(start.dim, popsize, limits),
    )


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


def _design(antithetic: Any) -> Design:
    if isinstance(antithetic, str) and antithetic == "auto":
        return Auto()
    if not isinstance(antithetic, (bool, np.bool_)):
        raise InputError(f"antithetic: expected True, False or 'auto', got {antithetic!r}")
    return Antithetic() if antithetic else Independent()


def _initial_belief(
    x0: ArrayLike | Belief, mean: Vector, sigma0: ArrayLike | None, kind: str | None, box: Box | None, dtype: str
) -> Belief:
    if isinstance(x0, Belief):
        if sigma0 is not None or kind is not None:
            raise InputError("sigma0, belief: expected neither when x0 is a belief, got one of them")
        return x0
    deviations = initial_deviations(mean.size, sigma0, box, dtype)
    family = found("belief", kind or "diagonal") if isinstance(kind, str | None) else kind
    if not (inspect.isclass(family) and issubclass(family, Belief)):
        names = ", ".join(map(repr, components("belief")))
        hint = suggestion(kind, components("belief"))
        raise InputError(f"belief: expected one of {names} or 'module:Class', got {kind!r:.80}{hint}")
    return family.start(mean, deviations)
