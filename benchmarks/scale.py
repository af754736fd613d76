"""Many dimensions: time and memory of an iteration, bytes sent to workers, checkpoints, a peer."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import cones
from benchmarks.measure import side_by_side, table, verdict
from cones.evaluate import Objective, PoolEngine, SerialEvaluator
from cones.sampling import NoiseStream

POPSIZE = 100
SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
EXPONENT, OVER_DRAWING, MEMORY_GB, CHECKPOINT_SHARE, OVER_EVOSAX = 1.05, 1.3, 1.5, 0.05, 1.0


def run() -> str:
    return "\n".join([_time(), _memory(), _wire(), _checkpoint(), _peer()])


def _iteration(dim: int, **settings: object) -> Callable[[], None]:
    """One ask and one tell as in `minimize`, with a trivial loss."""
    es = cones.CoNES(np.zeros(dim), 1.0, popsize=POPSIZE, radius="paper", rng=0, **settings)  # type: ignore[arg-type]
    evaluator = SerialEvaluator(Objective(lambda X: X[:, 0], vectorized=True))

    def call() -> None:
        X = es.ask()
        es.tell(X, evaluator.losses(X))

    return call


def _drawing_twice(dim: int) -> Callable[[], None]:
    """Draw the noise of an iteration twice, with the same generator and threads."""
    noise, count = NoiseStream(0), iter(range(10**9))

    def call() -> None:
        for _ in range(2):
            noise.for_spans(next(count), dim, 0, POPSIZE // 2)

    return call


def _time() -> str:
    rows, seconds = [], []
    for dim in SIZES:
        chunked = dim >= 10**6
        calls = [
            _iteration(dim, chunked=chunked),
            _drawing_twice(dim),
            _iteration(dim, chunked=chunked, dtype="float32"),
        ]
        if dim < 10**7:
            calls.append(_iteration(dim, chunked=chunked, noise_table=2**23))
        taken = side_by_side(calls, max(4, min(200, 2 * 10**6 // dim)))
        seconds.append(taken[0])
        over = taken[0] / taken[1]
        rows.append(
            [
                f"{dim:.0e}",
                "in chunks" if chunked else "in memory",
                f"{1e3 * taken[0]:.4g}",
                f"{over:.2f}",
                verdict(over <= OVER_DRAWING) if dim == 10**7 else "-",
                f"{1e3 * taken[2]:.4g}",
                f"{1e3 * taken[3]:.4g}" if len(taken) > 3 else "-",
            ]
        )
    exponent = float(np.polyfit(np.log(SIZES), np.log(seconds), 1)[0])
    head = ["n", "candidates", "ms", "over drawing the noise twice", "target", "float32, ms", "table of noise, ms"]
    return table("ask + tell of CoNES against n, 100 candidates", head, rows) + (
        f"\nTime grows as n^{exponent:.3f}: {verdict(exponent <= EXPONENT)} (at most n^{EXPONENT}). At n = 10^7 at "
        f"most {OVER_DRAWING}x the time of drawing the noise twice with the same generator and threads. Candidates in "
        "memory need their noise once.\n"
    )


MEMORY = """
import json, re, time
import numpy as np, cones
resident = lambda name: 1024 * int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
interpreter = resident("VmRSS")
begin = time.perf_counter()
sphere = lambda X: np.einsum("ij,ij->i", X, X)
result = cones.minimize(sphere, np.ones(10**7), popsize=100, maxiter=2, vectorized=True, rng=0)
print(json.dumps([1e-9 * interpreter, 1e-9 * resident("VmHWM"), time.perf_counter() - begin, result.nfev]))
"""


def _memory() -> str:
    before, peak, seconds, evaluations = json.loads(subprocess.check_output([sys.executable, "-c", MEMORY], text=True))
    row = [
        f"{before:.2f}",
        f"{peak:.2f}",
        f"{(peak - before) / 0.08:.1f}",
        f"{seconds:.0f}",
        verdict(peak <= MEMORY_GB),
    ]
    head = ["interpreter, GB", "peak, GB", "vectors of float64", "seconds", "target"]
    return table("Resident memory, n = 10^7, 100 candidates, vectorized Sphere, two iterations", head, [row]) + (
        f"\nAt most {MEMORY_GB} GB. {evaluations} evaluations by `cones.minimize` with its defaults.\n"
    )


def _wire() -> str:
    rows = []
    for dim, popsize in ((10**4, 100), (10**6, 100), (10**6, 1000)):
        es = cones.CoNES(np.zeros(dim), popsize=popsize, rng=0, chunked=True)
        population, engine = es.ask(), PoolEngine(2)
        token = engine.share(population)
        of_task, of_belief = len(pickle.dumps(token)), len(pickle.dumps(population))
        engine.unshare(token)
        candidates = 8 * dim * popsize
        rows.append([f"{dim:.0e}", str(popsize), f"{candidates:.3g}", f"{of_belief:.3g}", str(of_task)])
    head = [
        "n",
        "candidates",
        "bytes of all candidates",
        "bytes of what they are made from",
        "bytes of a task to a process",
    ]
    return table("What travels per iteration", head, rows) + (
        "\nProcesses find the belief in shared memory. Ray and Dask get what candidates are made from once per "
        "iteration and node; an executor gets it with every task, of which there are four per worker.\n"
    )


def _checkpoint() -> str:
    es = cones.CoNES(np.zeros(10**7), popsize=4, radius="paper", rng=0, chunked=True)
    X = es.ask()
    es.tell(X, np.arange(4.0))
    with tempfile.TemporaryDirectory(dir=os.environ.get("CONES_BENCHMARK_DIR")) as folder:
        path = Path(folder, "run.ckpt")
        (seconds,) = side_by_side([lambda: es.save(path)], 3)
        size = path.stat().st_size
    share = seconds / 60.0
    row = [f"{size / 1e9:.2f}", f"{seconds:.2f}", f"{100 * share:.1f}%", verdict(share <= CHECKPOINT_SHARE)]
    head = ["GB", "seconds, with fsync", "of a minute", "target"]
    return table("Checkpoint, n = 10^7, Adam's moments included", head, [row]) + "\nAt most 5% at one per minute.\n"


def _peer() -> str:
    try:
        import jax
        import jax.numpy as jnp
        from evosax.algorithms import SNES
    except ImportError:
        return "evosax is not installed: pip install '.[peers]' for the comparison with it.\n"
    dim = 5000
    peer = SNES(population_size=POPSIZE, solution=jnp.zeros(dim))
    parameters = peer.default_params
    ask = jax.jit(lambda key, state: peer.ask(key, state, parameters))
    tell = jax.jit(lambda key, X, losses, state: peer.tell(key, X, losses, state, parameters))
    key = jax.random.key(0)
    state = peer.init(key, jnp.zeros(dim), parameters)
    losses = jnp.asarray(np.random.default_rng(0).standard_normal(POPSIZE), jnp.float32)

    def evosax() -> None:
        nonlocal key, state
        key, first, second = jax.random.split(key, 3)
        X, state = ask(first, state)
        state, _ = tell(second, X, losses, state)
        jax.block_until_ready(state)

    for _ in range(5):
        evosax()
    ours, single, theirs = side_by_side([_iteration(dim), _iteration(dim, dtype="float32"), evosax], 300)
    rows = [
        ["evosax SNES, float32, jitted", f"{1e3 * theirs:.2f}", "1.00", "-"],
        ["CoNES, float64", f"{1e3 * ours:.2f}", f"{ours / theirs:.2f}", verdict(ours <= OVER_EVOSAX * theirs)],
        ["CoNES, float32", f"{1e3 * single:.2f}", f"{single / theirs:.2f}", "-"],
    ]
    return table("ask + tell, n = 5000, 100 candidates, beside evosax", ["what", "ms", "over evosax", "target"], rows)


if __name__ == "__main__":
    begin = time.perf_counter()
    print(run(), f"\n{time.perf_counter() - begin:.0f} seconds")
