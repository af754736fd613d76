"""Separable CMA-ES by the package `cmaes`, behind the same ask and tell."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cones.baselines.external import Replayed, import_package
from cones.beliefs import DiagonalGaussian
from cones.checks import check_integer, check_vector
from cones.errors import InputError
from cones.progress.history import State
from cones.progress.stopping import check_limits, criteria_from
from cones.sampling import Rng, seed_from
from cones.space.bounds import box_from, initial_deviations
from cones.types import Vector

__all__ = ["SepCMA", "SepCMAStrategy"]

# Beyond this, the package's checks of what it is told fail.
LARGEST = 1e30


class SepCMAStrategy(Replayed):
    """`cmaes.SepCMA` by ask and tell. Made by `cones.SepCMA`.

    Its one initial spread is 1; candidates are stretched by the deviations of the start.
    """

    def _made(self) -> Any:
        cmaes = import_package("cmaes", "SepCMA")
        return cmaes.SepCMA(np.zeros(self.start.dim), 1.0, seed=self.seed, population_size=self.options["popsize"])

    def _ask(self, engine: Any) -> list[Vector]:
        return [self.start.mean + self.start.deviation * engine.ask() for _ in range(self.popsize)]

    def _tell(self, engine: Any, solutions: list[Vector], losses: Vector) -> None:
        asked = [self.start.to_frame(x - self.start.mean) for x in solutions]
        engine.tell(list(zip(asked, losses, strict=True)))

    def _belief(self, engine: Any) -> DiagonalGaussian:
        deviation = engine._sigma * np.sqrt(np.maximum(engine._C, 1e-300))  # the package shows neither
        mean = self.start.mean + self.start.deviation * engine.mean
        if not max(deviation.max(), np.abs(engine.mean).max()) < LARGEST:
            return DiagonalGaussian.from_deviation(mean, np.full_like(mean, np.inf))  # has diverged
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
    """CMA-ES with a diagonal covariance (Ros & Hansen, 2008) by the package `cmaes`. Needs `pip install 'cones[cma]'`.

    Args:
        x0, sigma0, bounds, rng: as for `cones.CMA`.
        popsize: the package's 4 + 3 log(n) by default.
        **limits: the stop criteria of `cones.methods.Settings`.

    Example:
        >>> import cones
        >>> cones.minimize(lambda x: (x**2).sum(), [3.0] * 4, method="sepcma", rng=0, ftarget=1e-6).success
        True
    """
    check_limits("SepCMA", limits, ("sigma0", "popsize", "bounds", "rng"))
    import_package("cmaes", "SepCMA")
    mean = check_vector("x0", x0)
    if mean.size < 2:
        raise InputError("x0: expected at least two coordinates for SepCMA, got one")
    box = box_from(bounds, mean)
    start = DiagonalGaussian(mean, initial_deviations(mean.size, sigma0, box) ** 2)
    size = check_integer("popsize", 4 + int(3 * np.log(mean.size)) if popsize is None else popsize, 4)
    return SepCMAStrategy(
        method="SepCMA",
        state=State(start, popsize=size),
        box=box,
        criteria=criteria_from(mean.size, size, limits),
        start=start,
        options={"popsize": size},
        seed=seed_from(rng) % 2**32,  # what the package's generator takes
    )
