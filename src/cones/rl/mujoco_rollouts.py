"""The engine for the four MuJoCo tasks: one simulation per thread, no Python within an episode."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cones.checks import check_integer
from cones.errors import InputError
from cones.kernels.threads import thread_count
from cones.rl.environments import import_gymnasium, made
from cones.rl.policy import Network
from cones.rl.rollouts import Episodes, Rollouts, collected
from cones.rl.spaces import describe_spaces
from cones.rl.tasks import PHYSICS
from cones.types import Matrix, Vector

__all__ = ["MujocoRollouts"]


class MujocoRollouts(Rollouts):
    """Episodes of HalfCheetah-v4, Walker2d-v4, Hopper-v4 or Swimmer-v4, bit for bit as gymnasium runs them.

    Args:
        task: one of the four ids.
        threads: simulations at a time, one per core by default.
    """

    def __init__(self, task: str, threads: int | None = None) -> None:
        import_gymnasium(mujoco=True)
        import mujoco
        from gymnasium.envs import mujoco as environments

        from cones.rl import kernel

        self.task = task
        self._kernel = kernel
        self._mujoco = mujoco
        self._physics = physics = PHYSICS[task]
        with made(task) as environment:
            self.space = describe_spaces(environment)
        self._bounds = [np.array(self.space["action"][side]) for side in ("low", "high")]
        self._model = mujoco.MjModel.from_xml_path(
            str(Path(str(environments.__file__)).parent / "assets" / physics.model)
        )
        # A diverged simulation stays visible; by default MuJoCo starts it anew and says nothing to the caller.
        self._model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self._constants = np.array(
            [
                *(self._model.opt.timestep * physics.frames, physics.cost, physics.bonus),
                *(*physics.height, *physics.angle, physics.state_limit, physics.velocity_limit),
            ]
        )
        data = mujoco.MjData(self._model)
        self._rest = np.concatenate([data.qpos, data.qvel])
        self._threads = thread_count() if threads is None else check_integer("threads", threads, 1)
        self._pool: ThreadPoolExecutor | None = None
        self._own = threading.local()

    def episodes(
        self, network: Network, parameters: Matrix, shift: Vector, scale: Vector, seeds: Sequence[int]
    ) -> Episodes:
        if len(parameters) != len(seeds):
            raise InputError(f"seeds: expected {len(parameters)}, one per row of parameters, got {len(seeds)}")
        sizes = np.array(network.sizes)

        def run(place: int) -> tuple[float, int, Matrix, str]:
            moments, record = np.empty((2, network.sizes[0])), np.empty(3)
            layers = np.empty((sizes.size, sizes.max()))
            self._kernel.episode(
                *self._simulation(), self.start(seeds[place]), self._physics.frames, self._physics.skipped,
                self._constants, *self._bounds, self._physics.horizon, sizes, network.bias, parameters[place], shift,
                scale, layers, moments, record,
            )  # fmt: skip
            return float(record[0]), int(record[1]), moments, self._problem(int(record[2]), int(record[1]))

        with self._kernel.quiet_warnings():
            if self._threads == 1:
                return collected([run(place) for place in range(len(seeds))])
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="cones-rollout")
            return collected(list(self._pool.map(run, range(len(seeds)))))

    def replay(self, seed: int, actions: Matrix) -> tuple[Matrix, Vector, NDArray[np.bool_]]:
        """Observations (one more than actions), rewards and terminations under given actions."""
        observations = np.empty((len(actions) + 1, self.space["observation"]["shape"][0]))
        rewards, terminals = np.empty(len(actions)), np.empty(len(actions), dtype=np.bool_)
        with self._kernel.quiet_warnings():
            done = self._kernel.replay(
                *self._simulation(), self.start(seed), self._physics.frames, self._physics.skipped, self._constants,
                np.ascontiguousarray(actions, dtype=np.float64), observations, rewards, terminals,
            )  # fmt: skip
        if done < len(actions):
            raise InputError(f"actions: {self._problem(self._kernel.DIVERGED, done + 1)}")
        return observations, rewards, terminals

    def start(self, seed: int) -> Vector:
        """Positions and velocities after gymnasium's `reset(seed=seed)`."""
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        noise, physics = self._physics.reset_noise, self._physics
        start = self._rest.copy()
        positions, velocities = start[: self._model.nq], start[self._model.nq :]
        positions += generator.uniform(-noise, noise, positions.size)
        if physics.normal_velocities:
            velocities += noise * generator.standard_normal(velocities.size)
        else:
            velocities += generator.uniform(-noise, noise, velocities.size)
        return start

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _simulation(self) -> tuple[Any, ...]:
        """Addresses and arrays of this thread's own simulation."""
        own = self._own
        if not hasattr(own, "data"):
            own.data = self._mujoco.MjData(self._model)
        data = own.data
        return self._model._address, data._address, data.qpos, data.qvel, data.ctrl

    def _problem(self, ended: int, length: int) -> str:
        if ended == self._kernel.ENDED:
            return ""
        if ended == self._kernel.DIVERGED:
            return f"the simulation diverged in step {length}"
        return f"the policy's action in step {length} was not a finite number"
