r"""Independent factors side by side: Gaussians and other families in one belief.

KL, entropy and log density are sums over the factors, and so is the Lagrangian of the step problem: one multiplier for
all. Candidates are those of the factors, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from cones.beliefs.belief import Belief
from cones.beliefs.families.family import ExponentialFamily
from cones.beliefs.gaussian.gaussian import Gaussian
from cones.beliefs.gaussian.matrices import FrameMatrix
from cones.beliefs.step import Step, StepStatus
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["Product", "ProductGradient", "ProductMatrix"]


@dataclass(slots=True, eq=False)
class ProductMatrix:
    """A block-diagonal matrix in the frame: one block per factor, None for those that are not Gaussian."""

    blocks: tuple[FrameMatrix | None, ...]
    keeps_axes: ClassVar[bool] = False

    @property
    def values(self) -> Vector:
        return np.concatenate([block.values for block in self.blocks if block is not None])

    def spectrum(self) -> Vector:
        """All eigenvalues."""
        return np.concatenate([block.spectrum() for block in self.blocks if block is not None])

    def map(self, function: Callable[[Vector], Vector]) -> ProductMatrix:
        """The matrix with `function` applied elementwise to its eigenvalues."""
        return ProductMatrix(tuple(None if block is None else block.map(function) for block in self.blocks))


class ProductGradient(NamedTuple):
    """The gradients of the factors."""

    parts: tuple[Any, ...]

    @property
    def mean(self) -> Vector:
        return np.concatenate([part.mean for part in self.parts])

    @property
    def covariance(self) -> ProductMatrix | None:
        blocks = tuple(part.covariance for part in self.parts)
        return None if all(block is None for block in blocks) else ProductMatrix(blocks)


class Product(Belief):
    """Independent factors; a candidate is the candidates of all factors, one after the other.

    Args:
        *factors: beliefs: Gaussians, `Bernoulli`, `Categorical`, `Poisson`.

    Example:
        >>> from cones import Bernoulli, DiagonalGaussian
        >>> belief = Product(DiagonalGaussian([1.0], [4.0]), Bernoulli([0.2, 0.9]))
        >>> belief.candidates(np.array([[1.0, 0.0, 0.0]]))
        array([[3., 0., 1.]])
    """

    name = "product"

    def __init__(self, *factors: Belief) -> None:
        if not factors:
            raise InputError("factors: expected at least one belief, got none")
        for factor in factors:
            if not isinstance(factor, (Gaussian, ExponentialFamily)) or factor.mean.dtype != np.float64:
                raise InputError(f"factors: expected Gaussians or exponential families in float64, got {factor!r:.80}")
        self.factors = tuple(factors)
        self.mean: Vector = np.concatenate([factor.mean for factor in factors])
        self.mean.flags.writeable = False
        ends = accumulate((factor.dim for factor in factors), initial=0)
        self.slices = tuple(slice(first, last) for first, last in pairwise(ends))

    @classmethod
    def start(cls, mean: Vector, deviation: Vector) -> Self:
        raise InputError("belief: expected Product(...) as x0, got the name 'product', which has no factors")

    def split(self, vector: Vector) -> list[Vector]:
        """The parts of a vector, or of the last axis of an array, that belong to the factors."""
        return [vector[..., part] for part in self.slices]

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.factors))})"

    def draw(self, noise: Matrix, out: Matrix, columns: slice = slice(None)) -> None:
        for factor, part in zip(self.factors, self.slices, strict=True):
            factor.draw(np.ascontiguousarray(noise[:, part]), out[:, :, part])

    def mode(self) -> Vector:
        return np.concatenate([factor.mode() for factor in self.factors])

    def log_density(self, candidates: Matrix) -> Vector:
        parts = self.split(np.atleast_2d(candidates))
        return np.asarray(sum(factor.log_density(x) for factor, x in zip(self.factors, parts, strict=True)))

    def from_frame(self, shift: Vector) -> Vector:
        return self._each("from_frame", shift)

    def gradient_from_frame(self, gradient: Vector) -> Vector:
        return self._each("gradient_from_frame", gradient)

    def _each(self, method: str, vector: Vector) -> Vector:
        parts = zip(self.factors, self.split(vector), strict=True)
        return np.concatenate([getattr(factor, method)(part) for factor, part in parts])

    def whiten(self, gradient: Sequence[Any]) -> ProductGradient:
        """The gradients of the factors in their frames; checks them."""
        if not isinstance(gradient, Sequence) or len(gradient) != len(self.factors):
            raise InputError(
                f"gradient: expected a sequence of {len(self.factors)}, one per factor, got {gradient!r:.80}"
            )
        parts = zip(self.factors, gradient, strict=True)
        return ProductGradient(tuple(factor.whiten(part) for factor, part in parts))  # type: ignore[attr-defined]

    def steps(self, step: Step[Any]) -> list[Step[Any]]:
        """The steps of the factors."""
        blocks = [None] * len(self.factors) if step.log_ratio is None else step.log_ratio.blocks
        shifts = zip(self.split(step.shift), blocks, strict=True)
        return [step._replace(shift=shift, log_ratio=block) for shift, block in shifts]

    def joined(self, steps: Iterable[Step[Any]]) -> Step[Any]:
        """One step from those of the factors. Its status is the worst of theirs; a factor that rests does not count."""
        steps = list(steps)
        blocks = tuple(step.log_ratio for step in steps)
        statuses = {step.status for step in steps}
        if len(statuses) > 1:
            statuses.discard(StepStatus.ZERO_GRADIENT)
        columns: dict[str, float] = {}
        for step in reversed(steps):
            columns |= step.columns
        return Step(
            shift=np.concatenate([step.shift for step in steps]),
            log_ratio=None if all(block is None for block in blocks) else ProductMatrix(blocks),
            status=max(statuses, key=lambda status: status.code),
            divergence=sum(step.divergence for step in steps),
            multiplier=steps[0].multiplier,
            objective=sum(step.objective for step in steps),
            gap=sum(step.gap for step in steps),
            columns=columns,
        )

    def moved(self, step: Step[Any]) -> Self:
        return self.move(step)[0]

    def move(self, step: Step[Any]) -> tuple[Self, float]:
        moves = [factor.move(part) for factor, part in zip(self.factors, self.steps(step), strict=True)]
        return type(self)(*(factor for factor, _ in moves)), sum(kl for _, kl in moves)

    def widened(self, least: Vector) -> Self:
        """The product with Gaussian factors whose standard deviations are at least `least`."""
        parts = zip(self.factors, self.split(least), strict=True)
        return type(self)(*(f.widened(part) if isinstance(f, Gaussian) else f for f, part in parts))

    def kl(self, other: Self) -> float:
        self._check_same_kind(other)
        if [type(factor) for factor in other.factors] != [type(factor) for factor in self.factors]:
            raise InputError(f"other: expected a Product of the same factors, got {other!r}")
        return sum(one.kl(two) for one, two in zip(self.factors, other.factors, strict=True))

    def entropy(self) -> float:
        """The sum over the factors, in nats."""
        return sum(factor.entropy() for factor in self.factors)  # type: ignore[attr-defined]

    def standard_deviations(self) -> Vector:
        return np.concatenate([factor.standard_deviations() for factor in self.factors])

    def is_finite(self) -> bool:
        return all(factor.is_finite() for factor in self.factors)

    def is_resolved(self) -> bool:
        return all(factor.is_resolved() for factor in self.factors)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.factors

    def state(self) -> dict[str, Any]:
        return {"factors": self.factors}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        if not isinstance(state["factors"], tuple):
            raise InputError(f"factors: expected beliefs, got {state['factors']!r:.80}")
        return cls(*state["factors"])
