"""Workers that die, hang or raise: the run goes on, and ends as one without the fault when trying again succeeds."""

from __future__ import annotations

import json
import os
import pickle
import re
import socket
import subprocess
import sys
import textwrap
import threading
import time
import types
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import is_alive, killing, wait_until, worker_processes
from objectives import Fails, hangs, loss, slow_loss

import cones
from cones import InputError, StateError
from cones.evaluate import Objective, evaluator_from

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SETTINGS: dict[str, Any] = {"sigma0": 0.5, "popsize": 12, "rng": 0, "maxiter": 4}
START = np.zeros(5)


def assert_same_run(result: Any, expected: Any) -> None:
    np.testing.assert_array_equal(result.mean, expected.mean)
    np.testing.assert_array_equal(result.x, expected.x)
    np.testing.assert_array_equal(result.history["mean_loss"], expected.history["mean_loss"])
    assert result.failures == []


@pytest.mark.parametrize("how", ["die", "raise", "hang"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_fault_that_trying_again_mends_leaves_no_trace(how: str, chunked: bool, tmp_path: Path) -> None:
    expected = cones.minimize(loss, START, **SETTINGS)
    more = {"timeout": 3.0} if how == "hang" else {}
    result = cones.minimize(Fails(how, tmp_path), START, workers=2, retries=2, chunked=chunked, **more, **SETTINGS)
    assert len(list(tmp_path.iterdir())) > 1, "nothing failed"
    assert_same_run(result, expected)


@pytest.mark.parametrize("how", ["die", "raise", "hang"])
def test_a_fault_that_stays_is_nan_and_told_of(how: str, tmp_path: Path) -> None:
    more = {"timeout": 1.0} if how == "hang" else {}
    fun = Fails(how, tmp_path, times=10**6, low=4.0, high=4.6)
    result = cones.minimize(fun, START, workers=2, retries=1, **more, **{**SETTINGS, "maxiter": 2, "radius": "paper"})
    bad = sum(1 for text in result.failures if "2 times" in text)
    assert bad == len(result.failures) == result.history["failures"].sum() > 0
    words = {"die": "its worker was lost", "raise": "ZeroDivisionError: boom", "hang": "no answer in 1 seconds"}
    assert all(words[how] in text for text in result.failures)
    assert all(re.match(r"iteration \d, candidate \d+: ", text) for text in result.failures)
    # The others have their own losses: one bad candidate takes nobody with it.
    straight = cones.minimize(
        lambda x: np.nan if 4.0 <= loss(x) <= 4.6 else loss(x), START, **{**SETTINGS, "maxiter": 2, "radius": "paper"}
    )
    np.testing.assert_array_equal(result.mean, straight.mean)


def test_without_retries_what_fun_raises_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="boom"):
        cones.minimize(Fails("raise", tmp_path), START, workers=2, **SETTINGS)


def test_a_worker_that_is_killed_from_outside_is_replaced(tmp_path: Path) -> None:
    expected = cones.minimize(slow_loss, START, **SETTINGS)
    with killing(worker_processes, [0.25]):
        result = cones.minimize(slow_loss, START, workers=2, **SETTINGS)
    assert_same_run(result, expected)


def test_an_executor_of_the_caller_that_breaks_is_named(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2) as executor, pytest.raises(StateError, match="the executor is broken; with workers=K"):
        cones.minimize(Fails("die", tmp_path), START, workers=executor, **SETTINGS)


def test_an_executor_that_was_shut_down_is_named() -> None:
    for kind in (ThreadPoolExecutor, ProcessPoolExecutor):
        executor: Executor = kind(1)
        executor.shutdown()
        with pytest.raises(StateError, match=r"workers: the executor takes no work .*not shut down"):
            cones.minimize(loss, START, workers=executor, **SETTINGS)


def test_an_executor_that_is_shut_down_in_mid_run_is_named() -> None:
    executor = ThreadPoolExecutor(2)
    timer = threading.Timer(0.2, lambda: executor.shutdown(wait=False, cancel_futures=True))
    timer.start()
    with pytest.raises(
        StateError, match=r"workers: the executor takes no work .*not shut down"
    ):  # all are sent by then
        cones.minimize(lambda x: time.sleep(0.4) or loss(x), START, workers=executor, **{**SETTINGS, "popsize": 4})
    timer.join()


def test_a_candidate_that_waits_for_a_busy_executor_does_not_hang() -> None:
    expected = cones.minimize(loss, START, **SETTINGS)
    with ThreadPoolExecutor(1) as executor:
        executor.submit(time.sleep, 1.0)  # somebody else's work
        result = cones.minimize(loss, START, workers=executor, timeout=0.3, retries=0, **SETTINGS)
    assert_same_run(result, expected)


def test_a_thread_that_hangs_is_left_behind(tmp_path: Path) -> None:
    expected = cones.minimize(loss, START, **SETTINGS)
    stop = threading.Event()
    turns = iter(range(10**6))

    def hangs_once(x: np.ndarray) -> float:
        if next(turns) == 5:
            stop.wait(60.0)
        return loss(x)

    with ThreadPoolExecutor(2) as executor:
        result = cones.minimize(hangs_once, START, workers=executor, timeout=0.5, **SETTINGS)
        assert_same_run(result, expected)
        stop.set()


def test_all_workers_hanging_is_an_error() -> None:
    stop = threading.Event()
    with ThreadPoolExecutor(2) as executor:
        with pytest.raises(StateError, match="workers: all of them hang"):
            cones.minimize(lambda x: float(stop.wait(60.0)), START, workers=executor, timeout=0.2, **SETTINGS)
        stop.set()


def test_functions_that_cannot_be_sent_and_bad_settings_are_named() -> None:
    with ProcessPoolExecutor(1) as executor, pytest.raises(InputError, match="cannot be pickled"):
        cones.minimize(lambda x: 0.0, START, workers=executor, **SETTINGS)
    for settings, message in (
        ({"timeout": 0.0}, "timeout: expected a positive number"),
        ({"retries": -1}, "retries: expected at least 0"),
        ({"retries": 1, "workers": map}, "timeout, retries: expected with processes"),
        ({"workers": "somewhere"}, "workers: expected 'ray', an address"),
        (
            {"workers": START},
            "workers: expected an integer, a map, an Executor, a Dask client, an Evaluator or an address, got ndarray",
        ),
    ):
        with pytest.raises(InputError, match=message):
            cones.minimize(loss, START, **settings, **SETTINGS)


def test_a_worker_without_a_module_is_named() -> None:
    def needs_a_module(x: np.ndarray) -> float:
        import module_that_is_nowhere  # noqa: F401

        return 0.0

    with pytest.raises(StateError, match="a worker has no module 'module_that_is_nowhere'; install it"):
        cones.minimize(needs_a_module, START, workers=2, retries=3, **SETTINGS)


def test_spawned_workers_that_cannot_load_the_function_are_named() -> None:
    code = (
        "import multiprocessing, numpy as np, cones\n"
        "def fun(x):\n    return 0.0\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.set_start_method('spawn')\n"
        "    try:\n        cones.minimize(fun, np.zeros(2), workers=2, popsize=4, maxiter=1)\n"
        "    except cones.StateError as error:\n        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert "workers: a worker process could not start (AttributeError: Can't get attribute 'fun'" in done.stdout


def test_large_vectors_do_not_travel_to_processes() -> None:
    """What is pickled for a task is of the same size whatever the dimension, and shared memory is cleaned up."""
    from cones.evaluate import PoolEngine
    from cones.evaluate.shared import SharedValue

    sizes = []
    for dim, belief in ((1000, "diagonal"), (200_000, "diagonal"), (40, "full"), (400, "full")):
        es = cones.CoNES(np.zeros(dim), popsize=6, rng=0, belief=belief, chunked=True)
        engine = PoolEngine(2)
        token = engine.share(es.ask())
        assert isinstance(token, SharedValue)
        sizes.append(len(pickle.dumps(token)))
        np.testing.assert_array_equal(token.opened().block(2, 4), np.asarray(es.ask())[2:4])
        engine.unshare(token)
        assert not Path("/dev/shm", token.memory).exists()
    assert max(sizes) < 1000


SCRIPT = """
import numpy as np
from mpi4py.futures import MPIPoolExecutor
import cones
from objectives import loss

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        for chunked in (False, True):
            settings = dict(sigma0=0.5, popsize=12, rng=0, maxiter=4)
            result = cones.minimize(loss, np.zeros(5), workers=executor, chunked=chunked, **settings)
            print(result.mean.tolist())
        settings = dict(sigma0=0.5, popsize=6, rng=0, maxfev=200, noisy=False)
        result = cones.minimize(loss, np.zeros(5), workers=executor, asynchronous=True, **settings)
        print([result.nfev, result.fun, loss(result.x)])
"""


def test_mpi(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("no mpiexec beside Python; pip install mpich")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    paths = [str(Path(__file__).parents[1]), str(Path(cones.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [str(mpiexec), "-n", "3", sys.executable, "-m", "mpi4py.futures", str(script)],
        capture_output=True, text=True, timeout=120, env=environment, check=True,
    )  # fmt: skip
    expected = cones.minimize(loss, START, **SETTINGS).mean.tolist()
    *means, (evaluations, best, again) = [json.loads(line) for line in done.stdout.splitlines()]
    assert means == [expected, expected]
    assert 190 < evaluations <= 200
    assert best == again < 0.5  # asynchronous: whichever results came first


@pytest.fixture(scope="module")
def dask_cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield cluster, client


@pytest.mark.parametrize("chunked", [False, True])
def test_dask(dask_cluster: Any, chunked: bool, tmp_path: Path) -> None:
    cluster, client = dask_cluster
    expected = cones.minimize(loss, START, **SETTINGS)
    result = cones.minimize(loss, START, workers=client, chunked=chunked, **SETTINGS)
    assert_same_run(result, expected)
    by_address = cones.minimize(loss, START, workers=cluster.scheduler_address, chunked=chunked, **SETTINGS)
    assert_same_run(by_address, expected)
    raising = cones.minimize(Fails("raise", tmp_path), START, workers=client, retries=2, chunked=chunked, **SETTINGS)
    assert_same_run(raising, expected)
    with pytest.raises(ZeroDivisionError):
        cones.minimize(Fails("raise", tmp_path / "..", times=10**6), START, workers=client, **SETTINGS)


def test_dask_asynchronously(dask_cluster: Any, tmp_path: Path) -> None:
    _, client = dask_cluster
    settings: dict[str, Any] = {"sigma0": 0.5, "popsize": 6, "rng": 0, "maxfev": 200, "noisy": False}
    path = tmp_path / "run.ckpt"
    result = cones.minimize(loss, START, workers=client, asynchronous=True, checkpoint=path, restarts=0, **settings)
    assert 190 < result.nfev <= 200
    assert result.fun == loss(result.x) < 0.5
    del settings["noisy"]
    again = cones.replay(f"{path}.journal", cones.CoNES(START, **settings))
    np.testing.assert_array_equal(again.state.belief.mean, result.belief.mean)


def test_dask_with_a_worker_killed(dask_cluster: Any) -> None:
    _, client = dask_cluster
    expected = cones.minimize(slow_loss, START, **SETTINGS)
    pids = client.run(os.getpid)
    with killing(lambda: list(pids.values()), [0.3]):
        result = cones.minimize(slow_loss, START, workers=client, retries=3, chunked=True, **SETTINGS)
    assert_same_run(result, expected)


def test_dask_with_all_workers_killed(dask_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster starts others, which takes longer than its client waits for one."""
    _, client = dask_cluster
    expected = cones.minimize(slow_loss, START, **SETTINGS)
    client.wait_for_workers(2)
    monkeypatch.setattr(client, "_timeout", 0.1)
    pids = list(client.run(os.getpid).values())
    with killing(lambda: [pids.pop()], [0.3, 0.0]) as killed:
        assert_same_run(cones.minimize(slow_loss, START, workers=client, retries=3, **SETTINGS), expected)
    assert len(killed) == 2


def test_dask_with_a_candidate_that_kills_all_workers(dask_cluster: Any, tmp_path: Path) -> None:
    _, client = dask_cluster
    settings = {**SETTINGS, "popsize": 4, "maxiter": 1}
    told = [loss(x) for x in cones.CoNES(START, **settings).ask()]
    deadly = Fails("die", tmp_path, times=10**6, low=told[2], high=told[2])
    result = cones.minimize(deadly, START, workers=client, retries=0, **settings)
    assert result.failures == ["iteration 0, candidate 2: its worker was lost (tried once)"]
    assert result.fun == min(told[:2] + told[3:])


def test_dask_with_candidates_that_hang(dask_cluster: Any) -> None:
    """Dask cannot end a call, so that its workers are held; it is not the fault of others."""
    _, client = dask_cluster
    with pytest.raises(StateError, match="workers: all of them hang"):
        cones.minimize(hangs, START, workers=client, timeout=0.5, retries=0, **SETTINGS)


def test_dask_workers_without_the_module_are_named(dask_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = dask_cluster
    module = types.ModuleType("a_module_of_this_process_alone")
    exec("def loss(x):\n    return 0.0", vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(StateError, match=r"workers: those of the Dask cluster cannot load fun .*No module named"):
        cones.minimize(module.loss, START, workers=client, **SETTINGS)


def test_what_is_wrong_is_said_before_a_cluster_is_kept(dask_cluster: Any) -> None:
    cluster, _ = dask_cluster
    before, lock = len(cluster.scheduler.clients), threading.Lock()
    with pytest.raises(InputError, match="fun: expected a function that can be sent"):
        cones.minimize(lambda x: float(lock.locked()), START, workers=cluster.scheduler_address, **SETTINGS)
    with pytest.raises(InputError, match="timeout: expected a positive number"):
        cones.minimize(loss, START, workers=cluster.scheduler_address, timeout=-1.0, **SETTINGS)
    wait_until(lambda: len(cluster.scheduler.clients) == before)


def test_clusters_that_are_not_there_are_named(dask_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cones.evaluate.dask_engine.CONNECT_SECONDS", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(StateError, match=f"workers: no Dask scheduler at tcp://127.0.0.1:{port}"):
        evaluator_from(Objective(loss), f"tcp://127.0.0.1:{port}")


def test_a_thread_that_hangs_is_not_given_work_in_later_iterations() -> None:
    """Its place in the executor is taken: a task that went there would seem to hang, too."""
    begun, release = threading.Event(), threading.Event()

    def hangs_once(x: np.ndarray) -> float:
        if not begun.is_set():
            begun.set()
            release.wait(60.0)
        time.sleep(0.2)
        return loss(x)

    with ThreadPoolExecutor(3) as executor:
        try:
            result = cones.minimize(
                hangs_once, START, workers=executor, timeout=1.0, retries=0, **{**SETTINGS, "popsize": 6, "maxiter": 3}
            )
        finally:
            release.set()
    assert result.history["failures"].tolist() == [0, 0, 0]
    (failure,) = result.failures
    assert failure.startswith("the start, candidate 0: ")


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, sys, time
            import cones

            def slow(x):
                with open(os.path.join(sys.argv[1], str(os.getpid()) + ".pid"), "w"):
                    pass
                time.sleep(0.05)
                return float(x @ x)

            if __name__ == "__main__":
                cones.minimize(slow, [1.0] * 3, workers=2, maxiter=10**6, xtol=None, ftol=None, stagnation=None)
            """
        )
    )
    process = subprocess.Popen([sys.executable, str(script), str(tmp_path)])
    wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    process.kill()
    process.wait()
    workers = [int(path.stem) for path in tmp_path.glob("*.pid")]
    wait_until(lambda: not any(map(is_alive, workers)))
