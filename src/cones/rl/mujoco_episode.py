"""Episodes of the four MuJoCo tasks: one simulation per thread, no Python within an episode."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cones.errors import InputError
from cones.rl.environments import import_gymnasium
from cones.rl.episode import Episode
from cones.rl.tasks import PHYSICS
from cones.types import Matrix, Vector

__all__ = ["MujocoEpisode", "Simulator"]

DIVERGED, NOT_A_NUMBER = 1, 2  # as in the kernel


class MujocoEpisode(Episode):
    """An episode of HalfCheetah-v4, Walker2d-v4, Hopper-v4 or Swimmer-v4, bit for bit as gymnasium runs it."""

    OUTCOMES: ClassVar[Mapping[int, str]] = {
        DIVERGED: "the simulation diverged in step {step}",
        NOT_A_NUMBER: "the policy's action in step {step} was not a finite number",
    }
    RELEASES_LOCK = True

    def run(self, parameters: Vector, shift: Vector, scale: Vector, seed: int, result: Vector, moments: Matrix) -> None:
        simulator, sizes = Simulator.of(self.task), np.array(self.network.sizes)
        low, high = (np.array(self.space["action"][side]) for side in ("low", "high"))
        physics, layers = simulator.physics, np.empty((sizes.size, sizes.max()))
        with simulator.kernel.quiet_warnings():
            simulator.kernel.episode(
                *simulator.own(), simulator.start(seed), physics.frames, physics.skipped, simulator.constants, low,
                high, physics.horizon, sizes, self.network.bias, parameters, shift, scale, layers, moments, result,
            )  # fmt: skip


class Simulator:
    """The model of a task, one per process, and the simulation of each thread.

    Attributes:
        constants: time step, costs and bounds, in the order of the kernel.
    """

    def __init__(self, task: str) -> None:
        import_gymnasium(mujoco=True)
        import mujoco
        from gymnasium.envs import mujoco as environments

        from cones.rl import kernel

        self.kernel = kernel
        self.physics = physics = PHYSICS[task]
        self._mujoco = mujoco
        self._model = mujoco.MjModel.from_xml_path(
            str(Path(str(environments.__file__)).parent / "assets" / physics.model)
        )
        # A diverged simulation stays visible; by default MuJoCo resets it and does not tell the caller.
        self._model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self.constants = np.array(
            [
                *(self._model.opt.timestep * physics.frames, physics.cost, physics.bonus),
                *(*physics.height, *physics.angle, physics.state_limit, physics.velocity_limit),
            ]
        )
        data = mujoco.MjData(self._model)
        self._rest = np.concatenate([data.qpos, data.qvel])
        self._local = threading.local()

    @staticmethod
    @cache
    def of(task: str) -> Simulator:
        """The simulator of a task; the same in all threads."""
        return Simulator(task)

    def own(self) -> tuple[Any, ...]:
        """Addresses and arrays of this thread's simulation."""
        local = self._local
        if not hasattr(local, "data"):
            local.data = self._mujoco.MjData(self._model)
        data = local.data
        return self._model._address, data._address, data.qpos, data.qvel, data.ctrl

    def start(self, seed: int) -> Vector:
        """Positions and velocities after gymnasium's `reset(seed=seed)`."""
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        noise, physics = self.physics.reset_noise, self.physics
        start = self._rest.copy()
        positions, velocities = start[: self._model.nq], start[self._model.nq :]
        positions += generator.uniform(-noise, noise, positions.size)
        if physics.normal_velocities:
            velocities += noise * generator.standard_normal(velocities.size)
        else:
            velocities += generator.uniform(-noise, noise, velocities.size)
        return start

    def replay(self, seed: int, actions: Matrix) -> tuple[Matrix, Vector, NDArray[np.bool_]]:
        """Observations (one more than actions), rewards and terminations under given actions."""
        size = self._rest.size - self.physics.skipped
        observations = np.empty((len(actions) + 1, size))
        rewards, terminals = np.empty(len(actions)), np.empty(len(actions), dtype=np.bool_)
        with self.kernel.quiet_warnings():
            done = self.kernel.replay(
                *self.own(), self.start(seed), self.physics.frames, self.physics.skipped, self.constants,
                np.ascontiguousarray(actions, dtype=np.float64), observations, rewards, terminals,
            )  # fmt: skip
        if done < len(actions):
            raise InputError(f"actions: {MujocoEpisode.OUTCOMES[DIVERGED].format(step=done + 1)}")
        return observations, rewards, terminals
