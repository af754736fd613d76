from __future__ import annotations

import math

import numpy as np
import pytest

import cones
from cones.problems import problem_from
from cones.radius import EstimateStats, SignalRatio, Smoothing, SmoothingState

N, DIM, BUDGET = 50, 1000, 100_000.0
NOISE = math.sqrt(DIM / (2 * N))


def stats(strength: float, travel: float, **known: float) -> EstimateStats:
    trace = strength * NOISE
    return EstimateStats(np.array([trace]), abs(trace), NOISE, 1, DIM, N, travel, **{"budget": BUDGET, **known})


@pytest.mark.parametrize(("signal", "shape"), [(6.0, 0.05), (1.0, 0.05), (1.0, 0.1)])
def test_the_rule_as_documented(signal: float, shape: float) -> None:
    """Against the formulas, step by step: a smooth loss, ripples, and a loss whose shape is learnt."""
    rng, control = np.random.default_rng(0), Smoothing()
    state, mean, explained, log_sigma, grown = control.start(stats(0.0, 0.0)), 0.0, 1.0, 0.0, 0.0
    seen, rippled = 0.0, False
    for k in range(300):
        strength, travel, spent = float(rng.normal(signal, 0.5)), float(rng.uniform(0.0, 8.0)), 100 * k
        radius, state = control.radius(state, stats(strength, travel, spent=spent, shape=shape))
        seen -= math.copysign(radius.radius, radius.radius * strength) / math.sqrt(DIM)
        mean += 0.1 * (strength - mean)
        share = min(1.0, (max(mean, 0.0) ** 2 + 2.0 * travel * max(mean, 0.0)) / N)
        explained = 0.98 * explained + 0.02 * share
        rippled = (rippled or explained < 0.5) and shape < 0.075
        theta = (1.5 if spent < 0.2 * BUDGET else 0.05) if rippled else max(0.05, 0.7 * (1 - spent / (0.7 * BUDGET)))
        change = -0.05 * math.copysign(math.sqrt(max(0.0, abs(mean) - theta * travel) / math.sqrt(N)), mean)
        if rippled and 3.0 * math.sqrt(0.05) < mean < theta * travel:
            change = min(0.1, 0.05 * (1 - share) * (theta * travel - mean) / math.sqrt(N), math.log(3.0) - grown)
            grown += change
        log_sigma += change
        assert state.strength == pytest.approx(mean)
        assert state.explained == pytest.approx(explained)
        assert state.rippled == rippled
        assert seen == pytest.approx(log_sigma)
    assert rippled == (signal < 2.0 and shape < 0.075)
    assert (grown > 0.0) == rippled


def test_without_a_budget_it_is_the_signal_ratio() -> None:
    rng = np.random.default_rng(0)
    state, other = SmoothingState(), 0.0
    for _ in range(100):
        now = stats(float(rng.normal(1.0, 1.0)), float(rng.uniform(0.0, 4.0)), budget=math.inf)
        radius, state = Smoothing().radius(state, now)
        expected, other = SignalRatio().radius(other, now)
        assert radius == expected


def run(name: str, maxfev: int, evaluations: int) -> cones.CoNES:
    dim = 200
    es = cones.CoNES(np.zeros(dim), 1.0, radius=cones.Balls(scale=Smoothing()), belief="diagonal", rng=1, maxfev=maxfev)
    problem = problem_from(name, dim, shift=3.0)
    while es.state.evaluations < evaluations:
        X = es.ask()
        es.tell(X, problem.losses(X))
    return es


def test_ripples_are_told_from_a_bowl() -> None:
    """The spread grows over ripples, and only there; it is small soon after a fifth of the budget."""
    smooth, rippled = (run(name, 40_000, 6000).state.components.step.scale for name in ("sphere", "rastrigin"))
    assert not smooth.rippled
    assert rippled.rippled
    assert 1.0 < math.exp(rippled.growth) <= 3.0 + 1e-9
    assert smooth.growth == 0.0
    assert run("rastrigin", 40_000, 14_000).state.belief.spread() < 0.1


def test_losses_that_are_noise_do_not_move_the_spread_far() -> None:
    rng = np.random.default_rng(0)
    es = cones.CoNES(np.zeros(200), 1.0, radius=cones.Balls(scale=Smoothing()), belief="diagonal", rng=1, maxfev=30_000)
    while es.state.evaluations < 15_000:
        es.tell(es.ask(), rng.standard_normal(es.popsize))
    assert 0.2 < es.state.belief.spread() < 5.0


@pytest.mark.parametrize(("dim", "control"), [(500, SignalRatio), (501, Smoothing)])
def test_adaptive_radii_have_it_in_many_dimensions(dim: int, control: type) -> None:
    es = cones.CoNES(np.zeros(dim), radius="adaptive")
    assert isinstance(es.algorithm.step.scale, control)


@pytest.mark.parametrize("ball", ["mean", "shape"])
def test_it_is_for_the_scale_only(ball: str) -> None:
    with pytest.raises(cones.InputError, match=f"{ball}: expected a control other than Smoothing"):
        cones.Balls(**{ball: Smoothing()})
