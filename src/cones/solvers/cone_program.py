r"""The paper's cone programs in CVXPY: the reference for the scalar dual.

Diagonal belief, with a second-order cone and n exponential cones:

    maximize    a^T m + b^T (r - 1)
    subject to  |m|^2 + sum(r) - n - sum(log r) <= 2 radius^2

Full belief, with a second-order cone, a semidefinite cone and exponential cones (log det):

    maximize    a^T m + tr(B (R - I))
    subject to  |m|^2 + tr(R) - n - log det R <= 2 radius^2
"""

from __future__ import annotations

import importlib
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cones.beliefs import DiagonalMatrix, FrameGradient, FrameMatrix, SpectralMatrix, Step, StepStatus
from cones.divergences import KL, Ball
from cones.divergences.kl import dual_value
from cones.errors import InputError, MissingExtraError
from cones.extras import require_extra
from cones.solvers.solver import Solver, unmoved

__all__ = ["SCS", "Clarabel", "ConeProgram", "Cvxpy", "Mosek", "mosek_licence"]

TOLERANCE = 1e-4
LICENCE = (
    "install one there or set MOSEKLM_LICENSE_FILE (free for academic use from mosek.com), "
    'or use solver="dual" or solver="clarabel", which need no licence'
)


@dataclass(frozen=True)
class ConeProgram(Solver):
    """The step problem as a cone program."""

    engine: ClassVar[str]  # CVXPY's name of the solver

    def __post_init__(self) -> None:
        check_available(self.name, self.engine)  # fail before the first population is evaluated

    def solve(self, gradient: FrameGradient, ball: Ball) -> Step[Any]:
        if not isinstance(ball.divergence, KL):
            raise InputError(f"divergence: expected KL for solver {self.name!r}, got {ball.divergence!r}")
        cp: Any = importlib.import_module("cvxpy")
        a, spectrum, radius = gradient.mean, gradient.covariance.spectrum(), ball.radius
        scale = max(float(np.abs(a).max()), float(np.abs(spectrum).max()))
        if scale == 0.0:
            return unmoved(gradient, StepStatus.ZERO_GRADIENT)
        # Constants rather than CVXPY parameters: compiling a parametrised problem of 5000 dimensions takes far longer.
        a, n = a / scale, a.size
        m = cp.Variable(n)
        if isinstance(gradient.covariance, DiagonalMatrix):
            b, r = spectrum / scale, cp.Variable(n)
            objective = a @ m + b @ r - b.sum()
            constraint = cp.sum_squares(m) + cp.sum(r) - n - cp.sum(cp.log(r)) <= 2.0 * radius**2
        else:
            matrix = gradient.covariance.dense() / scale
            matrix, r = 0.5 * (matrix + matrix.T), cp.Variable((n, n), PSD=True)
            objective = a @ m + cp.trace(matrix @ r) - np.trace(matrix)
            constraint = cp.sum_squares(m) + cp.trace(r) - n - cp.log_det(r) <= 2.0 * radius**2
        problem = cp.Problem(cp.Maximize(objective), [constraint])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": the status reports it
                problem.solve(solver=self.engine)
        except Exception as error:  # each engine raises its own exception types
            if self.name == "mosek" and "licen" in str(error).lower():
                raise MissingExtraError(f'solver: "mosek" has no valid licence ({error}); {LICENCE}') from error
            return unmoved(gradient, StepStatus.FAILED)
        if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or r.value is None or m.value is None:
            return unmoved(gradient, StepStatus.FAILED)
        log_ratio = _log_ratio(np.asarray(r.value), gradient.covariance)
        if log_ratio is None:
            return unmoved(gradient, StepStatus.FAILED)
        logs = log_ratio.spectrum()
        # CVXPY's constraint is twice the KL, so its multiplier is half of ours.
        multiplier = 2.0 * float(np.squeeze(constraint.dual_value))
        value = float(objective.value)
        bound = dual_value(float(np.linalg.norm(a)), spectrum / scale, radius, multiplier)
        kl = 0.5 * float(np.sum(np.square(m.value)) + (np.expm1(logs) - logs).sum())
        # A solver's own status is not always right, so check what it returned.
        feasible, optimal = kl <= radius**2 * (1.0 + TOLERANCE), abs(bound - value) <= TOLERANCE * abs(value)
        return Step(
            shift=np.asarray(m.value),
            log_ratio=log_ratio,
            status=StepStatus.OPTIMAL if feasible and optimal else StepStatus.INACCURATE,
            divergence=kl,
            multiplier=multiplier * scale,
            objective=value * scale,
            gap=(bound - value) * scale,
            iterations=int(problem.solver_stats.num_iters or 0),
        )


class Cvxpy(ConeProgram):
    """The cone program in CVXPY with the default solver, Clarabel."""

    name, engine = "cvxpy", "CLARABEL"


class Clarabel(ConeProgram):
    """The cone program solved by Clarabel."""

    name, engine = "clarabel", "CLARABEL"


class SCS(ConeProgram):
    """The cone program solved by SCS."""

    name, engine = "scs", "SCS"


class Mosek(ConeProgram):
    """The cone program solved by MOSEK, as in the paper; needs a licence."""

    name, engine = "mosek", "MOSEK"


def _log_ratio(ratio: np.ndarray[Any, Any], like: FrameMatrix) -> FrameMatrix | None:
    """The logarithm of the covariance in the frame; None if it is not positive definite."""
    if isinstance(like, DiagonalMatrix):
        return DiagonalMatrix(np.log(ratio)) if (ratio > 0.0).all() else None
    values, vectors = np.linalg.eigh(0.5 * (ratio + ratio.T))
    return SpectralMatrix(np.log(values), vectors) if values[0] > 0.0 else None


def check_available(solver: str, engine: str) -> None:
    """Raise if a cone solver or its licence is missing."""
    for name in ("cvxpy", engine.lower()):
        extra = "mosek" if name == "mosek" else "cvxpy"
        require_extra(name, extra, f'solver: "{solver}"', ', or use solver="dual", which needs no extra')
    if solver == "mosek":
        places, found = mosek_licence()
        if not found:
            raise MissingExtraError(f'solver: "mosek" needs a MOSEK licence, found none at {places}; {LICENCE}')


def mosek_licence() -> tuple[str, bool]:
    """Where MOSEK looks for its licence, and whether there is one. MOSEK itself reports this only when it solves."""
    places = os.environ.get("MOSEKLM_LICENSE_FILE", str(Path("~/mosek/mosek.lic").expanduser()))
    # A list of files; port@host is a licence server.
    return places, any("@" in place or Path(place).expanduser().exists() for place in places.split(os.pathsep))
