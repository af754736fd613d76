r"""The step problem of CoNES as a function.

    maximize    <dl/dmu, mu' - mu> + <dl/dSigma, Sigma' - Sigma>
    subject to  KL( N(mu', Sigma') || N(mu, Sigma) ) <= radius^2

is the paper's eq. (OPT) linearised in (mean, covariance). In the frame of the belief, with
a = L^T dl/dmu and B = L^T (dl/dSigma) L, it depends on a and B alone.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from cones.beliefs import Belief, ExponentialFamily, Gaussian, Gradient, Product, Step
from cones.checks import check_array
from cones.component import component_from
from cones.divergences import Ball, Chart, Divergence
from cones.divergences.kl import largest_of
from cones.errors import InputError
from cones.solvers.dual import Dual
from cones.solvers.solver import Solver

__all__ = ["solve_step"]

G = TypeVar("G", bound=Belief)


def solve_step(
    belief: G,
    gradient: Any,
    radius: float,
    solver: str | Solver = "dual",
    divergence: str | Divergence = "kl",
    chart: Chart = "covariance",
) -> Step[G]:
    r"""The steepest *ascent* step inside a ball: the convex program of CoNES.

    maximize <gradient, change> subject to D(new || belief) <= radius^2.

    Args:
        belief: a Gaussian, such as `DiagonalGaussian`; `Bernoulli`, `Categorical`, `Poisson`; or a `Product`.
        gradient: gradient of the expected loss. For a Gaussian a `Gradient` with respect to (mean, covariance), for
            another family an array, with respect to the mean, for a product a sequence of these. Negate it for a
            descent step.
        radius: the paper's epsilon; the ball is D <= radius^2.
        solver: "dual" is the exact scalar dual. "cvxpy" is the paper's cone program in CVXPY, solved by Clarabel;
            "clarabel", "scs" and "mosek" choose its solver.
        divergence: divergence that defines the ball: "kl", as in the paper, "reverse_kl", "chi2", "hellinger",
            "renyi:ALPHA", or a `cones.divergences.Divergence`. The cone programs solve those that are convex.
        chart: parameters in which the loss is linearised: "covariance", (mean, covariance) as in the paper;
            "mean_parameters", (mean, covariance + mean mean^T), for "kl"; "natural_parameters", for "reverse_kl".

    Returns:
        A `Step`: the new belief with its certificate.

    Example:
        >>> from cones import DiagonalGaussian, Gradient
        >>> step = solve_step(DiagonalGaussian([0.0, 0.0], 1.0), Gradient([3.0, 4.0], [0.0, 0.0]), radius=1.0)
        >>> step.belief.mean.round(6)
        array([0.848528, 1.131371])
        >>> step.status.name, round(step.divergence, 6)
        ('OPTIMAL', 1.0)
    """
    if isinstance(belief, (ExponentialFamily, Product)):
        return _solved(belief, gradient, Ball(component_from("divergence", divergence), radius, chart), solver)
    if not isinstance(belief, Gaussian):
        raise InputError(f"belief: expected a Gaussian, an exponential family or a product, got {belief!r:.80}")
    if not isinstance(gradient, Gradient):
        raise InputError(f"gradient: expected a cones.Gradient, got {type(gradient).__name__}")
    ball = Ball(component_from("divergence", divergence), radius, chart)
    chosen: Solver = component_from("solver", solver)
    mean = check_array("gradient.mean", gradient.mean)
    covariance = check_array("gradient.covariance", gradient.covariance)
    # The step does not depend on the scale of the gradient; dividing by it prevents overflow.
    scale = max(largest_of(mean), largest_of(covariance))
    if not 0.0 < scale < math.inf:
        scale = 1.0  # zero or not finite; `whiten` reports the latter
    whitened = belief.whiten(Gradient(mean / scale, covariance / scale))
    with np.errstate(all="ignore"):  # an overflow shows in the certificate
        step = chosen.solve(whitened, ball)
    step = step._replace(shift=belief.from_frame(step.shift))
    return step._replace(
        multiplier=step.multiplier * scale,
        objective=step.objective * scale,
        gap=step.gap * scale,
        belief=belief.moved(step),
    )


def _solved(belief: Any, gradient: Any, ball: Ball, solver: str | Solver) -> Step[Any]:
    """The step of another family than a Gaussian, or of a product."""
    chosen = component_from("solver", solver)
    if not isinstance(chosen, Dual):
        raise InputError(f"solver: expected 'dual' for a {type(belief).__name__}, got {solver!r}")
    with np.errstate(all="ignore"):
        step = chosen.solve(belief.whiten(gradient), ball)
    step = step._replace(shift=belief.from_frame(step.shift))
    return step._replace(belief=belief.moved(step))
