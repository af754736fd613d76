"""The paper's four MuJoCo tasks: their physics as gymnasium's -v4 has it, and the paper's hyperparameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["PAPER", "PHYSICS", "PaperTask", "Physics"]

INF = math.inf


@dataclass(frozen=True)
class Physics:
    """A task on a MuJoCo model: reward = forward velocity + bonus - cost |action|^2.

    An episode ends when height, angle or another coordinate of the state leaves its bounds.
    """

    model: str
    frames: int  # of simulation per step
    skipped: int = 1  # positions that are not observed
    cost: float = 1e-3
    bonus: float = 0.0
    height: tuple[float, float] = (-INF, INF)
    angle: tuple[float, float] = (-INF, INF)
    state_limit: float = INF
    velocity_limit: float = INF  # in observations
    reset_noise: float = 5e-3
    normal_velocities: bool = False  # at reset; else uniform
    horizon: int = 1000


PHYSICS = {
    "HalfCheetah-v4": Physics("half_cheetah.xml", 5, cost=0.1, reset_noise=0.1, normal_velocities=True),
    "Walker2d-v4": Physics(
        "walker2d.xml", 4, bonus=1.0, height=(0.8, 2.0), angle=(-1.0, 1.0), velocity_limit=10.0
    ),
    "Hopper-v4": Physics(
        "hopper.xml", 4, bonus=1.0, height=(0.7, INF), angle=(-0.2, 0.2), state_limit=100.0, velocity_limit=10.0
    ),
    "Swimmer-v4": Physics("swimmer.xml", 4, skipped=2, cost=1e-4, reset_noise=0.1),
}  # fmt: skip


@dataclass(frozen=True)
class PaperTask:
    """The paper's setting of a task (appendix A), its target, and the timesteps to it in its Table 1.

    The paper uses -v2, which is no longer available; -v4 is the nearest version.
    """

    hidden: int
    sigma: float
    learning_rate: float
    variance_learning_rate: float
    radius: float
    target: float
    limit: float  # timesteps after which the paper calls it a failure
    timesteps: dict[str, float]  # by method; those that failed are not there
    popsize: int = 40
    bias: bool = True  # in the policy's units; the paper does not say


_ROOT_1000 = math.sqrt(1000.0)
PAPER = {
    "HalfCheetah-v4": PaperTask(
        50, 0.02, 0.01, 0.01, _ROOT_1000, 3500.0, 5e7, {"ES": 3.23e7, "NES": 3.01e7, "CoNES": 1.40e7}
    ),
    "Walker2d-v4": PaperTask(50, 0.02, 0.01, 0.01, _ROOT_1000, 2000.0, 5e7, {"NES": 3.07e7, "CoNES": 2.10e7}),
    "Hopper-v4": PaperTask(50, 0.02, 0.01, 0.01, 1.0, 1400.0, 5e7, {"CoNES": 4.15e7}),
    "Swimmer-v4": PaperTask(
        16, 1.0, 0.5, 0.1, 10.0, 340.0, 2e7, {"ES": 1.99e7, "NES": 3.60e6, "CMA": 8.33e6, "CoNES": 3.01e6}, bias=False
    ),
}
