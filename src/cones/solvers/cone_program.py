r"""The cone programs in CVXPY, the paper's among them: the reference for the scalar dual.

`cones.solvers.cone_forms` has the programs. The paper's has a second-order cone and n exponential cones for a diagonal
belief, and a second-order cone, a semidefinite cone and exponential cones (log det) for a full one.
"""

from __future__ import annotations

import importlib
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cones.beliefs import (
    DiagonalMatrix,
    FrameGradient,
    FrameMatrix,
    FullGaussian,
    SpectralMatrix,
    Step,
    StepStatus,
)
from cones.divergences import KL, Ball
from cones.divergences.kl import dual_value
from cones.errors import InputError, MissingExtraError
from cones.extras import require_extra
from cones.solvers.cone_forms import program_of
from cones.solvers.root import find_multiplier
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
        cp: Any = importlib.import_module("cvxpy")
        a, spectrum, radius = gradient.mean, gradient.covariance.spectrum(), ball.radius
        scale = max(float(np.abs(a).max()), float(np.abs(spectrum).max()))
        # Constants rather than CVXPY parameters: compiling a parametrised problem of 5000 dimensions takes far longer.
        unit = scale or 1.0
        a, b = a / unit, spectrum / unit
        if not isinstance(gradient.covariance, DiagonalMatrix):
            matrix = gradient.covariance.dense() / unit
            b = 0.5 * (matrix + matrix.T)
        program = program_of(cp, a, b, ball)
        if program is None:
            expected = "kl, chi2 or renyi with alpha > 1, whose balls are convex,"
            raise InputError(f"divergence: expected {expected} for solver {self.name!r}, got {ball.divergence!r}")
        if scale == 0.0:
            return unmoved(gradient, StepStatus.ZERO_GRADIENT)
        constraint = program.divergence <= program.level
        problem = cp.Problem(cp.Maximize(program.objective), [constraint, *program.further])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": the status reports it
                problem.solve(solver=self.engine)
        except Exception as error:  # each engine raises its own exception types
            if self.name == "mosek" and "licen" in str(error).lower():
                raise MissingExtraError(f'solver: "mosek" has no valid licence ({error}); {LICENCE}') from error
            return unmoved(gradient, StepStatus.FAILED)
        if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or program.objective.value is None:
            return unmoved(gradient, StepStatus.FAILED)
        m, r = (np.asarray(part) for part in program.solution())
        log_ratio = _log_ratio(r, gradient.covariance)
        if log_ratio is None:
            return unmoved(gradient, StepStatus.FAILED)
        value = float(program.objective.value)
        if isinstance(ball.divergence, KL) and ball.chart == "covariance":
            logs = log_ratio.spectrum()
            # CVXPY's constraint is twice the KL, so its multiplier is half of ours.
            multiplier = 2.0 * float(np.squeeze(constraint.dual_value))
            bound = dual_value(float(np.linalg.norm(a)), spectrum / scale, radius, multiplier)
            used = 0.5 * float(np.sum(np.square(m)) + (np.expm1(logs) - logs).sum())
        else:  # the exact dual bounds what any step may gain
            lagrangian: Any = ball.lagrangian(gradient)
            exact = lagrangian.step(find_multiplier(lagrangian, radius)[0])
            multiplier, bound = exact.multiplier / scale, (exact.objective + exact.gap) / scale
            r = np.diag(r) if r.ndim == 1 else r
            used = ball.divergence.between(FullGaussian(m, r), FullGaussian(np.zeros(m.size), np.eye(m.size)))
        # A solver's own status is not always right, so check what it returned.
        feasible, optimal = used <= radius**2 * (1.0 + TOLERANCE), abs(bound - value) <= TOLERANCE * abs(value)
        return Step(
            shift=m,
            log_ratio=log_ratio,
            status=StepStatus.OPTIMAL if feasible and optimal else StepStatus.INACCURATE,
            divergence=used,
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
