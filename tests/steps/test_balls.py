"""The three balls against the convex program, solved another way."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from helpers import random_belief, random_gradient

import cones
from cones import InputError
from cones.estimators import Estimate, NoiseLevel
from cones.radius import Fixed, SignalRatio
from cones.steps import Balls, IterationInfo


@pytest.fixture(params=["diagonal", "full"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def proposed(kind: str, balls: Balls, seed: int = 0):
    belief, gradient = random_belief(kind, 6, seed), random_gradient(kind, 6, seed + 1)
    frame, again = belief.whiten(gradient), belief.whiten(gradient)
    step, _ = balls.propose(None, belief, Estimate(again, NoiseLevel(1.0, 1.0, 1.0), 10), IterationInfo())
    np.testing.assert_array_equal(again.mean, frame.mean)  # nothing is written over
    np.testing.assert_array_equal(again.covariance.values, frame.covariance.values)
    return belief, frame, step


def radii(step) -> tuple[float, ...]:
    return tuple(step.columns[f"{part}_radius"] for part in ("mean", "scale", "shape"))


def test_each_part_uses_up_its_ball(kind: str) -> None:
    belief, frame, step = proposed(kind, Balls(Fixed(0.7), Fixed(0.0), Fixed(0.0)))
    assert belief.move(step)[1] == pytest.approx(0.49)
    np.testing.assert_allclose(
        belief.to_frame(step.shift), math.sqrt(2.0) * 0.7 * frame.mean / np.linalg.norm(frame.mean)
    )
    belief, frame, step = proposed(kind, Balls(Fixed(0.0), Fixed(0.05), Fixed(0.0)))
    np.testing.assert_array_equal(step.shift, np.zeros(6))
    assert belief.move(step)[1] == pytest.approx(0.05**2, rel=0.05)
    matrix = step.log_ratio.dense()
    np.testing.assert_allclose(matrix, matrix[0, 0] * np.eye(6), atol=1e-12)
    assert np.sign(matrix[0, 0]) == np.sign(frame.covariance.trace())
    assert radii(step) == (0.0, 0.05, 0.0)


def test_the_shape_is_the_solution_of_its_program(kind: str) -> None:
    radius = 0.3
    _, frame, step = proposed(kind, Balls(Fixed(0.0), Fixed(0.0), Fixed(radius)))
    rest = frame.covariance.dense()
    rest = rest - np.trace(rest) / 6 * np.eye(6)
    rest /= np.abs(rest).max()  # the same solution, and tolerances of the cone solver that mean something
    if kind == "diagonal":
        ratio = cp.Variable(6)
        kl = 0.5 * cp.sum(ratio - 1 - cp.log(ratio))
        cp.Problem(cp.Maximize(np.diag(rest) @ (ratio - 1)), [kl <= radius**2]).solve(solver="CLARABEL")
        logs = np.diag(np.log(ratio.value))
    else:
        ratio = cp.Variable((6, 6), symmetric=True)
        kl = 0.5 * (cp.trace(ratio) - 6 - cp.log_det(ratio))
        cp.Problem(cp.Maximize(cp.trace(rest @ (ratio - np.eye(6)))), [kl <= radius**2]).solve(solver="CLARABEL")
        values, vectors = np.linalg.eigh(ratio.value)
        logs = (vectors * np.log(values)) @ vectors.T
    logs -= np.trace(logs) / 6 * np.eye(6)  # the scale has a ball of its own
    np.testing.assert_allclose(step.log_ratio.dense(), logs, atol=1e-4)
    assert step.multiplier > 0.0
    assert 0.0 <= step.gap < 1e-9
    np.testing.assert_array_equal(step.shift, np.zeros(6))
    assert radii(step) == (0.0, 0.0, radius)


def test_a_zero_gradient_moves_nothing(kind: str) -> None:
    es = cones.CoNES(np.zeros(4), belief=kind, rng=0, popsize=8)
    before = es.state.belief
    es.tell(es.ask(), np.ones(8))
    np.testing.assert_array_equal(es.state.belief.mean, before.mean)
    np.testing.assert_allclose(es.state.belief.standard_deviations(), 1.0)


def test_controls_are_checked() -> None:
    with pytest.raises(InputError, match="hold: expected"):
        Balls(hold=0.0)
    with pytest.raises(InputError, match=r"shape: expected a control such as cones.radius.Fixed\(1.0\), got 1.0"):
        Balls(shape=1.0)
    with pytest.raises(InputError, match="mean: expected a control other than SignalRatio"):
        Balls(mean=SignalRatio())
    with pytest.raises(InputError, match="value: expected at least 0, got -1"):
        Fixed(-1.0)


def test_steps_without_signal_hold_the_mean_at_its_size() -> None:
    """Ranks of random losses: the mean is a random walk, and one with shrinkage has the size that is asked for."""

    def size(hold: float) -> float:
        balls = Balls(Fixed(1.0), Fixed(0.0), Fixed(0.0), hold=hold)
        es, losses = cones.CoNES(np.zeros(200), 1.0, radius=balls, popsize=10, rng=0), np.random.default_rng(0)
        for _ in range(1500):
            X = es.ask()
            es.tell(X, losses.standard_normal(len(X)))
        return float(np.sqrt(np.mean(es.state.belief.mean**2)))

    assert size(0.5) == pytest.approx(0.5, rel=0.15)
    assert size(math.inf) == pytest.approx(math.sqrt(1500 * 2.0 / 200), rel=0.3)  # squares of the steps add up
