"""The interface of a test problem: a loss with a name, a dimension and a known optimum."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from cones.checks import check_array, check_integer
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["Problem"]


class Problem(ABC):
    """A loss to minimise. Call it with one candidate, shape (n,), or several, shape (k, n).

    Attributes:
        name: used by the command line and experiment files.
        dim: n.
        optimum: a global minimiser, shape (n,).
        best: the loss at the optimum, without noise.
        least_dim: the smallest n for which the problem is defined.
        domain: (low, high), the search range used in the literature.
    """

    name: str
    best: float = 0.0
    minimiser: float = 0.0  # every coordinate of the optimum
    least_dim: int = 1
    domain: tuple[float, float]

    def __init__(self, dim: int) -> None:
        self.dim = check_integer("dim", dim, self.least_dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim})"

    @property
    def optimum(self) -> Vector:
        return np.full(self.dim, self.minimiser)

    @abstractmethod
    def losses(self, X: Matrix) -> Vector:
        """The losses of the rows of X."""

    def __call__(self, x: ArrayLike) -> Vector | float:
        X = check_array("x", x)
        if X.ndim not in (1, 2) or X.shape[-1] != self.dim:
            raise InputError(f"x: expected shape ({self.dim},) or (k, {self.dim}), got shape {X.shape}")
        losses = self.losses(np.atleast_2d(X))
        return float(losses[0]) if X.ndim == 1 else losses
