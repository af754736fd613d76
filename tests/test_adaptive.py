"""Adaptive radii as a whole: what they promise, and how a run with them goes on, restarts and pairs its candidates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cones
from cones.problems import problem_from


def run(fun, dim: int, sigma0: float = 1.0, **settings) -> cones.Strategy:
    settings = {"rng": 0, "xtol": None, "ftol": None, "stagnation": None, **settings}
    es = cones.CoNES(np.zeros(dim), sigma0, **settings)
    while not es.stop():
        X = es.ask()
        es.tell(X, fun(np.asarray(X)))
    return es


@pytest.mark.parametrize("factor", [1e-12, 1e12])
@pytest.mark.parametrize("belief", ["diagonal", "full"])
def test_the_scale_of_the_loss_does_not_matter(factor: float, belief: str) -> None:
    problem = problem_from("rastrigin", 30, shift=3.0)
    one = run(problem.losses, 30, belief=belief, maxiter=60)
    other = run(lambda X: factor * problem.losses(X), 30, belief=belief, maxiter=60)
    np.testing.assert_array_equal(one.state.belief.mean, other.state.belief.mean)


def test_a_shifted_sphere_contracts_near_the_rate_of_theory() -> None:
    """Isotropic rank-based strategies gain at most 0.5 / n in the log of the distance per evaluation."""
    es = run(problem_from("sphere", 200, shift=3.0).losses, 200, ftarget=1e-8, maxfev=20_000)
    assert es.stop().name == "ftarget"
    start = 200 * 9.0
    rate = 0.5 * np.log(start / 1e-8) / es.state.evaluations * 200
    assert 0.2 < rate < 0.5


def test_ahead_of_the_paper_s_setting_on_rastrigin() -> None:
    problem = problem_from("rastrigin", 200, shift=3.0)
    ends = {
        radius: run(problem.losses, 200, radius=radius, popsize=40, maxfev=20_000).history["mean_loss"][-1]
        for radius in ("adaptive", "paper")
    }
    assert ends["adaptive"] < 0.5 * ends["paper"]


def test_an_ill_conditioned_function_is_learnt_coordinate_by_coordinate() -> None:
    problem = problem_from("ellipsoid", 50, shift=3.0)
    es = run(problem.losses, 50, maxfev=20_000, ftarget=1e-8, radius="adaptive")
    assert es.stop().name == "ftarget"
    deviations = es.state.belief.standard_deviations()
    assert deviations[0] / deviations[-1] > 100.0  # 1000 would make it a sphere


@pytest.mark.parametrize("sigma0", [0.1, 10.0])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_wrong_spread_and_noise_are_no_obstacle(sigma0: float, noise: float) -> None:
    problem = problem_from("sphere", 100, shift=3.0, relative_noise=noise or None)
    es = run(problem.losses, 100, sigma0, maxfev=20_000)
    assert float(problem(es.state.belief.mean)) < 1e-3 * 900.0


def test_pairs_where_they_tell_more_and_independent_candidates_elsewhere() -> None:
    def in_pairs(X: np.ndarray, mean: np.ndarray) -> bool:
        return np.allclose(X[::2] + X[1::2], 2.0 * mean, rtol=1e-12)

    paired = []
    es = cones.CoNES(np.full(100, 30.0), 0.1, radius="adaptive", rng=0, maxiter=np.inf)
    for _ in range(40):
        X = es.ask()
        paired.append(in_pairs(X, es.state.belief.mean))
        es.tell(X, X.sum(axis=1))  # linear: all of the variance is odd
    assert paired[0]
    assert paired[10]
    assert paired[20]
    assert paired[30]
    assert paired.count(False) >= 30
    es = cones.CoNES(np.zeros(100), radius="adaptive", rng=0, maxiter=np.inf)
    for _ in range(20):
        X = es.ask()
        assert in_pairs(X, es.state.belief.mean)
        es.tell(X, (X**2).sum(axis=1))  # even


def test_history_shows_radii_and_paths() -> None:
    es = run(problem_from("sphere", 50, shift=3.0).losses, 50, maxiter=30, radius="adaptive")
    history = es.result.history
    for name in ("mean_radius", "scale_radius", "shape_radius", "path_length"):
        assert np.isfinite(history[name]).all()
        assert (history[name] >= 0.0).all()
    assert history["mean_radius"][0] == pytest.approx(0.5 * np.sqrt(2.0 * 50 / 24))
    balls = sum(history[name] ** 2 for name in ("mean_radius", "scale_radius", "shape_radius"))
    np.testing.assert_allclose(history["kl"], balls, rtol=0.2)
    paper = run(problem_from("sphere", 50).losses, 50, maxiter=3, radius=2.0)
    assert (paper.history["mean_radius"] == 2.0).all()


def test_a_loss_without_a_minimum_is_not_called_converged() -> None:
    result = cones.minimize(lambda X: -X.sum(axis=1), np.zeros(3), vectorized=True, rng=0, maxiter=2000)
    assert result.stop in ("maxiter", "diverged")
    assert not result.success
    assert result.fun < -1e6


def test_losses_beyond_the_range_of_squares_do_no_harm() -> None:
    def penalised(X: np.ndarray) -> np.ndarray:
        return np.where(X[:, 0] > 1.5, 1e200, (X**2).sum(axis=1))

    es = run(penalised, 3, maxiter=60, shaping="raw", radius="adaptive")
    assert np.isfinite(es.state.components.design.odd_share)
    assert np.isfinite(es.state.belief.mean).all()


def test_none_is_as_good_as_not_given() -> None:
    es = cones.CoNES([0.0, 0.0], optimizer=None, belief=None)
    assert es.algorithm.optimizer == cones.Direct()
    assert isinstance(es.state.belief, cones.FullGaussian)


class TestRestarts:
    def test_a_restart_begins_anew_with_twice_the_candidates(self) -> None:
        es = run(problem_from("sphere", 5).losses, 5, restarts=2, ftol=1e-6, maxiter=10_000, radius="adaptive")
        assert es.result.restarts == 2
        assert es.stop().name == "ftol"
        assert es.popsize == 40
        sizes = np.diff(es.history["evaluations"], prepend=0)
        assert sorted(set(sizes)) == [10, 20, 40]
        again = int(np.argmax(sizes == 20))
        assert es.history["spread"][again] > 0.5 > es.history["spread"][again - 1]
        assert (np.diff(es.history["best"]) <= 0.0).all()

    def test_it_finds_what_one_descent_does_not(self) -> None:
        problem = problem_from("rastrigin", 5, shift=3.0)
        settings = {"ftarget": 1e-6, "ftol": 1e-9, "xtol": 1e-9, "maxfev": 100_000, "rng": 1}
        assert run(problem.losses, 5, **settings).state.best_fun > 0.9
        assert run(problem.losses, 5, restarts=9, **settings).stop().name == "ftarget"

    def test_the_budget_is_that_of_all_descents(self) -> None:
        es = run(problem_from("sphere", 5).losses, 5, restarts=50, ftol=1e-3, maxfev=3000)
        assert es.stop().name == "maxfev"
        assert es.result.restarts >= 3
        assert es.state.evaluations <= 3000

    def test_a_checkpoint_goes_on_through_a_restart(self, tmp_path: Path) -> None:
        problem = problem_from("sphere", 5)
        settings = {"restarts": 2, "ftol": 1e-3, "maxiter": 200}
        straight = run(problem.losses, 5, **settings)
        es = cones.CoNES(np.zeros(5), 1.0, rng=0, xtol=None, stagnation=None, **settings)
        while not es.stop():
            X = es.ask()
            es.tell(X, problem.losses(X))
            es.save(tmp_path / "run.ckpt")
            es = cones.load(tmp_path / "run.ckpt")
        np.testing.assert_array_equal(es.state.belief.mean, straight.state.belief.mean)
        assert es.result.restarts == straight.result.restarts == 2

    def test_there_is_none_where_no_budget_is_left(self) -> None:
        problem = problem_from("sphere", 3)
        ended = run(problem.losses, 3, ftol=1e-3, maxiter=10_000).state.iteration
        es = run(problem.losses, 3, ftol=1e-3, maxiter=ended, restarts=1)
        assert es.result.restarts == 0
        assert es.stop().name == "ftol"
        assert es.state.belief.spread() < 0.5  # not that of the start

    def test_methods_without_restarts_say_so(self) -> None:
        with pytest.raises(TypeError, match="unexpected keyword argument 'restarts'"):
            cones.CMA([0.0, 0.0], restarts=1)
