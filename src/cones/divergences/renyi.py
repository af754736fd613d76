r"""Renyi's divergences and their relatives; `cones.divergences.family` has the mathematics.

renyi:ALPHA   D = log E_old (new / old)^alpha / (alpha - 1)          KL at alpha = 1
chi2          E_old (new / old - 1)^2        = exp(D_2) - 1
hellinger     1 - integral sqrt(new old)     = 1 - exp(-D_1/2 / 2), below 1
reverse_kl    KL(old || new)                 = the limit of D_alpha / alpha at alpha = 0
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cones.beliefs import FrameGradient, Gaussian
from cones.checks import check_positive, store
from cones.component import setting
from cones.divergences.divergence import Lagrangian
from cones.divergences.family import RenyiFamily
from cones.divergences.form import Form
from cones.divergences.kl import KL, size_of
from cones.divergences.natural import NaturalLagrangian
from cones.errors import InputError

__all__ = ["ChiSquared", "Hellinger", "Renyi", "ReverseKL"]

# Nearer to 1 than this, the order makes no difference in floating point.
NEAR_ONE = 1e-10
SMALLEST, LARGEST = 1e-3, 1e3


@dataclass(frozen=True)
class Renyi(RenyiFamily):
    """Renyi's divergence of order alpha, in nats."""

    name = "renyi"

    alpha: float = setting(sentence="The order, from 0.001 to 1000; 1 is KL.")

    def __post_init__(self) -> None:
        alpha = check_positive("alpha", self.alpha)
        if not SMALLEST <= alpha <= LARGEST:
            raise InputError(f"alpha: expected a number between {SMALLEST:g} and {LARGEST:g}, got {alpha}")
        store(self, alpha=alpha)

    @property
    def form(self) -> Form:
        return Form(self.alpha, 1.0 - self.alpha, self.alpha)

    def lagrangian(self, gradient: FrameGradient, radius: float) -> Lagrangian | None:
        is_kl = abs(self.alpha - 1.0) < NEAR_ONE
        return KL().lagrangian(gradient, radius) if is_kl else super().lagrangian(gradient, radius)

    def between(self, new: Gaussian, old: Gaussian) -> float:
        return new.kl(old) if abs(self.alpha - 1.0) < NEAR_ONE else super().between(new, old)


def in_natural_parameters(gradient: FrameGradient, radius: float) -> NaturalLagrangian | None:
    scale = size_of(gradient)
    return None if scale == 0.0 else NaturalLagrangian(gradient, radius, scale)


@dataclass(frozen=True)
class ReverseKL(RenyiFamily):
    """KL(old || new), in nats."""

    name = "reverse_kl"
    charts = {"natural_parameters": in_natural_parameters}  # noqa: RUF012

    @property
    def form(self) -> Form:
        return Form(0.0, 1.0, 1.0)


@dataclass(frozen=True)
class ChiSquared(RenyiFamily):
    """The chi-squared divergence, the variance of new / old under old."""

    name = "chi2"

    @property
    def form(self) -> Form:
        return Form(2.0, -1.0, 2.0)

    def level(self, divergence: float) -> float:
        return math.log1p(divergence)

    def value(self, level: float) -> float:
        return math.expm1(level) if level < 700.0 else math.inf

    def rate(self, level: float) -> float:
        return math.exp(level)


@dataclass(frozen=True)
class Hellinger(RenyiFamily):
    """The squared Hellinger distance, 1 - integral sqrt(new old). It is below 1."""

    name = "hellinger"
    largest_radius = 1.0

    @property
    def form(self) -> Form:
        return Form(0.5, 0.5, 0.5)

    def level(self, divergence: float) -> float:
        return -2.0 * math.log1p(-divergence)

    def value(self, level: float) -> float:
        return -math.expm1(-0.5 * level)

    def rate(self, level: float) -> float:
        return 0.5 * math.exp(-0.5 * level)
