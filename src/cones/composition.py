"""A method from its components: the settings that all methods of ours share, and the strategy that they make."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from cones.beliefs import Belief, DiagonalGaussian, LowRankGaussian
from cones.checks import check_bool, check_integer, check_non_negative, check_vector
from cones.component import component_from, components, found, suggestion
from cones.errors import InputError
from cones.estimators import Estimator, Shaping, shaping_from
from cones.evolution import EvolutionStrategy
from cones.iteration import Algorithm
from cones.optimizers import Optimizer
from cones.progress import CATOL, Descent, State
from cones.progress.limits import LIMITS, Limits, check_limits, criteria_from, trials_of
from cones.restarts import Restarts, restarts_from
from cones.sampling import Antithetic, Auto, Design, Independent, NoiseStream, Rng, seed_from
from cones.space.bounds import Box, box_from, check_deviations, check_start, initial_deviations
from cones.steps import StepRule
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["Settings", "Text", "compose", "declared", "given_of", "show_settings"]

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
        'Estimator of the gradient: "score_function" (default), "orthogonal", "past_directions", "rbo", "asebo", '
        '"best_directions" (ARS), "clipped" (TRES), "recombination" (CoNES with a full covariance), "quadratic" (the '
        'same with a model that reuses evaluations; up to 40 dimensions), or "module:Class".',
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
        "What follows a descent that ends by xtol, ftol, stagnation, plateau or divergence while budget is left: a "
        'number of restarts, each with twice the popsize; "auto" ("bipop"): a search along the axes if the loss is '
        'separable, then large and small populations in turn, from random starts; "growing"; "refining", for noisy '
        'losses with `plateau`: narrower from the mean, then anew; or "module:Class". 0 by default; '
        "minimize decides from the budget.",
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


def show_settings(function: F) -> F:
    """Add the shared settings to the signature, so that `help()` shows them."""
    own = [p for p in inspect.signature(function).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=LIMITS.get(name), annotation=kind)
        for name, kind in declared().items()
    ]
    function.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    return function


@lru_cache
def declared() -> dict[str, Any]:
    return get_type_hints(Settings, include_extras=True)


def given_of(settings: Settings) -> dict[str, Any]:
    """The settings without those that are None, except stop criteria, which None switches off."""
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None or name in LIMITS}
    if "dtype" in given:
        with suppress(TypeError):  # `NoiseStream` reports an invalid dtype by name
            given["dtype"] = np.dtype(given["dtype"]).name
    return given


def compose(
    method: str,
    x0: ArrayLike | Belief,
    sigma0: ArrayLike | None,
    step: StepRule,
    own: tuple[str, ...] = (),
    /,
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
    """The strategy with a step rule. `own` names the settings that the method has besides the shared ones."""
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
    algorithm.check(start)
    algorithm.design.check(popsize)
    algorithm.estimator.check(start.dim, algorithm.design.plan(None, popsize, 0))
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
        criteria=criteria_from(start.dim, popsize, limits, trials_of(start)),
    )


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
