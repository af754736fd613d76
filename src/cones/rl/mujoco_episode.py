"""Episodes of gymnasium's MuJoCo tasks: one simulation per thread, no Python within an episode."""

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
from cones.rl.episode import ENDED, Episode
from cones.rl.physics import FUNCTIONS, PHYSICS, POINTS, REWARDS, SOURCES, Part
from cones.rl.spaces import action_range
from cones.types import Matrix, Vector

__all__ = ["MujocoEpisode", "Simulator"]

DIVERGED, NOT_A_NUMBER = 1, 2  # as in the kernel
STEPS = 1000  # from which on the kernel begins no further episode


class MujocoEpisode(Episode):
    """An episode of a task in `PHYSICS`, bit for bit as gymnasium runs it."""

    OUTCOMES: ClassVar[Mapping[int, str]] = {
        DIVERGED: "the simulation diverged in step {step}",
        NOT_A_NUMBER: "the policy's action in step {step} was not a finite number",
    }
    RELEASES_LOCK = True
    _prepared: tuple[Any, Matrix, Any] | None = None

    def __call__(self, rows: Vector | Matrix) -> Matrix:
        rows = np.ascontiguousarray(rows, np.float64).reshape(-1, np.shape(rows)[-1])
        simulator = Simulator.of(self.task.name)
        if self._prepared is None:  # short episodes take no longer than to make these
            marks = np.array(self.marks, np.int64)
            self._prepared = np.array(self.network.sizes), action_range(self.space["action"]), marks
        sizes, actions, marks = self._prepared
        layers, numbers = np.empty((sizes.size, max(self.network.sizes))), np.empty((len(rows), self.width))
        begins = {seed: simulator.start(int(seed)) for seed in set(rows[:, -1])}  # often all candidates have the same
        starts, done = np.array([begins[seed] for seed in rows[:, -1]]), 0
        with simulator.kernel.quiet_warnings():
            while done < len(rows):  # Ctrl-C is heard in between
                done += simulator.kernel.episodes(
                    *simulator.own(), starts[done:], simulator.task, actions, simulator.physics.horizon, sizes,
                    self.network.bias, rows[done:], layers, marks, numbers[done:], STEPS,
                )  # fmt: skip
        numbers[:, 0] = np.where(numbers[:, 2] > ENDED, np.nan, -numbers[:, 0])
        return numbers


class Simulator:
    """The model of a task, one per process, and the simulation of each thread.

    Attributes:
        task: what the kernel reads: integers, numbers, masses and their sum, places of bodies, parts of the observation
            with their limits, bounded coordinates with their intervals.
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
        data = mujoco.MjData(self._model)
        self._rest = np.concatenate([data.qpos, data.qvel])
        self._local = threading.local()
        timestep, masses = self._model.opt.timestep, self._model.body_mass
        parts = np.array([self._part(part, data) for part in physics.parts])
        self.observed = int(parts[:, 2].sum())
        self.task = (
            np.array(
                [
                    *(physics.frames, REWARDS.index(physics.reward), POINTS.index(physics.point)),
                    *(physics.has_forces, physics.bonus_when_healthy, physics.reward_first),
                ],
                dtype=np.int64,
            ),
            np.array(
                [
                    *(timestep * physics.frames, physics.weight, physics.bonus, physics.cost, physics.contact),
                    *(physics.force_limit, physics.contact_limit, physics.near, physics.state_limit, 2.0, timestep),
                ]
            ),
            np.append(masses, masses.sum()),
            np.array([self._place(body) for body in physics.bodies or ()], dtype=np.int64),
            parts,
            np.array([part.limit for part in physics.parts]),
            np.array([[SOURCES.index(b.source), b.index] for b in physics.bounds], dtype=np.int64).reshape(-1, 2),
            np.array([[b.low, b.high] for b in physics.bounds]).reshape(-1, 2),
        )

    def _place(self, body: str) -> int:
        """Where the position of a body begins in `xpos`."""
        return 3 * int(self._model.body(body).id)

    def _part(self, part: Part, data: Any) -> list[int]:
        stop = getattr(data, part.source).size if part.stop is None else part.stop
        first = part.first + (self._place(part.body) if part.body else 0)
        other = self._place(part.minus) if part.minus else -1
        return [SOURCES.index(part.source), first, stop - part.first, FUNCTIONS.index(part.function), other]

    @staticmethod
    @cache
    def of(task: str) -> Simulator:
        """The simulator of a task; the same in all threads."""
        return Simulator(task)

    def own(self) -> tuple[Any, ...]:
        """Addresses and arrays of this thread's simulation."""
        local = self._local
        if not hasattr(local, "data"):
            local.data = data = self._mujoco.MjData(self._model)
            sources = tuple(getattr(data, name).reshape(-1) for name in SOURCES)
            local.own = self._model._address, data._address, sources, data.ctrl
        own: tuple[Any, ...] = local.own
        return own

    def start(self, seed: int) -> Vector:
        """Positions and velocities after gymnasium's `reset(seed=seed)`."""
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        start, noise = self._rest.copy(), self.physics.reset_noise
        positions, velocities = start[: self._model.nq], start[self._model.nq :]
        match self.physics.start:
            case "reacher":
                _start_reacher(generator, positions, velocities)
            case "pusher":
                _start_pusher(generator, positions, velocities)
            case "normal":
                positions += generator.uniform(-noise, noise, positions.size)
                velocities += noise * generator.standard_normal(velocities.size)
            case _:
                positions += generator.uniform(-noise, noise, positions.size)
                velocities += generator.uniform(-noise, noise, velocities.size)
        return start

    def replay(self, seed: int, actions: Matrix) -> tuple[Matrix, Vector, NDArray[np.bool_]]:
        """Observations (one more than actions), rewards and terminations under given actions."""
        observations = np.empty((len(actions) + 1, self.observed))
        rewards, terminals = np.empty(len(actions)), np.empty(len(actions), dtype=np.bool_)
        given = np.ascontiguousarray(actions, dtype=np.float64)
        with self.kernel.quiet_warnings():
            done = self.kernel.replay(*self.own(), self.start(seed), self.task, given, observations, rewards, terminals)
        if done < len(actions):
            raise InputError(f"actions: {MujocoEpisode.OUTCOMES[DIVERGED].format(step=done + 1)}")
        return observations, rewards, terminals


def _start_reacher(generator: np.random.Generator, positions: Vector, velocities: Vector) -> None:
    positions += generator.uniform(-0.1, 0.1, positions.size)
    goal = np.full(2, np.inf)
    while not np.linalg.norm(goal) < 0.2:
        goal = generator.uniform(-0.2, 0.2, 2)
    positions[-2:] = goal
    velocities += generator.uniform(-0.005, 0.005, velocities.size)
    velocities[-2:] = 0.0


def _start_pusher(generator: np.random.Generator, positions: Vector, velocities: Vector) -> None:
    place = np.zeros(2)
    while not np.linalg.norm(place) > 0.17:
        place = np.array([generator.uniform(-0.3, 0.0), generator.uniform(-0.2, 0.2)])
    positions[-4:-2], positions[-2:] = place, 0.0
    velocities += generator.uniform(-0.005, 0.005, velocities.size)
    velocities[-4:] = 0.0
