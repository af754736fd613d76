"""Early ends: who is ended is truly among the worse half, and nobody else is touched."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import is_alive, wait_until
from hypothesis import given, settings
from hypothesis import strategies as st
from own_evaluators import Reversed

import cones
from cones.cli import main
from cones.evaluate import Objective, evaluator_from
from cones.evaluate.race import Race, RacedFunction, RacingEvaluator, ScoreBoard

fork_warning = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
RANKS = {"estimator": "recombination", "restarts": 0}


def stepwise(x: np.ndarray, race: Race | None = None, pause: float = 0.0) -> float:
    """The loss is x[0], paid in ten parts that depend on x[1]."""
    parts = np.arange(1, 11) ** x[1]
    for step, so_far in enumerate(x[0] * np.cumsum(parts) / parts.sum(), 1):
        if pause:
            time.sleep(pause)
        if race is not None and step < 10 and race.is_over(so_far, step / 10):
            return -1e9  # what is returned then does not count
    return float(x[0])


def sphere(x: np.ndarray, race: Race | None = None) -> float:
    return stepwise(np.array([(x**2).sum(), 0.0]), race)


def raced(X: np.ndarray, workers: Any = 1, fun: Callable[..., float] = stepwise) -> tuple[np.ndarray, RacingEvaluator]:
    board = ScoreBoard()
    inner = evaluator_from(Objective(RacedFunction(fun, board), width=3), workers)
    with RacingEvaluator(inner, board) as evaluator:
        evaluator.races = True
        losses = evaluator.losses(X)
    assert not os.path.exists(board.path)
    return losses, evaluator


def check_sure(X: np.ndarray, losses: np.ndarray) -> int:
    """The number of ended candidates, all of which must have at least half of the population before them."""
    ended, better_half = losses != X[:, 0], len(X) - len(X) // 2
    for candidate in np.flatnonzero(ended):
        assert (X[:, 0] < X[candidate, 0]).sum() >= better_half
        assert (losses < losses[candidate]).sum() >= better_half
    return int(ended.sum())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0.0, 1e6), st.floats(-2.0, 2.0)), min_size=1, max_size=24))
def test_only_the_worse_half_is_ended(population: list[tuple[float, float]]) -> None:
    X = np.array(population)
    losses, evaluator = raced(X)
    assert check_sure(X, losses) <= evaluator.ended <= len(X) // 2  # an expected loss may be exact


def test_how_many_are_ended_and_what_it_saves() -> None:
    """Losses 1, 2, ..., 8, evenly paid: f_(4) is 4 once four are known, and a candidate of loss f ends beyond 4 / f."""
    X = np.array([[loss, 0.0] for loss in (1, 2, 3, 4, 5, 6, 7, 8)], dtype=float)
    losses, evaluator = raced(X)
    steps = [int(10 * 4 / f) + 1 for f in (5, 6, 7, 8)]  # the first of ten reports that is above 4
    assert evaluator.ended == 4
    assert evaluator.saved == pytest.approx(sum(1 - step / 10 for step in steps) / 8)
    np.testing.assert_allclose(losses, X[:, 0])  # costs come evenly: the expected loss is right


@fork_warning
@pytest.mark.parametrize("workers", [2, "threads"])
def test_workers_race_with_each_other(workers: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.exponential(size=30), rng.uniform(-1, 1, 30)])

    with ThreadPoolExecutor(2) as threads:
        losses, _ = raced(X, threads if workers == "threads" else workers, slow)
    assert check_sure(X, losses) >= 3


def slow(x: np.ndarray, race: Race) -> float:
    return stepwise(x, race, pause=0.001)


def test_a_candidate_that_was_tried_twice_counts_once() -> None:
    board = ScoreBoard()
    board.begin(2)
    for x, loss in (([1.0], 3.0), ([1.0], 3.0), ([2.0], np.nan)):
        board.add(1, np.array(x), loss)
    assert board.read() == (1, np.inf)
    board.add(1, np.array([3.0]), 5.0)
    assert board.read() == (1, 5.0)
    board.begin(2)
    board.add(1, np.array([4.0]), 1.0)  # late, from the last population
    board.add(2, np.array([5.0]), 2.0)
    assert board.read() == (2, np.inf)
    board.remove()
    assert board.read() == (-1, np.inf)  # as on another machine


class TestMinimize:
    def test_evenly_paid_costs_change_nothing_but_the_work(self) -> None:
        common = {"rng": 0, "popsize": 12, "maxiter": 20, **RANKS}
        with_, without = (cones.minimize(sphere, [3.0, 2.0, 1.0], early_end=end, **common) for end in (True, False))
        np.testing.assert_allclose(with_.x, without.x, atol=1e-9)
        assert with_.nfev == without.nfev
        assert with_.ended == with_.history["ended"].sum() > 20
        assert with_.saved == pytest.approx(with_.history["saved"].mean())
        assert f"{with_.ended} evaluations were ended early, which saved {with_.saved:.0%}" in with_.message
        assert "ended" not in without.history

    def test_measurements_of_one_point_do_not_race(self) -> None:
        rng, ended = np.random.default_rng(0), []

        def noisy(x: np.ndarray, race: Race) -> float:
            cost = float((x**2).sum() + rng.exponential())
            ended.append(race.is_over(cost, 0.5))
            return cost

        result = cones.minimize(noisy, [1.0, 1.0], rng=0, maxfev=200, noisy=True, early_end=True, **RANKS)
        last = result.nfev - int(result.history["evaluations"][-1])
        assert last >= 10
        assert not any(ended[-last:])
        assert any(ended)

    def test_a_resumed_run_goes_on_with_it(self, tmp_path: Path) -> None:
        common = {"rng": 0, "popsize": 8, **RANKS}
        whole = cones.minimize(sphere, [3.0, 2.0], early_end=True, maxiter=12, **common)
        cones.minimize(sphere, [3.0, 2.0], early_end=True, maxiter=5, checkpoint=tmp_path / "c", **common)
        again = cones.resume(tmp_path / "c", sphere, maxiter=12)
        np.testing.assert_array_equal(again.x, whole.x)
        assert (again.ended, again.saved) == (whole.ended, whole.saved)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"vectorized": True}, "early_end: expected a function of one candidate, got vectorized=True"),
            ({"workers": Reversed(Objective(sphere))}, "early_end: expected workers that evaluate fun, got a Reversed"),
            ({"workers": "tcp://host:8786"}, "early_end: expected workers on this machine, got 'tcp://host:8786'"),
            ({"method": "es", "shaping": "raw"}, "early_end: expected a shaping by rank, got 'raw'"),
            ({}, "early_end: expected an estimator by rank, got 'quadratic'"),
            ({"constraints": {"type": "ineq", "fun": sum}}, "early_end: expected no constraints beside it"),
            ({"early_end": 1}, "early_end: expected True or False, got 1"),
        ],
    )
    def test_what_cannot_have_it_is_refused(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(cones.InputError, match=message):
            cones.minimize(sphere, [1.0, 2.0], **{"early_end": True, **settings})

    @pytest.mark.parametrize(
        ("reports", "final", "message"),
        [
            ([(1.0, 0.5), (0.5, 0.6)], 2.0, "expected losses so far that do not fall, got 0.5 after 1"),
            ([(1.0, 0.5), (1.0, 0.4)], 2.0, "expected done to grow from 0 to 1, got 0.4 after 0.5"),
            ([(1.0, 1.5)], 2.0, "expected done to grow from 0 to 1, got 1.5 after 0"),
            ([(np.nan, 0.5)], 2.0, "race: loss: expected a finite number, got nan"),
            ([(1.0, 0.5)], 0.5, "got 1 so far, 0.5 at the end"),
        ],
    )
    def test_reports_that_are_no_bounds_are_refused(
        self, reports: list[tuple[float, float]], final: float, message: str
    ) -> None:
        def fun(x: np.ndarray, race: Race) -> float:
            for loss, done in reports:
                race.is_over(loss, done)
            return final

        with pytest.raises(cones.InputError, match=message):
            cones.minimize(fun, [1.0, 2.0], early_end=True, **RANKS)


@fork_warning
def test_a_program_reports_by_lines_and_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("simulate.py").write_text(
        "import json, os, subprocess, sys, time\n"
        "x, k = json.load(sys.stdin), len(os.listdir('.'))\n"
        "loss = 1.0 + sum(v * v for v in x)\n"
        "open(f'begun-{os.getpid()}', 'w').close()\n"
        "if k > 5:\n"  # x0 and half of the population are complete; these would never end by themselves
        "    child = subprocess.Popen(['sleep', '1000'])\n"
        "    with open('children', 'a') as file:\n"
        "        file.write(f'{child.pid}\\n')\n"
        "    print('half', 1e6, '50%', flush=True)\n"
        "    print(1e6, '50%', flush=True)\n"
        "    time.sleep(1000)\n"
        "print(loss)\n"
    )
    arguments = ("--dim", "2", "--popsize", "8", "--maxiter", "1", "--seed", "0", "--quiet", "--workers", "1")
    command = ("--command", f"{sys.executable} simulate.py", "--estimator", "recombination", "--early-end")
    assert main(["minimize", *command, *arguments]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ended"] == 4
    assert result["saved"] == 0.25
    children = Path("children").read_text().split()
    assert len(children) == 4
    for pid in children:
        wait_until(lambda pid=pid: not is_alive(int(pid)))
