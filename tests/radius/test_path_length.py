from __future__ import annotations

import math

import numpy as np
import pytest

from cones.radius import DirectionPath, EstimateStats, PathLength


def stats(estimate: np.ndarray, samples: int = 10) -> EstimateStats:
    n = estimate.size
    return EstimateStats(estimate, float(np.linalg.norm(estimate)), math.sqrt(n / samples), n, n, samples)


def start(dim: int) -> float:
    return 1.5 * math.sqrt(2.0 * dim / 10)


def after(directions: np.ndarray, control: PathLength | None = None) -> tuple[float, float]:
    """Radius and path length after these directions."""
    control = control or PathLength()
    state = control.start(stats(directions[0]))
    for direction in directions:
        radius, state = control.radius(state, stats(direction))
    return radius


def test_the_path_is_the_sum_that_its_definition_says() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((6, 20_000))  # several tiles
    path = DirectionPath(np.zeros(20_000))
    for vector in vectors:
        path = path.extended(vector, float(np.linalg.norm(vector)))
    q = 0.5
    weights = math.sqrt(q * (2 - q)) * (1 - q) ** np.arange(6)[::-1]
    expected = weights @ (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    np.testing.assert_allclose(path.vector, expected, rtol=1e-12)
    assert path.expected == pytest.approx((weights**2).sum())
    assert path.squared_length() == pytest.approx(expected @ expected)


def test_independent_directions_leave_the_radius_alone() -> None:
    rng = np.random.default_rng(1)
    changes = [math.log(after(rng.standard_normal((20, 2000))).radius / start(2000)) for _ in range(20)]
    assert abs(np.mean(changes)) < 3.0 * np.std(changes) / math.sqrt(20)
    assert np.std(changes) < 0.5


def test_agreeing_directions_lengthen_it_and_opposed_ones_shorten_it() -> None:
    v = np.ones(100)
    longer, path = after(np.array([v, v, v]))
    assert longer > 1.5 * start(100)
    assert path > 1.2
    shorter, path = after(np.array([v, -v, v]))
    assert shorter < start(100) / 1.3
    assert path < 0.8
    assert after(v[None]) == pytest.approx((start(100), 1.0))  # one direction says nothing


def test_a_change_is_at_most_thirty_per_cent_and_radii_have_a_bound() -> None:
    v = np.ones(5000)
    control = PathLength(1.0, gain=100.0)
    one, two = after(np.array([v, v]), control).radius, after(np.array([v, v, v]), control).radius
    assert two / one == pytest.approx(math.exp(0.3))
    bounded = PathLength(0.5, largest=1.0)
    assert after(np.array([v] * 50), bounded).radius == pytest.approx(math.sqrt(2 * 5000 / 10))


def test_without_a_direction_the_path_is_kept() -> None:
    control = PathLength()
    _, state = control.radius(control.start(stats(np.ones(5))), stats(np.ones(5)))
    radius, kept = control.radius(state, stats(np.zeros(5)))
    assert radius.radius == 0.0
    assert kept is state
