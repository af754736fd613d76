r"""The step problem of CoNES and its solution.

    maximize    <dl/dmu, mu' - mu> + <dl/dSigma, Sigma' - Sigma>
    subject to  KL( N(mu', Sigma') || N(mu, Sigma) ) <= radius^2

is the paper's eq. (OPT) linearised in (mean, covariance). In the frame of the belief, with
a = L^T dl/dmu and B = L^T (dl/dSigma) L, it depends on a and B alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import numpy as np

from cones.beliefs.belief import Belief, FrameGradient, Gradient
from cones.beliefs.gaussian.spectral import Spectral
from cones.checks import check_array, check_one_of, check_positive
from cones.errors import InputError
from cones.kernels.buffers import new_vector
from cones.kernels.spans import for_each_span, inner
from cones.solvers.dual import solve_dual
from cones.types import Vector

__all__ = ["SOLVERS", "FrameStep", "Step", "StepStatus", "check_radius", "solve_frame", "solve_step"]

B = TypeVar("B", bound=Belief)

SOLVERS = ("dual", "cvxpy", "clarabel", "scs", "mosek")


class StepStatus(Enum):
    """How a step was solved; the value is the message."""

    OPTIMAL = "optimal: the duality gap certifies the step"
    ZERO_GRADIENT = "the gradient is zero: the step is zero"
    INACCURATE = "the solver stopped early: kl and gap say how far the step is from feasible and from optimal"
    FAILED = "the solver found no step: the belief is unchanged"

    @property
    def ok(self) -> bool:
        return self is not StepStatus.FAILED


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a solver found, besides the step itself."""

    kl: float
    multiplier: float
    objective: float
    gap: float
    iterations: int
    status: StepStatus


@dataclass(frozen=True, kw_only=True)
class FrameStep(Certificate):
    """A step in the frame: the mean moves by m, the covariance becomes L exp(log_ratio) L^T."""

    mean: Vector
    log_ratio: Spectral


@dataclass(frozen=True, kw_only=True)
class Step(Certificate, Generic[B]):
    """The solution of the step problem.

    Attributes:
        belief: the new belief; for a gradient that is not zero it lies on the boundary of the ball.
        kl: KL(new || old). The dual never exceeds radius^2, a cone solver may by its tolerance.
        multiplier: the Lagrange multiplier of the ball, lambda.
        objective: the linearised gain, <gradient, change>.
        gap: the duality gap, an upper bound on how much more any belief in the ball could gain.
        iterations: of the solver.
        status: a `StepStatus`; its value is a message.
    """

    belief: B


def solve_step(belief: B, gradient: Gradient, radius: float, solver: str = "dual") -> Step[B]:
    r"""The steepest *ascent* step inside a KL ball: the convex program at the heart of CoNES.

    maximize <gradient, change> subject to KL(new || belief) <= radius^2.

    Args:
        belief: a `DiagonalGaussian` or a `FullGaussian`.
        gradient: of the expected loss in (mean, covariance). Negate it for a descent step.
        radius: the paper's epsilon; the ball is KL <= radius^2.
        solver: "dual", the exact scalar dual; "cvxpy", the paper's cone program by CVXPY with
            Clarabel; or the cone program with a solver by name: "clarabel", "scs", "mosek".

    Returns:
        A `Step`: the new belief with its certificate.

    Example:
        >>> from cones import DiagonalGaussian, Gradient
        >>> step = solve_step(DiagonalGaussian([0.0, 0.0], 1.0), Gradient([3.0, 4.0], [0.0, 0.0]), radius=1.0)
        >>> step.belief.mean.round(6)
        array([0.848528, 1.131371])
        >>> step.status.name, round(step.kl, 6)
        ('OPTIMAL', 1.0)
    """
    if not isinstance(belief, Belief):
        raise InputError(f"belief: expected a DiagonalGaussian or a FullGaussian, got {type(belief).__name__}")
    if not isinstance(gradient, Gradient):
        raise InputError(f"gradient: expected a cones.Gradient, got {type(gradient).__name__}")
    radius = check_radius(radius)
    mean = check_array("gradient.mean", gradient.mean)
    covariance = check_array("gradient.covariance", gradient.covariance)
    # The step does not depend on the scale of the gradient; divided by it, nothing can overflow.
    scale = max(_largest(mean), _largest(covariance))
    if not 0.0 < scale < math.inf:
        scale = 1.0  # zero, or not finite, which `whiten` reports
    step = solve_frame(belief.whiten(Gradient(mean / scale, covariance / scale)), radius, solver)
    return Step(
        belief=belief.moved(belief.from_frame(step.mean), step.log_ratio),
        kl=step.kl,
        multiplier=step.multiplier * scale,
        objective=step.objective * scale,
        gap=step.gap * scale,
        iterations=step.iterations,
        status=step.status,
    )


def solve_frame(gradient: FrameGradient, radius: float, solver: str = "dual") -> FrameStep:
    """The step problem in the frame, where a diagonal and a full belief are the same problem."""
    if check_one_of("solver", solver, SOLVERS) != "dual":
        from cones.solvers.cone_program import solve_cone_program

        return solve_cone_program(gradient, radius, solver)
    norm = math.sqrt(inner(gradient.mean, gradient.mean))
    if not 1e-150 < norm < math.inf and (largest := _largest(gradient.mean)) > 0.0:
        norm = largest * float(np.linalg.norm(gradient.mean / largest))  # its squares left the range of floats
    point = solve_dual(norm, gradient.covariance.spectrum(), radius)
    if point.multiplier == 0.0 and point.objective == 0.0:
        status = StepStatus.ZERO_GRADIENT
    else:
        status = StepStatus.OPTIMAL if point.converged else StepStatus.INACCURATE
    mean = new_vector(gradient.mean.size, gradient.mean.dtype)

    def work(part: slice) -> None:
        np.divide(gradient.mean[part], point.scale, out=mean[part])
        mean[part] /= point.unit_multiplier

    for_each_span(work, mean.size)
    return FrameStep(
        mean=mean,
        log_ratio=gradient.covariance.with_spectrum(point.log_ratio),
        kl=point.kl,
        multiplier=point.multiplier,
        objective=point.objective,
        gap=point.gap,
        iterations=point.iterations,
        status=status,
    )


def check_radius(radius: float) -> float:
    """A radius whose square is an ordinary number."""
    number = check_positive("radius", radius)
    if not 1e-100 <= number <= 1e100:
        raise InputError(f"radius: expected a number between 1e-100 and 1e100, got {number}")
    return number


def _largest(array: Vector) -> float:
    """max |array|, without a temporary array."""
    return max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))
