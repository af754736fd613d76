"""CPU time per environment step: the physics alone, the compiled engine, gymnasium."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import table, taking_turns, verdict
from cones.rl.environments import import_gymnasium, made
from cones.rl.mujoco_episode import Simulator
from cones.rl.physics import PHYSICS
from cones.rl.policy import Network
from cones.rl.rollouts import Placement, Rollouts, episode_of, network_of
from cones.rl.tasks import PAPER
from cones.types import Matrix

TITLE = "MuJoCo episodes, CPU microseconds per environment step (two threads where an engine has threads)"
THREADS, STEPS, EPISODES, ROUNDS = 2, 2000, 8, 7  # steps of all episodes together, at least so many episodes
OF_PHYSICS, OVER_GYMNASIUM = 0.9, 2.5


def run() -> str:
    import_gymnasium(mujoco=True)
    import mujoco

    rows = [_row(task) for task in PHYSICS]
    head = ["task", "physics", "this engine", "gymnasium, actions given", "gymnasium, NumPy policy", "SyncVectorEnv"]
    head += ["of the physics' throughput", "over gymnasium with a policy", "best possible", "target"]
    return table(TITLE, head, rows) + (
        f"\nMuJoCo {mujoco.__version__}. {STEPS} steps per round, in {EPISODES} episodes of {STEPS // EPISODES} steps, "
        "or in more where the task's are shorter, with random policies, the paper's on its tasks; terminations are "
        f"off, so that all run the same steps. Times are the least of {ROUNDS} rounds, ratios the medians of the "
        "rounds. The physics alone repeats the engine's actions by bare mj_step on the same threads, and by "
        "mj_rnePostConstraint where a task needs contact forces. Targets: at least "
        f"{OF_PHYSICS} of the physics' throughput on all tasks, "
        f"and on HalfCheetah and Hopper {OVER_GYMNASIUM}x the plain gymnasium loop, or the best that the physics "
        "leaves: that loop with a policy over the physics alone.\n"
    )


def _row(task: str) -> list[str]:
    paper = PAPER.get(task)
    network, space = network_of(task, (paper.hidden if paper else 16,), bias=True)
    rollouts, simulator = Rollouts(episode_of(task, network, space), Placement(THREADS)), Simulator.of(task)
    steps = min(simulator.physics.horizon, STEPS // EPISODES)
    simulator.physics = replace(simulator.physics, horizon=steps)
    count = STEPS // steps
    simulator.task[7][:] = -np.inf, np.inf  # nothing is unhealthy
    simulator.task[1][8] = np.inf
    width = network.sizes[0]
    deviations = paper.sigma if paper else network.deviations()
    parameters = deviations * np.random.default_rng(0).standard_normal((count, network.dim))
    shift, scale = np.zeros(width), np.ones(width)
    seeds = list(range(count))

    def engine() -> None:
        lengths = rollouts.episodes(parameters, shift, scale, seeds).lengths
        assert (lengths == steps).all()

    with made(task, max_episode_steps=steps + 1) as environment, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actions = list(map(partial(_actions, environment, network, steps), parameters, seeds))
        calls: list[Callable[[], object]] = [
            _physics(simulator, actions),
            engine,
            lambda: list(map(partial(_step, environment), seeds, actions)),
            lambda: list(map(partial(_actions, environment, network, steps), parameters, seeds)),
            _vector(task, network, parameters, steps),
        ]
        rounds = np.array(taking_turns(calls, ROUNDS, time.process_time))
    rollouts.close()
    physics, ours, given, plain, vector = 1e6 * rounds.min(axis=1) / (count * steps)
    share, over, possible = (np.median(rounds[i] / rounds[j]) for i, j in ((0, 1), (3, 1), (3, 0)))
    wanted = task in ("HalfCheetah-v4", "Hopper-v4")
    met = share >= OF_PHYSICS and (not wanted or over >= min(OVER_GYMNASIUM, OF_PHYSICS * possible))
    numbers = [f"{value:.1f}" for value in (physics, ours, given, plain, vector)]
    return [task, *numbers, f"{share:.2f}", f"{over:.2f}", f"{possible:.2f}", verdict(met)]


def _physics(simulator: Simulator, actions: Sequence[Matrix]) -> Callable[[], object]:
    """Bare mj_step with the actions of the episodes, on as many threads."""
    import numba

    from cones.rl.dynamics import begin
    from cones.rl.library import mj_forces, mj_step

    frames, forces = simulator.physics.frames, simulator.physics.has_forces

    def bare(model: Any, data: Any, sources: Any, ctrl: Any, start: Any, actions: Any) -> None:
        begin(model, data, sources, start)
        for action in actions:
            for i in range(ctrl.size):
                ctrl[i] = action[i]
            for _ in range(frames):
                mj_step(model, data)
            if forces:
                mj_forces(model, data)

    compiled: Any = numba.njit(nogil=True)(bare)
    pool = ThreadPoolExecutor(THREADS)

    def one(place: int) -> None:
        compiled(*simulator.own(), simulator.start(place), actions[place])

    return lambda: list(pool.map(one, range(len(actions))))


def _actions(environment: Any, network: Network, steps: int, parameters: Any, seed: int) -> Matrix:
    """The plain loop: an observation, a policy in NumPy, a step."""
    actions = []
    box = environment.action_space
    middle, half = 0.5 * (box.low + box.high), 0.5 * (box.high - box.low)  # as the engine scales outputs
    observation, _ = environment.reset(seed=seed)
    for _ in range(steps):
        action = middle + half * network.outputs(parameters, observation)
        actions.append(action)
        observation, *_ = environment.step(action)
    return np.array(actions)


def _step(environment: Any, seed: int, actions: Matrix) -> None:
    environment.reset(seed=seed)
    for action in actions:
        environment.step(action)


def _vector(task: str, network: Network, parameters: Matrix, steps: int) -> Callable[[], object]:
    """Gymnasium's SyncVectorEnv with one environment per policy, the policies evaluated one by one."""
    gymnasium = import_gymnasium()
    environments = gymnasium.make_vec(task, len(parameters), vectorization_mode="sync")

    def call() -> None:
        observations, _ = environments.reset(seed=0)
        for _ in range(steps):
            actions = [network.outputs(row, seen) for row, seen in zip(parameters, observations, strict=True)]
            observations, *_ = environments.step(np.array(actions))

    return call
