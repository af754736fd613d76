"""cones and its peers on a problem, one evaluation at a time. Each stops when the recorder says so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import cones
from benchmarks.spaces.problems import OPTIONS, REACH, Problem
from cones.space.parameters import Parameter

__all__ = ["METHODS", "RunEndedError", "Recorder"]


class RunEndedError(Exception):
    """The target is reached, or the budget is spent."""


class Recorder:
    """Counts evaluations and keeps the improvements."""

    def __init__(self, problem: Problem, budget: int) -> None:
        self.problem, self.budget = problem, budget
        self.count, self.best = 0, float("inf")
        self.improvements: list[list[float]] = []

    def __call__(self, values: dict[str, Any]) -> float:
        loss = self.problem.loss(values)
        self.count += 1
        if loss < self.best:
            self.best = loss
            self.improvements.append([self.count, loss])
        if self.best <= self.problem.target or self.count >= self.budget:
            raise RunEndedError
        return loss

    @property
    def hit(self) -> int | None:
        return self.count if self.best <= self.problem.target else None


def by_cones(recorder: Recorder, seed: int) -> None:
    cones.minimize(recorder, recorder.problem.space, rng=seed, maxfev=recorder.budget + 1000, noisy=False)


def by_catcma(recorder: Recorder, seed: int) -> None:
    """CatCMA with margin, of cmaes; restarts where it stops by itself."""
    from cmaes import CatCMAwM

    space = recorder.problem.space
    size, number = space.numbers // 2, 0
    while True:
        spaces: dict[str, Any] = {"c_space": [2] * space.flags or [OPTIONS] * len(space.choices)}
        if size:
            spaces["x_space"] = [[-REACH, REACH]] * size
            spaces["z_space"] = [list(range(-REACH, REACH + 1))] * size
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer, number = CatCMAwM(seed=1000 * number + seed, **spaces), number + 1
            while not optimizer.should_stop():
                told = []
                for _ in range(optimizer.population_size):
                    asked = optimizer.ask()
                    picked = np.asarray(asked.c).argmax(axis=1)
                    values = {"x": asked.x, "z": asked.z, "c": picked} if size else {"bits": picked == 1}
                    told.append((asked, recorder(values)))
                optimizer.tell(told)


def by_tpe(recorder: Recorder, seed: int) -> None:
    """Optuna's TPE with its defaults."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = recorder.problem.space
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(lambda trial: recorder(suggested(trial, space)), n_trials=recorder.budget + 1)


def suggested(trial: Any, space: cones.Space) -> dict[str, Any]:
    """The values that a trial of Optuna suggests in a space without groups."""
    values: dict[str, Any] = {}
    for name, parameter in space.parameters.items():
        each = [_suggest(trial, f"{name}{k}", parameter) for k in range(parameter.count)]
        shape = np.shape(parameter.values(np.zeros(parameter.count)))
        values[name] = np.array(each).reshape(shape) if shape else each[0]
    return values


def _suggest(trial: Any, name: str, parameter: Parameter) -> Any:
    if isinstance(parameter, cones.Choice):
        return trial.suggest_categorical(name, list(parameter.options))
    if isinstance(parameter, cones.Flag):
        return trial.suggest_categorical(name, [False, True])
    assert isinstance(parameter, (cones.Float, cones.Integer))
    low, high = (float(end[0]) for end in parameter.limits())
    if isinstance(parameter, cones.Integer):
        return trial.suggest_int(name, int(low), int(high), log=parameter.log)
    return trial.suggest_float(name, low, high, log=parameter.log)


def by_nevergrad(make: Callable[[int, int], Any]) -> Callable[[Recorder, int], None]:
    """A nevergrad optimizer over an array of scores, of which the highest decides; `make(bits, budget)` makes it."""

    def run(recorder: Recorder, seed: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = make(recorder.problem.space.flags, recorder.budget)
            optimizer.parametrization.random_state.seed(seed)
            while True:
                asked = optimizer.ask()
                optimizer.tell(asked, recorder({"bits": bits_of(asked.value)}))

    return run


def bits_of(scores: np.ndarray) -> np.ndarray:
    """Bits from one score each, or from one for each of their two values."""
    return scores > 0.0 if scores.ndim == 1 else scores[:, 1] > scores[:, 0]


def one_plus_one(bits: int, budget: int) -> Any:
    """The discrete (1+1). An array of two scores a bit is what `Choice` is inside, at an eighth of the time.

    It is three times faster on OneMax than with `TransitionChoice`.
    """
    import nevergrad as ng

    return ng.optimizers.registry["DiscreteOnePlusOne"](ng.p.Array(shape=(bits, 2)), budget=budget)


def compact_genetic(bits: int, budget: int) -> Any:
    """cGA, with an arity of 2 (by default it takes 500), and its loops over coordinates in NumPy.

    The candidates are those of nevergrad's own code with `TransitionChoice`, at a tenth of the time or less.
    """
    import nevergrad as ng
    from nevergrad.parametrization.discretization import noisy_inverse_threshold_discretization as to_data

    slow: Any = ng.optimizers.registry["cGA"]

    class FastCGA(slow):  # type: ignore[misc]
        _previous_value_candidate: Any

        def _internal_ask_candidate(self) -> Any:
            uniform = self._rng.uniform(size=self.dimension)
            values = (uniform[:, None] > np.cumsum(self.p, axis=1)).sum(axis=1)
            data = to_data(values, arity=2, gen=self._rng)
            return self.parametrization.spawn_child().set_standardized_data(data)

        def _internal_tell_candidate(self, candidate: Any, loss: float) -> None:
            bits = candidate.get_standardized_data(reference=self.parametrization) > 0.0
            if self._previous_value_candidate is None:
                self._previous_value_candidate = (loss, bits)
                return
            best, other = self._previous_value_candidate[1], bits
            if self._previous_value_candidate[0] > loss:
                best, other = other, best
            rows = np.flatnonzero(best != other)
            self.p[rows, best[rows].astype(int)] += 1.0 / self.llambda
            self.p[rows, other[rows].astype(int)] -= 1.0 / self.llambda
            self.p[rows] = np.maximum(self.p[rows], 1.0 / self.llambda)
            self.p[rows] /= self.p[rows].sum(axis=1, keepdims=True)
            self._previous_value_candidate = None

    return FastCGA(ng.p.Array(shape=(bits,)), budget=budget, arity=2)


METHODS: dict[str, Callable[[Recorder, int], None]] = {
    "cones": by_cones,
    "catcma": by_catcma,
    "tpe": by_tpe,
    "ng-1+1": by_nevergrad(one_plus_one),
    "ng-cga": by_nevergrad(compact_genetic),
}
