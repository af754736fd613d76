"""CMA-ES by PyCMA."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cones.baselines.external import ExternalOptimizer, import_package
from cones.beliefs import DiagonalGaussian
from cones.checks import check_bool
from cones.errors import InputError
from cones.progress.limits import check_limits
from cones.sampling import Rng, seed_from
from cones.types import Vector

__all__ = ["CMA", "CMAStrategy"]


_CHANGES_X = "it changes the meaning of x; transform x in your function"
_ENDS = "use the stop criteria maxfev, maxiter, maxtime, ftarget, xtol, ftol, stagnation"
NOT_FOR_HERE = {
    "bounds": "use bounds=...",
    "popsize": "use popsize=...",
    "seed": "use rng=...",
    "randn": "use rng=...",
    "CMA_stds": "use sigma0=..., one number or one per coordinate",
    **dict.fromkeys(("transformation", "typical_x", "fixed_variables", "scaling_of_variables"), _CHANGES_X),
    **dict.fromkeys(("maxiter", "maxfevals", "timeout", "ftarget", "tolfun", "tolx", "tolstagnation"), _ENDS),
}


class CMAStrategy(ExternalOptimizer):
    """PyCMA by ask and tell. Made by `cones.CMA`."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        _check_options(self.options)
        if (mu := self.options.get("CMA_mu")) is not None and not 0 < mu <= self.popsize:
            raise InputError(f"options: expected a CMA_mu of at most popsize = {self.popsize}, got {mu!r:.80}")

    def _new_engine(self) -> Any:
        cma = import_package("cma", "CMA")
        generator = np.random.Generator(np.random.SFC64(self.seed))
        quiet = {
            "verbose": -9,
            "verb_log": 0,
            "seed": np.nan,  # do not seed NumPy's global generator
            "randn": lambda *shape: generator.standard_normal(shape),
            "CMA_stds": self.start.standard_deviations(),
        }
        options = {**self.options, "popsize": self.popsize}
        if self.start.dim == 1:
            options.pop("CMA_diagonal", None)  # the same in one dimension, in which PyCMA fails with it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyCMA warns in high dimensions
            return cma.CMAEvolutionStrategy(self.start.mean, 1.0, {**quiet, **options})

    def _ask(self, engine: Any) -> Any:
        return engine.ask()

    def _tell(self, engine: Any, solutions: Any, losses: Vector) -> None:
        engine.tell(solutions, list(losses))

    def _belief(self, engine: Any) -> DiagonalGaussian:
        return DiagonalGaussian(engine.mean, np.square(engine.result.stds))


def CMA(
    x0: ArrayLike,
    sigma0: ArrayLike | None = None,
    *,
    popsize: int | None = None,
    diagonal: bool = False,
    options: Mapping[str, Any] | None = None,
    bounds: Any = None,
    rng: Rng = None,
    **limits: Any,
) -> CMAStrategy:
    """CMA-ES (Hansen) by the package `cma`, with its defaults. Needs the extra `cma`.

    Args:
        x0: initial mean, shape (n,).
        sigma0, bounds, rng: as for `cones.CoNES`.
        popsize: candidates per iteration, 4 + 3 log(n) by default.
        diagonal: learn a diagonal covariance (PyCMA's `CMA_diagonal`).
        options: further options of PyCMA by name, such as {"CMA_mu": 10}, except those that change x or end a run.
        **limits: the stop criteria of `cones.methods.Settings`, instead of PyCMA's.

    Example:
        >>> import cones
        >>> cones.minimize(lambda x: (x**2).sum(), [3.0] * 4, method="cma", rng=0, ftarget=1e-6).success
        True
    """
    check_limits("CMA", limits, ("sigma0", "popsize", "diagonal", "options", "bounds", "rng"))
    cma = import_package("cma", "CMA")
    if options is not None and not isinstance(options, Mapping):
        raise InputError(f"options: expected a mapping of options of PyCMA, got {options!r}")
    known = {name: getattr(value, "item", lambda value=value: value)() for name, value in (options or {}).items()}
    for name in known:
        if name not in cma.CMAOptions.defaults():
            raise InputError(f"options: expected options of PyCMA, got {name!r}")
    asked = known.pop("popsize", None)
    popsize = asked if popsize is None else popsize
    _check_options(known)
    if check_bool("diagonal", diagonal):
        known["CMA_diagonal"] = True
    return CMAStrategy.begin("CMA", x0, sigma0, bounds, popsize, 2, known, seed_from(rng), limits)


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse what is not for here, and text, which PyCMA would evaluate as code."""
    for name, value in options.items():
        if name in NOT_FOR_HERE:
            raise InputError(f"options: {name!r} is not accepted; {NOT_FOR_HERE[name]}")
        if not _is_plain(value):
            raise InputError(f"options: expected numbers, booleans, None or lists for {name!r}, got {value!r:.80}")


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float))
