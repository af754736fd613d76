"""The charts in which the loss is linearised: steps beside SLSQP and cone programs, limits, bad input."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from helpers import covariance_of, random_belief, random_gradient
from scipy.optimize import minimize

import cones
from cones import DiagonalGaussian, FullGaussian, Gradient, InputError, StepStatus
from cones.cli.main import main
from cones.divergences import KL, Ball, ReverseKL
from cones.records.method import method_from
from cones.solvers.root import find_multiplier

PAIRS = [("kl", "mean_parameters"), ("reverse_kl", "natural_parameters")]
PROBLEMS = range(int(os.environ.get("CONES_PROBLEMS", "16")))  # random problems per chart; the page's are 100
every_chart = pytest.mark.parametrize(("divergence", "chart"), PAIRS)
every_belief = pytest.mark.parametrize("kind", ["diagonal", "full", "low_rank"])


def of_frame(divergence: str, m: np.ndarray, R: np.ndarray) -> float:
    """The divergence of N(m, R) and N(0, I), by the textbook."""
    sign = 1.0 if divergence == "kl" else -1.0
    first = R if divergence == "kl" else np.linalg.inv(R)
    return 0.5 * float(
        np.trace(first) - len(m) + m @ (m if sign > 0 else first @ m) - sign * np.linalg.slogdet(R).logabsdet
    )


def gain(chart: str, a: np.ndarray, B: np.ndarray, m: np.ndarray, R: np.ndarray) -> float:
    """<gradient, change> of the chart's parameters, in the frame."""
    if chart == "mean_parameters":
        return float(a @ m + np.sum(B * (R - np.eye(len(m)) + np.outer(m, m))))
    inverse = np.linalg.inv(R)
    return float(a @ inverse @ m + np.sum(B * (np.eye(len(m)) - inverse)))


def in_frame(belief, new) -> tuple[np.ndarray, np.ndarray]:
    L = np.column_stack([belief.from_frame(axis) for axis in np.eye(belief.dim)])
    return np.linalg.solve(L, new.mean - belief.mean), np.linalg.solve(L, np.linalg.solve(L, covariance_of(new)).T)


def slsqp(divergence: str, chart: str, a: np.ndarray, B: np.ndarray, radius: float, full: bool) -> float:
    """The best of the step problem, in m and log-variances or a Cholesky factor."""
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

    start = np.zeros(n + (lower[0].size if full else n))
    start[:n] = 0.1 * a / np.linalg.norm(a)
    ball = {"type": "ineq", "fun": lambda x: 1.0 - of_frame(divergence, *parts(x)) / radius**2}
    found = minimize(
        lambda x: -gain(chart, a, B, *parts(x)) / radius, start, method="SLSQP", constraints=[ball],
        bounds=[(-3.0, 3.0)] * start.size, options={"ftol": 1e-11, "maxiter": 300},
    )  # fmt: skip
    assert of_frame(divergence, *parts(found.x)) <= radius**2 * (1.0 + 1e-6)
    return -float(found.fun) * radius


@every_chart
@pytest.mark.parametrize("seed", PROBLEMS)
def test_the_step_gains_what_another_solver_finds(divergence: str, chart: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    full, n = seed % 4 == 0, int(rng.integers(1, 4 if seed % 4 == 0 else 11))
    radius = float(rng.uniform(0.05, 0.6))
    a, square = rng.standard_normal(n), rng.standard_normal((n, n))
    B = square + square.T if full else np.diag(rng.standard_normal(n))
    belief = FullGaussian(np.zeros(n), np.eye(n)) if full else DiagonalGaussian(np.zeros(n), 1.0)
    step = cones.solve_step(belief, Gradient(a, B if full else np.diag(B)), radius, divergence=divergence, chart=chart)
    assert step.status is StepStatus.OPTIMAL
    assert step.objective == pytest.approx(slsqp(divergence, chart, a, B, radius, full), rel=1e-5)


@every_chart
@every_belief
@pytest.mark.parametrize("radius", [1e-6, 0.3, 3.0])
def test_the_step_lies_on_the_boundary_and_is_what_it_reports(
    divergence: str, chart: str, kind: str, radius: float
) -> None:
    for seed in range(3):
        belief, gradient = random_belief(kind, 5, seed), random_gradient(kind, 5, seed + 50)
        step = cones.solve_step(belief, gradient, radius, divergence=divergence, chart=chart)
        assert step.status is StepStatus.OPTIMAL
        assert step.divergence == pytest.approx(radius**2, rel=1e-9)
        assert 0.0 <= step.gap <= 1e-8 * step.objective
        if radius > 1e-3:
            frame = belief.whiten(gradient)
            m, R = in_frame(belief, step.belief)
            assert of_frame(divergence, m, R) == pytest.approx(radius**2, rel=1e-6)
            assert gain(chart, frame.mean, frame.covariance.dense(), m, R) == pytest.approx(step.objective, rel=1e-6)


@every_chart
@every_belief
def test_the_dual_function_falls_with_its_slope(divergence: str, chart: str, kind: str) -> None:
    frame = random_belief(kind, 5, 1).whiten(random_gradient(kind, 5, 51))
    lagrangian = Ball({"kl": KL(), "reverse_kl": ReverseKL()}[divergence], 0.7, chart).lagrangian(frame)
    root, _, converged = find_multiplier(lagrangian, 0.7)
    assert converged
    for u in np.linspace(root.u - 0.01, root.u + 4.0, 9):
        below, here, above = (lagrangian.at(u + h) for h in (-1e-5, 0.0, 1e-5))
        assert here.slope == pytest.approx((above.divergence - below.divergence) / 2e-5, rel=1e-4)


@every_chart
def test_the_multiplier_is_the_price_of_the_ball(divergence: str, chart: str) -> None:
    belief, gradient = random_belief("full", 4, 5), random_gradient("full", 4, 6)
    low, here, high = (
        cones.solve_step(belief, gradient, math.sqrt(0.2 + h), divergence=divergence, chart=chart)
        for h in (-1e-6, 0.0, 1e-6)
    )
    assert here.multiplier == pytest.approx((high.objective - low.objective) / 2e-6, rel=1e-5)


@every_chart
@every_belief
def test_small_balls_have_the_natural_gradient(divergence: str, chart: str, kind: str) -> None:
    belief, gradient = random_belief(kind, 4, 3), random_gradient(kind, 4, 4)
    one = cones.solve_step(belief, gradient, 1e-5, divergence=divergence, chart=chart)
    other = cones.solve_step(belief, gradient, 1e-5)
    for this, that in ((one.shift, other.shift), (one.log_ratio.dense(), other.log_ratio.dense())):
        assert np.sum(this * that) == pytest.approx(np.linalg.norm(this) * np.linalg.norm(that), rel=1e-8)


def test_natural_parameters_move_the_moments_linearly() -> None:
    """m = a / lambda, R + m m^T = I + 2 B / lambda: the cross-entropy method."""
    belief, gradient = random_belief("full", 4, 7), random_gradient("full", 4, 8)
    step = cones.solve_step(belief, gradient, 0.8, divergence="reverse_kl", chart="natural_parameters")
    m, R = in_frame(belief, step.belief)
    frame = belief.whiten(gradient)
    np.testing.assert_allclose(m, frame.mean / step.multiplier, rtol=1e-8)
    np.testing.assert_allclose(
        R + np.outer(m, m), np.eye(4) + 2.0 * frame.covariance.dense() / step.multiplier, rtol=1e-7, atol=1e-9
    )


@every_chart
@pytest.mark.parametrize("belief", ["diagonal", "full", "low_rank"])
def test_a_run_takes_the_chart_by_name(divergence: str, chart: str, belief: str) -> None:
    result = cones.minimize(
        lambda x: float(((x - 1.0) ** 2).sum()), np.zeros(6), radius=0.4, divergence=divergence, chart=chart,
        optimizer="direct", rng=0, maxiter=40, popsize=20, belief=belief,
    )  # fmt: skip
    assert result.fun < 0.5
    assert result.failed_steps == 0


@pytest.mark.parametrize(
    ("divergence", "chart"), [("kl", "mean_parameters"), ("reverse_kl", "natural_parameters"), ("hellinger", None)]
)
@pytest.mark.parametrize("dim", [20, 100])
def test_adaptive_balls_take_them(divergence: str, chart: str | None, dim: int) -> None:
    """On a stretched sphere, as well as with KL; 100 dimensions have a low-rank belief if asked for."""
    scales = np.linspace(1.0, 5.0, dim)
    settings = {"vectorized": True, "rng": 0, "maxiter": 120, "belief": "diagonal" if dim < 100 else "low_rank"}

    def loss(X: np.ndarray) -> np.ndarray:
        return ((scales * (X - 1.0)) ** 2).sum(axis=1)

    one = cones.minimize(loss, np.zeros(dim), divergence=divergence, chart=chart, **settings)
    other = cones.minimize(loss, np.zeros(dim), radius="adaptive", **settings)
    assert one.failed_steps == 0
    assert abs(math.log10(one.fun / other.fun)) < 2.0


@pytest.mark.parametrize(
    ("divergence", "chart", "message"),
    [
        ("kl", "natural_parameters", "chart: expected 'covariance' or 'mean_parameters' for the divergence 'kl', got"),
        ("chi2", "mean_parameters", "chart: expected 'covariance' for the divergence 'chi2', got 'mean_parameters'"),
        ("kl", "moments", "chart: expected one of 'covariance', 'mean_parameters', 'natural_parameters'"),
        ("kl", 3, "chart: expected one of"),
    ],
)
def test_bad_charts_are_named(divergence: str, chart: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cones.solve_step(DiagonalGaussian([0.0], 1.0), Gradient([1.0], [1.0]), 0.5, divergence=divergence, chart=chart)
    for radius in (0.5, "adaptive"):
        with pytest.raises(InputError, match=message):
            cones.CoNES([0.0, 0.0], radius=radius, divergence=divergence, chart=chart)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"divergence": "chi2"}, "divergence: expected 'kl' for a Bernoulli, got 'chi2'"),
        ({"chart": "mean_parameters"}, "chart: expected none for a Bernoulli, .* got 'mean_parameters'"),
    ],
)
def test_a_family_has_the_ball_of_kl_alone(settings: dict, message: str) -> None:
    belief = cones.Bernoulli(np.full(3, 0.5))
    with pytest.raises(InputError, match=message):
        cones.solve_step(belief, np.ones(3), 0.5, **settings)
    for radius in (0.5, "adaptive"):
        with pytest.raises(InputError, match=message):
            cones.CoNES(belief, radius=radius, **settings)


def test_the_command_line_a_checkpoint_and_an_experiment_file_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["minimize", "objectives:loss", "--dim", "3", "--radius", "0.4", "--divergence", "reverse_kl", "--quiet"]
    run += ["--chart", "natural_parameters", "--checkpoint", "run.ckpt", "--seed", "0", "--maxiter"]
    assert main([*run, "3"]) in (0, 1)
    assert cones.load("run.ckpt").algorithm.step.chart == "natural_parameters"
    assert main([*run, "5", "--resume"]) in (0, 1)
    method = method_from({"method": "cones", "radius": 0.4, "chart": "mean_parameters"}, "", (0,), 100)
    assert method.strategy(np.zeros(3), 1.0, 0).algorithm.step.chart == "mean_parameters"


@pytest.mark.parametrize(
    ("divergence", "chart"), [*PAIRS, ("chi2", "covariance"), ("renyi:3", "covariance"), ("kl", "covariance")]
)
@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_the_cone_program_finds_the_step_of_the_dual(divergence: str, chart: str, kind: str) -> None:
    pytest.importorskip("cvxpy")
    belief, gradient = random_belief(kind, 4, 1), random_gradient(kind, 4, 2)
    dual, cone = (
        cones.solve_step(belief, gradient, 0.7, divergence=divergence, chart=chart, solver=solver)
        for solver in ("dual", "clarabel")
    )
    assert cone.status is StepStatus.OPTIMAL
    assert cone.objective == pytest.approx(dual.objective, rel=1e-5)
    assert cone.divergence == pytest.approx(0.49, rel=1e-4)
    np.testing.assert_allclose(cone.belief.mean, dual.belief.mean, atol=2e-3)
    np.testing.assert_allclose(covariance_of(cone.belief), covariance_of(dual.belief), atol=5e-3, rtol=5e-3)


@pytest.mark.parametrize("divergence", ["reverse_kl", "hellinger", "renyi:0.5"])
def test_a_ball_that_is_not_convex_has_no_cone_program(divergence: str) -> None:
    pytest.importorskip("cvxpy")
    with pytest.raises(InputError, match=r"divergence: expected kl, chi2 or renyi with alpha > 1.* for solver 'scs'"):
        cones.solve_step(DiagonalGaussian([0.0], 1.0), Gradient([1.0], [1.0]), 0.5, divergence=divergence, solver="scs")
