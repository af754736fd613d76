"""Test problems with known optima."""

from __future__ import annotations

from typing import Any

from cones.checks import check_one_of
from cones.problems.functions import (
    Ackley,
    Ellipsoid,
    Griewank,
    Levy,
    Lunacek,
    Rastrigin,
    Rosenbrock,
    Schwefel,
    Sphere,
    StyblinskiTang,
)
from cones.problems.kinks import L1Norm, MaxNorm, TotalVariation, WeightedL1
from cones.problems.problem import Problem
from cones.problems.wrappers import Corrupted, Noisy, Rotated, Shifted

__all__ = [
    "PROBLEMS",
    "Ackley",
    "Corrupted",
    "Ellipsoid",
    "Griewank",
    "L1Norm",
    "Levy",
    "Lunacek",
    "MaxNorm",
    "Noisy",
    "Problem",
    "Rastrigin",
    "Rosenbrock",
    "Rotated",
    "Schwefel",
    "Shifted",
    "Sphere",
    "StyblinskiTang",
    "TotalVariation",
    "WeightedL1",
    "problem_from",
]

_ALL: tuple[type[Problem], ...] = (
    *(Sphere, Rosenbrock, Rastrigin, Lunacek, Ellipsoid, Ackley, Griewank, Schwefel, Levy),
    *(StyblinskiTang, MaxNorm, L1Norm, WeightedL1, TotalVariation),
)
PROBLEMS: dict[str, type[Problem]] = {problem.name: problem for problem in _ALL}


def problem_from(
    name: str,
    dim: int,
    *,
    shift: Any = None,
    rotation: int | None = None,
    noise: float | None = None,
    relative_noise: float | None = None,
    corrupted: float | None = None,
) -> Problem:
    """A problem by name, optionally shifted, rotated (`rotation` is a seed), noisy, with a share of corrupted losses.

    Example:
        >>> problem_from("sphere", 2, shift=3.0)([3.0, 3.0])
        0.0
    """
    problem = PROBLEMS[check_one_of("problem", name, tuple(PROBLEMS))](dim)
    if rotation is not None:
        problem = Rotated(problem, rotation)
    if shift is not None:
        problem = Shifted(problem, shift)
    if noise is not None:
        problem = Noisy(problem, noise)
    if relative_noise is not None:
        problem = Noisy(problem, relative_noise, relative=True)
    if corrupted is not None:
        problem = Corrupted(problem, corrupted)
    return problem
