"""CMA-ES by PyCMA, behind the same ask and tell.

PyCMA can save itself only as a pickle, which a checkpoint must not hold. A checkpoint therefore keeps the
losses that were told, and the first `ask` after a restart replays them: exact, and without evaluating
anything again.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cones.beliefs import DiagonalGaussian
from cones.bounds import box_from, initial_deviations
from cones.checks import check_bool, check_integer, check_vector
from cones.errors import InputError, MissingExtraError
from cones.noise import Rng, seed_from
from cones.progress import State
from cones.shaping import centred_ranks
from cones.stopping import criteria_from
from cones.strategy import Move, Strategy
from cones.types import Matrix, Vector

__all__ = ["CMA", "CMAStrategy"]


_CHANGES_X = "it changes what x means; transform x in your function"
_ENDS = "use the stop criteria maxfev, maxiter, maxtime, ftarget, xtol, ftol, stagnation"
NOT_FOR_HERE = {
    "bounds": "use bounds=...",
    "seed": "use rng=...",
    "randn": "use rng=...",
    "CMA_stds": "use sigma0=..., which may have one number per coordinate",
    **dict.fromkeys(("transformation", "typical_x", "fixed_variables", "scaling_of_variables"), _CHANGES_X),
    **dict.fromkeys(("maxiter", "maxfevals", "timeout", "ftarget", "tolfun", "tolx", "tolstagnation"), _ENDS),
}


class CMAStrategy(Strategy):
    """PyCMA by ask and tell. Made by `cones.CMA`.

    The belief of its state is PyCMA's mean with the standard deviations of the coordinates; the
    correlations stay inside PyCMA, whose object is `engine`.
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

    @property
    def told(self) -> Matrix:
        """The losses of all iterations so far, shape (iterations, popsize)."""
        return np.array(self._told_losses[: self.state.iteration]).reshape(-1, self.popsize)

    @property
    def engine(self) -> Any:
        """PyCMA's `CMAEvolutionStrategy`, after what was told so far."""
        if self._engine is None:
            engine = self._made()
            for losses in self._told_losses[: self.state.iteration]:
                solutions = engine.ask()
                if not np.isnan(losses).all():
                    engine.tell(solutions, list(centred_ranks(losses)))
            self._engine = engine
        return self._engine

    def _made(self) -> Any:
        cma = import_cma()
        generator = np.random.Generator(np.random.SFC64(self.seed))
        quiet = {
            "verbose": -9,
            "verb_log": 0,
            "seed": np.nan,  # leave NumPy's global generator alone
            "randn": lambda *shape: generator.standard_normal(shape),
            "CMA_stds": self.start.standard_deviations(),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on large dimensions
            return cma.CMAEvolutionStrategy(self.start.mean, 1.0, {**quiet, **self.options})

    def _sample(self) -> Matrix:
        self._solutions = self.engine.ask()
        candidates = np.array(self._solutions)
        return candidates if self.box is None else self.box.reflect(candidates)

    def _move(self, losses: Vector) -> Move:
        if self._engine is None:
            self._solutions = self.engine.ask()  # after a replay: the candidates that were handed out
        engine, self._engine = self._engine, None  # if this is interrupted, it is replayed
        self._told_losses = [*self._told_losses[: self.state.iteration], losses]
        if np.isnan(losses).all():
            self._engine = engine
            return self._unmoved()
        # PyCMA sees the order of losses only; as ranks, NaN and infinity do no harm.
        engine.tell(self._solutions, list(centred_ranks(losses)))
        before = self.state.belief.mean
        belief = DiagonalGaussian(engine.mean, np.square(engine.result.stds))
        self._engine = engine
        return Move(belief, None, float(np.linalg.norm(belief.mean - before)))


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
    """CMA-ES (Hansen) by the package `cma`, with its defaults. Needs `pip install 'cones[cma]'`.

    Args:
        x0: where to start, shape (n,).
        sigma0, bounds, rng: as for `cones.CoNES`.
        popsize: PyCMA's 4 + 3 log(n) by default.
        diagonal: a diagonal covariance throughout (PyCMA's `CMA_diagonal`).
        options: further options of PyCMA's algorithm by name, such as {"CMA_mu": 10}. Those that change x
            or end a run are not taken.
        **limits: the stop criteria of `cones.methods.Settings`; PyCMA's own are not used.

    Example:
        >>> import cones
        >>> cones.minimize(lambda x: (x**2).sum(), [3.0] * 4, method="cma", rng=0, ftarget=1e-6).success
        True
    """
    cma = import_cma()
    mean = check_vector("x0", x0)
    box = box_from(bounds, mean)
    deviations = initial_deviations(mean.size, sigma0, box)
    if options is not None and not isinstance(options, Mapping):
        raise InputError(f"options: expected a mapping of options of PyCMA, got {options!r}")
    known = {name: getattr(value, "item", lambda value=value: value)() for name, value in (options or {}).items()}
    for name in known:
        if name not in cma.CMAOptions.defaults():
            raise InputError(f"options: expected options of PyCMA, got {name!r}")
        if name in NOT_FOR_HERE:
            raise InputError(f"options: {name!r} is not taken; {NOT_FOR_HERE[name]}")
    if popsize is None:
        popsize = known.get("popsize", 4 + int(3 * np.log(mean.size)))
    known["popsize"] = check_integer("popsize", popsize, 2)
    if check_bool("diagonal", diagonal):
        known["CMA_diagonal"] = True
    start = DiagonalGaussian(mean, deviations**2)
    return CMAStrategy(
        method="CMA",
        state=State(start, popsize=known["popsize"]),
        box=box,
        criteria=criteria_from(mean.size, known["popsize"], limits),
        start=start,
        options=known,
        seed=seed_from(rng),
    )


def import_cma() -> Any:
    if importlib.util.find_spec("cma") is None:
        raise MissingExtraError(
            "method: CMA needs the package cma, which is not installed; run: pip install 'cones[cma]'"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without matplotlib it says so
        import cma
    return cma
