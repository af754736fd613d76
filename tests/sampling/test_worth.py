"""What older results are worth, against densities of SciPy and the definition of the frame."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from cones import DiagonalGaussian, FullGaussian, LowRankGaussian
from cones.sampling.worth import FOREIGN, frame_noise, weighted, worths


def gaussian(kind: str, rng: np.random.Generator, n: int):
    mean, deviation = rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))
    if kind == "diagonal":
        return DiagonalGaussian(mean, deviation**2)
    if kind == "full":
        root = rng.normal(size=(n, n))
        return FullGaussian(mean, root @ root.T + np.eye(n))
    basis, _ = np.linalg.qr(rng.normal(size=(n, 2)))
    return LowRankGaussian(mean, deviation, basis, [3.0, 0.5])


def covariance(belief) -> np.ndarray:
    return np.diag(belief.variance) if isinstance(belief, DiagonalGaussian) else belief.covariance


@pytest.mark.parametrize("kind", ["diagonal", "full", "low_rank"])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(3, 8))
def test_weights_are_flattened_density_ratios(kind: str, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    old, new = gaussian(kind, rng, n), gaussian(kind, rng, n)
    points = old.candidates(rng.normal(size=(6, n)))
    drawn = np.array([3.0, 3.0, 3.0, 5.0, 4.0, FOREIGN])
    log_densities = old.log_density(points)
    log_densities[4] = np.nan
    found = worths(new, points, log_densities, drawn, 5)
    q, p = (multivariate_normal(belief.mean, covariance(belief)).logpdf(points[:3]) for belief in (new, old))
    np.testing.assert_allclose(found[:3], np.sqrt(np.minimum(1.0, np.exp(q - p))), rtol=1e-6)
    np.testing.assert_array_equal(found[3:], [1.0, 0.5, 1.0])  # the current belief's, by age, foreign


@pytest.mark.parametrize("kind", ["diagonal", "full", "low_rank"])
def test_noise_in_the_frame_makes_the_points_again(kind: str) -> None:
    rng = np.random.default_rng(1)
    old, new = gaussian(kind, rng, 6), gaussian(kind, rng, 6)
    points = old.candidates(rng.normal(size=(4, 6)))
    noise = frame_noise(new, points, np.zeros(4))
    np.testing.assert_allclose(new.candidates(noise), points, rtol=1e-9, atol=1e-9)
    far = frame_noise(new, points + 1e6, np.full(4, float(FOREIGN)))
    np.testing.assert_allclose(np.linalg.norm(far, axis=1), math.sqrt(6) + 12 / 8)
    np.testing.assert_allclose(far[0] / np.linalg.norm(far[0]), _unit(new.rows_to_frame(points + 1e6)[0]))


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def test_weighted_utilities_are_centred_and_full_weights_change_nothing() -> None:
    utilities, weights = np.array([-1.0, 0.2, 0.8]), np.array([1.0, 0.5, 0.25])
    found = weighted(utilities, weights)
    assert abs(found.sum()) < 1e-15
    np.testing.assert_allclose(found / weights - utilities, np.full(3, 0.7 / 1.75))  # one constant for all
    assert weighted(utilities, np.ones(3)) is utilities
