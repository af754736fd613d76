"""RBO: the ridge against least squares, least absolute deviations against wrong results, and earlier candidates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conformance.variants import assert_same_runs
from helpers import random_belief, sample_of, signed_noise

import cones
from cones import InputError
from cones.estimators import PastPopulation, Rbo
from cones.estimators.rbo import ridge
from cones.problems import Corrupted, Sphere
from cones.sampling import NoiseStream, Plan, Population

METHODS = {"es": cones.ES, "nes": cones.NES, "cones": cones.CoNES}
plans = pytest.mark.parametrize("mirrored", [True, False], ids=["pairs", "independent"])


def measured(popsize: int, n: int, mirrored: bool, change=lambda losses: losses, **settings):
    """An estimate on a linear loss, and the gradient in the frame."""
    belief, plan, g = random_belief("full", n, 0), Plan(popsize, mirrored), np.random.default_rng(1).standard_normal(n)
    losses = change(np.asarray(Population(belief, plan, NoiseStream(2), 0)) @ g + 7.0)
    estimate, _ = Rbo(**settings).estimate(None, sample_of(belief, plan, losses, 2))
    return estimate, np.column_stack([belief.from_frame(e) for e in np.eye(n)]).T @ g


@pytest.mark.parametrize("rows", [5, 12, 40])
def test_the_ridge_is_that_of_least_squares_with_penalty_rows(rows: int) -> None:
    rng = np.random.default_rng(rows)
    A, y, pairs = rng.standard_normal((rows, 12)), rng.standard_normal(rows), 3
    found, _ = ridge(A, y, pairs, 0.7)
    constant = (np.arange(rows) >= pairs).astype(float)[:, None]
    system = np.block([[A, constant], [np.sqrt(0.7) * np.eye(12), np.zeros((12, 1))]])
    expected = np.linalg.lstsq(system, np.concatenate([y, np.zeros(12)]), rcond=None)[0][:12]
    factor = found @ expected / (expected @ expected)
    np.testing.assert_allclose(found, factor * expected, atol=1e-10)
    centred = A - constant * A[pairs:].mean(axis=0)
    share = np.trace(np.linalg.solve(centred.T @ centred + 0.7 * np.eye(12), centred.T @ centred)) / 12
    assert factor == pytest.approx(1.0 / share)


@plans
def test_a_linear_loss_is_found_exactly_from_more_results_than_dimensions(mirrored: bool) -> None:
    for settings in ({"ridge": 1e-12}, {"fit": "absolute"}):
        estimate, truth = measured(100, 20, mirrored, **settings)
        np.testing.assert_allclose(estimate.gradient.mean, truth, rtol=1e-7, atol=1e-9)


@plans
@pytest.mark.parametrize("wrong", [1e6, -1e6, 1e100])
def test_a_fifth_of_wrong_results_changes_nothing(mirrored: bool, wrong: float) -> None:
    def corrupted(losses: np.ndarray) -> np.ndarray:
        losses = losses.copy()
        losses[::5] = wrong  # all on one side
        return losses

    estimate, truth = measured(120, 10, mirrored, corrupted, fit="absolute")
    np.testing.assert_allclose(estimate.gradient.mean, truth, rtol=1e-6, atol=1e-8)
    assert estimate.diagnostics["robust"] == 1.0
    plain, _ = measured(120, 10, mirrored, corrupted)
    assert np.linalg.norm(plain.gradient.mean - truth) > np.linalg.norm(truth)


@pytest.mark.parametrize("mirrored", [True, False], ids=["pairs", "independent"])
@pytest.mark.parametrize("settings", [{}, {"fit": "absolute"}, {"reuse": 2}], ids=str)
def test_the_noise_level_is_the_size_under_losses_that_say_nothing(settings, mirrored: bool) -> None:
    estimator, belief, state, seen, said = Rbo(**settings), random_belief("diagonal", 10, 0), None, [], []
    for iteration in range(100):
        losses = np.random.default_rng((3, iteration)).standard_normal(50)
        estimate, state = estimator.estimate(state, sample_of(belief, Plan(50, mirrored), losses, 4, iteration))
        seen.append(estimate.gradient.mean @ estimate.gradient.mean)
        said.append(estimate.noise.mean**2)
        assert estimate.effective_samples == 50
    assert np.sqrt(np.mean(said)) == pytest.approx(np.sqrt(np.mean(seen)), rel=0.1)


def test_earlier_candidates_are_used_again_if_they_are_near() -> None:
    belief, g = random_belief("low_rank", 10, 0), np.arange(10.0)
    near = np.asarray(Population(belief, Plan(20), NoiseStream(8), 1))
    far = belief.mean + 100.0 * (near - belief.mean)
    past = (PastPopulation(near, near @ g), PastPopulation(far, np.full(20, 1e3)))
    plan = Plan(6, True)
    losses = np.asarray(Population(belief, plan, NoiseStream(0), 0)) @ g
    estimate, state = Rbo(reuse=2, ridge=1e-12, within=2.0).estimate(past, sample_of(belief, plan, losses))
    assert estimate.diagnostics["results"] == 23
    truth = np.column_stack([belief.from_frame(e) for e in np.eye(10)]).T @ g
    np.testing.assert_allclose(estimate.gradient.mean, truth, rtol=1e-7)  # three pairs could not
    assert [len(population.losses) for population in state] == [6, 20]


def test_far_fewer_candidates_than_dimensions_give_the_score_function_estimate() -> None:
    u = np.random.default_rng(6).standard_normal(4)
    sample = sample_of(random_belief("diagonal", 20_000, 0), Plan(4, True), u)
    found, plain = Rbo().estimate(None, sample)[0].gradient.mean, u @ signed_noise(sample.population) / 4
    assert np.linalg.norm(found - plain) < 0.05 * np.linalg.norm(plain)


def test_bad_settings_and_too_few_results_are_named() -> None:
    for method in METHODS.values():
        with pytest.raises(InputError, match=r"popsize: expected more than 30 results .* got 20 from popsize 40"):
            method(np.zeros(30), popsize=40, antithetic=True, estimator="rbo,fit=absolute")
        method(np.zeros(30), popsize=40, antithetic=True, estimator="rbo,fit=absolute,reuse=1")
    for settings, message in (
        ({"fit": "lasso"}, "fit: expected one of 'ridge', 'absolute', got 'lasso'"),
        ({"ridge": 0.0}, "ridge: expected a positive number"),
        ({"reuse": -1}, "reuse: expected at least 0"),
        ({"within": 0.0}, "within: expected a positive number"),
    ):
        with pytest.raises(InputError, match=message):
            Rbo(**settings)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("estimator", ["rbo,reuse=2", "rbo,fit=absolute,reuse=2"])
def test_chunks_and_checkpoints_change_nothing(method: str, estimator: str, tmp_path: Path) -> None:
    strategies = [
        METHODS[method](np.ones(12), 0.3, rng=1, popsize=8, estimator=estimator, chunked=chunked)
        for chunked in (False, True)
    ]
    assert_same_runs(*strategies, tmp_path / "run.ckpt")


def test_a_fifth_of_corrupted_losses_stops_the_plain_estimate_and_not_the_robust_one() -> None:
    """Without ranks, which would bound what a wrong loss can do."""
    problem, left = Corrupted(Sphere(30), 0.2), {}
    for estimator in ("score_function", "rbo,fit=absolute"):
        es = cones.NES(np.full(30, 3.0), 0.5, popsize=240, estimator=estimator, rng=0, shaping="standardised")
        for _ in range(60):
            X = es.ask()
            es.tell(X, problem(X))
        left[estimator] = float(es.state.belief.mean @ es.state.belief.mean)
    assert left["rbo,fit=absolute"] < 3.0 < 30.0 < left["score_function"]  # from 270
