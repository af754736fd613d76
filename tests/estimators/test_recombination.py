"""The estimate of CMA-ES, beside plain sums and PyCMA's weights."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import random_belief

from cones.estimators import SHAPINGS, Recombination, Sample
from cones.sampling import NoiseBlock, NoiseStream, Plan, Population


@pytest.mark.parametrize("mirrored", [True, False])
def test_it_is_the_sum_that_its_formula_says(mirrored: bool) -> None:
    belief, plan = random_belief("full", 5, 0), Plan(12, mirrored)
    population = Population(belief, plan, NoiseStream(1), 0)
    losses = np.random.default_rng(2).standard_normal(12)
    utilities = SHAPINGS["recombination_weights"](losses)
    estimate, _ = Recombination().estimate(None, Sample(population, NoiseBlock(population), losses, utilities))
    a, B = np.zeros(5), np.zeros((5, 5))
    for x, u in zip(np.asarray(population), utilities, strict=True):
        z = belief.to_frame(x - belief.mean)
        a += (u if u < 0.0 else 0.5 * 5 / 25 * u) * z / 12
        B += u * (np.outer(z, z) - np.eye(5)) / 24
    np.testing.assert_allclose(estimate.gradient.mean, a, atol=1e-12)
    np.testing.assert_allclose(estimate.gradient.covariance.dense(), B, atol=1e-12)
    if not mirrored:
        weights = np.concatenate([-utilities[utilities < 0.0], 0.1 * utilities[utilities > 0.0]])
        assert estimate.effective_samples == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


@pytest.mark.parametrize("size", [2, 3, 8, 15, 100])
def test_weights_of_the_better_half_are_those_of_pycma(size: int) -> None:
    module = pytest.importorskip("cma.recombination_weights")
    ours = -SHAPINGS["recombination_weights"](np.arange(float(size)))
    theirs = np.asarray(module.RecombinationWeights(size))
    half = size // 2
    np.testing.assert_allclose(ours[:half], theirs[:half], rtol=1e-12)
    assert ours[ours > 0.0].sum() == pytest.approx(1.0)
    assert ours[ours < 0.0].sum() == pytest.approx(-1.0)


def test_ties_share_their_weight_and_equal_losses_have_none() -> None:
    weights = SHAPINGS["recombination_weights"](np.array([1.0, 2.0, 2.0, 3.0]))
    plain = SHAPINGS["recombination_weights"](np.array([1.0, 2.0, 2.5, 3.0]))
    assert weights[1] == weights[2] == pytest.approx(plain[1:3].mean())
    np.testing.assert_array_equal(SHAPINGS["recombination_weights"](np.full(7, 4.0)), np.zeros(7))
