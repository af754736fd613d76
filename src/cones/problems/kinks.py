"""Convex test functions that are not differentiable at their optimum."""

from __future__ import annotations

import numpy as np

from cones.problems.problem import Problem
from cones.types import Matrix, Vector

__all__ = ["L1Norm", "MaxNorm", "TotalVariation", "WeightedL1"]


class MaxNorm(Problem):
    """max(|x|)"""

    name, domain = "max_norm", (-5.0, 5.0)

    def losses(self, X: Matrix) -> Vector:
        return np.asarray(np.abs(X).max(axis=1))


class L1Norm(Problem):
    """sum(|x|)"""

    name, domain = "l1_norm", (-5.0, 5.0)

    def losses(self, X: Matrix) -> Vector:
        return np.asarray(np.abs(X).sum(axis=1))


class WeightedL1(Problem):
    """sum(100^((i - 1) / (n - 1)) |x_i|)"""

    name, domain = "weighted_l1", (-5.0, 5.0)

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self._weights = 100.0 ** (np.arange(self.dim) / max(self.dim - 1, 1))

    def losses(self, X: Matrix) -> Vector:
        return np.asarray(np.abs(X) @ self._weights)


class TotalVariation(Problem):
    """1/2 sum((x - y)^2) + sum(|x_{i+1} - x_i|), y = -2 in the first half and 2 in the second

    With a and b coordinates in the halves, the optimum is -2 + 1/a in the first and 2 - 1/b in the second. Its loss is
    4 - (1/a + 1/b)/2. It satisfies the optimality conditions x = y - D^T z, |z| <= 1, where D takes the differences:
    z grows linearly from 0 at the first coordinate to 1 at the jump, and falls linearly to 0 at the last one.
    """

    name, domain = "total_variation", (-5.0, 5.0)
    least_dim = 2
    level = 2.0

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self._first = self.dim // 2
        self._second = self.dim - self._first
        self.best = 2.0 * self.level - 0.5 * (1.0 / self._first + 1.0 / self._second)

    @property
    def signal(self) -> Vector:
        """y: the step from -2 to 2."""
        return np.asarray(np.repeat([-self.level, self.level], [self._first, self._second]))

    @property
    def optimum(self) -> Vector:
        towards = np.repeat([1.0 / self._first, -1.0 / self._second], [self._first, self._second])
        return np.asarray(self.signal + towards)

    def losses(self, X: Matrix) -> Vector:
        rest = X - self.signal
        return np.asarray(0.5 * np.einsum("ij,ij->i", rest, rest) + np.abs(np.diff(X, axis=1)).sum(axis=1))
