"""Workers killed at random moments. Each run must end bit for bit as one without kills.

python -m benchmarks.attack.workers --kills 200
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import numpy as np

import cones
from benchmarks.attack import Row
from cones.evaluate import PoolEngine

# Each with its share of the kills, and the seconds between two that it takes to replace a worker.
KINDS = {"pool, forked": (0.4, 0.05), "pool, fresh": (0.2, 0.8), "Dask": (0.2, 1.5), "Ray": (0.2, 0.5)}
MOST_FAILURES = 5  # of a kind, after which it is left
RUN_SECONDS = 300.0  # a run that takes longer hangs
START = np.zeros(5)
SETTINGS: dict[str, Any] = {"sigma0": 0.5, "popsize": 12, "xtol": None, "ftol": None, "stagnation": None}


def campaign(kills: int, rng: np.random.Generator, kinds: Sequence[str] = tuple(KINDS)) -> list[Row]:
    """Kill about this number of workers in all. A failure is a run that differs, raises or hangs.

    Args:
        kills: number of workers to kill.
        rng: draws the moments, the workers and the seeds of the runs.
        kinds: some of `KINDS`.
    """
    total = sum(KINDS[kind][0] for kind in kinds)
    return [_attacked(kind, max(1, round(kills * KINDS[kind][0] / total)), rng) for kind in kinds]


def _attacked(kind: str, kills: int, rng: np.random.Generator) -> Row:
    pause, made, failures = KINDS[kind][1], 0, 0
    with ExitStack() as stack:
        workers = _workers(kind, stack)
        while made < kills:
            seed, iterations = int(rng.integers(2**31)), int(rng.integers(20, 60))
            killer = _Killer(b"ray::" if kind == "Ray" else b"", pause, kills - made, rng)
            fun = _loss if kind.startswith("pool") else _sent_by_value()
            failures += not _survived(fun, workers, seed, iterations, killer)
            made += killer.made
            if failures > MOST_FAILURES:
                break
    return Row(f"workers killed: {kind}", made, failures)


def _survived(
    fun: Callable[[Any], float], workers: Callable[[], Any], seed: int, iterations: int, killer: _Killer
) -> bool:
    expected = cones.minimize(fun, START, rng=seed, maxiter=iterations, **SETTINGS)
    try:
        with killer, _limit(RUN_SECONDS):
            # Luck may hit one candidate several times.
            result = cones.minimize(fun, START, workers=workers(), retries=10, rng=seed, maxiter=iterations, **SETTINGS)
    except Exception as error:
        print(f"seed {seed}, {iterations} iterations: {error!r}", file=sys.stderr)
        return False
    same = np.array_equal(result.mean, expected.mean) and np.array_equal(result.x, expected.x)
    if not same or result.failures:
        print(f"seed {seed}, {iterations} iterations: differs, {result.failures}", file=sys.stderr)
    return same and not result.failures


def _loss(x: Any) -> float:
    time.sleep(0.003)
    return float(((x - 1.0) ** 2).sum())


def _sent_by_value() -> Callable[[Any], float]:
    """The same for clusters, whose workers may not find this module."""

    def loss(x: Any) -> float:
        time.sleep(0.003)
        return float(((x - 1.0) ** 2).sum())

    return loss


def _workers(kind: str, stack: ExitStack) -> Callable[[], Any]:
    """What to pass as `workers`, for each run; clusters last as long as the stack."""
    if kind == "pool, forked":
        return lambda: 2
    if kind == "pool, fresh":
        return lambda: PoolEngine(2, "spawn")
    if kind == "Ray":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        stack.enter_context(redirect_stdout(sys.stderr))  # Ray tells of each death there
        evaluator = cones.evaluate.evaluator_from(cones.evaluate.Objective(_loss), "ray")  # starts the cluster
        stack.enter_context(evaluator)
        return lambda: "ray"
    import dask
    import distributed

    start: Any = distributed.LocalCluster
    connect: Any = distributed.Client

    # By default a cluster gives up a worker that is down 15 seconds after it was lost before.
    stack.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}))
    cluster = start(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=60)
    client = stack.enter_context(connect(stack.enter_context(cluster)))
    return lambda: client


class _Killer(threading.Thread):
    """Kills descendants of this process whose command begins with a name, at random moments."""

    def __init__(self, name: bytes, pause: float, most: int, rng: np.random.Generator) -> None:
        super().__init__()
        self._name, self._pause, self._most, self._rng = name, pause, most, rng
        self._over = threading.Event()
        self.made = 0

    def run(self) -> None:
        while self.made < self._most and not self._over.wait(self._rng.exponential(self._pause)):
            victims = [pid for pid, command in _descendants() if command.startswith(self._name)]
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(int(self._rng.choice(victims)), signal.SIGKILL)
                    self.made += 1

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def _descendants() -> list[tuple[int, bytes]]:
    """The workers among the processes below this one, with their commands."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            if state != "Z":
                parents[int(folder.name)] = int(parent)
                commands[int(folder.name)] = (folder / "cmdline").read_bytes()
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    not_workers = (b"resource_tracker", b"ray::DashboardAgent", b"ray::RuntimeEnvAgent")
    return [(pid, commands[pid]) for pid in found[1:] if not any(name in commands[pid] for name in not_workers)]


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the main thread after `seconds`."""

    def late(*_: object) -> None:
        raise TimeoutError(f"no end in {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    options = parser.parse_args()
    print("| attack | number | failures |\n| --- | --- | --- |")
    rng, total = np.random.default_rng(options.seed), sum(KINDS[kind][0] for kind in options.kinds)
    for kind in options.kinds:  # one by one, to show each when it is there
        for row in campaign(round(options.kills * KINDS[kind][0] / total), rng, [kind]):
            print(f"| {row.name} | {row.tries} | {row.failures} |", flush=True)


if __name__ == "__main__":
    main()
