"""A step: a proposed change of a belief, with the solver's certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from cones.types import Vector

__all__ = ["Step", "StepStatus"]

B = TypeVar("B")


class StepStatus(Enum):
    """How a step was found; the value is the message."""

    FORMULA = "closed form: no program to solve"
    OPTIMAL = "optimal: the duality gap certifies the step"
    ZERO_GRADIENT = "the gradient is zero: the step is zero"
    INACCURATE = "the solver stopped early: see divergence for feasibility and gap for optimality"
    FAILED = "the solver found no step: the belief is unchanged"
    UNPROVED = "optimal where the ball is convex; gap bounds what the rest of the ball may add"

    @property
    def ok(self) -> bool:
        return self is not StepStatus.FAILED

    @property
    def code(self) -> int:
        """The number of this status in the history: 0 to 5, in the order above."""
        return CODES[self]


NO_COLUMNS: Mapping[str, float] = {}
CODES = {status: code for code, status in enumerate(StepStatus)}


class Step(NamedTuple, Generic[B]):
    """A proposed change of a belief.

    Attributes:
        shift: the change of the mean. For families other than Gaussians, the change of the family's parameters.
        log_ratio: for Gaussians, the matrix S; the covariance L L^T becomes L exp(S) L^T. Otherwise None.
        status: a `StepStatus`; its value is a message.
        divergence: D(new || old) from the solver, in the units of the ball's divergence. The dual never exceeds
            radius^2; a cone solver may, by its tolerance.
        multiplier: the Lagrange multiplier of the ball, lambda.
        objective: the linearised gain, <gradient, change>.
        gap: the duality gap, an upper bound on the additional gain of any belief in the ball.
        iterations: iterations of the solver.
        columns: further columns for the history, by name.
        belief: the new belief, only from `solve_step`. For a nonzero gradient it lies on the boundary of the ball.
    """

    shift: Vector
    log_ratio: Any = None
    status: StepStatus = StepStatus.FORMULA
    divergence: float = math.nan
    multiplier: float = math.nan
    objective: float = math.nan
    gap: float = math.nan
    iterations: int = 0
    columns: Mapping[str, float] = NO_COLUMNS
    belief: B = None  # type: ignore[assignment]
