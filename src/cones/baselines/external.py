"""Optimizers of other packages behind the same ask and tell.

They can save themselves only as pickles, which a checkpoint must not hold. A checkpoint therefore keeps the losses
that were told, and the first `ask` after a restart replays them: exact, and without evaluating anything again.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from cones.beliefs import DiagonalGaussian
from cones.errors import MissingExtraError
from cones.estimators.shaping import centred_ranks
from cones.strategy import Move, Strategy
from cones.types import Matrix, Vector

__all__ = ["Replayed", "import_package"]


class Replayed(Strategy):
    """Another package's optimizer, its `engine`.

    The belief of its state is the engine's mean with the standard deviations of the coordinates; correlations stay
    inside the engine.
    """

    PARTS: ClassVar[tuple[str, ...]] = (*Strategy.PARTS, "start", "options", "seed", "told")

    def __init__(
        self,
        start: DiagonalGaussian,
        options: dict[str, Any],
        seed: int,
        told: Matrix | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.start = start
        self.options = options
        self.seed = seed
        self._told_losses: list[Vector] = [] if told is None else list(told)
        self._engine: Any = None
        self._solutions: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_engine": None, "_solutions": None}

    @abstractmethod
    def _made(self) -> Any:
        """A new engine."""

    @abstractmethod
    def _ask(self, engine: Any) -> Any:
        """The engine's candidates, in its own form."""

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
        """The other package's object, after what was told so far."""
        if self._engine is None:
            engine = self._made()
            for losses in self._told_losses[: self.state.iteration]:
                solutions = self._ask(engine)
                if not np.isnan(losses).all():
                    self._tell(engine, solutions, centred_ranks(losses))
            self._engine = engine
        return self._engine

    def _sample(self) -> Matrix:
        self._solutions = self._ask(self.engine)
        candidates = np.array(self._solutions)
        return candidates if self.box is None else self.box.reflect(candidates)

    def _move(self, losses: Vector) -> Move:
        if self._engine is None:
            self._solutions = self._ask(self.engine)  # after a replay: the candidates that were handed out
        engine, self._engine = self._engine, None  # if this is interrupted, it is replayed
        self._told_losses = [*self._told_losses[: self.state.iteration], losses]
        if np.isnan(losses).all():
            self._engine = engine
            return self._unmoved()
        # Only the order of losses counts; as ranks, NaN and infinity do no harm.
        self._tell(engine, self._solutions, centred_ranks(losses))
        before, belief = self.state.belief.mean, self._belief(engine)
        self._engine = engine
        return Move(belief, None, float(np.linalg.norm(belief.mean - before)))


def import_package(name: str, method: str) -> Any:
    """The package that a method needs."""
    if importlib.util.find_spec(name) is None:
        raise MissingExtraError(
            f"method: {method} needs the package {name}, which is not installed; run: pip install 'cones[cma]'"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without matplotlib PyCMA says so
        return importlib.import_module(name)
