"""Separable CMA-ES by the package `cmaes`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cones.baselines.external import ExternalOptimizer, import_package
from cones.beliefs import DiagonalGaussian
from cones.errors import InputError
from cones.progress.limits import check_limits
from cones.sampling import Rng, seed_from
from cones.types import Vector

__all__ = ["SepCMA", "SepCMAStrategy"]

# The package refuses larger numbers.
LARGEST = 1e30


class SepCMAStrategy(ExternalOptimizer):
    """`cmaes.SepCMA` by ask and tell. Made by `cones.SepCMA`.

    The engine starts at 0 with deviation 1; candidates are scaled by the initial deviations.
    """

    def _new_engine(self) -> Any:
        cmaes = import_package("cmaes", "SepCMA")
        return cmaes.SepCMA(np.zeros(self.start.dim), 1.0, seed=self.seed, population_size=self.popsize)

    def _ask(self, engine: Any) -> list[Vector]:
        return [self.start.mean + self.start.deviation * engine.ask() for _ in range(self.popsize)]

    def _tell(self, engine: Any, solutions: list[Vector], losses: Vector) -> None:
        asked = [self.start.to_frame(x - self.start.mean) for x in solutions]
        engine.tell(list(zip(asked, losses, strict=True)))

    def _belief(self, engine: Any) -> DiagonalGaussian:
        deviation = engine._sigma * np.sqrt(np.maximum(engine._C, 1e-300))  # private in the package
        mean = self.start.mean + self.start.deviation * engine.mean
        if not max(deviation.max(), np.abs(engine.mean).max()) < LARGEST:
            return DiagonalGaussian.from_deviation(mean, np.full_like(mean, np.inf))  # diverged
        return DiagonalGaussian(mean, np.square(deviation * self.start.deviation))


def SepCMA(
    x0: ArrayLike,
    sigma0: ArrayLike | None = None,
    *,
    popsize: int | None = None,
    bounds: Any = None,
    rng: Rng = None,
    **limits: Any,
) -> SepCMAStrategy:
    """CMA-ES with a diagonal covariance (Ros & Hansen, 2008) by the package `cmaes`. Needs the extra `cma`.

    Args:
        x0, sigma0, bounds, rng: as for `cones.CMA`.
        popsize: candidates per iteration, 4 + 3 log(n) by default.
        **limits: the stop criteria of `cones.methods.Settings`.

    Example:
        >>> import cones
        >>> cones.minimize(lambda x: (x**2).sum(), [3.0] * 4, method="sepcma", rng=0, ftarget=1e-6).success
        True
    """
    check_limits("SepCMA", limits, ("sigma0", "popsize", "bounds", "rng"))
    import_package("cmaes", "SepCMA")
    if np.size(x0) < 2:
        raise InputError(f"x0: expected at least two coordinates for SepCMA, got {np.size(x0)}")
    seed = seed_from(rng) % 2**32  # what the package's generator accepts
    return SepCMAStrategy.begin("SepCMA", x0, sigma0, bounds, popsize, 4, {}, seed, limits)
