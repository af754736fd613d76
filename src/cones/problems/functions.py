"""Test functions. The first four are those of the paper, as its appendix B defines them."""

from __future__ import annotations

import math

import numpy as np

from cones.problems.problem import Problem
from cones.types import Matrix, Vector

__all__ = [
    "Ackley",
    "Ellipsoid",
    "Griewank",
    "Levy",
    "Lunacek",
    "Rastrigin",
    "Rosenbrock",
    "Schwefel",
    "Sphere",
    "StyblinskiTang",
]


class Sphere(Problem):
    """sum(x^2)"""

    name, domain = "sphere", (-5.0, 5.0)

    def losses(self, X: Matrix) -> Vector:
        return np.asarray(np.einsum("ij,ij->i", X, X))


class Rosenbrock(Problem):
    """sum(100 (x_i^2 - x_{i+1})^2 + (1 - x_i)^2)"""

    name, domain = "rosenbrock", (-5.0, 5.0)
    least_dim, minimiser = 2, 1.0

    def losses(self, X: Matrix) -> Vector:
        head, tail = X[:, :-1], X[:, 1:]
        wall = head * head
        wall -= tail
        slope = 1.0 - head
        return np.asarray(100.0 * np.einsum("ij,ij->i", wall, wall) + np.einsum("ij,ij->i", slope, slope))


class Rastrigin(Problem):
    """10 n + sum(x^2 - 10 cos(2 pi x))"""

    name, domain = "rastrigin", (-5.0, 5.0)

    def losses(self, X: Matrix) -> Vector:
        waves = np.cos(2.0 * math.pi * X).sum(axis=1)
        return np.asarray(10.0 * self.dim + np.einsum("ij,ij->i", X, X) - 10.0 * waves)


class Lunacek(Problem):
    """min(sum((x - mu1)^2), d n + s sum((x - mu2)^2)) + 10 sum(1 - cos(2 pi (x - mu1)))"""

    name, domain = "lunacek", (-5.0, 5.0)
    mu1 = minimiser = 2.5
    d = 1.0
    least_dim = 2  # s is negative in one dimension

    def losses(self, X: Matrix) -> Vector:
        n = self.dim
        s = 1.0 - 1.0 / (2.0 * math.sqrt(n + 20.0) - 8.2)
        mu2 = -math.sqrt((self.mu1**2 - self.d) / s)
        near, far = X - self.mu1, X - mu2
        basins = np.minimum(np.einsum("ij,ij->i", near, near), self.d * n + s * np.einsum("ij,ij->i", far, far))
        near *= 2.0 * math.pi
        return np.asarray(basins + 10.0 * (n - np.cos(near, out=near).sum(axis=1)))


class Ellipsoid(Problem):
    """sum(condition^((i - 1) / (n - 1)) x_i^2), condition = 1e6"""

    name, domain = "ellipsoid", (-5.0, 5.0)

    def __init__(self, dim: int, condition: float = 1e6) -> None:
        super().__init__(dim)
        self._scales = condition ** (np.arange(self.dim) / max(self.dim - 1, 1))

    def losses(self, X: Matrix) -> Vector:
        return np.asarray((X * X) @ self._scales)


class Ackley(Problem):
    """-20 exp(-0.2 sqrt(mean(x^2))) - exp(mean(cos(2 pi x))) + 20 + e"""

    name, domain = "ackley", (-32.768, 32.768)

    def losses(self, X: Matrix) -> Vector:
        root = np.sqrt(np.einsum("ij,ij->i", X, X) / self.dim)
        # -expm1 keeps the digits close to the optimum, where the plain form cancels.
        waves = np.mean(np.cos(2.0 * math.pi * X) - 1.0, axis=1)
        return np.asarray(-20.0 * np.expm1(-0.2 * root) - math.e * np.expm1(waves))


class Griewank(Problem):
    """1 + sum(x^2) / 4000 - prod(cos(x_i / sqrt(i)))"""

    name, domain = "griewank", (-600.0, 600.0)

    def losses(self, X: Matrix) -> Vector:
        product = np.prod(np.cos(X / np.sqrt(np.arange(1.0, self.dim + 1.0))), axis=1)
        return np.asarray(1.0 + np.einsum("ij,ij->i", X, X) / 4000.0 - product)


class Schwefel(Problem):
    """418.98... n - sum(x sin(sqrt(|x|))), continued quadratically outside [-500, 500]"""

    name, domain = "schwefel", (-500.0, 500.0)
    minimiser, height = 420.968746359982, 418.9828872724338

    def losses(self, X: Matrix) -> Vector:
        inside = np.clip(X, *self.domain)  # unbounded below otherwise
        waves = (inside * np.sin(np.sqrt(np.abs(inside)))).sum(axis=1)
        return np.asarray(self.height * self.dim - waves + ((X - inside) ** 2).sum(axis=1))


class Levy(Problem):
    """Levy's function with w = 1 + (x - 1) / 4"""

    name, domain = "levy", (-10.0, 10.0)
    minimiser = 1.0

    def losses(self, X: Matrix) -> Vector:
        w = 1.0 + (X - 1.0) / 4.0
        first, inner, last = w[:, 0], w[:, :-1], w[:, -1]
        middle = ((inner - 1.0) ** 2 * (1.0 + 10.0 * np.sin(math.pi * inner + 1.0) ** 2)).sum(axis=1)
        end = (last - 1.0) ** 2 * (1.0 + np.sin(2.0 * math.pi * last) ** 2)
        return np.asarray(np.sin(math.pi * first) ** 2 + middle + end)


class StyblinskiTang(Problem):
    """1/2 sum(x^4 - 16 x^2 + 5 x)"""

    name, domain = "styblinski_tang", (-5.0, 5.0)
    minimiser, depth = -2.903534027771177, -39.16616570377141

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.best = self.depth * self.dim

    def losses(self, X: Matrix) -> Vector:
        squares = X * X
        return np.asarray(0.5 * (squares * squares - 16.0 * squares + 5.0 * X).sum(axis=1))
