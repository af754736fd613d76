"""The paper's four MuJoCo tasks: its hyperparameters, targets and results."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["PAPER", "PaperTask"]


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
