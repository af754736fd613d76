"""What several test files share."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import numpy as np

from cones import Bernoulli, Categorical, DiagonalGaussian, FullGaussian, Gradient, Poisson, Product, Step
from cones.beliefs import (
    Belief,
    DiagonalMatrix,
    FrameMatrix,
    Gaussian,
    LowRankGaussian,
    ProductMatrix,
    SpectralMatrix,
    encode,
)
from cones.estimators import Sample
from cones.sampling import NoiseBlock, NoiseStream, Plan, Population


def random_belief(kind: str, dim: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal(dim)
    if kind == "diagonal":
        return DiagonalGaussian(mean, rng.uniform(0.2, 3.0, dim))
    if kind == "low_rank":
        axes = min(2, dim - 1)
        basis = np.linalg.qr(rng.standard_normal((dim, axes)))[0]
        return LowRankGaussian(mean, rng.uniform(0.4, 1.7, dim), basis, [0.2, 5.0][:axes])
    if kind == "bernoulli":
        return Bernoulli(rng.uniform(0.1, 0.9, dim))
    if kind == "poisson":
        return Poisson(rng.uniform(0.3, 5.0, dim))
    if kind == "categorical":  # a variable with the first three choices, if there are at least five, and another one
        parts = np.split(rng.uniform(0.2, 1.0, dim), [3] if dim >= 5 else [])
        return Categorical(*(part / part.sum() for part in parts))
    if kind == "product":
        return Product(random_belief("diagonal", 1, seed), random_belief("bernoulli", dim - 1, seed))
    if kind != "full":
        raise KeyError(f"no random belief of kind {kind!r}: say here how to make one")
    square = rng.standard_normal((dim, dim))
    return FullGaussian(mean, square @ square.T / dim + 0.3 * np.eye(dim))


def random_gradient(kind: str, dim: int, seed: int) -> Gradient:
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal(dim)
    if kind == "diagonal":
        return Gradient(mean, rng.standard_normal(dim))
    if kind not in ("full", "low_rank"):
        raise KeyError(f"no random gradient for kind {kind!r}: say here how to make one")
    square = rng.standard_normal((dim, dim))
    return Gradient(mean, square + square.T)


def random_log_ratio(kind: str, dim: int, seed: int) -> FrameMatrix:
    """A change of the covariance in the frame; for a full one of rank 2, and a multiple of I."""
    rng = np.random.default_rng(seed)
    if kind == "diagonal":
        return DiagonalMatrix(rng.standard_normal(dim))
    if kind not in ("full", "low_rank"):
        raise KeyError(f"no random change of kind {kind!r}: say here how to make one")
    basis = np.linalg.qr(rng.standard_normal((dim, 2)))[0]
    return SpectralMatrix(rng.standard_normal(2), basis, 0.3)


def covariance_of(belief: Gaussian) -> np.ndarray:
    covariance = belief.covariance if isinstance(belief, LowRankGaussian) else encode(belief, "covariance")
    return np.diag(covariance) if covariance.ndim == 1 else covariance


def random_step(kind: str, dim: int, seed: int) -> Step:
    """A change of a belief, of the mean and of the covariance."""
    shift = np.random.default_rng(seed + 1).standard_normal(dim)
    if kind == "product":
        return Step(shift=shift, log_ratio=ProductMatrix((random_log_ratio("diagonal", 1, seed), None)))
    if kind in ("bernoulli", "categorical", "poisson"):
        return Step(shift=shift)
    return Step(shift=shift, log_ratio=random_log_ratio(kind, dim, seed))


def scaled(step: Step, factor: float) -> Step:
    log_ratio = None if step.log_ratio is None else step.log_ratio.map(lambda values: factor * values)
    return step._replace(shift=factor * step.shift, log_ratio=log_ratio)


def sample_of(belief: Belief, plan: Plan, utilities: np.ndarray, seed: int = 0, iteration: int = 0) -> Sample:
    """A population with utilities that stand for its losses."""
    population = Population(belief, plan, NoiseStream(seed), iteration)
    return Sample(population, NoiseBlock(population), utilities, utilities)


def signed_noise(population: Population) -> np.ndarray:
    """The noise behind each candidate, shape (popsize, n)."""
    rows = population.noise_rows()
    if not population.plan.mirrored:
        return rows
    return np.stack([rows, -rows], axis=1).reshape(len(population), -1)


def process_that_dies_for_es(run, folder, messages, stop, pause) -> None:
    """A run's process that is killed, if it is one of ES. Here, where a fresh process can import it."""
    from cones.experiments.runner import _process

    if run.method.label == "ES":
        os.kill(os.getpid(), signal.SIGKILL)
    _process(run, folder, messages, stop, pause)


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second if it ends between opening and reading
        return False


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
    found = [pid]
    for parent in found:
        found += [child for child, of in parents.items() if of == parent]
    return found[1:]


def listening(pids: list[int]) -> list[IPv4Address | IPv6Address]:
    """The addresses at which processes listen for TCP connections."""
    sockets = set()
    for pid in pids:
        with suppress(OSError):  # it may end at any moment
            for file in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    sockets.add(os.readlink(f"/proc/{pid}/fd/{file}"))
    found: list[IPv4Address | IPv6Address] = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                raw = bytes.fromhex(fields[1].split(":")[0])
                words = b"".join(raw[k : k + 4][::-1] for k in range(0, len(raw), 4))
                address = ip_address(words)
                found.append(getattr(address, "ipv4_mapped", None) or address)
    return found


def worker_processes() -> list[int]:
    """The processes that this one has started, without that of multiprocessing itself."""
    found = []
    for pid in descendants(os.getpid()):
        with suppress(OSError):
            if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes() and is_alive(pid):
                found.append(pid)
    return found


@contextmanager
def killing(victims: Callable[[], list[int]], delays: Iterable[float]) -> Iterator[list[int]]:
    """Kill one of the victims after each delay; the list has those that were killed."""
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        for delay in delays:
            over.wait(delay)
            while not over.is_set() and not (found := victims()):
                over.wait(0.01)
            if over.is_set():
                return
            with suppress(ProcessLookupError):
                os.kill(found[-1], signal.SIGKILL)
                killed.append(found[-1])

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()
