"""What every solver must do: solve the step problem and say how well; and how a run tells that its solver fails."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.variants import GAUSSIANS, make, variants
from helpers import random_belief, random_gradient

import cones
from cones import Gradient, Step, StepStatus
from cones.beliefs import FrameGradient
from cones.divergences import KL, Ball
from cones.solvers import Dual, Solver
from cones.solvers.solver import unmoved

every_solver = variants("solver")
# How far solvers may be from the optimum, relative to it; those that iterate on the cones themselves have tolerances.
TOLERANCES = {"dual": 1e-9, "cvxpy": 1e-5, "clarabel": 1e-5, "scs": 1e-2, "mosek": 1e-5}


def frame_of(kind: str, seed: int, dim: int = 4) -> FrameGradient:
    return random_belief(kind, dim, seed).whiten(random_gradient(kind, dim, seed + 50))


@every_solver
@pytest.mark.parametrize("kind", GAUSSIANS)
@pytest.mark.parametrize("radius", [0.3, 1.0, 4.0])
def test_the_step_is_the_optimum(name: str, settings, kind: str, radius: float) -> None:
    solver, tolerance = make("solver", name, settings), TOLERANCES[name]
    frame = frame_of(kind, 3)
    step, exact = solver.solve(frame, Ball(KL(), radius)), Dual().solve(frame, Ball(KL(), radius))
    logs = step.log_ratio.spectrum()
    kl = 0.5 * (step.shift @ step.shift + (np.expm1(logs) - logs).sum())
    gain = step.shift @ frame.mean + np.sum(frame.covariance.dense() * (step.log_ratio.map(np.exp).dense() - np.eye(4)))
    assert step.status.ok
    assert step.divergence == pytest.approx(kl, rel=1e-6)
    assert kl <= radius**2 * (1.0 + 10 * tolerance)
    assert step.objective == pytest.approx(gain, rel=max(1e-6, tolerance))
    assert step.objective == pytest.approx(exact.objective, rel=tolerance)
    assert step.gap <= 10 * tolerance * exact.objective
    assert step.multiplier == pytest.approx(exact.multiplier, rel=30 * tolerance)


@every_solver
@pytest.mark.parametrize("kind", GAUSSIANS)
def test_a_zero_gradient_is_a_zero_step_that_says_so(name: str, settings, kind: str) -> None:
    belief = random_belief(kind, 3, 0)
    zero = belief.whiten(Gradient(np.zeros(3), np.zeros(3) if kind == "diagonal" else np.zeros((3, 3))))
    step = make("solver", name, settings).solve(zero, Ball(KL(), 1.0))
    assert step.status is StepStatus.ZERO_GRADIENT
    assert not step.shift.any()
    assert not step.log_ratio.spectrum().any()
    assert step.divergence == step.gap == step.objective == 0.0


@every_solver
@pytest.mark.parametrize("kind", GAUSSIANS)
def test_the_gradient_is_not_written_over(name: str, settings, kind: str) -> None:
    solver, frame = make("solver", name, settings), frame_of(kind, 3)
    before = pickle.dumps(frame)
    solver.solve(frame, Ball(KL(), 1.0))
    assert pickle.dumps(frame) == before


@every_solver
def test_a_run_follows_the_run_of_the_dual(name: str, settings) -> None:
    solver = make("solver", name, settings)

    def end(solver: Solver) -> np.ndarray:
        es = cones.CoNES([3.0, 3.0, 3.0], popsize=10, radius=1.0, solver=solver, rng=0, optimizer=cones.Direct())
        for _ in range(3):
            X = es.ask()
            es.tell(X, (X**2).sum(axis=1))
        assert es.state.failed_steps == 0
        return es.state.belief.mean

    np.testing.assert_allclose(end(solver), end(Dual()), atol=100 * TOLERANCES[name])


def test_every_solver_has_a_tolerance() -> None:
    from cones.component import components

    assert set(TOLERANCES) == set(components("solver"))


@dataclass(frozen=True)
class Failing(Solver):
    """Fails in iterations `first` to `last`, and is the dual otherwise."""

    name = "failing"
    first: int = 0
    last: int = 10**9

    def solve(self, gradient: FrameGradient, ball: Ball) -> Step[Any]:
        calls.append(1)
        if self.first <= len(calls) - 1 <= self.last:
            return unmoved(gradient, StepStatus.FAILED)
        return Dual().solve(gradient, ball)


calls: list[int] = []


@pytest.fixture(autouse=True)
def _counted_anew() -> None:
    calls.clear()


def sphere(X: np.ndarray) -> np.ndarray:
    return (X**2).sum(axis=1)


def advance(es: cones.Strategy, iterations: int) -> list[Any]:
    """The states after each of some iterations."""
    states = []
    for _ in range(iterations):
        X = es.ask()
        es.tell(X, sphere(X))
        states.append(es.state)
    return states


class TestASolverThatFails:
    settings: dict[str, Any] = {"radius": 1.0, "vectorized": True, "rng": 0, "popsize": 10}  # noqa: RUF012

    def test_the_run_warns_once_counts_and_stops_after_ten_in_a_row(self) -> None:
        with pytest.warns(RuntimeWarning, match="the solver found no step: the belief is unchanged") as caught:
            result = cones.minimize(sphere, np.ones(4), solver=Failing(), maxiter=100, **self.settings)
        assert len([warning for warning in caught if warning.category is RuntimeWarning]) == 1
        assert "iteration 0" in str(caught[0].message)
        assert "result.failed_steps counts them" in str(caught[0].message)
        assert (result.stop, result.nit, result.failed_steps) == ("no_step", 10, 10)
        assert not result.success
        assert result.status not in (0, 1, 2, 3, 4)
        assert "found no step in the last 10 iterations" in result.message
        assert "no step in 10 of 10 iterations" in result.message
        np.testing.assert_array_equal(result.history["step_status"], np.full(10, StepStatus.FAILED.code))
        np.testing.assert_array_equal(result.history["step"], np.zeros(10))
        np.testing.assert_array_equal(result.history["kl"], np.zeros(10))
        np.testing.assert_array_equal(result.mean, np.ones(4))  # the belief has not moved
        assert result.fun == result.history["best"][-1]  # what was evaluated is not lost
        assert (np.diff(result.history["best"]) <= 0.0).all()

    def test_by_ask_and_tell_it_is_the_same(self) -> None:
        es = cones.CoNES(np.ones(4), radius=1.0, solver=Failing(), rng=0, popsize=10)
        with pytest.warns(RuntimeWarning, match="found no step"):
            advance(es, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            advance(es, 8)
            assert es.stop() is None
            advance(es, 1)
        assert es.stop().name == "no_step"
        assert es.state.failed_steps == 10

    def test_a_run_goes_on_after_fewer_than_ten(self) -> None:
        with pytest.warns(RuntimeWarning, match="iteration 3: the solver found no step") as caught:
            result = cones.minimize(sphere, np.ones(4), solver=Failing(3, 11), maxiter=30, **self.settings)
        assert len(caught) == 1
        assert (result.stop, result.nit, result.failed_steps) == ("maxiter", 30, 9)
        assert result.message.endswith(" The solver found no step in 9 of 30 iterations.")
        failed = result.history["step_status"] == StepStatus.FAILED.code
        np.testing.assert_array_equal(np.flatnonzero(failed), np.arange(3, 12))
        assert not result.history["step"][failed].any()
        assert (result.history["step"][~failed] > 0.0).all()
        assert (result.history["step_status"][~failed] == StepStatus.OPTIMAL.code).all()

    def test_nine_twice_are_not_ten_in_a_row(self) -> None:
        es = cones.CoNES(np.ones(4), radius=1.0, solver=Failing(0, 8), rng=0, popsize=10, maxiter=40)
        with pytest.warns(RuntimeWarning, match="found no step"):
            advance(es, 10)
        calls.clear()
        advance(es, 9)
        assert es.stop() is None
        assert es.state.failed_steps == 18

    def test_an_optimizer_does_not_see_steps_that_were_not_found(self) -> None:
        es = cones.CoNES(np.ones(4), radius=1.0, solver=Failing(2, 4), rng=0, popsize=10)
        with pytest.warns(RuntimeWarning, match="found no step"):
            states = advance(es, 7)
        assert [state.components.optimizer.count for state in states] == [1, 2, 2, 2, 2, 3, 4]

    def test_a_checkpoint_keeps_the_count_and_warns_no_more(self, tmp_path: Path) -> None:
        es = cones.CoNES(np.ones(4), radius=1.0, solver=Failing(), rng=0, popsize=10)
        with pytest.warns(RuntimeWarning, match="found no step"):
            advance(es, 1)
        es.save(tmp_path / "run.ckpt")
        again = cones.load(tmp_path / "run.ckpt", allow=[Failing])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            advance(again, 1)
        assert again.state.failed_steps == 2
        assert again.result.failed_steps == 2

    def test_a_solver_that_stops_early_is_told_from_one_that_fails(self) -> None:
        @dataclass(frozen=True)
        class Early(Solver):
            name = "early"

            def solve(self, gradient: FrameGradient, ball: Ball) -> Step[Any]:
                return Dual().solve(gradient, ball)._replace(status=StepStatus.INACCURATE)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = cones.minimize(sphere, np.ones(4), solver=Early(), maxiter=15, **self.settings)
        assert result.failed_steps == 0
        assert (result.history["step_status"] == StepStatus.INACCURATE.code).all()
        assert (result.history["step"] > 0.0).all()


def test_statuses_have_codes_messages_and_one_that_is_not_ok() -> None:
    assert [status.code for status in StepStatus] == list(range(len(StepStatus)))
    assert len({status.value for status in StepStatus}) == len(StepStatus)
    assert [status for status in StepStatus if not status.ok] == [StepStatus.FAILED]
