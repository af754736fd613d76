"""What every radius control must do."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cones.radius import EstimateStats, Fixed, PathLength, RadiusControl, SignalRatio

CONTROLS = [Fixed(0.5), PathLength(), PathLength(0.05, gain=0.5, largest=1.0), SignalRatio()]


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


def estimates(control: RadiusControl, seed: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return list(rng.standard_normal((count, 1 if isinstance(control, SignalRatio) else 50)))


def radii(control: RadiusControl, all_stats: list[EstimateStats]) -> list[float]:
    state, found = control.start(all_stats[0]), []
    for stats in all_stats:
        radius, state = control.radius(state, stats)
        found.append(radius.radius)
    return found


@pytest.mark.parametrize("control", CONTROLS, ids=str)
@given(seed=st.integers(0, 2**32), scale=st.sampled_from([1e-12, 1.0, 1e12]))
@settings(max_examples=20, deadline=None)
def test_radii_are_finite_and_do_not_depend_on_units(control: RadiusControl, seed: int, scale: float) -> None:
    vectors = estimates(control, seed, 30)
    plain = radii(control, [stats_of(v) for v in vectors])
    assert np.isfinite(plain).all()
    np.testing.assert_allclose(radii(control, [stats_of(v, scale=scale) for v in vectors]), plain, rtol=1e-9)


@pytest.mark.parametrize("control", CONTROLS, ids=str)
def test_a_call_changes_nothing_but_what_it_returns(control: RadiusControl) -> None:
    first, second = (stats_of(v) for v in estimates(control, 1, 2))
    _, state = control.radius(control.start(first), first)
    before = pickle.dumps((state, second))
    one, other = control.radius(state, second), control.radius(state, second)
    assert pickle.dumps((state, second)) == before
    assert pickle.dumps(one) == pickle.dumps(other)


@pytest.mark.parametrize("control", CONTROLS, ids=str)
def test_no_estimate_is_no_error(control: RadiusControl) -> None:
    nothing = stats_of(np.zeros_like(estimates(control, 0, 1)[0]), scale=0.0)
    assert np.isfinite(radii(control, [nothing] * 3)).all()
