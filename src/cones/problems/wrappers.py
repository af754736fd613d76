"""Wrappers that shift, rotate, add noise to or corrupt a problem. They can be nested."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from cones.checks import check_fraction, check_positive, check_vector
from cones.problems.problem import Problem
from cones.sampling import Rng, seed_from
from cones.types import Matrix, Vector

__all__ = ["Corrupted", "Noisy", "Rotated", "Shifted"]


class _Wrapper(Problem):
    def __init__(self, problem: Problem, suffix: str) -> None:
        super().__init__(problem.dim)
        self.problem = problem
        self.name = f"{problem.name}{suffix}"
        self.best = problem.best
        self.domain = problem.domain

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.problem!r})"


class Shifted(_Wrapper):
    """problem(x - shift): the optimum moves by `shift`, one number or one per coordinate."""

    def __init__(self, problem: Problem, shift: ArrayLike) -> None:
        text = f"+{float(np.asarray(shift)):g}" if np.ndim(shift) == 0 else "+shift"
        super().__init__(problem, text)
        self.shift = check_vector("shift", shift, problem.dim)
        low, high = problem.domain
        self.domain = (low + float(self.shift.min()), high + float(self.shift.max()))

    @property
    def optimum(self) -> Vector:
        return self.problem.optimum + self.shift

    def losses(self, X: Matrix) -> Vector:
        return self.problem.losses(X - self.shift)


class Rotated(_Wrapper):
    """problem(Q x) with a random orthogonal matrix Q (Haar measure). O(n^2) memory."""

    def __init__(self, problem: Problem, rng: Rng = 0) -> None:
        super().__init__(problem, " rotated")
        normals = np.random.default_rng(seed_from(rng)).standard_normal((self.dim, self.dim))
        basis, triangle = np.linalg.qr(normals)
        self.rotation = basis * np.sign(np.diag(triangle))

    @property
    def optimum(self) -> Vector:
        return np.asarray(self.rotation.T @ self.problem.optimum)

    def losses(self, X: Matrix) -> Vector:
        return self.problem.losses(X @ self.rotation.T)


class Noisy(_Wrapper):
    """problem(x) plus normal noise of a standard deviation, if `relative` in units of that of the losses of a call.

    The noise is a function of the seed and of the candidate's bits: it differs between candidates, and it is the same
    in a run that is repeated, resumed or distributed.
    """

    def __init__(self, problem: Problem, deviation: float, rng: Rng = 0, relative: bool = False) -> None:
        super().__init__(problem, f" noisy {deviation:g}{' relative' if relative else ''}")
        self.deviation = check_positive("deviation", deviation)
        self.seed = seed_from(rng)
        self.relative = relative

    @property
    def optimum(self) -> Vector:
        return self.problem.optimum

    def losses(self, X: Matrix) -> Vector:
        noise = np.array([rng.standard_normal() for rng in _generators(X, self.seed)])
        losses = self.problem.losses(X)
        return losses + self.deviation * (float(np.std(losses)) if self.relative else 1.0) * noise


class Corrupted(_Wrapper):
    """problem(x), with a share of the losses replaced by arbitrary values: either sign, 10^-3 to 10^6 in size.

    Which losses these are, and the values, are functions of the seed and of the candidate's bits, as in `Noisy`. The
    lowest loss of a run is likely a corrupted one: compare runs by the loss at the mean, without the wrapper.
    """

    def __init__(self, problem: Problem, share: float, rng: Rng = 0) -> None:
        super().__init__(problem, f" {100 * check_fraction('share', share):g}% corrupted")
        self.share = float(share)
        self.seed = seed_from(rng)

    @property
    def optimum(self) -> Vector:
        return self.problem.optimum

    def losses(self, X: Matrix) -> Vector:
        losses = np.array(self.problem.losses(X))
        for index, rng in enumerate(_generators(X, self.seed, b"corrupted")):
            if rng.random() < self.share:
                losses[index] = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-3.0, 6.0)
        return losses


def _generators(X: Matrix, seed: int, use: bytes = b"") -> Iterator[np.random.Generator]:
    """A generator for each row of X, seeded by its bits; another one for each use."""
    key = seed.to_bytes(16, "little")
    for row in X:
        digest = hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=16, key=key, person=use).digest()
        yield np.random.default_rng(int.from_bytes(digest, "little"))
