"""Optimizers of other packages by ask and tell.

They can save themselves only as pickles, which a checkpoint must not contain. A checkpoint therefore stores the losses
told so far. The first `ask` after loading replays them: the replay is exact and evaluates nothing.
"""

from __future__ import annotations

import importlib
import math
import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from cones.beliefs import DiagonalGaussian
from cones.checks import check_array, check_integer, check_kind, check_shape, check_vector
from cones.estimators.shaping import centred_ranks
from cones.extras import require_extra
from cones.progress import Outcome, State
from cones.progress.limits import criteria_from
from cones.space.bounds import box_from, check_start, initial_deviations
from cones.space.lagrangian import Told
from cones.strategy import Strategy
from cones.types import Matrix, Vector

__all__ = ["ExternalOptimizer", "import_package"]


class ExternalOptimizer(Strategy):
    """The optimizer of another package, the `engine`.

    The belief has the engine's mean and standard deviations of the coordinates. Correlations stay in the engine.
    """

    SAVED_FIELDS: ClassVar[tuple[str, ...]] = (*Strategy.SAVED_FIELDS, "start", "options", "seed", "told")

    def __init__(
        self,
        start: DiagonalGaussian,
        options: dict[str, Any],
        seed: int,
        told: Matrix | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        check_kind("start", start, DiagonalGaussian)
        check_shape("start", start.mean, self.state.belief.mean.shape)
        check_kind("options", options, dict)
        self.start = start
        self.options = options
        self.seed = check_integer("rng", seed, 0)
        if told is not None:
            check_shape("told", check_array("told", told), (self.state.iteration, self.popsize))
        self._told_losses: list[Vector] = [] if told is None else list(told)
        self._engine: Any = None
        self._solutions: Any = None

    @classmethod
    def begin(
        cls,
        method: str,
        x0: ArrayLike,
        sigma0: ArrayLike | None,
        bounds: Any,
        popsize: int | None,
        least_popsize: int,
        options: dict[str, Any],
        seed: int,
        limits: dict[str, Any],
    ) -> Self:
        """The optimizer before its first iteration; `popsize` is 4 + 3 log(n) by default."""
        mean = check_vector("x0", x0)
        box = box_from(bounds, mean)
        check_start(mean)
        start = DiagonalGaussian(mean, initial_deviations(mean.size, sigma0, box) ** 2)
        size = 4 + int(3 * np.log(mean.size)) if popsize is None else check_integer("popsize", popsize, least_popsize)
        return cls(
            method=method,
            state=State(start, popsize=size),
            box=box,
            criteria=criteria_from(mean.size, size, limits),
            start=start,
            options=options,
            seed=seed,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_engine": None, "_solutions": None}

    @abstractmethod
    def _new_engine(self) -> Any:
        """An engine before its first iteration."""

    @abstractmethod
    def _ask(self, engine: Any) -> Any:
        """The engine's candidates in its own format."""

    @abstractmethod
    def _tell(self, engine: Any, solutions: Any, losses: Vector) -> None: ...

    @abstractmethod
    def _belief(self, engine: Any) -> DiagonalGaussian: ...

    @property
    def told(self) -> Matrix:
        """The losses of all iterations so far, shape (iterations, popsize)."""
        return np.array(self._told_losses[: self.state.iteration]).reshape(-1, self.popsize)

    @property
    def engine(self) -> Any:
        """The other package's object after all iterations so far."""
        if self._engine is None:
            engine = self._new_engine()
            for losses in self._told_losses[: self.state.iteration]:
                solutions = self._ask(engine)
                if (losses < math.inf).any():
                    self._tell(engine, solutions, centred_ranks(losses))
            self._engine = engine
        return self._engine

    def _sample(self) -> Matrix:
        self._solutions = self._ask(self.engine)
        candidates = np.array(self._solutions, np.float64)
        return candidates if self.box is None else self.box.reflect(candidates)

    def _move(self, losses: Vector, told: Told | None = None) -> Outcome:
        if self._engine is None:
            self._solutions = self._ask(self.engine)  # after a replay: the same candidates
        engine, self._engine = self._engine, None  # replayed if `tell` is interrupted
        self._told_losses = [*self._told_losses[: self.state.iteration], losses]
        if not (losses < math.inf).any():
            self._engine = engine
            return self._unmoved()
        # The engine needs only the order of losses, and ranks have no NaN and no infinity.
        self._tell(engine, self._solutions, centred_ranks(losses))
        before, belief = self.state.belief.mean, self._belief(engine)
        self._engine = engine
        return Outcome(belief, None, {"step": float(np.linalg.norm(belief.mean - before)), "kl": math.nan})


def import_package(name: str, method: str, extra: str = "cma") -> Any:
    """Import the package of a method, or a module of it."""
    require_extra(name.partition(".")[0], extra, f"method: {method}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyCMA warns if matplotlib is missing
        return importlib.import_module(name)
