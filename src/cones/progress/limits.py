"""Stop criteria as keyword arguments: their names, their defaults, and the criteria that they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypedDict

from cones.beliefs import Belief, ExponentialFamily, Product
from cones.checks import check_integer, check_non_negative, check_number, check_positive
from cones.component import suggestion
from cones.errors import InputError
from cones.progress.plateau import Plateau
from cones.progress.stopping import (
    STAGNATION,
    Criterion,
    FTarget,
    FTol,
    MaxFev,
    MaxIter,
    MaxTime,
    Stagnation,
    XTol,
)

__all__ = ["LIMITS", "Limits", "check_limits", "criteria_from", "trials_of"]


class Limits(TypedDict, total=False):
    """Stop criteria as keyword arguments; None switches one off."""

    ftarget: Annotated[float | None, "Stop at a loss this low."]
    maxfev: Annotated[float | None, "Stop before exceeding this many evaluations."]
    maxiter: Annotated[float | None, "Stop after this many iterations; 1000 if there is no other budget."]
    maxtime: Annotated[float | None, "Stop after this many seconds."]
    xtol: Annotated[float | None, "Stop when the spread and the mean's last step are this small; 1e-11 by default."]
    ftol: Annotated[float | None, "Stop when losses differ by this little for ten iterations; 1e-11 by default."]
    stagnation: Annotated[
        float | Literal["auto"] | None,
        'Stop after this many iterations without improvement; "auto", the default, is 100 + 100 n^1.5 / popsize, '
        "for bits and categories alone 100 + 50 n / popsize.",
    ]
    plateau: Annotated[
        float | None,
        "For noisy losses: stop when the last third of a descent has made less than a tenth of its progress, after at "
        "least this many iterations. Off by default; training with adaptive radii uses it.",
    ]


# The stop criteria and their defaults, in the order in which they are checked.
LIMITS: dict[str, Any] = {
    "ftarget": None,
    "xtol": 1e-11,
    "ftol": 1e-11,
    "maxfev": None,
    "maxiter": None,
    "maxtime": None,
    "stagnation": "auto",
    "plateau": None,
}
BUDGETS = ("maxfev", "maxiter", "maxtime")
DEFAULT_MAXITER = 1000


def check_limits(function: str, limits: Iterable[str], others: Sequence[str] = ()) -> None:
    """Refuse keyword arguments that are not stop criteria; `others` are the function's other ones, for the message."""
    for name in limits:
        if name not in LIMITS:
            known = (*others, *LIMITS)
            raise TypeError(
                f"{function}() got an unexpected keyword argument {name!r}{suggestion(name, known)}; "
                f"expected one of {', '.join(known)}"
            )


def trials_of(belief: Belief) -> float:
    """Evaluations of `stagnation="auto"` beyond 100 iterations: 100 n^1.5.

    With bits and categories alone, 50 per alternative to the most likely candidate: in half of them each alternative is
    tried about five times.
    """
    factors = belief.factors if isinstance(belief, Product) else (belief,)
    alternatives = [factor.freedom for factor in factors if isinstance(factor, ExponentialFamily)]
    return 50.0 * sum(alternatives) if len(alternatives) == len(factors) else 100.0 * belief.dim**1.5


def criteria_from(dim: int, popsize: int, limits: dict[str, Any], trials: float | None = None) -> tuple[Criterion, ...]:
    """The criteria for limits by name; None switches one off.

    By default, xtol and ftol are 1e-11, and stagnation is 100 + trials / popsize iterations, with 100 dim^1.5 trials.
    Without any budget, maxiter is 1000; an infinite budget switches that default off.
    """
    check_limits("resume", limits)
    given = {**LIMITS, **limits}
    automatic = given["stagnation"] == "auto"
    if automatic:
        given["stagnation"] = STAGNATION + int((100.0 * dim**1.5 if trials is None else trials) / popsize)
    implied = all(given.get(name) is None for name in BUDGETS)
    if implied:
        given["maxiter"] = DEFAULT_MAXITER
    criteria: list[Criterion] = []
    for name in LIMITS:
        limit = given.get(name)
        if limit is None or (name in BUDGETS and limit == math.inf):
            continue
        if name == "ftarget":
            criteria.append(FTarget(-math.inf if limit == -math.inf else check_number(name, limit)))
        elif name in ("xtol", "ftol"):
            tolerance = check_non_negative(name, limit)
            criteria.append(XTol(tolerance) if name == "xtol" else FTol(tolerance))
        elif name == "maxfev":
            budget = check_integer(name, limit, 1)
            if budget < popsize:
                raise InputError(f"maxfev: expected at least popsize = {popsize}, got {budget}")
            criteria.append(MaxFev(budget))
        elif name == "maxiter":
            criteria.append(MaxIter(check_integer(name, limit, 1), implied))
        elif name == "maxtime":
            criteria.append(MaxTime(check_positive(name, limit)))
        elif name == "plateau":
            criteria.append(Plateau(check_integer(name, limit, 3)))
        else:
            criteria.append(Stagnation(check_integer(name, limit, 2), popsize if automatic else 0))
    return tuple(criteria)
