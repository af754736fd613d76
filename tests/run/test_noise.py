"""Noisy losses: the estimate at the end is unbiased, within the budget, and says which answer to use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cones
from cones import InputError
from cones.run.noise import Estimate


def noisy_sphere(seed: int, level: float = 1.0):
    rng, calls = np.random.default_rng(seed), []

    def fun(x: np.ndarray) -> float:
        calls.append(np.array(x))
        return float((x**2).sum() + level * rng.standard_normal())

    fun.calls = calls  # type: ignore[attr-defined]
    return fun


def sphere(x: np.ndarray) -> float:
    return float((x**2).sum())


def test_the_best_value_seen_is_biased_and_the_estimate_is_not() -> None:
    """Five values of noise 1 each have a mean of variance 1/5, and their standard errors say so."""
    runs = [cones.minimize(noisy_sphere(seed), [1.0] * 3, rng=seed, maxfev=250, noisy=True) for seed in range(80)]
    low = [run.fun - sphere(run.x) for run in runs]
    assert max(low) < 0.0
    assert np.mean(low) < -2.0  # what `fun` promises too much, in units of the noise
    for errors, stated in (
        ([run.mean_fun - sphere(run.mean) for run in runs], [run.mean_fun_error for run in runs]),
        ([run.x_fun - sphere(run.x) for run in runs], [run.x_fun_error for run in runs]),
    ):
        assert abs(np.mean(errors)) < 3.0 / np.sqrt(5 * 80)
        assert np.std(errors) == pytest.approx(np.sqrt(1 / 5), rel=0.3)
        assert np.sqrt(np.mean(np.square(stated))) == pytest.approx(np.sqrt(1 / 5), rel=0.2)


@pytest.mark.parametrize(("maxfev", "kept"), [(600, 10), (5000, 50)])
def test_the_estimate_is_within_the_budget(maxfev: int, kept: int) -> None:
    fun = noisy_sphere(0)
    result = cones.minimize(fun, [1.0] * 3, rng=0, maxfev=maxfev, noisy=True, stagnation=None)
    assert len(fun.calls) == result.nfev
    assert maxfev - result.history["popsize"][-1] < result.nfev <= maxfev
    last = fun.calls[-kept:]
    assert result.nfev - result.history["evaluations"][-1] == kept
    np.testing.assert_array_equal(last[: kept // 2], np.tile(result.mean, (kept // 2, 1)))
    np.testing.assert_array_equal(last[kept // 2 :], np.tile(result.x, (kept // 2, 1)))


def test_a_loss_that_nothing_is_said_about_is_found_out() -> None:
    fun = noisy_sphere(1)
    result = cones.minimize(fun, [1.0] * 3, rng=0, maxiter=60)
    assert (result.noisy, result.use) == (True, "mean")
    assert result.nfev == len(fun.calls) == result.history["evaluations"][-1] + 11
    assert "The loss is noisy, and fun, the lowest value seen, is biased low. At the mean the loss is" in result.message
    assert result.message.endswith("Use result.mean.")
    assert abs(result.mean_fun - sphere(result.mean)) < 5.0 * result.mean_fun_error


def test_a_deterministic_loss_costs_one_evaluation_and_says_nothing() -> None:
    calls = []
    result = cones.minimize(lambda x: calls.append(1) or sphere(x), [1.0] * 3, rng=0, maxiter=60)
    assert (result.noisy, result.use) == (False, "best")
    assert len(calls) == result.nfev == result.history["evaluations"][-1] + 1
    assert "noisy" not in result.message
    assert np.isnan([result.mean_fun, result.mean_fun_error, result.x_fun, result.x_fun_error]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_no_noise(dtype: type) -> None:
    """Sums in another order for another number of rows, as BLAS makes them."""
    A = np.random.default_rng(0).standard_normal((6, 6)).astype(dtype)

    def rows(X: np.ndarray) -> np.ndarray:
        Y = np.asarray(X, dtype) @ A
        return (Y * Y)[:, :: 1 if len(X) == 1 else -1].sum(axis=1) + dtype(1.0)

    assert cones.minimize(rows, [1.0] * 6, vectorized=True, rng=0, maxiter=30).noisy is False


def test_no_check_where_it_would_cost_too_much_or_is_not_wanted() -> None:
    for settings in (
        {"maxiter": 9},
        {"maxfev": 50},
        {"ftarget": 0.5},
        {"maxiter": 60, "noisy": False},
        {"maxiter": 60, "callback": _stops_at(20)},
    ):
        fun = noisy_sphere(2, 0.01)
        result = cones.minimize(fun, [1.0] * 3, rng=0, **settings)
        assert result.nfev == len(fun.calls) == result.history["evaluations"][-1]
        assert result.noisy is (False if "noisy" in settings else None)
        assert result.use == "best"


def test_a_target_that_noise_has_reached_is_measured_if_the_loss_is_known_to_be_noisy() -> None:
    result = cones.minimize(noisy_sphere(2), [1.0] * 3, rng=0, ftarget=-2.0, noisy=True)
    assert result.stop == "ftarget"
    assert result.mean_fun > -1.0


def test_every_method_can_be_told() -> None:
    for method in ("es", "cma"):
        result = cones.minimize(noisy_sphere(0), [1.0] * 3, method=method, rng=0, maxiter=10, noisy=True)
        assert result.noisy
        assert np.isfinite(result.mean_fun_error)
    assert cones.CoNES([0.0], noisy=True).noisy is True
    with pytest.raises(InputError, match="noisy: expected True or False, got 3"):
        cones.minimize(sphere, [0.0], noisy=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="noisy: expected True or False, got 'yes'"):
        cones.CoNES([0.0], noisy="yes")


def test_an_interrupt_in_the_estimate_loses_nothing(tmp_path: Path) -> None:
    fun, path = noisy_sphere(0), tmp_path / "run.ckpt"

    def interrupted(x: np.ndarray) -> float:
        if len(fun.calls) == 1 + 20 * 8 + 3:
            fun.calls.append(x)
            raise KeyboardInterrupt
        return fun(x)

    result = cones.minimize(interrupted, [1.0] * 3, popsize=8, rng=0, maxiter=20, noisy=True, checkpoint=path)
    assert (result.stop, result.nit, result.nfev) == ("interrupted", 20, 161)
    assert np.isfinite(result.fun)
    assert (result.noisy, result.use) == (True, "mean")
    resumed = cones.resume(path, fun)
    assert (resumed.stop, resumed.nit, resumed.nfev) == ("maxiter", 20, 171)
    assert np.isfinite(resumed.mean_fun)


def test_resume_keeps_the_estimate_of_a_finished_run(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    fun = noisy_sphere(0)
    first = cones.minimize(fun, [1.0] * 3, rng=0, maxiter=20, checkpoint=path)
    count = len(fun.calls)
    again = cones.resume(path, fun)
    assert len(fun.calls) == count
    assert (again.mean_fun, again.x_fun, again.nfev, again.message) == (
        first.mean_fun, first.x_fun, first.nfev, first.message
    )  # fmt: skip
    longer = cones.resume(path, fun, maxiter=30)
    assert longer.mean_fun != first.mean_fun
    assert longer.nfev == len(fun.calls)


def test_a_failed_evaluation_is_not_part_of_the_estimate() -> None:
    fun = noisy_sphere(3)

    def fails(x: np.ndarray) -> float:
        value = fun(x)
        return np.nan if len(fun.calls) % 7 == 0 else value

    result = cones.minimize(fails, [1.0] * 3, rng=0, maxiter=40, noisy=True)
    assert np.isfinite([result.mean_fun, result.mean_fun_error, result.x_fun, result.x_fun_error]).all()


@pytest.mark.parametrize(
    ("estimate", "use"),
    [
        (Estimate(noisy=False), "best"),
        (Estimate(noisy=None), "best"),
        (Estimate(noisy=True), "mean"),  # not measured
        (Estimate(9, True, 1.0, 0.1, 0.9, 0.1, 5), "mean"),  # no clear difference
        (Estimate(9, True, 1.0, 0.1, 0.5, 0.1, 5), "best"),
        (Estimate(9, True, 1.0, 0.1, np.nan, np.nan, 1), "mean"),
    ],
)
def test_which_answer_to_use(estimate: Estimate, use: str) -> None:
    assert estimate.use == use
    assert ("Use result.mean." in estimate.sentence()) == (use == "mean")


def _stops_at(nit: int):
    def callback(intermediate_result) -> None:
        if intermediate_result.nit == nit:
            raise StopIteration

    return callback
