from __future__ import annotations

import math

import numpy as np
import pytest

import cones
from cones.problems import problem_from
from cones.radius import EstimateStats, SignalRatio

N, DIM = 50, 1000
NOISE = math.sqrt(DIM / (2 * N))


def stats(strength: float, travel: float, **budget: float) -> EstimateStats:
    trace = strength * NOISE
    return EstimateStats(np.array([trace]), abs(trace), NOISE, 1, DIM, N, travel, **budget)


@pytest.mark.parametrize("relative", [1.0, 0.25])
def test_the_rule_as_documented(relative: float) -> None:
    """Against the formula, step by step, with and without a budget."""
    rng = np.random.default_rng(0)
    for budget in (math.inf, 20_000.0):
        state, average = 0.0, 0.0
        for k in range(30):
            strength, travel, spent = float(rng.normal(2.0, 1.0)), float(rng.uniform(0.0, 4.0)), 500 * k
            control = SignalRatio(relative)
            radius, state = control.radius(state, stats(strength, travel, spent=spent, budget=budget))
            rate = min(0.6, relative * N * max(1 / DIM, 100 / budget))
            theta = 0.3 if budget == math.inf else max(0.05, 0.7 * (1 - spent / (0.45 * budget)))
            average += max(0.1, rate) * (strength - average)
            change = min(0.3, rate / math.sqrt(N) * max(0.0, abs(average) - theta * travel))
            assert state == pytest.approx(average)
            assert abs(radius.radius) == pytest.approx(change * math.sqrt(DIM))
            assert radius.radius * strength * average >= 0.0  # the average decides which way


def test_a_travelling_mean_holds_the_spread() -> None:
    assert SignalRatio().radius(3.0, stats(3.0, travel=20.0))[0].radius == 0.0
    assert SignalRatio().radius(3.0, stats(3.0, travel=0.0))[0].radius > 0.0


@pytest.mark.parametrize("noise", [0.0, 300.0])
def test_the_spread_follows_the_distance_whatever_the_noise(noise: float) -> None:
    """On a sphere the spread settles at about sqrt(theta) times the distance per coordinate, with noise, too."""
    dim, rng = 400, np.random.default_rng(0)
    es = cones.CoNES(np.full(dim, 5.0), 1.0, rng=1, maxiter=np.inf)
    ratios = []
    for k in range(400):
        X = es.ask()
        es.tell(X, (X**2).sum(axis=1) + noise * rng.standard_normal(len(X)))
        if k >= 200:
            ratios.append(es.state.belief.spread() / math.sqrt(float(np.mean(es.state.belief.mean**2))))
    assert 0.3 < np.median(ratios) < 1.3  # sqrt(0.3) = 0.55


def test_losses_that_are_noise_do_not_move_the_spread() -> None:
    rng = np.random.default_rng(0)
    es = cones.CoNES(np.zeros(200), 1.0, rng=1, maxiter=np.inf)
    for _ in range(300):
        es.tell(es.ask(), rng.standard_normal(es.popsize))
    assert 0.3 < es.state.belief.spread() < 3.0


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, "fast"])
def test_a_wrong_rate_is_an_error_that_names_it(rate: float) -> None:
    with pytest.raises(cones.InputError, match="rate: expected"):
        SignalRatio(rate)


@pytest.mark.parametrize("rotation", [None, 1])
def test_the_default_does_not_collapse_on_kinks(rotation: int | None) -> None:
    """L1 in 80 dimensions: as fast as the mean can contract, and not faster."""
    dim = 80
    problem = problem_from("l1_norm", dim, rotation=rotation)
    result = cones.minimize(problem, np.full(dim, 3.0), maxfev=9000, restarts=0, vectorized=True, rng=0)
    assert result.fun - problem.best < 1e-3  # 0.012, and 0.067 rotated, with four times the rate
