"""The start counts, and what `minimize` does when a descent has ended."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cones
from cones import InputError, StateError
from cones.restarts import Bipop, Growing


def sphere(x: np.ndarray) -> float:
    return float((x**2).sum())


class Counted:
    """A loss that keeps what it was asked."""

    def __init__(self, fun=sphere) -> None:
        self.fun, self.asked = fun, []

    def __call__(self, x: np.ndarray) -> float:
        self.asked.append(np.array(x))
        return self.fun(x)


class TestStart:
    @pytest.mark.parametrize("method", ["cones", "es", "nes", "cma", "sepcma"])
    def test_it_is_evaluated_first_and_is_the_result_if_nothing_is_better(self, method: str) -> None:
        fun = Counted()
        result = cones.minimize(fun, [0.0, 0.0, 0.0], method=method, rng=0, maxiter=3)
        assert (result.fun, result.nfev) == (0.0, len(fun.asked))
        np.testing.assert_array_equal(result.x, np.zeros(3))
        np.testing.assert_array_equal(fun.asked[0], np.zeros(3))
        assert result.history["evaluations"][0] == 1 + result.history["popsize"][0]

    def test_the_mean_of_a_belief_counts(self) -> None:
        fun = Counted()
        cones.minimize(fun, cones.DiagonalGaussian([1.0, 2.0], [0.1, 0.2]), rng=0, maxiter=1)
        np.testing.assert_array_equal(fun.asked[0], [1.0, 2.0])

    def test_the_iterates_are_those_of_ask_and_tell(self) -> None:
        es = cones.CoNES([1.0, 2.0], rng=0, maxiter=20)
        es.tell_start(5.0)
        while es.stop() is None:
            X = es.ask()
            es.tell(X, (X**2).sum(axis=1))
        result = cones.minimize(sphere, [1.0, 2.0], rng=0, maxiter=20, noisy=False)
        np.testing.assert_allclose(result.history["mean_loss"], es.history["mean_loss"])
        np.testing.assert_array_equal(result.mean, es.result.mean)
        assert result.nfev == es.result.nfev

    @pytest.mark.parametrize(("maxfev", "first"), [(8, False), (9, True), (17, True)])
    def test_a_budget_for_one_population_is_for_that(self, maxfev: int, first: bool) -> None:
        fun = Counted()
        result = cones.minimize(fun, [1.0, 2.0], popsize=8, rng=0, maxfev=maxfev)
        assert result.nit >= 1
        assert np.array_equal(fun.asked[0], [1.0, 2.0]) is first
        assert len(fun.asked) == result.nfev <= maxfev

    def test_a_start_at_the_target_ends_the_run(self) -> None:
        result = cones.minimize(sphere, [0.0, 0.0], rng=0, ftarget=1e-3)
        assert (result.stop, result.nit, result.nfev, result.success) == ("ftarget", 0, 1, True)
        assert len(result.history["best"]) == 0

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_a_start_without_a_finite_loss_is_not_the_result(self, bad: float) -> None:
        result = cones.minimize(lambda x: bad if x[0] == 1.0 else sphere(x), [1.0, 1.0], rng=0, maxiter=5)
        assert np.isfinite(result.fun)

    def test_only_the_start_is_finite(self) -> None:
        """Ten populations are tried, and the start is what there is."""
        with pytest.warns(RuntimeWarning, match="no loss of the population is finite"):
            result = cones.minimize(lambda x: 2.0 if (x == 1.0).all() else np.inf, [1.0, 1.0], rng=0)
        assert (result.stop, result.nit, result.fun) == ("no_finite_loss", 10, 2.0)
        np.testing.assert_array_equal(result.x, [1.0, 1.0])

    def test_resume_does_not_evaluate_it_again(self, tmp_path: Path) -> None:
        path, fun = tmp_path / "run.ckpt", Counted()

        def interrupted(x: np.ndarray) -> float:
            if len(fun.asked) == 1:
                raise KeyboardInterrupt
            return fun(x)

        first = cones.minimize(interrupted, [0.0, 0.0], rng=0, maxiter=3, popsize=6, checkpoint=path)
        assert (first.nit, first.nfev, first.fun, len(fun.asked)) == (0, 1, 0.0, 1)
        resumed = cones.resume(path, fun)
        straight = cones.minimize(sphere, [0.0, 0.0], rng=0, maxiter=3, popsize=6)
        assert len(fun.asked) == resumed.nfev == straight.nfev == 19
        assert resumed.fun == 0.0
        np.testing.assert_array_equal(resumed.mean, straight.mean)

    def test_an_exception_there_says_where(self) -> None:
        def fun(x: np.ndarray) -> float:
            raise ValueError("no licence")

        with pytest.raises(ValueError, match="no licence") as caught:
            cones.minimize(fun, [0.0], rng=0)
        assert "cones: candidate 0 is the start, x0" in caught.value.__notes__
        assert caught.value.cones_result.nfev == 0

    def test_it_can_be_told_once_and_first(self) -> None:
        es = cones.CoNES([3.0, 4.0], rng=0, bounds=[(0.0, 5.0)] * 2)
        es.tell_start(25.0)
        assert (es.result.fun, es.result.nfev) == (25.0, 1)
        np.testing.assert_array_equal(es.result.x, [3.0, 4.0])
        with pytest.raises(StateError, match="tell_start: expected before the first"):
            es.tell_start(25.0)
        with pytest.raises(InputError, match="value: expected real numbers"):
            cones.CoNES([3.0, 4.0]).tell_start("low")  # type: ignore[arg-type]


class TestRestartsByDefault:
    def test_when_most_of_the_budget_is_left(self) -> None:
        one = cones.minimize(sphere, [1.0] * 4, rng=0, maxfev=10_000, restarts=0)
        assert (one.stop, one.restarts) == ("ftol", 0)
        spent = one.nfev
        enough = cones.minimize(sphere, [1.0] * 4, rng=0, maxfev=4 * spent)
        assert enough.restarts > 0
        assert 3.5 * spent < enough.nfev <= 4 * spent
        assert (enough.stop, enough.success) == ("maxfev", True)
        little = cones.minimize(sphere, [1.0] * 4, rng=0, maxfev=1.5 * spent // 1)
        assert (little.stop, little.restarts) == ("ftol", 0)

    def test_not_without_a_budget_and_not_by_ask_and_tell(self) -> None:
        assert cones.minimize(sphere, [1.0] * 3, rng=0).restarts == 0
        assert cones.minimize(sphere, [1.0] * 3, rng=0, maxiter=1000).restarts == 0
        assert cones.minimize(sphere, [1.0] * 3, rng=0, maxfev=np.inf).restarts == 0
        assert cones.CoNES([1.0] * 3, maxfev=10_000).restarts is None

    def test_with_a_budget_in_seconds(self) -> None:
        result = cones.minimize(lambda X: (X**2).sum(axis=1), [1.0] * 3, vectorized=True, rng=0, maxtime=0.6)
        assert (result.stop, result.success) == ("maxtime", True)
        assert result.restarts > 0

    @pytest.mark.parametrize(
        ("value", "policy"),
        [
            (0, None),
            (3, Growing(3)),
            ("auto", Bipop()),
            ("bipop,limit=2", Bipop(2)),
            ({"name": "growing", "limit": 5}, Growing(5)),
            (Bipop(share=0.9), Bipop(share=0.9)),
        ],
    )
    def test_what_may_be_said(self, value: object, policy: object) -> None:
        assert cones.CoNES([1.0], restarts=value).restarts == policy  # type: ignore[arg-type]
        cones.minimize(sphere, [1.0], rng=0, maxfev=200, restarts=value)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (-1, "restarts: expected at least 0, got -1"),
            (1.5, "restarts: expected an integer, got 1.5"),
            ("often", "restarts: expected one of 'bipop', 'growing'"),
            ([2], "restarts: expected a number of restarts, 'auto', or a policy"),
            ("bipop,share=2", r"restarts.share: expected a number in \[0, 1\), got 2"),
            ("growing,limit=-1", "restarts.limit: expected at least 0, got -1"),
        ],
    )
    def test_what_may_not(self, value: object, message: str) -> None:
        with pytest.raises(InputError, match=message):
            cones.minimize(sphere, [1.0], restarts=value)  # type: ignore[arg-type]

    def test_a_larger_budget_lets_a_finished_run_restart(self, tmp_path: Path) -> None:
        path = tmp_path / "run.ckpt"
        spent = cones.minimize(sphere, [1.0] * 3, rng=0, maxfev=10_000, restarts=0).nfev
        first = cones.minimize(sphere, [1.0] * 3, rng=0, maxfev=1.5 * spent // 1, checkpoint=path)
        assert (first.stop, first.restarts) == ("ftol", 0)
        more = cones.resume(path, sphere, maxfev=10 * spent)
        assert more.restarts > 0
        assert 2 * spent < more.nfev <= 10 * spent

    def test_kill_and_resume_in_the_middle_of_a_restart(self, tmp_path: Path) -> None:
        def rows(X: np.ndarray) -> np.ndarray:
            return (X**2 + 10.0 * (1.0 - np.cos(2.0 * np.pi * X))).sum(axis=1)

        def stop_at(nit: int):
            def callback(intermediate_result) -> None:
                if intermediate_result.nit == nit:
                    raise StopIteration

            return callback

        settings = {"vectorized": True, "rng": 2, "maxfev": 6000, "restarts": "auto"}
        straight = cones.minimize(rows, [2.0] * 3, **settings)
        restarts = straight.history["restart"]
        assert straight.restarts >= 3
        for number in (1, 2):
            inside = int(np.flatnonzero(restarts == number)[5])
            for nit in (inside, int(np.flatnonzero(restarts == number)[0])):  # in it, and just at its beginning
                path = tmp_path / f"{nit}.ckpt"
                cones.minimize(rows, [2.0] * 3, checkpoint=path, callback=stop_at(nit), **settings)
                resumed = cones.resume(path, rows)
                assert (resumed.nfev, resumed.stop, resumed.message) == (
                    straight.nfev, straight.stop, straight.message
                )  # fmt: skip
                np.testing.assert_array_equal(resumed.x, straight.x)
                np.testing.assert_array_equal(resumed.mean, straight.mean)
                for name in set(straight.history) - {"seconds"}:
                    np.testing.assert_array_equal(resumed.history[name], straight.history[name], err_msg=name)


class TestEndsOfDescents:
    """A descent ends soon after nothing is to be gained, and not before."""

    @pytest.mark.parametrize("offset", [0.0, 1e4, -1e8])
    def test_a_local_minimum_ends_a_descent_quickly(self, offset: float) -> None:
        def rows(X: np.ndarray) -> np.ndarray:
            return (X**2 + 10.0 * (1.0 - np.cos(2.0 * np.pi * X))).sum(axis=1) + offset

        result = cones.minimize(rows, [3.0] * 5, sigma0=0.1, vectorized=True, rng=0)
        assert result.stop in ("ftol", "xtol")
        assert result.nfev < 4000
        curvature = 2.0 + 40.0 * np.pi**2
        precision = max(1e-10, 1e-12 * abs(offset))  # the rounding of the loss
        assert np.abs(np.sin(2 * np.pi * result.x) * 20 * np.pi + 2 * result.x).max() < 10 * np.sqrt(
            curvature * precision
        )

    def test_descents_that_still_improve_go_on(self) -> None:
        from scipy.optimize import rosen

        assert cones.minimize(rosen, [0.0] * 10, belief="full", rng=0, maxiter=5000).fun < 1e-9
        assert cones.minimize(sphere, [1.0] * 10, rng=0, maxiter=5000).fun < 1e-11

    def test_a_noisy_run_goes_on_while_its_mean_improves(self) -> None:
        rng = np.random.default_rng(0)

        def noisy(X: np.ndarray) -> np.ndarray:
            return (X**2).sum(axis=1) + rng.standard_normal(len(X))

        result = cones.minimize(noisy, [10.0] * 5, sigma0=0.5, vectorized=True, rng=0, maxiter=20_000)
        assert result.stop == "stagnation"
        assert sphere(result.mean) < 1.5  # 500 at the start
        assert result.nit < 3000
