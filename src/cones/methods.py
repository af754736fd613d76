"""ES, NES and CoNES: one pipeline, three refinements of the same gradient estimate."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from cones.baselines import CMA, SepCMA
from cones.beliefs import Belief, DiagonalGaussian, FullGaussian
from cones.checks import check_bool, check_finite, check_integer, check_one_of, check_vector
from cones.errors import InputError
from cones.evolution import Pipeline
from cones.optimizers import Adam, Direct, Optimizer
from cones.progress.history import State
from cones.progress.stopping import LIMITS, check_limits, criteria_from
from cones.sampling import AntitheticNoise, IndependentNoise, Rng, seed_from
from cones.space.bounds import Box, box_from, initial_deviations
from cones.steps import Balls, Convex, Natural, Plain, Refinement
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["ES", "METHODS", "NES", "CoNES", "Settings", "default_popsize"]


# Dimensions up to which adaptive radii learn a full covariance by default: beyond, learning it costs more evaluations
# than it saves on functions whose coordinates do not depend on each other.
FULL_COVARIANCE_UP_TO = 10


class Settings(TypedDict, total=False):
    """Keyword arguments that all methods share.

    belief: "diagonal" or "full", the covariance that the belief can learn. Diagonal by default, with adaptive radii
        full up to 10 dimensions.
    popsize: candidates per iteration. By default 100; with adaptive radii 4 + 3 sqrt(n), at most 100.
    antithetic: candidates in pairs mirrored at the mean (True), independent (False), or "auto": in every iteration
        what tells more about the mean's direction. True by default, with adaptive radii "auto".
    dtype: float64 (default) or float32, by name or as NumPy's type, of everything that has n numbers.
    noise_table: numbers in a table of noise that all iterations share, such as 2**25, for very cheap losses or very
        many dimensions: pieces of it are taken instead of drawing noise. 0, the default, draws.
    chunked: candidates in chunks, their noise drawn again for the gradient, so that memory does not grow with the
        population; by default where all candidates would take more than a gigabyte. The run is the same.
    shaping: "centred_ranks", "normal_scores", "standardised" or "raw". Centred ranks by default, with adaptive radii
        normal scores.
    optimizer: `cones.Adam()` with learning rates 0.1 by default, `cones.SGD(...)`, or `cones.Direct()`, which takes
        the step as it is; with adaptive radii only that.
    restarts: how often to start anew, with twice the candidates, when a descent ends by xtol, ftol, stagnation or
        divergence and there is budget left. 0 by default.
    bounds: a `scipy.optimize.Bounds` or (low, high) pairs; candidates are reflected into the box.
    rng: seed, `numpy.random.Generator`, `SeedSequence` or None.
    ftarget, maxfev, maxiter, maxtime, xtol, ftol, stagnation: stop criteria; None switches one off.
        xtol and ftol are 1e-11 and stagnation 100 + 100 n^1.5 / popsize iterations by default; with no
        budget given there are at most 1000 iterations.
    """

    belief: Literal["diagonal", "full"]
    popsize: int
    antithetic: bool | Literal["auto"]
    dtype: DTypeLike
    noise_table: int
    chunked: bool | None
    shaping: str
    optimizer: Optimizer[Any]
    restarts: int
    bounds: Any
    rng: Rng
    ftarget: float | None
    maxfev: float | None
    maxiter: float | None
    maxtime: float | None
    xtol: float | None
    ftol: float | None
    stagnation: float | None


def ES(x0: ArrayLike | Belief, sigma0: ArrayLike | None = None, **settings: Unpack[Settings]) -> Strategy:
    """Evolution strategies: the optimizer follows the gradient estimate itself.

    Arguments as for `CoNES`, without `radius` and `solver`.
    """
    return _compose("ES", x0, sigma0, Plain(), **_given(settings))


def NES(x0: ArrayLike | Belief, sigma0: ArrayLike | None = None, **settings: Unpack[Settings]) -> Strategy:
    """Natural evolution strategies: the optimizer follows the natural gradient.

    Arguments as for `CoNES`, without `radius` and `solver`.
    """
    return _compose("NES", x0, sigma0, Natural(), **_given(settings))


def CoNES(
    x0: ArrayLike | Belief,
    sigma0: ArrayLike | None = None,
    *,
    radius: float | Literal["adaptive", "paper"] | Balls | None = None,
    solver: str = "dual",
    **settings: Unpack[Settings],
) -> Strategy:
    """Convex natural evolution strategies: steps that are the steepest in a KL ball.

    Args:
        x0: where to start, shape (n,), or a whole belief, such as `FullGaussian(mean, covariance)`.
        sigma0: initial standard deviation, one number or one per coordinate. By default a quarter of
            the width between two finite bounds, and 1 elsewhere.
        radius: "adaptive": balls of their own for mean, scale and shape, their radii chosen anew in every iteration,
            and no learning rate; nothing has to be tuned. A number: the paper's method, one ball KL <= radius^2 and
            then Adam. "paper": the same with sqrt(2 n), the paper's 100 at 5000 dimensions. `cones.Balls(...)`:
            adaptive, with controls of your own. The default is "adaptive", or "paper" if an `optimizer` is given.
        solver: of the paper's ball: "dual", exact and fast, or a cone solver: "cvxpy", "clarabel", "scs", "mosek".
        **settings: see `cones.methods.Settings`: belief, popsize, antithetic, shaping, optimizer, restarts,
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
    size = x0.dim if isinstance(x0, Belief) else check_vector("x0", x0).size
    settings = _given(settings)
    direct = isinstance(settings.get("optimizer", Direct()), Direct)
    if radius is None:
        radius = "adaptive" if direct else "paper"
    if isinstance(radius, Balls) or (isinstance(radius, str) and radius == "adaptive"):
        if solver != "dual":
            raise InputError(f"solver: expected 'dual' with adaptive radii, got {solver!r}")
        if not direct:
            raise InputError(
                f"optimizer: expected none with adaptive radii, whose steps are taken as they are, "
                f"got {settings['optimizer']!r}; the paper's method has one: radius='paper'"
            )
        refinement = radius if isinstance(radius, Balls) else Balls()
        defaults: Any = _adaptive(x0, size, settings)
        return _compose("CoNES", x0, sigma0, refinement, **{**defaults, **settings})
    if isinstance(radius, str):
        if radius != "paper":
            raise InputError(f"radius: expected 'adaptive', 'paper' or a number, got {radius!r}")
        radius = math.sqrt(2.0 * size)
    return _compose("CoNES", x0, sigma0, Convex(radius, solver), **settings)


def default_popsize(dim: int) -> int:
    """Candidates per iteration with adaptive radii: 4 + 3 sqrt(dim), at most 100, and even for pairs.

    Example:
        >>> [default_popsize(dim) for dim in (2, 10, 100, 1000)]
        [8, 12, 34, 98]
    """
    popsize = min(100, 4 + int(3.0 * math.sqrt(dim)))
    return popsize - popsize % 2


def _adaptive(x0: ArrayLike | Belief, dim: int, given: Settings) -> Settings:
    """Defaults of adaptive radii."""
    defaults: Settings = {
        "popsize": default_popsize(dim),
        "antithetic": "auto",
        "shaping": "normal_scores",
        "optimizer": Direct(),
    }
    if dim <= FULL_COVARIANCE_UP_TO and not isinstance(x0, Belief) and given.get("dtype", "float64") == "float64":
        defaults["belief"] = "full"
    return defaults


def _given(settings: Settings) -> Settings:
    """Without what is None, which is as good as not given, but for the stop criteria, which it switches off."""
    given = {name: value for name, value in settings.items() if value is not None or name in LIMITS}
    if "dtype" in given:
        with suppress(TypeError):  # what is no type at all is refused by name later on
            given["dtype"] = np.dtype(cast(DTypeLike, given["dtype"])).name
    return cast(Settings, given)


METHODS: dict[str, Callable[..., Strategy]] = {"es": ES, "nes": NES, "cones": CoNES, "cma": CMA, "sepcma": SepCMA}


def _compose(
    method: str,
    x0: ArrayLike | Belief,
    sigma0: ArrayLike | None,
    refinement: Refinement,
    *,
    belief: str | None = None,
    popsize: int = 100,
    antithetic: bool | Literal["auto"] = True,
    dtype: Any = "float64",
    noise_table: int = 0,
    chunked: bool | None = None,
    shaping: str = "centred_ranks",
    optimizer: Optimizer[Any] | None = None,
    restarts: int = 0,
    bounds: Any = None,
    rng: Rng = None,
    **limits: Any,
) -> Strategy:
    """The pipeline around a refinement."""
    own = ("radius", "solver") if method == "CoNES" else ()
    check_limits(method, limits, (*own, "sigma0", *(name for name in Settings.__annotations__ if name not in LIMITS)))
    mean = x0.mean if isinstance(x0, Belief) else check_vector("x0", x0)
    box = box_from(bounds, mean)
    start = _initial_belief(x0, mean, sigma0, belief, box)
    popsize = check_integer("popsize", popsize, 2)
    auto = isinstance(antithetic, str) and antithetic == "auto"
    if not (auto or isinstance(antithetic, (bool, np.bool_))):
        raise InputError(f"antithetic: expected True, False or 'auto', got {antithetic!r}")
    kind = AntitheticNoise if antithetic else IndependentNoise
    noise = kind(seed_from(rng), popsize, dtype, check_integer("noise_table", noise_table, 0))
    if dtype != "float64":
        if not isinstance(start, DiagonalGaussian):
            raise InputError(f"dtype: expected 'float64' with a full covariance, got {dtype!r}")
        with np.errstate(over="ignore"):
            start = start.as_type(dtype)
        check_finite(f"x0 as {dtype}", start.mean)
    return Pipeline(
        method=method,
        state=State(start, popsize=popsize),
        start=start if restarts else None,
        noise=noise,
        pairing="auto" if auto else "fixed",
        shaping=shaping,
        refinement=refinement,
        optimizer=Adam() if optimizer is None else optimizer,
        chunked=None if chunked is None else check_bool("chunked", chunked),
        restarts=restarts,
        box=box,
        criteria=criteria_from(start.dim, popsize, limits),
    )


def _initial_belief(
    x0: ArrayLike | Belief, mean: Vector, sigma0: ArrayLike | None, kind: str | None, box: Box | None
) -> Belief:
    if isinstance(x0, Belief):
        if sigma0 is not None or kind is not None:
            raise InputError("sigma0, belief: expected neither when x0 is a belief, which has both")
        return x0
    deviations = initial_deviations(mean.size, sigma0, box)
    if check_one_of("belief", kind or "diagonal", ("diagonal", "full")) == "diagonal":
        return DiagonalGaussian(mean, deviations**2)
    return FullGaussian(mean, np.diag(deviations**2))
