r"""OpenAI-ES and PGPE by the package `evosax`.

Both draw pairs x = mean +- std z and rank the losses from -1/2 to 1/2. With the ranks u of N candidates, an optimizer
moves the mean along

    OpenAI-ES   sum_i u_i z_i / (N std)
    PGPE        sum_k ( u_k+ - u_k- ) std z_k / N         over the pairs

The std of OpenAI-ES stays. PGPE's follows its own gradient, by at most a fifth in an iteration. The package computes in
single precision, on JAX.

References: Salimans et al., Evolution Strategies as a Scalable Alternative to Reinforcement Learning, 2017. Sehnke et
al., Parameter-exploring Policy Gradients, 2010. Toklu et al., ClipUp, 2020. Lange, evosax: JAX-based Evolution
Strategies, 2022.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from cones.baselines.external import ExternalOptimizer, import_package
from cones.beliefs import DiagonalGaussian
from cones.checks import check_integer
from cones.errors import InputError
from cones.progress.limits import check_limits
from cones.sampling import Rng, seed_from
from cones.types import Vector

__all__ = ["PGPE", "OpenES", "OpenESStrategy", "PGPEStrategy"]

# The package has no default. Its examples of control by OpenAI-ES have this one.
POPSIZE = 256


@dataclass
class Engine:
    """An algorithm of the package, with its state and the key of the next draw."""

    algorithm: Any
    params: Any
    state: Any
    key: Any


class EvosaxStrategy(ExternalOptimizer):
    """An algorithm of the package by ask and tell."""

    @abstractmethod
    def _algorithm(self, algorithms: Any, mean: Any, deviation: Any, options: dict[str, Any]) -> tuple[Any, Any]:
        """The algorithm and its parameters; `options` holds an optimizer if it is not the package's default."""

    def _new_engine(self) -> Engine:
        jax = _import("jax", self.method)
        mean, deviation = (part.astype(np.float32) for part in (self.start.mean, self.start.standard_deviations()))
        optimizer = _optimizer(self.options, self.method)
        algorithm, params = self._algorithm(_import("evosax.algorithms", self.method), mean, deviation, optimizer)
        key, first = jax.random.split(jax.random.key(self.seed))
        return Engine(algorithm, params, algorithm.init(first, mean, params), key)

    def _ask(self, engine: Engine) -> Any:
        engine.key, draw = _import("jax", self.method).random.split(engine.key)
        solutions, engine.state = engine.algorithm.ask(draw, engine.state, engine.params)
        return solutions

    def _tell(self, engine: Engine, solutions: Any, losses: Vector) -> None:
        # The key is for metrics.
        engine.state, _ = engine.algorithm.tell(engine.key, solutions, losses, engine.state, engine.params)

    def _belief(self, engine: Engine) -> DiagonalGaussian:
        mean, deviation = (np.asarray(part, np.float64) for part in (engine.state.mean, engine.state.std))
        return DiagonalGaussian(mean, np.square(deviation))


class OpenESStrategy(EvosaxStrategy):
    """OpenAI-ES of the package. Made by `OpenES`."""

    def _algorithm(self, algorithms: Any, mean: Any, deviation: Any, options: dict[str, Any]) -> tuple[Any, Any]:
        made = algorithms.Open_ES(self.popsize, mean, std_schedule=lambda _: deviation, **options)
        return made, made.default_params


class PGPEStrategy(EvosaxStrategy):
    """PGPE of the package. Made by `PGPE`."""

    def _algorithm(self, algorithms: Any, mean: Any, deviation: Any, options: dict[str, Any]) -> tuple[Any, Any]:
        made = algorithms.PGPE(self.popsize, mean, **options)
        return made, made.default_params.replace(std_init=deviation)


def OpenES(
    x0: ArrayLike,
    sigma0: ArrayLike | None = None,
    *,
    popsize: int = POPSIZE,
    options: Mapping[str, Any] | None = None,
    bounds: Any = None,
    rng: Rng = None,
    **limits: Any,
) -> OpenESStrategy:
    """OpenAI-ES (Salimans et al., 2017) by the package `evosax`, with its defaults. Needs the extra `peers`.

    Args:
        x0, sigma0, bounds, rng: as for `cones.CMA`.
        popsize: candidates per iteration, an even number; the package's examples of control have 256.
        options: another optimizer with its settings, such as {"optimizer": "adam", "learning_rate": 0.01}: "sgd" or
            "adam" of optax, or "clipup". The package's default is "sgd" with a learning rate of 0.001.
        **limits: the stop criteria of `cones.methods.Settings`.
    """
    check_limits("OpenES", limits, ("sigma0", "popsize", "options", "bounds", "rng"))
    return _begin(OpenESStrategy, "OpenES", x0, sigma0, bounds, popsize, options, rng, limits)


def PGPE(
    x0: ArrayLike,
    sigma0: ArrayLike | None = None,
    *,
    popsize: int = POPSIZE,
    options: Mapping[str, Any] | None = None,
    bounds: Any = None,
    rng: Rng = None,
    **limits: Any,
) -> PGPEStrategy:
    """PGPE (Sehnke et al., 2010) by the package `evosax`, with its defaults. Needs the extra `peers`.

    Arguments as for `OpenES`. The package's default optimizer is "clipup" with a learning rate of 0.01 and a
    max_velocity of 0.02.
    """
    check_limits("PGPE", limits, ("sigma0", "popsize", "options", "bounds", "rng"))
    return _begin(PGPEStrategy, "PGPE", x0, sigma0, bounds, popsize, options, rng, limits)


SomeStrategy = TypeVar("SomeStrategy", bound=EvosaxStrategy)


def _begin(
    strategy: type[SomeStrategy],
    method: str,
    x0: ArrayLike,
    sigma0: ArrayLike | None,
    bounds: Any,
    popsize: int,
    options: Mapping[str, Any] | None,
    rng: Rng,
    limits: dict[str, Any],
) -> SomeStrategy:
    if check_integer("popsize", popsize, 2) % 2:
        raise InputError(f"popsize: expected an even number, got {popsize}")
    if options is not None and not isinstance(options, Mapping):
        raise InputError(f"options: expected a mapping with an optimizer and its settings, got {options!r:.80}")
    given = dict(options or {})
    _optimizer(given, method)
    seed = seed_from(rng) % 2**32  # what the package's generator accepts
    return strategy.begin(method, x0, sigma0, bounds, popsize, 2, given, seed, limits)


def _optimizer(options: dict[str, Any], method: str) -> dict[str, Any]:
    """The keyword argument for an optimizer that is not the package's default."""
    optax = _import("optax", method)
    if not options:
        return {}
    known = {"sgd": optax.sgd, "adam": optax.adam, "clipup": _import("evosax.core.optimizer", method).clipup}
    settings = {name: value for name, value in options.items() if name != "optimizer"}
    name = options.get("optimizer")
    if not isinstance(name, str) or name not in known:
        raise InputError(f"options: expected an optimizer of {', '.join(map(repr, known))}, got {name!r:.80}")
    for setting, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"options: expected a number for {setting!r}, got {value!r:.80}")
    try:
        return {"optimizer": known[name](**settings)}
    except TypeError as error:
        raise InputError(f"options: {error}") from None


def _import(name: str, method: str) -> Any:
    return import_package(name, method, "peers")
