"""Past directions: what is measured again, and that the estimate is never worse than the past one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conformance.variants import assert_same_runs
from helpers import random_belief, sample_of, signed_noise

import cones
from cones import DiagonalGaussian, InputError
from cones.estimators import PastDirections
from cones.sampling import NoiseStream, Plan, Population

METHODS = {"es": cones.ES, "nes": cones.NES, "cones": cones.CoNES}


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def iterations(estimator: PastDirections, gradient: np.ndarray, count: int, popsize: int = 6, mirrored: bool = True):
    """Iterations on a linear loss at a belief that stays where it is."""
    belief, state = DiagonalGaussian(np.zeros(gradient.size), 1.0), None
    for iteration in range(count):
        plan = estimator.plan(state, Plan(popsize, mirrored))
        losses = np.asarray(Population(belief, plan, NoiseStream(3), iteration)) @ gradient
        sample = sample_of(belief, plan, losses, 3, iteration)
        estimate, following = estimator.estimate(state, sample)
        yield estimate, state, sample
        state = following


@pytest.mark.parametrize("directions", [1, 2])
def test_the_estimate_is_the_projection_of_the_gradient_onto_its_rows(directions: int) -> None:
    g = np.random.default_rng(0).standard_normal(40)
    for estimate, state, sample in iterations(PastDirections(directions), g, 8):
        rows = sample.noise.matrix()
        span = np.linalg.qr(rows.T)[0]
        np.testing.assert_allclose(estimate.gradient.mean, 40 / 3 * span @ (span.T @ g), atol=1e-11)
        if state is not None:
            assert len(state) <= directions
            np.testing.assert_allclose(span @ (span.T @ state.T), state.T, atol=1e-11)  # the past is measured again
            assert abs(cosine(rows[0], state[0])) == pytest.approx(1.0)


@pytest.mark.parametrize("mirrored", [True, False], ids=["pairs", "independent"])
def test_the_estimate_is_never_worse_than_the_past_one(mirrored: bool) -> None:
    """And in the end far better than the best that three independent pairs could do."""
    g = np.random.default_rng(1).standard_normal(60)
    cosines = [cosine(e.gradient.mean, g) for e, _, _ in iterations(PastDirections(), g, 60, mirrored=mirrored)]
    assert (np.diff(cosines) > -1e-12).all()
    assert cosines[0] < 0.5 < 0.9 < cosines[-1]


def test_a_gradient_that_turns_is_followed_at_least_as_well_as_by_the_past_estimate() -> None:
    belief, state, rng = DiagonalGaussian(np.zeros(50), 1.0), None, np.random.default_rng(2)
    g = rng.standard_normal(50)
    for iteration in range(40):
        g = g + 0.3 * rng.standard_normal(50)
        plan = PastDirections().plan(state, Plan(8, True))
        losses = np.asarray(Population(belief, plan, NoiseStream(4), iteration)) @ g
        estimate, following = PastDirections().estimate(state, sample_of(belief, plan, losses, 4, iteration))
        if state is not None:
            assert cosine(estimate.gradient.mean, g) >= abs(cosine(state[0], g)) - 1e-12
        state = following


def test_the_covariance_is_the_score_functions_and_a_past_of_zeros_is_no_direction() -> None:
    u = np.random.default_rng(5).standard_normal(8)
    plan = PastDirections(2).plan(np.zeros((2, 12)), Plan(8))
    assert plan.transform.first is None
    sample = sample_of(random_belief("diagonal", 12, 0), plan, u)
    estimate, _ = PastDirections(2).estimate(None, sample)
    z = signed_noise(sample.population)
    np.testing.assert_allclose(estimate.gradient.covariance.values, u @ (z**2 - 1) / 16, atol=1e-13)
    parallel = PastDirections(2).plan(np.ones((2, 12)) * [[1e200], [1.0]], Plan(8))
    assert parallel.transform.first.shape == (1, 12)


def test_more_directions_than_pairs_or_dimensions_are_refused() -> None:
    for method in METHODS.values():
        with pytest.raises(InputError, match="directions: expected at most 3, fewer than the 4 pairs of popsize 8"):
            method(np.zeros(30), popsize=8, antithetic=True, estimator="past_directions,directions=4")
        with pytest.raises(InputError, match=r"directions: expected at most 4, .* than 5 dimensions, got 5"):
            method(np.zeros(5), popsize=40, estimator="past_directions,directions=5")
    with pytest.raises(InputError, match="directions: expected at least 1, got 0"):
        PastDirections(0)


@pytest.mark.parametrize("method", METHODS)
def test_chunks_and_checkpoints_change_nothing(method: str, tmp_path: Path) -> None:
    strategies = [
        METHODS[method](np.ones(20), 0.3, rng=1, popsize=8, estimator="past_directions,directions=2", chunked=chunked)
        for chunked in (False, True)
    ]
    assert_same_runs(*strategies, tmp_path / "run.ckpt")
