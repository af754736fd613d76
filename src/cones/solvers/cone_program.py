r"""The paper's own cone programs, by CVXPY: the reference that the scalar dual is measured against.

Diagonal belief, a second-order cone and n exponential cones:

    maximize    a^T m + b^T (r - 1)
    subject to  |m|^2 + sum(r) - n - sum(log r) <= 2 radius^2

Full belief, a second-order cone, a semidefinite cone and exponential cones (log det):

    maximize    a^T m + tr(B (R - I))
    subject to  |m|^2 + tr(R) - n - log det R <= 2 radius^2
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from cones.beliefs.belief import FrameGradient
from cones.beliefs.gaussian.spectral import Spectral
from cones.errors import MissingExtraError
from cones.solvers.dual import dual_value
from cones.solvers.step_problem import FrameStep, StepStatus

__all__ = ["check_available", "mosek_licence", "solve_cone_program"]

TOLERANCE = 1e-4
LICENCE = (
    "put one there or set MOSEKLM_LICENSE_FILE (free for academic use from mosek.com), "
    'or use solver="dual" or solver="clarabel", which need none'
)
ENGINES = {"cvxpy": "CLARABEL", "clarabel": "CLARABEL", "scs": "SCS", "mosek": "MOSEK"}


def solve_cone_program(gradient: FrameGradient, radius: float, solver: str) -> FrameStep:
    """Solve the step problem as a cone program. Trouble inside the solver is a status, not an exception."""
    check_available(solver)
    cp: Any = importlib.import_module("cvxpy")
    a, spectral = gradient.mean, gradient.covariance
    eigenvalues = spectral.spectrum()
    n, scale = a.size, max(float(np.abs(a).max()), float(np.abs(eigenvalues).max()))
    if scale == 0.0:
        return _unmoved(gradient, StepStatus.ZERO_GRADIENT)
    # Constants rather than CVXPY parameters: compiling a parametrised problem of 5000 dimensions takes far longer.
    a = a / scale
    m = cp.Variable(n)
    if spectral.basis is None:
        b = spectral.values / scale
        r = cp.Variable(n)
        objective = a @ m + b @ r - b.sum()
        ball = cp.sum_squares(m) + cp.sum(r) - n - cp.sum(cp.log(r)) <= 2.0 * radius**2
    else:
        matrix = spectral.dense() / scale
        matrix = 0.5 * (matrix + matrix.T)
        r = cp.Variable((n, n), PSD=True)
        objective = a @ m + cp.trace(matrix @ r) - np.trace(matrix)
        ball = cp.sum_squares(m) + cp.trace(r) - n - cp.log_det(r) <= 2.0 * radius**2
    problem = cp.Problem(cp.Maximize(objective), [ball])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": the status says it
            problem.solve(solver=ENGINES[solver])
    except Exception as error:  # engines raise errors of their own kinds
        if solver == "mosek" and "licen" in str(error).lower():
            raise MissingExtraError(f'solver: "mosek" has no valid licence ({error}); {LICENCE}') from error
        return _unmoved(gradient, StepStatus.FAILED)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or r.value is None or m.value is None:
        return _unmoved(gradient, StepStatus.FAILED)
    log_ratio = _log_ratio(np.asarray(r.value), spectral)
    if log_ratio is None:
        return _unmoved(gradient, StepStatus.FAILED)
    logs = log_ratio.spectrum()
    # CVXPY's constraint is twice the KL, so its multiplier is half of ours.
    multiplier = 2.0 * float(np.squeeze(ball.dual_value))
    value = float(objective.value)
    bound = dual_value(float(np.linalg.norm(a)), eigenvalues / scale, radius, multiplier)
    kl = 0.5 * float(np.sum(np.square(m.value)) + (np.expm1(logs) - logs).sum())
    # What a solver says of itself is not always so: judge what it returned.
    feasible, optimal = kl <= radius**2 * (1.0 + TOLERANCE), abs(bound - value) <= TOLERANCE * abs(value)
    return FrameStep(
        mean=np.asarray(m.value),
        log_ratio=log_ratio,
        kl=kl,
        multiplier=multiplier * scale,
        objective=value * scale,
        gap=(bound - value) * scale,
        iterations=int(problem.solver_stats.num_iters or 0),
        status=StepStatus.OPTIMAL if feasible and optimal else StepStatus.INACCURATE,
    )


def _log_ratio(ratio: np.ndarray[Any, Any], spectral: Spectral) -> Spectral | None:
    """The logarithm of the covariance in the frame; None if it is not positive definite."""
    if spectral.basis is None:
        return Spectral(np.log(ratio)) if (ratio > 0.0).all() else None
    values, vectors = np.linalg.eigh(0.5 * (ratio + ratio.T))
    return Spectral(np.log(values), vectors) if values[0] > 0.0 else None


def _unmoved(gradient: FrameGradient, status: StepStatus) -> FrameStep:
    zero = status is StepStatus.ZERO_GRADIENT
    return FrameStep(
        mean=np.zeros_like(gradient.mean),
        log_ratio=gradient.covariance.map(np.zeros_like),
        kl=0.0,
        multiplier=0.0,
        objective=0.0,
        gap=0.0 if zero else np.inf,
        iterations=0,
        status=status,
    )


def check_available(solver: str) -> None:
    """Raise if a cone solver, or its licence, is missing."""
    for name in ("cvxpy", ENGINES[solver].lower()):
        if importlib.util.find_spec(name) is None:
            extra = "mosek" if name == "mosek" else "cvxpy"
            raise MissingExtraError(
                f'solver: "{solver}" needs the package {name}, which is not installed; '
                f"run: pip install 'cones[{extra}]', or use solver=\"dual\", which needs nothing"
            )
    if solver == "mosek":
        places, found = mosek_licence()
        if not found:
            raise MissingExtraError(f'solver: "mosek" needs a MOSEK licence, and there is none at {places}; {LICENCE}')


def mosek_licence() -> tuple[str, bool]:
    """Where MOSEK looks for its licence, and whether there is one. MOSEK itself says so only while it solves."""
    places = os.environ.get("MOSEKLM_LICENSE_FILE", str(Path("~/mosek/mosek.lic").expanduser()))
    # A list of files; port@host is a licence server.
    return places, any("@" in place or Path(place).expanduser().exists() for place in places.split(os.pathsep))
