"""Ctrl-C while processes are started: it is not lost, and nothing is printed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from cones.evaluate.interrupts import interrupts_deferred

SCRIPT = """
import os, signal, cones

def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    sum(range(10))  # the handler runs here

os.register_at_fork({when}=interrupted)
result = cones.minimize(lambda x: float((x**2).sum()), [1.0, 2.0], workers=2, maxiter=3, rng=0)
print(result.stop, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(
    ("when", "stop"), [("before", "interrupted"), ("after_in_parent", "interrupted"), ("after_in_child", "maxiter")]
)
def test_an_interrupt_during_a_fork_is_neither_lost_nor_printed(when: str, stop: str) -> None:
    """Python prints and drops what is raised in a function that runs around a fork."""
    script = SCRIPT.format(when=when)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (f"{stop}\n", "")


IMPATIENT = """
import os, signal, cones
from cones.evaluate.processes import WorkerProcess

def fun(x):
    os.kill(os.getppid(), signal.SIGINT)
    return 0.0

kill, killed = WorkerProcess.kill, []

def slow_kill(self):
    os.kill(os.getpid(), signal.SIGINT)  # again, while the workers are ended
    sum(range(10))
    kill(self)
    killed.append(self.pid)

WorkerProcess.kill = slow_kill
try:
    print(cones.minimize(fun, [1.0, 2.0], workers=2, maxiter=3, rng=0).stop)
except KeyboardInterrupt:
    print("interrupted", len(killed))
"""


def test_a_second_interrupt_leaves_no_worker_alive() -> None:
    done = subprocess.run([sys.executable, "-c", IMPATIENT], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout in ("interrupted\n", "interrupted 2\n")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_handlers_are_called_after_the_block(name: str) -> None:
    number, heard = getattr(signal, name), []
    before = signal.signal(number, lambda *given: heard.append(given[0]))
    try:
        with interrupts_deferred():
            os.kill(os.getpid(), number)
            assert heard == []
        assert heard == [number]
        os.kill(os.getpid(), number)
        assert heard == [number, number]
    finally:
        signal.signal(number, before)


def test_an_interrupt_is_raised_after_the_block_and_what_was_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    done = False
    try:
        with pytest.raises(KeyboardInterrupt), interrupts_deferred():  # noqa: PT012 - raised at its end
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGHUP)
            done = True
        assert done
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_change_nothing() -> None:
    seen = []

    def look() -> None:
        with interrupts_deferred():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
