"""nevergrad: CoNES as one of its optimizers, and its functions as problems.

Importing this module registers the optimizer "CoNES" in `nevergrad.optimizers.registry`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import cones
from cones.defaults import default_popsize
from cones.extras import require_extra
from cones.problems import Problem
from cones.progress.limits import LIMITS
from cones.strategy import Strategy
from cones.types import Matrix, Vector

try:
    import nevergrad as ng
    from nevergrad.common import errors
    from nevergrad.functions import ExperimentFunction
    from nevergrad.optimization import base

    from cones.integrations.nevergrad_space import space_of, with_values
except ImportError:
    require_extra("nevergrad", "nevergrad", "cones.integrations.nevergrad")
    raise

__all__ = ["ConfiguredCoNES", "NevergradProblem"]

NOT_FOR_HERE = {
    "rng": "seed parametrization.random_state",
    "bounds": "the parametrization sets them",
    **dict.fromkeys(LIMITS, "use budget, max_time of minimize, or an early-stopping callback"),
}


class CoNESOptimizer(base.Optimizer):  # type: ignore[misc]
    """CoNES one candidate at a time, told in any order. Made by `ConfiguredCoNES`.

    Choices between constants have a categorical belief, all else a Gaussian one on nevergrad's standardised data.
    """

    def __init__(
        self,
        parametrization: Any,
        budget: int | None = None,
        num_workers: int = 1,
        *,
        popsize: int | None = None,
        sigma0: float = 1.0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(parametrization, budget=budget, num_workers=num_workers)
        # Tell a candidate outside the constraints as the worst; otherwise the population would never be complete.
        self._penalize_cheap_violations = True
        self._settings = {} if settings is None else dict(settings)
        for name in self._settings:
            if name in NOT_FOR_HERE:
                raise errors.NevergradTypeError(f"CoNES takes no argument {name!r}: {NOT_FOR_HERE[name]}")
        self._popsize, self._sigma0 = popsize, sigma0
        self._space = space_of(self.parametrization)
        self._make(0)  # check the settings now
        self._strategy: Strategy | None = None
        # Of this iteration: candidates by uid, and losses by candidate.
        self._candidates: dict[str, int] = {}
        self._losses: dict[int, float] = {}

    def _make(self, seed: int) -> Strategy:
        popsize = self._popsize
        if popsize is None:
            popsize = max(default_popsize(self.dimension), self.num_workers + self.num_workers % 2)
        # Nevergrad ends the run; the radii use the budget to plan.
        known = self.budget is not None and self.budget >= popsize
        limits = {"maxfev": self.budget} if known else {"maxiter": math.inf}
        settings = {**limits, **self._settings}
        try:
            if self._space is not None:  # whose numbers have no bounds, and a deviation of 1 at a share of 1/4
                return cones.CoNES(self._space, 0.25 * self._sigma0, popsize=popsize, rng=seed, **settings)
            return cones.CoNES(np.zeros(self.dimension), self._sigma0, popsize=popsize, rng=seed, **settings)
        except TypeError as error:
            raise errors.NevergradTypeError(str(error)) from None
        except ValueError as error:
            raise errors.NevergradValueError(str(error)) from None

    @property
    def strategy(self) -> Strategy:
        """The strategy, created at the first `ask`: users seed the random state before that."""
        if self._strategy is None:
            self._strategy = self._make(int(self._rng.randint(2**31)))
        return self._strategy

    def _internal_ask_candidate(self) -> Any:
        strategy, asked = self.strategy, list(self._candidates.values())
        # The candidate asked least often among those without a loss: a lost one is asked again.
        waiting = [candidate for candidate in range(strategy.popsize) if candidate not in self._losses]
        candidate = min(waiting, key=asked.count)
        if self._space is not None:
            child = with_values(self.parametrization, strategy.ask()[candidate])
        else:
            child = self.parametrization.spawn_child()
            child.set_standardized_data(np.asarray(strategy.ask()[candidate]))
        self._candidates[child.uid] = candidate
        return child

    def _internal_tell_candidate(self, candidate: Any, loss: float) -> None:
        strategy = self.strategy
        index = self._candidates.get(candidate.uid)
        if index is None:
            return  # of an earlier population, or changed by the constraint solver
        self._losses.setdefault(index, loss)
        if len(self._losses) == strategy.popsize:
            strategy.tell(strategy.ask(), [self._losses[k] for k in range(strategy.popsize)])
            self._candidates, self._losses = {}, {}

    def _internal_tell_not_asked(self, candidate: Any, loss: float) -> None:
        raise errors.TellNotAskedNotSupportedError("CoNES accepts only candidates from its own ask")

    def _internal_provide_recommendation(self) -> Vector | None:
        """The mean of the belief for noisy losses; nevergrad's default, the best candidate, otherwise."""
        if self._strategy is None or self._space is not None or self.parametrization.function.deterministic:
            return None
        return self._strategy.state.belief.mean


class ConfiguredCoNES(base.ConfiguredOptimizer):  # type: ignore[misc]
    """CoNES with settings as a nevergrad optimizer.

    Args:
        popsize: candidates per iteration; by default that of `cones.CoNES`, and at least the number of workers.
        sigma0: initial standard deviation in nevergrad's standardised space, whose prior has deviation 1.
        **settings: of `cones.CoNES`, such as radius, belief, shaping, optimizer.

    Example:
        >>> import nevergrad as ng
        >>> import cones.integrations.nevergrad
        >>> parametrization = ng.p.Instrumentation(ng.p.Array(shape=(3,)), y=ng.p.Scalar(lower=0.0, upper=2.0))
        >>> parametrization.random_state.seed(0)
        >>> optimizer = ng.optimizers.registry["CoNES"](parametrization, budget=600)
        >>> best = optimizer.minimize(lambda x, y: float(((x - 0.5) ** 2).sum() + (y - 1.5) ** 2))
        >>> best.loss < 0.01
        True
    """

    def __init__(self, *, popsize: int | None = None, sigma0: float = 1.0, **settings: Any) -> None:
        super().__init__(CoNESOptimizer, {"popsize": popsize, "sigma0": sigma0, "settings": settings})


class NevergradProblem(Problem):
    """A nevergrad function as a problem, in nevergrad's standardised space.

    Nevergrad does not know the optimum: `best` is NaN, and `optimum` is a vector of NaN.

    Args:
        function: an `ExperimentFunction`, such as an `ArtificialFunction`, with one objective.

    Example:
        >>> from nevergrad.functions import ArtificialFunction
        >>> problem = NevergradProblem(ArtificialFunction("sphere", block_dimension=4))
        >>> problem.name, problem.dim
        ('nevergrad sphere', 4)
        >>> cones.minimize(problem, [0.0] * problem.dim, vectorized=True, rng=0, ftarget=0.01).success
        True
    """

    best = minimiser = math.nan
    domain = (-3.0, 3.0)  # three standard deviations of nevergrad's prior

    def __init__(self, function: ExperimentFunction) -> None:
        if not isinstance(function, ExperimentFunction):
            raise errors.NevergradTypeError(f"expected an ExperimentFunction, got {type(function).__name__}")
        super().__init__(function.parametrization.dimension)
        self.function = function
        self.name = f"nevergrad {getattr(function, 'name', type(function).__name__)}"

    def __repr__(self) -> str:
        return f"NevergradProblem({self.function!r})"

    def losses(self, X: Matrix) -> Vector:
        return np.array([self._loss(row) for row in X])

    def _loss(self, x: Vector) -> float:
        child = self.function.parametrization.spawn_child()
        with ng.p.helpers.deterministic_sampling(child):
            child.set_standardized_data(x)
        loss = self.function(*child.args, **child.kwargs)
        if np.size(loss) != 1:
            raise errors.NevergradValueError(f"expected a function with one objective, got {np.size(loss)} losses")
        return float(loss)


if "CoNES" not in ng.optimizers.registry:
    ConfiguredCoNES().set_name("CoNES", register=True)
