"""Worker processes: how they start after a library with threads, how they die, and what they take along."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import is_alive, wait_until

import cones
from cones.evaluate import Objective, PoolEngine, evaluator_from, pool

pytestmark = [pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")]


def script(folder: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script that must end by itself."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, str(path)], cwd=folder, capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, **environment},
    )  # fmt: skip


# Neither guarded nor picklable: it works with fork, and has to work without.
RUN = """
    settings = dict(sigma0=0.5, popsize=8, maxiter=3, rng=0)
    result = cones.minimize(lambda x: fun(x), np.ones(3), workers=2, **settings)
    print((result.mean == cones.minimize(fun, np.ones(3), **settings).mean).all(), result.failures)
"""
RAISE = """
    class OwnError(Exception):
        pass

    def raises(x):
        raise OwnError("mine")

    try:
        cones.minimize(raises, np.ones(3), workers=2, **settings)
    except OwnError as error:
        print(error, error.__notes__[0])
"""


def test_workers_after_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = """
    import torch, numpy as np, cones
    torch.set_num_threads(2)

    def fun(x):
        return float((torch.ones(1000, 1000) @ torch.ones(1000, 100)).sum() * 0.0 + (x**2).sum())

    fun(np.ones(3))
    """
    assert script(tmp_path, text + RUN, OMP_NUM_THREADS="2").stdout.splitlines() == ["True []"]


def test_workers_after_any_library_with_threads(tmp_path: Path) -> None:
    text = """
    import ctypes, numpy as np, cones
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, ctypes.cast(libc.pause, ctypes.c_void_p), None)

    def fun(x):
        return float((x**2).sum())

    print("begin")
    """
    assert script(tmp_path, text + RUN + RAISE).stdout.splitlines() == [
        "begin",
        "True []",
        "mine cones: raised by fun for candidate 0",
    ]


def test_a_function_that_cannot_be_sent_is_forked_all_the_same(tmp_path: Path) -> None:
    text = """
    import ctypes, threading, numpy as np, cones
    libc, thread, lock = ctypes.CDLL(None), ctypes.c_ulong(), threading.Lock()
    libc.pthread_create(ctypes.byref(thread), None, ctypes.cast(libc.pause, ctypes.c_void_p), None)

    def fun(x):
        with lock:
            return float((x**2).sum())
    """
    assert script(tmp_path, text + RUN).stdout.splitlines() == ["True []"]


def test_a_forked_worker_that_is_stuck_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "STUCK_SECONDS", 0.3)
    with (
        evaluator_from(Objective(lambda x: time.sleep(0.8) or 1.0), 2) as evaluator,
        pytest.warns(RuntimeWarning, match="has not answered its first call for 0.3 seconds and does not compute"),
    ):
        evaluator.losses(np.zeros((2, 1)))


def test_a_worker_that_does_not_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "START_SECONDS", 0.3)
    monkeypatch.setattr(pool, "install", lambda objective: time.sleep(60.0))
    with (
        evaluator_from(Objective(float), 2) as evaluator,
        pytest.raises(cones.StateError, match=r"a worker process was not ready after 0\.3 seconds"),
    ):
        evaluator.losses(np.zeros((2, 1)))
    monkeypatch.setattr(pool, "install", lambda objective: os.kill(os.getpid(), signal.SIGKILL))
    with (
        evaluator_from(Objective(float), 2) as evaluator,
        pytest.raises(cones.StateError, match="10 worker processes died at their start"),
    ):
        evaluator.losses(np.zeros((2, 1)))


def test_a_dead_worker_whose_child_lives(tmp_path: Path) -> None:
    def dies_and_leaves_a_child(x: np.ndarray) -> float:
        if x[0] == 2.0 and not (tmp_path / "child").exists():
            child = os.fork()
            if not child:
                time.sleep(30.0)
                os._exit(0)
            (tmp_path / "child").write_text(str(child))
            os.kill(os.getpid(), signal.SIGKILL)
        return float(x[0])

    begin = time.monotonic()
    with evaluator_from(Objective(dies_and_leaves_a_child), 2) as evaluator:
        np.testing.assert_array_equal(evaluator.losses(np.arange(6.0)[:, None]), np.arange(6.0))
    assert time.monotonic() - begin < 15.0  # not the child's 30 seconds
    wait_until(lambda: not is_alive(int((tmp_path / "child").read_text())))


def test_hanging_candidates_are_ended_at_once_and_alone(tmp_path: Path) -> None:
    hanging = (1, 4, 7, 9, 12, 15)

    def fun(x: np.ndarray) -> float:
        with (tmp_path / str(int(x[0]))).open("a") as file:
            file.write(f"{os.getpid()} ")
        if x[0] in hanging:
            time.sleep(3600.0)
        return float(x[0])

    with evaluator_from(Objective(fun), 8, timeout=1.0, retries=1) as evaluator:
        evaluator.losses(np.zeros((8, 1)))  # the processes are there
        (tmp_path / "0").unlink()
        begin = time.monotonic()
        losses = evaluator.losses(np.arange(16.0)[:, None])
        # 1.5 s for each of two tries, and what a busy machine takes to start six processes in between. One time-out
        # after another would be twelve seconds and more.
        assert time.monotonic() - begin < 8.0
        expected = [np.nan if k in hanging else k for k in range(16)]
        np.testing.assert_array_equal(losses, expected)
        assert evaluator.failures == dict.fromkeys(hanging, "no answer in 1 seconds (tried 2 times)")
        begun = {k: (tmp_path / str(k)).read_text().split() for k in range(16)}
        assert [len(begun[k]) for k in range(16)] == [2 if k in hanging else 1 for k in range(16)]
        ended = {pid for k in hanging for pid in begun[k]}
        assert not any(is_alive(int(pid)) for pid in ended)


def test_programs_end_with_the_worker_that_started_them(tmp_path: Path) -> None:
    def fun(x: np.ndarray) -> float:
        if x[0] == 1.0:
            program = subprocess.Popen(["sh", "-c", "sleep 300 & echo $! > child; wait"], cwd=tmp_path)
            (tmp_path / "program").write_text(str(program.pid))
            program.wait()
        return float(x[0])

    with evaluator_from(Objective(fun), 2, timeout=1.0, retries=0) as evaluator:
        np.testing.assert_array_equal(evaluator.losses(np.arange(3.0)[:, None]), [0.0, np.nan, 2.0])
    pids = [int((tmp_path / name).read_text()) for name in ("program", "child")]
    wait_until(lambda: not any(map(is_alive, pids)), 20.0)


def test_programs_end_when_the_parent_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        textwrap.dedent(
            """
            import subprocess, cones

            def fun(x):
                return float(subprocess.run(["sh", "-c", "sleep 300 & echo $! > $$.pid; wait"]).returncode)

            cones.minimize(fun, [1.0] * 3, popsize=4, workers=2)
            """
        )
    )
    process = subprocess.Popen([sys.executable, str(path)], cwd=tmp_path)
    wait_until(lambda: any(file.read_text() for file in tmp_path.glob("*.pid")))
    pids = [int(number) for file in tmp_path.glob("*.pid") for number in (file.stem, file.read_text())]
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(is_alive, pids)), 20.0)


_hoard: list[bytearray] = []


def test_a_worker_without_memory_is_replaced(tmp_path: Path) -> None:
    """What a call has left in memory, all later calls of that process would lack."""

    def leaks(x: np.ndarray) -> float:
        if x[0] == 1.0 and not (tmp_path / "once").exists():
            (tmp_path / "once").touch()
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + 10**8, size + 10**8))
            while True:
                _hoard.append(bytearray(10**6))
        return float(x[0]) + 0.0 * len(bytearray(2 * 10**7))

    with evaluator_from(Objective(leaks), 1, retries=1) as evaluator:
        np.testing.assert_array_equal(evaluator.losses(np.arange(20.0)[:, None]), np.arange(20.0))
        assert evaluator.failures == {}


def test_a_call_that_exits_names_its_candidate() -> None:
    def leaves(x: np.ndarray) -> float:
        if x[0] == 2.0:
            sys.exit("out of licences")
        return float(x[0])

    X = np.arange(4.0)[:, None]
    for workers in (1, 2):
        with evaluator_from(Objective(leaves), workers) as evaluator, pytest.raises(SystemExit) as caught:
            evaluator.losses(X)
        assert "candidate 2" in caught.value.__notes__[0]
    with evaluator_from(Objective(leaves), 2, retries=1) as evaluator:
        np.testing.assert_array_equal(evaluator.losses(X), [0.0, 1.0, np.nan, 3.0])
        assert evaluator.failures == {2: "SystemExit: out of licences (tried 2 times)"}


def test_messages_larger_than_a_socket_takes() -> None:
    X = np.random.default_rng(0).standard_normal((6, 10**6))
    engine = PoolEngine(2)
    with evaluator_from(Objective(lambda x: x.sum()), engine) as evaluator:
        np.testing.assert_array_equal(evaluator.losses(X), [row.sum() for row in X])


def test_processes_that_nobody_ends_do_not_outlive_the_program(tmp_path: Path) -> None:
    text = """
    import os, numpy as np
    from cones.evaluate import Objective, evaluator_from
    evaluator = evaluator_from(Objective(lambda x: float(os.getpid())), 2)
    print(int(evaluator.losses(np.zeros((4, 1)))[0]))
    """
    wait_until(lambda: not is_alive(int(script(tmp_path, text).stdout)))
