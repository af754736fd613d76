"""Replicates: the reliability of ranks against quadrature, SciPy and simulation; runs that use it, and their budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_evaluators import Reversed
from scipy.optimize import minimize
from scipy.stats import spearmanr

import cones
from cones import InputError
from cones.cli import main
from cones.evaluate import Objective, evaluator_from
from cones.evaluate.replicate import (
    MOST,
    TARGET,
    ReplicatingEvaluator,
    Replication,
    reliability,
    retest_correlation,
)

losses_of_any_size = st.lists(st.floats(-1e6, 1e6) | st.just(math.inf), min_size=2, max_size=12)


def rank_among(value: float, others: list[float]) -> float:
    return sum(1.0 if other < value else 0.5 if other == value else 0.0 for other in others)


@settings(max_examples=60)
@given(losses_of_any_size, st.data())
def test_the_correlation_is_that_of_its_definition(first: list[float], data: st.DataObject) -> None:
    second = data.draw(st.lists(st.sampled_from(first) | st.floats(-1e6, 1e6), min_size=1, max_size=len(first)))
    changes = []
    for i, again in enumerate(second):
        others = first[:i] + first[i + 1 :]
        changes.append(rank_among(again, others) - rank_among(first[i], others))
    expected = 1.0 - 6.0 * sum(change**2 for change in changes) / len(changes) / (len(first) ** 2 - 1)
    assert retest_correlation(np.array(first), np.array(second)) == pytest.approx(expected)


def test_on_many_candidates_it_is_spearmans() -> None:
    rng = np.random.default_rng(0)
    true = rng.standard_normal(4000)
    first, second = (true + rng.standard_normal(4000) for _ in range(2))
    assert retest_correlation(first, second) == pytest.approx(spearmanr(first, second).statistic, abs=0.01)
    assert retest_correlation(first, first) == 1.0


@pytest.mark.parametrize("every", [1, 2, 3, 8])
@pytest.mark.parametrize("noise", [0.3, 1.0, 3.0])
def test_the_reliability_is_that_of_the_mean(every: int, noise: float) -> None:
    """Losses of variance 1 with noise: v / (v + s^2 / r), up to the difference of ranks and values, 0.02 at most."""
    rng = np.random.default_rng(1)
    count, x = 3000, rng.standard_normal((3000, 1))
    evaluator = ReplicatingEvaluator(
        evaluator_from(Objective(lambda X: X[:, 0] + noise * rng.standard_normal(len(X)), vectorized=True), 1)
    )
    evaluator.prepare(every, count if every == 1 else 0)
    losses = evaluator.losses(x)
    number = 2 if every == 1 else every
    assert evaluator.spent == number * count
    assert evaluator.reliability == pytest.approx(1.0 / (1.0 + noise**2 / number), abs=0.06)
    assert np.var(losses - x[:, 0]) == pytest.approx(noise**2 / number, rel=0.1)


def test_the_best_reliability_is_one_half() -> None:
    """The gain of an evaluation, y (x^2 - y) (1/x - 1), is largest where 1 - y / x^2 is one half."""
    found = minimize(lambda p: -p[1] * (p[0] ** 2 - p[1]) * (1.0 / p[0] - 1.0), [0.7, 0.2], method="Nelder-Mead")
    x, y = found.x
    assert (x, y) == (pytest.approx(3 / 4, abs=1e-3), pytest.approx(9 / 32, abs=1e-3))
    assert 1.0 - y / x**2 == pytest.approx(TARGET, abs=1e-3)


@settings(max_examples=60)
@given(st.floats(1.0, MOST), st.integers(2, 100), st.floats(1.0, 50.0), st.integers(0, 1))
def test_counts_are_within_the_limit(number: float, popsize: int, times: float, wait: int) -> None:
    limit = times * popsize
    every, more = Replication(number, wait).counts(popsize, limit)
    assert 0 <= more <= popsize
    assert popsize <= every * popsize + more <= limit
    if number > 2.0 and number * popsize + 1 < limit:
        assert every * popsize + more == pytest.approx(number * popsize, abs=1)


@pytest.mark.parametrize("noise_to_signal", [0.1, 1.0, 30.0])
def test_the_number_settles_where_the_reliability_is_one_half(noise_to_signal: float) -> None:
    """s^2 / v = r at a reliability of one half; at least one."""
    state, numbers = Replication(), []
    for _ in range(200):
        state = state.after(reliability(1.0 / (1.0 + noise_to_signal), state.number), state.number)
        numbers.append(state.number)
    assert numbers[-1] == pytest.approx(max(1.0, noise_to_signal), rel=0.01)


def test_a_loss_without_noise_is_measured_rarely_and_loses_little() -> None:
    def run(**more: Any) -> Any:
        return cones.minimize(lambda x: float((x**2).sum()), np.ones(8), rng=0, ftarget=1e-8, **more)

    plain, measured = run(), run(replicates="auto")
    assert plain.nit == measured.nit
    np.testing.assert_array_equal(plain.x, measured.x)
    assert plain.nfev < measured.nfev < 1.05 * plain.nfev
    known = ~np.isnan(measured.history["reliability"])
    assert known[0]
    assert (measured.history["reliability"][known] == 1.0).all()


def noisy(seed: int, level: float = 1.0) -> Callable[[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)

    def fun(X: np.ndarray) -> np.ndarray:
        fun.calls += len(X)  # type: ignore[attr-defined]
        return (X**2).sum(axis=1) + level * rng.standard_normal(len(X))

    fun.calls = 0  # type: ignore[attr-defined]
    return fun


def test_noisy_runs_end_nearer_to_the_minimum_within_the_budget() -> None:
    ends: dict[str | None, list[float]] = {None: [], "auto": []}
    for seed in range(2):
        for replicates, losses in ends.items():
            fun = noisy(seed, 30.0)
            settings: Any = {"vectorized": True, "noisy": True, "restarts": 0, "replicates": replicates}
            result = cones.minimize(fun, np.full(20, 3.0), maxfev=3000, rng=seed, **settings)
            assert result.nfev == fun.calls <= 3000  # type: ignore[attr-defined]
            losses.append(float((result.mean**2).sum()))
            if replicates:
                numbers, spent = result.history["replicates"], result.history["evaluations"]
                np.testing.assert_allclose(np.diff(spent), (numbers * result.history["popsize"])[1:])
                assert numbers[0] < 2.0 < numbers.max() <= 0.02 * 3000 / result.history["popsize"][-1]
                assert "times on average" in result.message
    assert sum(ends["auto"]) < 0.6 * sum(ends[None])


def test_every_budget_is_kept() -> None:
    for maxfev in range(30, 140, 7):
        fun = noisy(maxfev, 100.0)
        result = cones.minimize(fun, np.ones(3), vectorized=True, maxfev=maxfev, rng=0, replicates="auto")
        assert result.nfev == fun.calls <= maxfev  # type: ignore[attr-defined]


def by_bits(x: np.ndarray) -> float:
    """A rough function, the same wherever it is evaluated."""
    return float((x**2).sum())


@pytest.mark.parametrize("workers", [2, Reversed, map], ids=["processes", "own", "map"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_workers_do_not_change_the_run(workers: Any) -> None:
    one, other = (
        cones.minimize(by_bits, np.ones(3), rng=0, maxiter=15, replicates="auto", workers=w) for w in (1, workers)
    )
    assert one.nfev == other.nfev
    np.testing.assert_array_equal(one.history["replicates"], other.history["replicates"])
    np.testing.assert_array_equal(one.x, other.x)


def test_candidates_in_chunks() -> None:
    whole, chunked = (
        cones.minimize(
            noisy(0), np.ones(70), vectorized=True, rng=0, maxiter=40, replicates="auto", chunked=chunks, noisy=True
        )
        for chunks in (False, True)
    )
    assert whole.nfev == chunked.nfev
    np.testing.assert_allclose(whole.history["replicates"], chunked.history["replicates"])


def counted(X: np.ndarray, calls: list[int]) -> np.ndarray:
    """Noise that depends on the number of the call and the row."""
    calls.append(len(X))
    return (X**2).sum(axis=1) + np.random.default_rng(len(calls)).standard_normal(len(X))


def test_a_run_goes_on_from_its_checkpoint_bit_for_bit(tmp_path: Path) -> None:
    path, settings = tmp_path / "run.ckpt", {"vectorized": True, "rng": 0, "replicates": "auto", "noisy": True}
    whole = cones.minimize(counted, np.ones(4), ([],), maxiter=120, stagnation=None, **settings)
    calls: list[int] = []

    def interrupted(X: np.ndarray) -> np.ndarray:
        if len(calls) == 90:
            raise RuntimeError("in the middle")
        return counted(X, calls)

    with pytest.raises(RuntimeError) as caught:
        cones.minimize(interrupted, np.ones(4), checkpoint=path, maxiter=120, stagnation=None, **settings)
    assert caught.value.cones_result.nfev == sum(calls)  # type: ignore[attr-defined]
    rest = cones.resume(path, counted, (calls,))
    assert rest.history["replicates"].max() > 2.0
    for name in ("replicates", "reliability", "mean_loss", "evaluations"):
        np.testing.assert_array_equal(rest.history[name], whole.history[name])


def test_an_interrupted_population_counts_with_its_replicates() -> None:
    fun, calls = noisy(0, 100.0), 0

    def single(x: np.ndarray) -> float:
        nonlocal calls
        if calls == 2000:
            raise KeyboardInterrupt
        calls += 1
        return float(fun(x[None, :])[0])

    result = cones.minimize(single, np.ones(3), rng=0, maxfev=1e5, replicates="auto", stagnation=None)
    assert result.stop == "interrupted"
    assert result.history["replicates"][-1] > 2.0
    assert result.nfev == calls


def test_a_candidate_that_fails_once_is_named_and_ranks_worst() -> None:
    def fails(X: np.ndarray) -> np.ndarray:
        losses = np.arange(len(X), dtype=float)
        losses[4] = math.nan  # the second evaluation of candidate 1
        return losses

    evaluator = ReplicatingEvaluator(evaluator_from(Objective(fails, vectorized=True), 1))
    evaluator.prepare(2, 1)
    np.testing.assert_array_equal(evaluator.losses(np.zeros((3, 2))), [3.0, math.nan, 3.5])


def test_an_exception_names_the_candidate_and_the_evaluation() -> None:
    calls = 0

    def fails(x: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        if calls == 8:
            raise ZeroDivisionError
        return 0.0

    evaluator = ReplicatingEvaluator(evaluator_from(Objective(fails), 1))
    evaluator.prepare(3, 0)
    with pytest.raises(ZeroDivisionError) as caught:
        evaluator.losses(np.zeros((3, 2)))
    assert caught.value.__notes__[-1] == "cones: this was evaluation 3 of candidate 1"
    assert evaluator.spent == 7


def test_restarts_begin_with_one_evaluation() -> None:
    result = cones.minimize(
        noisy(0, 0.1), np.ones(3), vectorized=True, rng=0, maxfev=20000, replicates="auto", restarts=2, stagnation=40
    )
    history = result.history
    firsts = np.flatnonzero(np.diff(history["restart"])) + 1
    assert firsts.size
    assert (history["replicates"][firsts] < 2.0).all()
    assert history["replicates"][firsts - 1].max() > 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"replicates": 3}, "replicates: expected one of 'auto', got 3"),
        ({"noisy": False}, "replicates: expected None with noisy=False, got 'auto'"),
        ({"asynchronous": True}, "replicates: expected None with asynchronous"),
        ({"early_end": True, "estimator": "recombination"}, "replicates: expected None with early_end"),
        ({"constraints": {"type": "ineq", "fun": lambda x: x[0]}}, "replicates: expected None with constraints"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cones.minimize(lambda x: 0.0, np.ones(3), **{"replicates": "auto", **arguments})
    with pytest.raises(InputError, match="number: expected 1 to 1000"):
        Replication(0.5)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "run.ckpt")
    run = ["minimize", "objectives:loss", "--dim", "3", "--quiet", "--checkpoint", path, "--maxiter"]
    assert main([*run, "20", "--replicates", "auto"]) == 0
    assert "times on average" in capsys.readouterr().out
    assert main([*run, "30", "--resume", "--replicates", "auto"]) == 0
    other = str(tmp_path / "other.ckpt")
    assert main([*run[:-2], other, "--maxiter", "5"]) == 0
    assert main([*run[:-2], other, "--maxiter", "9", "--resume", "--replicates", "auto"]) == 2
    assert "was started without --replicates" in capsys.readouterr().err
