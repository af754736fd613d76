"""Asynchronous runs of `minimize`: evaluators, budgets, failures, killed workers and killed runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cones
from cones import InputError
from cones.evaluate import DispatchEvaluator, Objective, ThreadEngine
from cones.evaluate.dispatch import QueueLength
from cones.run.journal import events_of

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
START = np.ones(4)


def sphere(x: np.ndarray) -> float:
    return float((x**2).sum())


def spheres(X: np.ndarray) -> np.ndarray:
    return (X**2).sum(axis=1)


def kills_its_worker_once(x: np.ndarray, folder: str) -> float:
    try:
        (Path(folder) / "killed").touch(exist_ok=False)
    except FileExistsError:
        return sphere(x)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


def run(**more: Any) -> Any:
    settings: dict[str, Any] = {"rng": 0, "maxfev": 150, "asynchronous": True, **more}
    return cones.minimize(settings.pop("fun", sphere), START, **settings)


@pytest.mark.parametrize("workers", ["1", "2", "threads", "processes"])
@pytest.mark.parametrize("vectorized", [False, True])
def test_every_evaluator_spends_the_budget_and_descends(workers: str, vectorized: bool) -> None:
    pools = {"threads": ThreadPoolExecutor, "processes": ProcessPoolExecutor}
    with pools[workers](3) if workers in pools else nullcontext(int(workers)) as place:
        result = run(fun=spheres if vectorized else sphere, vectorized=vectorized, workers=place)
    assert result.stop == "maxfev"
    assert 150 - 8 < result.nfev <= 150
    assert result.fun < 0.1
    assert result.fun == sphere(result.x)


def test_one_worker_is_a_run_by_ask_and_tell() -> None:
    es = cones.CoNES(START, rng=0, maxiter=20)
    es.tell_start(sphere(START))
    while es.stop() is None:
        x = es.ask(1)
        es.tell(x, [sphere(x[0])])
    result = run(maxiter=20, maxfev=None, noisy=False)
    assert (result.nfev, result.nit, result.fun) == (es.state.evaluations, 20, es.state.best_fun)
    np.testing.assert_array_equal(result.belief.mean, es.state.belief.mean)


def test_nobody_waits_for_the_slowest() -> None:
    """One candidate hangs until the run is over; the others go on."""
    release, first = threading.Event(), threading.Lock()

    def fun(x: np.ndarray) -> float:
        if not np.array_equal(x, START) and first.acquire(blocking=False):
            release.wait(60)
        return sphere(x)

    def stop(intermediate_result: Any) -> None:
        if intermediate_result.nit >= 10:
            release.set()
            raise StopIteration

    with ThreadPoolExecutor(2) as pool:
        result = run(fun=fun, workers=pool, callback=stop, maxfev=None, maxtime=60)
    assert (result.stop, result.nit) == ("callback", 10)


def test_a_late_result_of_a_candidate_that_was_given_up_changes_nothing() -> None:
    hangs, release = threading.Lock(), threading.Event()

    def fun(x: np.ndarray) -> float:
        if not np.array_equal(x, START) and hangs.acquire(blocking=False):
            release.wait(60)
            return -1e9
        if hangs.locked():
            time.sleep(0.002)
        return sphere(x)

    def late(intermediate_result: Any) -> None:
        if intermediate_result.nit >= 25:
            release.set()

    evaluator = DispatchEvaluator(Objective(fun), ThreadEngine(3), timeout=0.2, retries=0)
    result = run(workers=evaluator, callback=late, maxfev=None, maxiter=60)
    assert len(result.failures) == 1
    assert "no answer in 0.2 seconds (tried once)" in result.failures[0]
    assert result.fun >= 0.0


def test_a_killed_worker_costs_nothing_but_time(tmp_path: Path) -> None:
    result = run(fun=kills_its_worker_once, args=(str(tmp_path),), workers=2, maxfev=80, popsize=6)
    assert (tmp_path / "killed").exists()
    assert not result.failures
    assert result.nfev > 74


def test_exceptions_go_on_and_failures_count_as_nan() -> None:
    def fails(x: np.ndarray) -> float:
        if x[0] > 1.5:
            raise ZeroDivisionError("boom")
        return sphere(x)

    with pytest.raises(ZeroDivisionError, match="boom") as caught:
        run(fun=fails)
    assert caught.value.cones_result.nfev > 0
    with ThreadPoolExecutor(2) as pool:
        result = run(fun=fails, workers=pool, retries=0)
    assert result.failures
    assert "ZeroDivisionError: boom (tried once)" in result.failures[0]
    assert result.history["failures"].sum() >= len(result.failures) - 12


def test_what_cannot_be_asynchronous_says_so() -> None:
    with pytest.raises(InputError, match="got MapEvaluator, which evaluates whole populations"):
        run(workers=map)
    with pytest.raises(InputError, match="asynchronous: expected False with CMA, which asks for whole populations"):
        run(method="cma")
    with pytest.raises(InputError, match="asynchronous: expected True or False"):
        run(asynchronous="yes")
    with pytest.raises(InputError, match="population in chunks"):
        run(chunked=True)
    with pytest.raises(InputError, match="asynchronous: expected False with constraints"):
        run(constraints={"type": "ineq", "fun": lambda x: x[0]})
    with pytest.raises(InputError, match="asynchronous: expected False with early_end"):
        run(early_end=True)


RUN = """
import sys, time, os
from concurrent.futures import ThreadPoolExecutor
import numpy as np, cones
log = open(sys.argv[2], "a", buffering=1)
def fun(x):
    time.sleep(0.002)
    log.write(repr(float((x**2).sum())) + "\\n")
    return float((x**2).sum())
with ThreadPoolExecutor(3) as pool:
    if os.path.exists(sys.argv[1]):
        r = cones.resume(sys.argv[1], fun, workers=pool, maxfev=250)
        print(r.nfev, r.stop)
    else:
        cones.minimize(fun, np.ones(4), rng=0, maxfev=100_000, ftol=None, xtol=None, workers=pool,
                       asynchronous=True, checkpoint=sys.argv[1], checkpoint_every=4, restarts=0, noisy=False)
"""


def test_a_killed_run_goes_on_and_nothing_evaluated_is_lost(tmp_path: Path) -> None:
    script, checkpoint, log = tmp_path / "run.py", tmp_path / "run.ckpt", tmp_path / "log"
    script.write_text(RUN)
    journal = Path(f"{checkpoint}.journal")
    command = [sys.executable, str(script), str(checkpoint), str(log)]
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 60
        while not (journal.exists() and journal.read_bytes().count(b"tell") > 80):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    before = journal.read_bytes()
    told = [loss for kind, *content in events_of(journal) if kind == "tell" for loss in content[1]]
    evaluated = [float(line) for line in log.read_text().splitlines()]
    # All that was evaluated was told, but for what was under way.
    assert len(evaluated) - 1 - len(told) <= 2 * 3
    out = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout
    assert out.split()[1] == "maxfev"
    whole = before[: before.rindex(b"\n") + 1]
    assert journal.read_bytes().startswith(whole)  # the journal goes on
    kinds = [event[0] for event in events_of(journal)]
    assert kinds.count("again") <= 1
    # What was told before the kill was not evaluated again: the evaluations of both runs and their sum.
    total = len(log.read_text().splitlines())
    assert total - int(out.split()[0]) <= 2 * 3
    final = cones.replay(journal, cones.CoNES(np.ones(4), rng=0, maxfev=250, ftol=None, xtol=None))
    assert final.state.evaluations == int(out.split()[0])


def test_resume_needs_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    run(checkpoint=path, maxfev=60)
    journal = Path(f"{path}.journal")
    assert json.loads(journal.read_text().splitlines()[0]) == ["cones journal", 1]
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:5]))
    with pytest.raises(cones.CheckpointError, match="events, got 4"):
        cones.resume(path, sphere, maxfev=100)
    journal.unlink()
    with pytest.raises(cones.CheckpointError, match="no such file; an asynchronous run continues with its journal"):
        cones.resume(path, sphere, maxfev=100)


def test_too_many_workers_for_the_population_warn() -> None:
    with ThreadPoolExecutor(33) as pool, pytest.warns(RuntimeWarning, match="asynchronous: 33 workers and popsize = 4"):
        run(workers=pool, popsize=4, maxfev=60)


@pytest.mark.parametrize(
    ("away", "waiting", "workers", "expected"),
    [
        (0.005, 0.001, 8, 1),  # a result every 6 ms, and the caller is away for 5
        (0.020, 0.001, 8, 1),
        (0.001, 1.0, 8, 0),  # they would be idle for a ten thousandth of the time
        (0.005, 0.001, 1, 0),  # one worker: a run that can be repeated
    ],
)
def test_a_few_candidates_wait_where_workers_would_wait_for_the_caller(
    away: float, waiting: float, workers: int, expected: int
) -> None:
    queue, now = QueueLength(), 0.0
    assert queue.length(workers) == 0
    for _ in range(100):
        queue.left(now, 1)
        queue.came_back(now + away)
        now += away + waiting
    assert queue.length(workers) == expected


def test_no_more_wait_than_there_are_workers() -> None:
    queue, now = QueueLength(), 0.0
    for _ in range(100):
        queue.left(now, 50)  # many at once
        queue.came_back(now + 0.9)
        now += 1.0
    assert queue.length(8) == 8
