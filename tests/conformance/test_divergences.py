"""What every divergence must do: a dual function that falls, and steps that no other step in the ball beats.

The suite runs on a divergence of a user's own, Wasserstein-2 in the frame, as on those of the library: what solves the
step problem knows of a divergence what its interface says, and no more.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from conformance.variants import GAUSSIANS, SETTINGS, make
from helpers import covariance_of, random_belief, random_gradient, random_step, scaled
from own_components import Wasserstein
from scipy.linalg import sqrtm

import cones
from cones import Gradient, InputError, StepStatus
from cones.beliefs import Gaussian
from cones.component import components
from cones.divergences import Ball, Divergence, Hellinger
from cones.solvers import Dual
from cones.solvers.root import find_multiplier
from cones.steps import Convex

DIVERGENCES = {
    **{
        f"{name} {settings}" if settings else name: make("divergence", name, settings)
        for name in components("divergence")
        for settings in SETTINGS["divergence"].get(name, [])
    },
    "own wasserstein": Wasserstein(),
    "the same, derivatives unknown": Wasserstein(derivatives=False),
}
every_divergence = pytest.mark.parametrize("divergence", DIVERGENCES.values(), ids=DIVERGENCES)
every_belief = pytest.mark.parametrize("kind", GAUSSIANS)
RADII = [1e-3, 0.3, 1.0, 5.0]
FOUND = (StepStatus.OPTIMAL, StepStatus.UNPROVED)


def reached(divergence: Divergence, radius: float) -> float:
    """The radius, or one that the divergence reaches."""
    return min(radius, 0.9) if isinstance(divergence, Hellinger) else radius


def gain(belief: Gaussian, gradient: Gradient, new: Gaussian) -> float:
    difference = covariance_of(new) - covariance_of(belief)
    G = np.diag(gradient.covariance) if np.ndim(gradient.covariance) == 1 else np.asarray(gradient.covariance)
    return float((new.mean - belief.mean) @ np.asarray(gradient.mean) + np.sum(difference * G))


@every_divergence
@every_belief
@pytest.mark.parametrize("radius", RADII)
def test_the_dual_function_falls_and_its_bracket_has_the_root(divergence: Divergence, kind: str, radius: float) -> None:
    radius = reached(divergence, radius)
    for seed in range(5):
        frame = random_belief(kind, 5, seed).whiten(random_gradient(kind, 5, seed + 50))
        lagrangian = divergence.lagrangian(frame, radius)
        low, guess, high = lagrangian.bracket()
        assert low <= guess <= high
        with np.errstate(all="ignore"):  # far from the root, phi overflows
            values = [lagrangian.at(u).divergence for u in np.linspace(max(low, guess - 8.0), high, 60)]
            assert lagrangian.at(low).divergence >= lagrangian.level(radius) >= values[-1]
        values = [value for value in values if value < math.inf]
        assert len(values) > 10
        assert (np.diff(values) < 0.0).all()


@every_divergence
@every_belief
def test_derivatives_are_those_of_the_dual_function_or_unknown(divergence: Divergence, kind: str) -> None:
    frame = random_belief(kind, 5, 1).whiten(random_gradient(kind, 5, 51))
    lagrangian = divergence.lagrangian(frame, 0.5)
    low, guess, high = lagrangian.bracket()
    for u in np.linspace(max(low, guess - 2.0), high + 3.0, 7):
        h = 1e-4
        below, here, above = (lagrangian.at(u + step) for step in (-h, 0.0, h))
        if math.isnan(here.slope):
            return
        assert here.slope == pytest.approx((above.divergence - below.divergence) / (2 * h), rel=1e-4)
        if math.isnan(here.bend):
            continue
        assert here.bend == pytest.approx((above.slope - below.slope) / (2 * h), rel=1e-5)


@every_divergence
@every_belief
@pytest.mark.parametrize("radius", RADII)
def test_the_step_lies_on_the_boundary_and_is_what_it_reports(divergence, kind: str, radius: float) -> None:
    radius = reached(divergence, radius)
    for seed in range(5):
        belief, gradient = random_belief(kind, 4, seed), random_gradient(kind, 4, seed + 50)
        step = cones.solve_step(belief, gradient, radius, divergence=divergence)
        assert step.status in FOUND
        assert step.divergence == pytest.approx(radius**2, rel=1e-9)
        assert divergence.between(step.belief, belief) == pytest.approx(radius**2, rel=1e-5)
        assert gain(belief, gradient, step.belief) == pytest.approx(step.objective, rel=1e-6)
        assert 0.0 <= step.gap
        assert (step.gap <= 1e-8 * step.objective) == (step.status is StepStatus.OPTIMAL)
        assert step.multiplier > 0.0


@every_divergence
@every_belief
@pytest.mark.parametrize("radius", [0.3, 2.0])
def test_no_other_step_in_the_ball_gains_more(divergence: Divergence, kind: str, radius: float) -> None:
    belief, gradient = random_belief(kind, 3, 0), random_gradient(kind, 3, 1)
    radius = reached(divergence, radius)
    step = cones.solve_step(belief, gradient, radius, divergence=divergence)
    gains = []
    for seed in range(40):
        other = random_step(kind, 3, 100 + seed)
        low, high = 0.0, 20.0  # the largest multiple of this step that is in the ball
        for _ in range(25):
            middle = 0.5 * (low + high)
            inside = divergence.between(belief.moved(scaled(other, middle)), belief) <= radius**2
            low, high = (middle, high) if inside else (low, middle)
        gains.append(gain(belief, gradient, belief.moved(scaled(other, low))))
    assert max(gains) <= (step.objective + step.gap) * (1.0 + 1e-9)
    if step.status is StepStatus.UNPROVED:
        return
    assert max(gains) > 0.1 * step.objective  # they were no straw men
    # Nor do small changes of the step itself, brought back into the ball.
    for seed in range(50):
        nudge = scaled(random_step(kind, 3, 500 + seed), 1e-3 * radius)
        moved = step.belief.moved(nudge)
        excess = divergence.between(moved, belief) / radius**2
        assert gain(belief, gradient, moved) <= step.objective * max(1.0, excess) * (1.0 + 1e-3 * radius)


@every_divergence
@every_belief
def test_the_scale_of_the_gradient_does_not_matter(divergence: Divergence, kind: str) -> None:
    belief, gradient = random_belief(kind, 4, 2), random_gradient(kind, 4, 3)
    one = cones.solve_step(belief, gradient, 0.7, divergence=divergence)
    for factor in (1e-100, 1e100):
        large = Gradient(factor * np.asarray(gradient.mean), factor * np.asarray(gradient.covariance))
        other = cones.solve_step(belief, large, 0.7, divergence=divergence)
        assert other.belief.kl(one.belief) == pytest.approx(0.0, abs=1e-10)
        assert other.multiplier == pytest.approx(factor * one.multiplier, rel=1e-8)


@every_divergence
@every_belief
def test_a_divergence_is_zero_from_itself_and_grows_with_the_distance(divergence: Divergence, kind: str) -> None:
    belief, step = random_belief(kind, 4, 4), random_step(kind, 4, 5)
    assert divergence.between(belief, belief) == pytest.approx(0.0, abs=1e-7)
    distances = [divergence.between(belief.moved(scaled(step, size)), belief) for size in (0.02, 0.05, 0.1, 0.2)]
    assert (np.diff([0.0, *distances]) > 0.0).all()


@every_divergence
def test_the_root_is_found_in_few_iterations(divergence: Divergence) -> None:
    for seed in range(10):
        frame = random_belief("diagonal", 30, seed).whiten(random_gradient("diagonal", 30, seed + 50))
        for radius in (reached(divergence, radius) for radius in RADII):
            lagrangian = divergence.lagrangian(frame, radius)
            with np.errstate(all="ignore"):
                point, iterations, converged = find_multiplier(lagrangian, radius)
            assert converged
            assert point.divergence == pytest.approx(lagrangian.level(radius), rel=1e-10)
            assert point.divergence <= lagrangian.level(radius)
            assert iterations <= (15 if not math.isnan(point.slope) else 80)


@every_divergence
def test_a_run_with_its_ball_descends(divergence: Divergence) -> None:
    result = cones.minimize(
        lambda X: ((X - 1.0) ** 2).sum(axis=1),
        np.zeros(8),
        step=Convex(0.4, divergence=divergence),
        vectorized=True,
        rng=0,
        maxiter=150,
    )
    assert result.history["mean_loss"][-1] < 0.01 * result.history["mean_loss"][0]
    assert np.isin(result.history["step_status"], [status.code for status in FOUND]).all()


@every_belief
def test_wasserstein_is_the_distance_between_gaussians(kind: str) -> None:
    """|m|^2 + tr( R + I - 2 R^(1/2) ) in the frame."""
    new, old = random_belief(kind, 4, 0), random_belief(kind, 4, 1)
    L = np.column_stack([old.from_frame(e) for e in np.eye(4)])
    R, m = np.linalg.solve(L, np.linalg.solve(L, covariance_of(new)).T), np.linalg.solve(L, new.mean - old.mean)
    expected = m @ m + np.trace(R) + 4 - 2 * np.trace(np.real(sqrtm(R)))
    assert Wasserstein().between(new, old) == pytest.approx(expected, rel=1e-9)


def test_kl_of_the_interface_is_that_of_the_belief() -> None:
    p, q = random_belief("full", 4, 0), random_belief("full", 4, 1)
    assert make("divergence", "kl", {}).between(p, q) == p.kl(q)


@pytest.mark.parametrize("radius", [0.3, 2.0])
def test_wasserstein_by_the_root_finder_is_wasserstein_by_a_cone_program(radius: float) -> None:
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(5), rng.standard_normal(5)
    m, r = cp.Variable(5), cp.Variable(5)
    distance = cp.sum_squares(m) + cp.sum(r) - 2 * cp.sum(cp.sqrt(r)) + 5
    problem = cp.Problem(cp.Maximize(a @ m + b @ (r - 1)), [distance <= radius**2])
    problem.solve(solver="CLARABEL")
    step = cones.solve_step(cones.DiagonalGaussian(np.zeros(5), 1.0), Gradient(a, b), radius, divergence=Wasserstein())
    assert step.objective == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(step.belief.mean, m.value, atol=1e-3)
    np.testing.assert_allclose(step.belief.variance, r.value, atol=1e-2)


def test_cone_programs_refuse_a_ball_that_is_not_theirs() -> None:
    pytest.importorskip("cvxpy")
    belief, gradient = random_belief("diagonal", 3, 0), random_gradient("diagonal", 3, 1)
    with pytest.raises(
        InputError, match=r"divergence: expected kl, chi2 or renyi .* for solver 'clarabel', got Wasserstein"
    ):
        cones.solve_step(belief, gradient, 1.0, solver="clarabel", divergence=Wasserstein())


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf, 1e200, "wide"])
def test_a_ball_needs_a_radius(radius: object) -> None:
    with pytest.raises(InputError, match="radius: expected a"):
        Ball(Wasserstein(), radius)


def test_the_dual_gives_a_zero_step_for_a_zero_gradient_in_any_ball() -> None:
    zero = random_belief("diagonal", 3, 0).whiten(Gradient(np.zeros(3), np.zeros(3)))
    for divergence in DIVERGENCES.values():
        step = Dual().solve(zero, Ball(divergence, 0.9))
        assert step.status is StepStatus.ZERO_GRADIENT
        assert not step.shift.any()
