"""The interface of a test problem: a loss that knows its name, its dimension and its optimum."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from cones.checks import check_array, check_integer
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["Problem"]


class Problem(ABC):
    """A loss to be minimised, called with one candidate (n,) or with many, one per row (k, n).

    Attributes:
        name: as the command line and experiment files spell it.
        dim: n.
        optimum: a global minimiser, shape (n,).
        best: the loss there (without noise).
        least_dim: the least n for which it is a function at all.
        domain: (low, high), the range in which the literature starts and searches.
    """

    name: str
    best: float = 0.0
    least_dim: int = 1
    domain: tuple[float, float]

    def __init__(self, dim: int) -> None:
        self.dim = check_integer("dim", dim, self.least_dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim})"

    @property
    @abstractmethod
    def optimum(self) -> Vector: ...

    @abstractmethod
    def losses(self, X: Matrix) -> Vector:
        """The losses of the rows of X."""

    def __call__(self, x: ArrayLike) -> Vector | float:
        X = check_array("x", x)
        if X.ndim not in (1, 2) or X.shape[-1] != self.dim:
            raise InputError(f"x: expected shape ({self.dim},) or (k, {self.dim}), got shape {X.shape}")
        losses = self.losses(np.atleast_2d(X))
        return float(losses[0]) if X.ndim == 1 else losses
