"""What every radius control must do."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from conformance.variants import assert_same, make, through_a_file, variants
from hypothesis import given, settings
from hypothesis import strategies as st

import cones
from cones.radius import EstimateStats, RadiusControl
from cones.steps import Balls

every_control = variants("radius")
ONLY_FOR_THE_SCALE = ("signal_ratio", "smoothing")  # which is one number
every_example = settings(max_examples=20, deadline=None)


def stats_of(estimate: np.ndarray, samples: int = 10, scale: float = 1.0, **known: float) -> EstimateStats:
    dim = 100
    return EstimateStats(
        scale * estimate,
        scale * float(np.linalg.norm(estimate)),
        scale * math.sqrt(dim / samples),
        estimate.size,
        dim,
        samples,
        **{"travel": 1.0, **known},
    )


def estimates(name: str, seed: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return list(rng.standard_normal((count, 1 if name in ONLY_FOR_THE_SCALE else 50)))


def radii(control: RadiusControl, all_stats: list[EstimateStats], state=None) -> list[float]:
    state, found = control.start(all_stats[0]) if state is None else state, []
    for stats in all_stats:
        radius, state = control.radius(state, stats)
        found.append(radius.radius)
    return found


@every_control
def test_radii_are_finite_and_do_not_depend_on_units(name: str, settings) -> None:
    control = make("radius", name, settings)

    @given(seed=st.integers(0, 2**32), scale=st.sampled_from([1e-12, 1.0, 1e12]))
    @every_example
    def holds(seed: int, scale: float) -> None:
        vectors = estimates(name, seed, 30)
        plain = radii(control, [stats_of(v) for v in vectors])
        assert np.isfinite(plain).all()
        np.testing.assert_allclose(radii(control, [stats_of(v, scale=scale) for v in vectors]), plain, rtol=1e-9)

    holds()


@every_control
def test_a_call_changes_nothing_but_what_it_returns(name: str, settings) -> None:
    control = make("radius", name, settings)
    first, second = (stats_of(v) for v in estimates(name, 1, 2))
    _, state = control.radius(control.start(first), first)
    before = pickle.dumps((state, second))
    one, other = control.radius(state, second), control.radius(state, second)
    assert pickle.dumps((state, second)) == before
    assert_same(one, other)


@every_control
def test_the_state_survives_a_file_and_the_run_goes_on_bit_for_bit(name: str, settings, tmp_path: Path) -> None:
    control = make("radius", name, settings)
    all_stats = [stats_of(v) for v in estimates(name, 2, 12)]
    straight, state = radii(control, all_stats), control.start(all_stats[0])
    resumed = []
    for stats in all_stats:
        again = through_a_file(state, tmp_path)
        assert_same(again, state)
        radius, state = control.radius(again, stats)
        resumed.append(radius.radius)
    assert resumed == straight


@every_control
def test_no_estimate_is_no_error(name: str, settings) -> None:
    control = make("radius", name, settings)
    nothing = stats_of(np.zeros_like(estimates(name, 0, 1)[0]), scale=0.0)
    assert np.isfinite(radii(control, [nothing] * 3)).all()


@every_control
@pytest.mark.parametrize("budget", [math.inf, 2000.0])
def test_a_run_with_it_descends_in_every_ball_that_it_is_for(name: str, settings, budget: float) -> None:
    control = make("radius", name, settings)
    balls = [Balls(scale=control)] if name in ONLY_FOR_THE_SCALE else [Balls(mean=control), Balls(shape=control)]
    for rule in balls:
        result = cones.minimize(
            lambda X: ((X - 2.0) ** 2).sum(axis=1),
            np.zeros(20),
            radius=rule,
            vectorized=True,
            rng=0,
            maxfev=None if math.isinf(budget) else budget,
            maxiter=100,
        )
        assert result.history["mean_loss"][-1] < 0.3 * result.history["mean_loss"][0]
