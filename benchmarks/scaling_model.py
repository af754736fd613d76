"""A model of the time of an iteration: its constants, its error on this machine, and a prediction for a cluster.

One iteration with N candidates of n parameters on W workers, evaluation taking `e` seconds per candidate:

    send     the belief to the workers' nodes: 2 n numbers per node, through the sender's network
    work     each worker makes its candidates from seeds (draw: n d per row of noise, place: n p per candidate) and
             evaluates them; a free worker gets the next task of N / (4 W) candidates, which costs `t`
    gradient the master draws the N / 2 rows again and accumulates, n (d + g) per row, on its cores
    update   the dual, Adam and the new belief, n u on its cores

The simulation assigns one task after the other, as the dispatcher does.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import cones
from benchmarks.measure import side_by_side, table
from cones.estimators import Sample
from cones.estimators.score_function import score_function
from cones.evaluate import DispatchEvaluator, Objective, PoolEngine
from cones.evolution import EvolutionStrategy
from cones.kernels.threads import thread_count
from cones.sampling import NoiseBlock, NoiseStream, Plan, Population
from cones.steps import IterationInfo
from cones.types import Vector

POPSIZE = 100


@dataclass(frozen=True)
class Constants:
    """Seconds of one core: per number for the first four, per task for the last."""

    draw: float
    place: float
    gradient: float
    update: float
    task: float


def measured(dim: int = 10**6) -> Constants:
    """The constants of this machine."""
    cores = thread_count()
    noise, rows = NoiseStream(0), POPSIZE // 2
    es = cones.CoNES(np.zeros(dim), 1.0, popsize=POPSIZE, radius="paper", rng=0, chunked=True)
    assert isinstance(es, EvolutionStrategy)
    belief, optimizer = es.state.belief, es.algorithm.optimizer
    buffer = np.empty((2 * 10, dim))
    population, tiny = (Population(belief, Plan(size, mirrored=True), noise, 1) for size in (POPSIZE, 2))

    def sample(of: Population) -> Sample:
        losses = np.linspace(-0.5, 0.5, len(of))
        return Sample(of, NoiseBlock(of), losses, losses)

    def update() -> None:
        step, _ = es.algorithm.step.propose(None, belief, score_function(sample(tiny)), IterationInfo())
        step, _ = optimizer.update(optimizer.start(step), step)
        belief.move(step)

    draw, place, gradient, small = side_by_side(
        [
            lambda: noise.for_spans(1, dim, 0, rows),
            lambda: population.block(0, 20, out=buffer),
            lambda: score_function(sample(population)),
            update,
        ],
        4,
    )
    per_number = cores / dim
    d = draw * per_number / rows
    g = max(0.0, gradient * per_number / rows - d)
    return Constants(
        draw=d,
        place=max(0.0, place * per_number / 10 - d) / 2,
        gradient=g,
        update=max(0.0, small * per_number - (d + g)),
        task=_task_seconds(),
    )


def _task_seconds() -> float:
    """Overhead of a task, on processes of this machine."""
    es = cones.CoNES(np.zeros(10), popsize=POPSIZE, radius="paper", rng=0)
    X = es.ask()
    with DispatchEvaluator(Objective(_first), PoolEngine(2)) as evaluator:
        (seconds,) = side_by_side([lambda: evaluator.losses(X)], 20)
    return seconds / 8


def _first(x: Vector) -> float:
    return float(x[0])


@dataclass(frozen=True)
class Cluster:
    """A master and workers of one core each, several to a node."""

    workers: int
    per_node: int
    master_cores: int
    bytes_per_second: float = math.inf  # of the master's network


def simulated(c: Constants, cluster: Cluster, dim: float, popsize: int, evaluation: float, number: int = 8) -> float:
    """Seconds of one iteration."""
    nodes = math.ceil(cluster.workers / cluster.per_node)
    # Nodes forward the belief: log2(nodes) rounds.
    sending = 0.0 if math.isinf(cluster.bytes_per_second) else math.ceil(math.log2(nodes + 1))
    clock = sending * 2.0 * dim * number / cluster.bytes_per_second if sending else 0.0
    count = min(popsize, 4 * cluster.workers)
    sizes = np.diff([popsize * i // count for i in range(count + 1)])
    free = [clock] * min(cluster.workers, count)
    sent = clock
    for size in sizes:
        sent += c.task  # the master sends one task after the other
        begin = max(heapq.heappop(free), sent)
        heapq.heappush(free, begin + float(size) * (dim * (0.5 * c.draw + c.place) + evaluation))
    rest = dim * (0.5 * popsize * (c.draw + c.gradient) + c.update) / cluster.master_cores
    return max(free) + rest


def _sleeping(x: Vector) -> float:
    time.sleep(0.02)
    return float(x[0])


def _iteration(dim: int, workers: int) -> tuple[Callable[[], None], Callable[[], None]]:
    es = cones.CoNES(np.zeros(dim), 1.0, popsize=POPSIZE, radius="paper", rng=0, chunked=True)
    evaluator = DispatchEvaluator(Objective(_sleeping), PoolEngine(workers))

    def call() -> None:
        X = es.ask()
        es.tell(X, evaluator.losses(X))

    return call, evaluator.close


def run() -> str:
    constants = measured()
    rows = []
    for dim in (10**4, 10**5, 10**6):
        for workers in (1, 2):
            call, close = _iteration(dim, workers)
            (seconds,) = side_by_side([call], 2)
            close()
            here = Cluster(workers, workers, thread_count())
            model = simulated(constants, here, dim, POPSIZE, 0.02)
            rows.append([f"{dim:.0e}", str(workers), f"{seconds:.3g}", f"{model:.3g}", f"{model / seconds:.2f}"])
    text = table(
        "The model against what was measured: 100 candidates, 20 ms per evaluation, processes",
        ["n", "workers", "seconds, measured", "seconds, model", "model over measured"],
        rows,
    )
    c = constants
    text += (
        f"\nConstants of this machine, nanoseconds of a core per number: drawing {1e9 * c.draw:.1f}, making a "
        f"candidate {1e9 * c.place:.1f}, gradient {1e9 * c.gradient:.1f}, update {1e9 * c.update:.0f}; "
        f"{1e6 * c.task:.0f} microseconds per task.\n\n"
    )
    rows = []
    for size, popsize, evaluation in ((1e6, 1000, 1.0), (1e7, 1000, 1.0), (1e9, 1000, 10.0), (1e9, 1000, 600.0)):
        times = []
        for workers in (1, 10, 100, 1000):
            cluster = Cluster(workers, 10, 32, 1.25e9)
            times.append(simulated(constants, cluster, size, popsize, evaluation))
        busy = popsize * evaluation / (1000 * times[-1])
        numbers = [f"{value:.3g}" for value in times]
        rows.append([f"{size:.0e}", str(popsize), f"{evaluation:g}", *numbers, f"{100 * busy:.0f}%"])
    text += table(
        "PREDICTION, not measured: seconds per iteration on a cluster",
        [
            "n",
            "candidates",
            "seconds per evaluation",
            "1 worker",
            "10",
            "100",
            "1000",
            "of 1000 workers' time spent evaluating",
        ],
        rows,
    )
    return text + (
        "\nAssumed: the constants above, workers of one core, ten to a node, a network of 10 Gbit/s, a master with 32 "
        "cores that draws at the speed of 32 of ours, float64. At 10^9 parameters the master's second pass over the "
        "noise is the bottleneck: it is N/2 rows of n numbers, whatever the number of workers.\n"
    )
