"""The divergences of the Renyi family: closed forms beside integrals, steps beside SLSQP, certificates, bad input."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from helpers import covariance_of, random_belief, random_gradient
from numpy.polynomial.hermite_e import hermegauss
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

import cones
from cones import DiagonalGaussian, FullGaussian, Gradient, InputError, StepStatus
from cones.cli.main import main
from cones.component import component_from
from cones.divergences import KL, ChiSquared, Divergence, Hellinger, Renyi, ReverseKL
from cones.records.method import method_from
from cones.steps import LowRank

INTEGRANDS = {
    "reverse_kl": (ReverseKL(), lambda p, q: q * (np.log(q) - np.log(p)), lambda x: x),
    "chi2": (ChiSquared(), lambda p, q: p * p / q, lambda x: x - 1.0),
    "hellinger": (Hellinger(), lambda p, q: np.sqrt(p * q), lambda x: 1.0 - x),
    "renyi:0.3": (Renyi(0.3), lambda p, q: p**0.3 * q**0.7, lambda x: math.log(x) / (0.3 - 1.0)),
    "renyi:1": (Renyi(1.0), lambda p, q: p * (np.log(p) - np.log(q)), lambda x: x),
    "renyi:3": (Renyi(3.0), lambda p, q: p**3 / q**2, lambda x: math.log(x) / 2.0),
}
DIVERGENCES = [divergence for divergence, *_ in INTEGRANDS.values()]
PROBLEMS = range(int(os.environ.get("CONES_PROBLEMS", "17")))  # random problems per divergence; the page's are 100
every_divergence = pytest.mark.parametrize("divergence", DIVERGENCES, ids=INTEGRANDS)


@pytest.mark.parametrize("name", INTEGRANDS)
@pytest.mark.parametrize(("mean", "deviation"), [(0.7, 1.1), (-0.4, 0.6), (0.0, 1.15), (1e-3, 1.001)])
def test_the_closed_form_is_the_integral(name: str, mean: float, deviation: float) -> None:
    divergence, integrand, of = INTEGRANDS[name]
    new, old = norm(mean, deviation), norm(0.0, 1.0)
    integral = quad(lambda x: integrand(new.pdf(x), old.pdf(x)), -16, 16, epsabs=1e-14, epsrel=1e-13, limit=400)[0]
    found = divergence.between(DiagonalGaussian([mean], deviation**2), DiagonalGaussian([0.0], 1.0))
    assert found == pytest.approx(of(integral), rel=1e-8, abs=1e-11)
    assert component_from("divergence", name) == divergence


@pytest.mark.parametrize("name", [name for name in INTEGRANDS if name != "renyi:1"])
@pytest.mark.parametrize("kind", ["full", "low_rank"])
def test_in_three_dimensions_too(name: str, kind: str) -> None:
    """Gauss-Hermite quadrature under the old belief; E_old f(new / old) is the integral above."""
    divergence, integrand, of = INTEGRANDS[name]
    old = random_belief(kind, 3, 0)
    new = cones.solve_step(old, random_gradient(kind, 3, 1), 0.1).belief
    nodes, weights = hermegauss(30)
    z = np.array(list(product(nodes, repeat=3)))
    mass = np.array([math.prod(w) for w in product(weights / weights.sum(), repeat=3)])
    X = old.mean + np.array([old.from_frame(row) for row in np.eye(3)]).T.dot(z.T).T
    ratio = np.exp(new.log_density(X) - old.log_density(X))
    assert divergence.between(new, old) == pytest.approx(of(float(mass @ integrand(ratio, np.ones(len(X))))), rel=1e-6)


def form(divergence: Divergence, m: np.ndarray, R: np.ndarray) -> float:
    """The divergence of N(m, R) from N(0, I), by the textbook."""
    n, log_det = len(m), np.linalg.slogdet(R)[1]
    if isinstance(divergence, ReverseKL):
        inverse = np.linalg.inv(R)
        return 0.5 * float(np.trace(inverse) + m @ inverse @ m - n + log_det)
    alpha = {ChiSquared: 2.0, Hellinger: 0.5}.get(type(divergence)) or divergence.alpha
    if alpha == 1.0:
        return 0.5 * float(np.trace(R) + m @ m - n - log_det)
    S = alpha * np.eye(n) + (1.0 - alpha) * R
    if np.linalg.eigvalsh(S)[0] <= 0.0:
        return 1e3
    d = 0.5 * alpha * m @ np.linalg.solve(S, m) - (np.linalg.slogdet(S)[1] - (1 - alpha) * log_det) / (2 * (alpha - 1))
    if isinstance(divergence, ChiSquared):
        return math.expm1(min(d, 100.0))
    return -math.expm1(-0.5 * d) if isinstance(divergence, Hellinger) else float(d)


def slsqp(divergence: Divergence, a: np.ndarray, B: np.ndarray, radius: float, full: bool) -> float:
    """The best of the step problem, from the origin, in m and log-variances or a Cholesky factor."""
    n = len(a)
    lower = np.tril_indices(n)
    diagonal = lower[0] == lower[1]

    def parts(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = radius * x
        if not full:
            return x[:n], np.diag(np.exp(x[n:]))
        L = np.zeros((n, n))
        L[lower] = np.where(diagonal, np.exp(x[n:]), x[n:])
        return x[:n], L @ L.T

    def gain(x: np.ndarray) -> float:
        m, R = parts(x)
        return float(a @ m + np.sum(B * (R - np.eye(n)))) / radius

    start = np.zeros(n + (lower[0].size if full else n))
    ball = {"type": "ineq", "fun": lambda x: 1.0 - form(divergence, *parts(x)) / radius**2}
    start[:n] = 0.1 * a / np.linalg.norm(a)
    found = minimize(
        lambda x: -gain(x), start, method="SLSQP", constraints=[ball], bounds=[(-6.0, 6.0)] * start.size,
        options={"ftol": 1e-10, "maxiter": 300},
    )  # fmt: skip
    assert form(divergence, *parts(found.x)) <= radius**2 * (1 + 1e-6)
    return -float(found.fun) * radius


def cone_program(divergence: Divergence, a: np.ndarray, B: np.ndarray, radius: float, full: bool) -> float:
    """For alpha >= 1: a quadratic over an affine matrix, and two log-determinants."""
    cp = pytest.importorskip("cvxpy")
    alpha, n = divergence.form.c, len(a)
    m, r = cp.Variable(n), cp.Variable((n, n), PSD=True) if full else cp.Variable(n)
    if not full:
        s = alpha + (1.0 - alpha) * r
        mean, log_s, log_r, trace = (
            cp.sum([cp.quad_over_lin(m[i], s[i]) for i in range(n)]),
            cp.sum(cp.log(s)),
            cp.sum(cp.log(r)),
            cp.sum(r),
        )
    else:
        s = alpha * np.eye(n) + (1.0 - alpha) * r
        mean, log_s, log_r, trace = cp.matrix_frac(m, s), cp.log_det(s), cp.log_det(r), cp.trace(r)
    shape = 0.5 * (trace - n - log_r) if alpha == 1.0 else -0.5 / (alpha - 1.0) * log_s - 0.5 * log_r
    gain = a @ m + (cp.trace(B @ r) - np.trace(B) if full else np.diag(B) @ (r - 1.0))
    program = cp.Problem(cp.Maximize(gain), [0.5 * alpha * mean + shape <= divergence.level(radius**2)])
    program.solve(solver="CLARABEL")
    return float(program.value)


@every_divergence
@pytest.mark.parametrize("seed", PROBLEMS)
def test_the_step_gains_what_another_solver_finds(divergence: Divergence, seed: int) -> None:
    """In balls that lie where the form is convex: radius^2 below d at the largest eigenvalue."""
    rng = np.random.default_rng(seed)
    full = seed % 4 == 0
    n = int(rng.integers(1, 5 if full else 11))
    radius = float(rng.uniform(0.02, 0.2))
    if divergence.form.q <= 0.0:
        radius *= 6.0
    a, square = rng.standard_normal(n), rng.standard_normal((n, n))
    B = square + square.T if full else np.diag(rng.standard_normal(n))
    belief = FullGaussian(np.zeros(n), np.eye(n)) if full else DiagonalGaussian(np.zeros(n), 1.0)
    step = cones.solve_step(belief, Gradient(a, B if full else np.diag(B)), radius, divergence=divergence)
    assert step.status is StepStatus.OPTIMAL
    assert form(divergence, step.belief.mean, covariance_of(step.belief)) == pytest.approx(radius**2, rel=1e-7)
    other = slsqp if divergence.form.q > 0.0 else cone_program
    assert step.objective == pytest.approx(other(divergence, a, B, radius, full), rel=1e-5)


@every_divergence
def test_small_balls_have_the_natural_gradient(divergence: Divergence) -> None:
    """The Hessian of every f-divergence is a multiple of Fisher's information."""
    belief, gradient = random_belief("full", 4, 3), random_gradient("full", 4, 4)
    one = cones.solve_step(belief, gradient, 1e-5, divergence=divergence)
    other = cones.solve_step(belief, gradient, 1e-5)
    for this, that in ((one.shift, other.shift), (one.log_ratio.dense(), other.log_ratio.dense())):
        assert np.sum(this * that) == pytest.approx(np.linalg.norm(this) * np.linalg.norm(that), rel=1e-8)


def test_order_one_is_kl_and_its_neighbours_are_close() -> None:
    belief, gradient = random_belief("full", 4, 3), random_gradient("full", 4, 4)
    kl = cones.solve_step(belief, gradient, 0.8)
    for alpha, error in ((1.0, 1e-15), (1.0 - 1e-6, 1e-4), (1.0 + 1e-6, 1e-4)):
        step = cones.solve_step(belief, gradient, 0.8, divergence=Renyi(alpha))
        assert step.objective == pytest.approx(kl.objective, rel=error)
        assert step.multiplier == pytest.approx(kl.multiplier, rel=100 * error)


@every_divergence
def test_the_curvature_is_the_ratio_to_kl_of_small_changes(divergence: Divergence) -> None:
    belief = DiagonalGaussian([0.0, 1.0], [1.0, 2.0])
    new = DiagonalGaussian([1e-4, 1.0], [1.0, 2.0 + 3e-4])
    assert divergence.between(new, belief) == pytest.approx(divergence.curvature * new.kl(belief), rel=1e-3)


@every_divergence
def test_the_multiplier_is_the_price_of_the_ball(divergence: Divergence) -> None:
    """d objective / d radius^2."""
    belief, gradient = random_belief("full", 4, 5), random_gradient("full", 4, 6)
    gains = [cones.solve_step(belief, gradient, math.sqrt(0.02 + h), divergence=divergence) for h in (-1e-6, 0.0, 1e-6)]
    slope = (gains[2].objective - gains[0].objective) / 2e-6
    assert gains[1].multiplier == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("divergence", [ReverseKL(), Hellinger(), Renyi(0.3)])
def test_a_ball_that_is_not_convex_says_so_and_the_gap_bounds_what_it_has(divergence: Divergence) -> None:
    """One eigenvalue beyond the convex part gains more; the certificate is for it, too."""
    radius, belief, gradient = 0.8, DiagonalGaussian(np.zeros(1), 1.0), Gradient([0.0], [1.0])
    step = cones.solve_step(belief, gradient, radius, divergence=divergence)
    assert step.status is StepStatus.UNPROVED
    assert step.status.ok
    assert step.divergence <= radius**2
    assert step.belief.variance[0] == pytest.approx(1.0 + divergence.form.q**-0.5, rel=1e-6)
    inside = [
        r for r in np.exp(np.linspace(0.0, 40.0, 1001)) if form(divergence, np.zeros(1), r * np.eye(1)) <= radius**2
    ]
    assert step.objective < max(inside) - 1.0 <= step.objective + step.gap
    smaller = cones.solve_step(belief, gradient, 0.15, divergence=divergence)
    assert smaller.status is StepStatus.OPTIMAL
    assert smaller.gap <= 1e-9 * smaller.objective
    shrinks = cones.solve_step(belief, Gradient([0.0], [-1.0]), radius, divergence=divergence)
    assert shrinks.status is StepStatus.OPTIMAL  # proved: the far end of the ball gains less


@every_divergence
@pytest.mark.parametrize("low_rank", [False, True])
def test_a_run_takes_the_divergence_by_name(divergence: Divergence, low_rank: bool) -> None:
    name = next(name for name, (other, *_) in INTEGRANDS.items() if other is divergence)
    result = cones.minimize(
        lambda x: float(((x - 1.0) ** 2).sum()), np.zeros(6), radius=0.4, divergence=name, optimizer="direct", rng=0,
        maxiter=40, popsize=20, belief="low_rank" if low_rank else "full",
    )  # fmt: skip
    assert result.fun < 0.5
    assert result.failed_steps == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("hellinge", "divergence: expected one of 'kl', .* got 'hellinge'; did you mean hellinger"),
        ("renyi:0", "alpha: expected a positive number, got 0"),
        ("renyi:-1", "alpha: expected a positive number, got -1"),
        ("renyi:nan", "alpha: expected a number, got 'nan'|alpha: expected a finite number, got nan"),
        ("renyi:inf", "alpha: expected a number, got 'inf'|alpha: expected a finite number"),
        ("renyi", "divergence: cannot create Renyi: .*alpha"),
        ("renyi:", "alpha: expected a number, got ''"),
        ("renyi:1e9", "alpha: expected a number between 0.001 and 1000, got 1000000000.0"),
        ("chi2:3", "divergence.value: unknown setting of ChiSquared; expected one of none"),
        ("renyi,order=2", "divergence.order: unknown setting of Renyi; expected one of alpha"),
        (3, "divergence: expected one of"),
    ],
)
def test_bad_divergences_are_named(value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cones.solve_step(DiagonalGaussian([0.0], 1.0), Gradient([1.0], [1.0]), 1.0, divergence=value)
    with pytest.raises(InputError, match=message):
        cones.CoNES([0.0, 0.0], radius=0.5, divergence=value)


def test_alpha_that_is_not_finite_is_named() -> None:
    for alpha in (math.nan, math.inf, "two", True):
        with pytest.raises(InputError, match="alpha: expected a "):
            Renyi(alpha)


def test_a_radius_out_of_reach_is_named() -> None:
    message = "radius: expected a number below 1 for the divergence 'hellinger', got "
    for radius in (1.0, 2.0):
        with pytest.raises(InputError, match=message):
            cones.solve_step(DiagonalGaussian([0.0], 1.0), Gradient([1.0], [1.0]), radius, divergence="hellinger")
    with pytest.raises(InputError, match=message):
        cones.CoNES([0.0, 0.0], radius="paper", divergence="hellinger")


def test_where_a_divergence_goes() -> None:
    """To the one ball, or to the shape's of the adaptive balls."""
    for radius in (None, "auto", "adaptive"):
        assert cones.CoNES([0.0, 0.0], radius=radius, divergence="chi2").algorithm.step.divergence == ChiSquared()
    plain, chi2 = (cones.CoNES([0.0, 0.0], belief="low_rank", divergence=d).algorithm.step for d in ("kl", "chi2"))
    assert isinstance(plain, LowRank)
    assert chi2 == replace(plain, balls=replace(plain.balls, divergence=ChiSquared()))
    with pytest.raises(InputError, match=r"divergence: expected none beside radius=cones\.Balls"):
        cones.CoNES([0.0, 0.0], radius=cones.Balls(), divergence="chi2")
    with pytest.raises(InputError, match="step: expected neither radius nor solver nor divergence nor chart beside it"):
        cones.CoNES([0.0, 0.0], step="natural", divergence="chi2")
    es = cones.CoNES([0.0, 0.0], radius=0.5, divergence={"name": "renyi", "alpha": 2})
    assert es.algorithm.step.divergence == Renyi(2.0)
    assert isinstance(cones.CoNES([0.0, 0.0], radius=0.5).algorithm.step.divergence, KL)


def test_large_and_small_gradients_and_radii() -> None:
    belief = DiagonalGaussian(np.zeros(3), 1.0)
    for divergence, radius, scale in product(DIVERGENCES, (1e-40, 1e-8, 0.9, 1e6), (1e-250, 1.0, 1e250)):
        if isinstance(divergence, Hellinger) and radius > 1.0:
            continue
        for a, b in (([1.0, 0.0, -2.0], [0.3, -1.0, 0.0]), ([0.0, 0.0, 0.0], [-1.0, -0.5, 0.0])):
            gradient = Gradient(scale * np.array(a), scale * np.array(b))
            step = cones.solve_step(belief, gradient, radius, divergence=divergence)
            assert step.status in (StepStatus.OPTIMAL, StepStatus.UNPROVED)
            assert step.divergence <= radius**2
            assert step.divergence >= 0.99 * radius**2 or step.multiplier <= 1e-140 * scale  # inactive


def test_the_command_line_and_a_checkpoint_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["minimize", "objectives:loss", "--dim", "3", "--radius", "0.4", "--divergence", "renyi:2", "--quiet"]
    run += ["--checkpoint", "run.ckpt", "--seed", "0", "--maxiter"]
    assert main([*run, "3"]) in (0, 1)
    assert cones.load("run.ckpt").algorithm.step.divergence == Renyi(2.0)
    assert main([*run, "5", "--resume"]) in (0, 1)


def test_an_experiment_file_takes_it_and_asks_for_no_trust() -> None:
    method = method_from({"method": "cones", "radius": 0.4, "divergence": "renyi:2"}, "", (0,), 100)
    assert method.own_components() == []
    assert method.strategy(np.zeros(3), 1.0, 0).algorithm.step.divergence == Renyi(2.0)
