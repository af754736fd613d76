"""The engine that starts worker processes itself, replaces those that die, and ends those that hang."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import selectors
import time
import warnings
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.util import Finalize
from typing import Any, NoReturn

from cones.errors import InputError, StateError
from cones.evaluate.engine import CallTimeoutError, Engine, WorkerLostError
from cones.evaluate.evaluator import Objective
from cones.evaluate.interrupts import interrupts_deferred
from cones.evaluate.processes import WorkerProcess, started
from cones.evaluate.shared import SharedValue
from cones.evaluate.task import install
from cones.evaluate.worker import BEGUN, READY, WorkerTraceback

__all__ = ["PoolEngine", "check_can_be_sent"]

START_SECONDS = 300.0  # a fresh process may have to import a lot over a network
STOP_SECONDS = 5.0
STARTS = 10  # processes in a row that may die before they are ready: somebody may kill them
POLL_SECONDS = 0.1  # between looks for dead processes, where the system does not report them
# Seconds after which a forked process that has never answered and does not compute is reported.
STUCK_SECONDS = 60.0


@dataclass(eq=False)
class _Call:
    future: Future[Any]
    message: bytes
    timeout: float


@dataclass(eq=False)
class _Worker:
    process: WorkerProcess
    is_ready: bool = False
    has_answered: bool = False
    call: _Call | None = None
    begun: bool = False
    since: float = math.inf  # when the call was handed over

    def is_late(self, now: float) -> bool:
        return self.call is not None and now >= self.since + self.call.timeout


class PoolEngine(Engine):
    """A pool of processes that lives as long as the engine. `wait` does the work of the parent.

    Each process has one call at a time, so that its death or its hanging is blamed on that call alone.

    Args:
        workers: processes.
        start_method: "fork", "spawn" or "forkserver"; by default that of `multiprocessing`, and a fresh process where
            it is "fork" and a library has threads that would not survive it.
    """

    grace = math.inf  # the engine itself ends a call that hangs

    def __init__(self, workers: int, start_method: str | None = None) -> None:
        self.workers = workers
        method = start_method or multiprocessing.get_start_method()
        self._method = start_method if method == "fork" else method
        self._objective: Objective | None = None
        self._workers: list[_Worker] = []
        self._waiting: deque[_Call] = deque()
        self._failed_starts = 0
        self._has_warned = False
        self._finalize: Any = None

    def install(self, objective: Objective) -> None:
        if self._method not in (None, "fork"):
            check_can_be_sent(objective)
        self._objective = objective

    def share(self, value: Any) -> Any:
        return SharedValue.of(value)

    def unshare(self, token: Any) -> None:
        token.forget()

    def submit(self, call: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append(_Call(future, pickle.dumps((call, arguments)), timeout or math.inf))
        self._start_workers()
        self._hand_out()
        return future

    def wait(self, futures: Collection[Future[Any]], timeout: float, return_when: str) -> None:
        deadline = time.monotonic() + timeout
        while not any(future.done() for future in futures):
            now = time.monotonic()
            if now >= deadline:
                return
            self._start_workers()
            self._hand_out()
            self._look(min([deadline, *(w.since + w.call.timeout for w in self._workers if w.call)]) - now)
            self._end_hanging()
            self._check_starting()
        self._hand_out()  # nobody waits while the caller is away

    def _start_workers(self) -> None:
        wanted = len(self._waiting) + sum(worker.call is not None for worker in self._workers)
        while len(self._workers) < min(self.workers, wanted):
            self._workers.append(_Worker(started(self._method, install, self._objective)))
            if self._finalize is None:
                # Before multiprocessing waits at exit for processes that nobody has ended.
                self._finalize = Finalize(self, _kill_all, (self._workers,), exitpriority=10)

    def _hand_out(self) -> None:
        for worker in self._workers:
            while worker.is_ready and worker.call is None and self._waiting:
                call = self._waiting.popleft()
                if not call.future.cancelled():
                    worker.call, worker.begun, worker.since = call, False, time.monotonic()
                    worker.process.channel.put(call.message)

    def _look(self, seconds: float) -> None:
        """Wait for messages and deaths, and act on them."""
        with selectors.DefaultSelector() as selector:
            for worker in self._workers:
                channel, end = worker.process.channel, worker.process.fileno()
                writing = selectors.EVENT_WRITE if channel.is_sending else 0
                selector.register(channel, selectors.EVENT_READ | writing, worker)
                if end is None:
                    seconds = min(seconds, POLL_SECONDS)
                else:
                    selector.register(end, selectors.EVENT_READ, worker)
            selector.select(max(0.0, seconds))
        for worker in list(self._workers):
            worker.process.channel.flush()
            dead = worker.process.has_ended()  # before its last messages are read
            for message in worker.process.channel.take():
                self._heard(worker, message)
            if worker in self._workers and (dead or worker.process.channel.closed):
                self._lost(worker)

    def _heard(self, worker: _Worker, message: bytes) -> None:
        if message == READY:
            worker.is_ready, self._failed_starts = True, 0
        elif message == BEGUN:
            worker.begun = True
        elif not worker.is_ready:
            self._refuse(pickle.loads(message)[1])
        else:
            self._answered(worker, message)

    def _refuse(self, reason: str) -> NoReturn:
        self.abort()
        raise StateError(
            f"workers: a worker process could not start ({reason}); define fun at the top of a "
            'module that can be imported, and keep the code of a script under `if __name__ == "__main__":`'
        )

    def _answered(self, worker: _Worker, message: bytes) -> None:
        call, worker.call, worker.since, worker.has_answered = worker.call, None, math.inf, True
        assert call is not None
        try:
            good, value, *text = pickle.loads(message)
        except Exception as error:
            good, value, text = False, StateError(f"workers: an answer cannot be read ({error})"), []
        if good:
            _settle(call, value)
            return
        if text:
            value.__cause__ = WorkerTraceback(text[0])
        if isinstance(value, MemoryError):  # what the process still holds, it would hold in the next call
            self._end(worker)
        _settle(call, error=value)

    def _lost(self, worker: _Worker) -> None:
        code = worker.process.exit_code()
        self._end(worker)
        if not worker.is_ready and code > 0:  # it was not killed, and the next one would end in the same way
            self._refuse(f"exit code {code}; standard error says why")
        if not worker.is_ready:
            self._failed_starts += 1
            if self._failed_starts >= STARTS:
                self.abort()
                raise StateError(f"workers: {STARTS} worker processes died at their start (standard error may say why)")
        elif worker.call is not None and not worker.begun:
            self._waiting.appendleft(worker.call)
        elif worker.call is not None:
            _settle(worker.call, error=WorkerLostError())

    def _end_hanging(self) -> None:
        now = time.monotonic()
        for worker in [worker for worker in self._workers if worker.is_late(now)]:
            assert worker.call is not None
            self._end(worker)
            _settle(worker.call, error=CallTimeoutError())

    def _check_starting(self) -> None:
        """No silent wait: say if a process does not start, or was forked and seems to be stuck."""
        now = time.monotonic()
        for worker in self._workers:
            age = now - worker.process.since
            if not worker.is_ready and age > START_SECONDS:
                self.abort()
                raise StateError(f"workers: a worker process was not ready after {START_SECONDS:g} seconds")
            is_new = worker.begun and not worker.has_answered and not self._has_warned
            if is_new and now - worker.since > STUCK_SECONDS and worker.process.is_waiting():
                self._has_warned = True
                warnings.warn(
                    f"workers: a process has not answered its first call for {STUCK_SECONDS:g} seconds and does not "
                    "compute. If fun does not wait on purpose, it uses a library that does not survive a fork: "
                    'call multiprocessing.set_start_method("spawn") first. timeout= ends calls that hang',
                    RuntimeWarning,
                    stacklevel=2,
                )

    def _end(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.process.kill()

    def close(self) -> None:
        for worker in self._workers:
            worker.process.ask_to_stop()
        deadline = time.monotonic() + STOP_SECONDS
        for worker in self._workers:
            worker.process.wait(deadline - time.monotonic())
        self.abort()

    def abort(self) -> None:
        _kill_all(self._workers)
        self._waiting.clear()


def _kill_all(workers: list[_Worker]) -> None:
    with interrupts_deferred():  # a second Ctrl-C must not leave one of them alive
        while workers:
            workers.pop().process.kill()


def _settle(call: _Call, value: Any = None, error: BaseException | None = None) -> None:
    if call.future.cancelled():
        return
    if error is None:
        call.future.set_result(value)
    else:
        call.future.set_exception(error)


def check_can_be_sent(objective: Objective, dumps: Callable[[Any], bytes] = pickle.dumps) -> None:
    """Raise an error unless the objective can be pickled."""
    try:
        dumps(objective)
    except InputError:  # of an objective that knows why
        raise
    except Exception as error:
        raise InputError(
            f"fun: expected a function that can be sent to worker processes, got one that cannot be pickled "
            f"({error}); define it at the top of a module, or pass a ThreadPoolExecutor as workers"
        ) from None
