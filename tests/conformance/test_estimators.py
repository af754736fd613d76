"""What every estimator must do: find the gradient, know its own noise, and keep its state in a value."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from conformance.variants import GAUSSIANS, assert_same, make, through_a_file, variants
from helpers import random_belief

from cones.estimators import Estimate, Estimator, Sample
from cones.sampling import NoiseBlock, NoiseStream, Plan, Population

every_estimator = variants("estimator")
plans = pytest.mark.parametrize("mirrored", [True, False], ids=["pairs", "independent"])
# Iterations after which every estimator above is at full strength.
SETTLED = 15

Losses = Callable[[Population, int], np.ndarray]


def estimates(
    estimator: Estimator, belief, plan: Plan, losses: Losses, count: int, state=None, first: int = 0
) -> Iterator[tuple[Estimate, object, Sample]]:
    """Iterations at a belief that stays where it is, with losses as they are for utilities."""
    for iteration in range(first, first + count):
        population = Population(belief, estimator.plan(state, plan), NoiseStream(7), iteration)
        values = losses(population, iteration)
        sample = Sample(population, NoiseBlock(population), values, values)
        estimate, state = estimator.estimate(state, sample)
        yield estimate, state, sample


def linear(slope: np.ndarray) -> Losses:
    def losses(population: Population, iteration: int) -> np.ndarray:
        values = np.asarray(population) @ slope
        return values - values.mean()

    return losses


def pure_noise(population: Population, iteration: int) -> np.ndarray:
    return np.random.default_rng((3, iteration)).standard_normal(len(population))


@every_estimator
@pytest.mark.parametrize("kind", GAUSSIANS)
@plans
def test_the_plan_draws_the_population_that_was_asked_for(name: str, settings, kind: str, mirrored: bool) -> None:
    estimator, plan = make("estimator", name, settings), Plan(6, mirrored)
    for _, state, _ in estimates(estimator, random_belief(kind, 5, 0), plan, pure_noise, SETTLED):
        changed = estimator.plan(state, plan)
        assert (changed.popsize, changed.mirrored) == (6, mirrored)


@every_estimator
@pytest.mark.parametrize("kind", GAUSSIANS)
@plans
def test_a_linear_loss_is_followed_along_its_gradient(name: str, settings, kind: str, mirrored: bool) -> None:
    belief = random_belief(kind, 5, 0)
    slope = np.random.default_rng(1).standard_normal(5)
    expected = np.column_stack([belief.from_frame(e) for e in np.eye(5)]).T @ slope
    for estimate, _, _ in estimates(
        make("estimator", name, settings), belief, Plan(800, mirrored), linear(slope), SETTLED
    ):
        a = estimate.gradient.mean
        assert a @ expected > 0.97 * np.linalg.norm(a) * np.linalg.norm(expected)
        assert np.linalg.norm(a) > 3.0 * estimate.noise.mean
        assert abs(estimate.gradient.covariance.trace()) < 5.0 * estimate.noise.scale


@every_estimator
@pytest.mark.parametrize("kind", GAUSSIANS)
def test_a_growing_spread_is_felt(name: str, settings, kind: str) -> None:
    """On a bowl, the gradient in the covariance says: smaller, in every direction."""
    belief = random_belief(kind, 4, 2)

    def bowl(population: Population, iteration: int) -> np.ndarray:
        frame = np.stack([belief.to_frame(x - belief.mean) for x in np.asarray(population)])
        values = (frame**2).sum(axis=1)
        return values - values.mean()

    for estimate, _, _ in estimates(make("estimator", name, settings), belief, Plan(2000, True), bowl, SETTLED):
        assert estimate.gradient.covariance.trace() > 3.0 * estimate.noise.scale


@every_estimator
@pytest.mark.parametrize("kind", GAUSSIANS)
@plans
def test_the_noise_level_is_the_size_under_losses_that_say_nothing(
    name: str, settings, kind: str, mirrored: bool
) -> None:
    n, seen, said = 12 if name == "quadratic" else 30, [], []  # a model of 30 dimensions takes long to fit
    for estimate, _, _ in estimates(
        make("estimator", name, settings), random_belief(kind, n, 0), Plan(20, mirrored), pure_noise, 600
    ):
        gradient = estimate.gradient
        trace = gradient.covariance.trace()
        rest = gradient.covariance.map(lambda values, trace=trace: values - trace / n).norm()
        seen.append([np.linalg.norm(gradient.mean), trace, rest])
        said.append([estimate.noise.mean, estimate.noise.scale, estimate.noise.shape])
    measured, level = (np.sqrt(np.mean(np.square(rows), axis=0)) for rows in (seen, said))
    np.testing.assert_allclose(level[0], measured[0], rtol=0.05)
    np.testing.assert_allclose(level[1], measured[1], rtol=0.12)  # one number per population: 3 standard errors
    np.testing.assert_allclose(level[2], measured[2], rtol=0.07)


@every_estimator
def test_the_estimate_is_linear_in_the_utilities_and_so_is_its_noise(name: str, settings) -> None:
    estimator, belief = make("estimator", name, settings), random_belief("diagonal", 6, 0)
    for factor in (2.0**-20, 2.0**20):  # powers of two: what follows from a rounding is no part of this
        one, other = (
            list(estimates(estimator, belief, Plan(10, True), lambda p, i, c=c: c * pure_noise(p, i), SETTLED))
            for c in (1.0, factor)
        )
        for (a, _, _), (b, _, _) in zip(one, other, strict=True):
            np.testing.assert_allclose(b.gradient.mean, factor * a.gradient.mean, rtol=1e-6, atol=1e-9 * factor)
            np.testing.assert_allclose(
                b.gradient.covariance.values, factor * a.gradient.covariance.values, rtol=1e-6, atol=1e-9 * factor
            )
            assert b.noise.mean == pytest.approx(factor * a.noise.mean)
            assert b.effective_samples == pytest.approx(a.effective_samples)


@every_estimator
@pytest.mark.parametrize("kind", GAUSSIANS)
def test_utilities_of_zero_give_a_gradient_of_zero(name: str, settings, kind: str) -> None:
    def zero(population: Population, iteration: int) -> np.ndarray:
        return np.zeros(len(population))

    belief = random_belief(kind, 5, 0)
    for estimate, _, _ in estimates(make("estimator", name, settings), belief, Plan(6, True), zero, SETTLED):
        np.testing.assert_array_equal(estimate.gradient.mean, np.zeros(5))
        assert estimate.gradient.covariance.norm() == 0.0
        assert estimate.noise.mean == estimate.noise.scale == estimate.noise.shape == 0.0


@every_estimator
@pytest.mark.parametrize("kind", GAUSSIANS)
@plans
def test_the_state_survives_a_file_and_the_run_goes_on_bit_for_bit(
    name: str, settings, kind: str, mirrored: bool, tmp_path: Path
) -> None:
    estimator, belief, plan = make("estimator", name, settings), random_belief(kind, 7, 0), Plan(6, mirrored)
    losses = linear(np.arange(7.0))
    straight = list(estimates(estimator, belief, plan, losses, 2 * SETTLED))
    for count in (1, 3, SETTLED):
        state = through_a_file(straight[count - 1][1], tmp_path)
        assert_same(state, straight[count - 1][1])
        resumed = estimates(estimator, belief, plan, losses, 5, state, count)
        for (one, _, _), (other, _, _) in zip(straight[count:], resumed, strict=False):
            assert_same(one, other)


@every_estimator
@pytest.mark.parametrize("kind", GAUSSIANS)
def test_a_call_changes_nothing_but_what_it_returns(name: str, settings, kind: str) -> None:
    estimator, belief = make("estimator", name, settings), random_belief(kind, 7, 0)
    *_, (_, state, sample) = estimates(estimator, belief, Plan(6, True), pure_noise, SETTLED)
    kept = NoiseBlock(sample.population, sample.noise.matrix())
    sample = sample._replace(noise=kept)
    before = pickle.dumps((state, sample))
    one, other = estimator.estimate(state, sample), estimator.estimate(state, sample)
    assert pickle.dumps((state, sample)) == before
    assert_same(one, other)


@every_estimator
def test_diagnostics_are_numbers_and_samples_are_counted(name: str, settings) -> None:
    belief = random_belief("diagonal", 6, 0)
    for estimate, _, _ in estimates(make("estimator", name, settings), belief, Plan(10, True), pure_noise, SETTLED):
        assert 0.0 < estimate.effective_samples <= 10
        for key, number in estimate.diagnostics.items():
            assert isinstance(key, str)
            assert math.isfinite(number)
