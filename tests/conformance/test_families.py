"""What every exponential family must do: formulas against sums over all outcomes, steps against cone programs."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from conformance.variants import assert_same, assert_same_step, make, through_a_file
from helpers import random_belief, random_gradient, sample_of
from hypothesis import given, settings
from hypothesis import strategies as st

import cones
from cones import Bernoulli, Categorical, DiagonalGaussian, FullGaussian, InputError, Poisson, Product, StepStatus
from cones.beliefs import FamilyGradient
from cones.component import components
from cones.estimators import Estimate, NoiseLevel, Sample
from cones.estimators.score_function import score_function
from cones.sampling import NoiseBlock, NoiseStream, Plan, Population
from cones.steps import IterationInfo

PURE = ("bernoulli", "categorical", "poisson")
every_family = pytest.mark.parametrize("kind", PURE)
RULES = [
    ("plain", {}), ("natural", {}), ("convex", {"radius": 0.7}), ("balls", {}), ("family_path", {}), ("factors", {}),
]  # fmt: skip
every_rule = pytest.mark.parametrize(("name", "options"), RULES, ids=[name for name, _ in RULES])


def free(kind: str, seed: int, dim: int = 3):
    """A belief without a margin."""
    belief = random_belief(kind, dim, seed)
    return type(belief).from_state({**belief.state(), "margin": 0.0})


def outcomes(belief) -> np.ndarray:
    """All candidates with a probability that matters."""
    if isinstance(belief, Poisson):
        return np.array(list(itertools.product(range(45), repeat=belief.dim)), float)
    every = np.array(list(itertools.product([0.0, 1.0], repeat=belief.dim)))
    if isinstance(belief, Bernoulli):
        return every
    ends = np.cumsum([0, *belief.choices])
    return every[[all(row[a:b].sum() == 1 for a, b in itertools.pairwise(ends)) for row in every]]


@every_family
def test_probabilities_moments_entropy_and_divergence_are_sums_over_outcomes(kind: str) -> None:
    belief, other = random_belief(kind, 3, 0), random_belief(kind, 3, 1)
    X = outcomes(belief)
    logs = belief.log_density(X)
    p = np.exp(logs)
    assert p.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(p @ X, belief.mean, rtol=1e-9)
    centred = X - belief.mean
    covariance = (centred.T * p) @ centred
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), belief.standard_deviations(), rtol=1e-8)
    direction = np.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(belief.covariance_times(direction), covariance @ direction, rtol=1e-8, atol=1e-12)
    moment = covariance @ direction
    np.testing.assert_allclose(covariance @ belief.precision_times(moment), moment, rtol=1e-8, atol=1e-12)
    assert np.linalg.matrix_rank(covariance, tol=1e-9) == belief.freedom
    white = np.stack([belief.whitened(row) for row in centred])
    np.testing.assert_allclose(np.trace((white.T * p) @ white), belief.freedom, rtol=1e-8)
    assert belief.entropy() == pytest.approx(-p @ logs)
    assert belief.kl(other) == pytest.approx(p @ (logs - other.log_density(X)))


def test_the_entropy_of_a_large_rate_joins_the_sum() -> None:
    below, above = Poisson([9999.0]).entropy(), Poisson([10001.0]).entropy()
    assert above - below == pytest.approx(2.0 * 0.5 / 10_000, rel=1e-3)


@every_family
def test_counts_and_choices_come_from_normal_noise(kind: str) -> None:
    belief = random_belief(kind, 3, 2)
    X = belief.candidates(np.random.default_rng(0).standard_normal((100_000, 3)))
    for row in outcomes(belief)[:40]:
        expected = float(np.exp(belief.log_density(row[None])[0]))
        seen = float((X == row).all(axis=1).mean())
        assert abs(seen - expected) < 5.0 * math.sqrt(expected / 1e5) + 1e-9


@every_family
@pytest.mark.parametrize("radius", [1e-3, 0.1, 0.5])
def test_theorem_the_step_moves_natural_parameters_along_the_gradient(kind: str, radius: float) -> None:
    for seed in range(5):
        belief, g = free(kind, seed), np.random.default_rng(seed).standard_normal(3)
        step = cones.solve_step(belief, g, radius)
        assert step.status is StepStatus.OPTIMAL
        assert step.belief.kl(belief) == pytest.approx(radius**2, rel=1e-8)
        assert step.divergence <= radius**2
        assert step.objective == pytest.approx(g @ (step.belief.mean - belief.mean), rel=1e-9)
        assert 0.0 <= step.gap <= 1e-9 * step.objective
        moved = step.belief.natural - belief.natural - g / step.multiplier
        if kind == "categorical":  # a constant over the choices of a variable changes nothing
            moved -= moved.mean()
        np.testing.assert_allclose(moved, 0.0, atol=1e-9 / radius)


@every_family
@pytest.mark.parametrize("radius", [0.1, 0.5])
def test_a_cone_program_finds_the_same_step(kind: str, radius: float) -> None:
    cp = pytest.importorskip("cvxpy")
    belief, g = free(kind, 3), np.array([1.0, -0.5, 2.0])
    mean = cp.Variable(3)
    kl, constraints = cp.sum(cp.kl_div(mean, belief.mean)), []
    if kind == "bernoulli":
        kl += cp.sum(cp.kl_div(1 - mean, 1 - belief.mean))
    if kind == "categorical":
        constraints.append(cp.sum(mean) == 1)
    problem = cp.Problem(cp.Maximize(g @ (mean - belief.mean)), [*constraints, kl <= radius**2])
    problem.solve(solver="CLARABEL")
    step = cones.solve_step(belief, g, radius)
    assert step.objective == pytest.approx(problem.value, rel=1e-5)
    np.testing.assert_allclose(step.belief.mean, mean.value, atol=1e-3)


def test_a_product_with_a_gaussian_is_one_cone_program() -> None:
    cp = pytest.importorskip("cvxpy")
    bits = Bernoulli([0.3, 0.6], 0.0)
    belief = Product(DiagonalGaussian([0.0, 1.0], 1.0), bits, Categorical([0.2, 0.3, 0.5], margin=0.0))
    gradient = [cones.Gradient([1.0, -2.0], [0.5, -1.0]), [1.0, -0.5], [0.0, 1.0, 0.3]]
    m, r, p, q = cp.Variable(2), cp.Variable(2), cp.Variable(2), cp.Variable(3)
    kl = 0.5 * (cp.sum_squares(m) + cp.sum(r - 1 - cp.log(r))) + cp.sum(cp.kl_div(q, [0.2, 0.3, 0.5]))
    kl += cp.sum(cp.kl_div(p, bits.mean)) + cp.sum(cp.kl_div(1 - p, 1 - bits.mean))
    linear = np.array([1.0, -2.0]) @ m + np.array([0.5, -1.0]) @ (r - 1) + np.array([1.0, -0.5]) @ (p - bits.mean)
    linear += np.array([0.0, 1.0, 0.3]) @ (q - np.array([0.2, 0.3, 0.5]))
    problem = cp.Problem(cp.Maximize(linear), [kl <= 0.8**2, cp.sum(q) == 1])
    problem.solve(solver="CLARABEL")
    step = cones.solve_step(belief, gradient, 0.8)
    assert step.objective == pytest.approx(problem.value, rel=1e-6)
    assert step.belief.kl(belief) == pytest.approx(0.64, rel=1e-8)
    np.testing.assert_allclose(
        step.belief.mean, np.concatenate([m.value + np.array([0, 1]), p.value, q.value]), atol=1e-3
    )


@given(
    st.lists(st.floats(-8.0, 8.0), min_size=2, max_size=6),
    st.floats(-4.0, 1.0),
    st.floats(-100.0, 100.0),
    st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_steps_are_feasible_and_certified(logits, log_radius: float, log_scale: float, seed: int) -> None:
    n, radius, rng = len(logits), 10**log_radius, np.random.default_rng(seed)
    probabilities = np.exp(logits) / np.exp(logits).sum()
    bits, choice = Bernoulli(1.0 / (1.0 + np.exp(logits)), 0.0), Categorical(probabilities, margin=0.0)
    counts = Poisson(np.exp(logits), 0.0)
    gaussian = FullGaussian(np.zeros(n), np.diag(np.exp(logits)))
    g, scale = rng.standard_normal((4, n)), 10**log_scale
    for belief, gradient in (
        (bits, scale * g[0]),
        (choice, scale * g[1]),
        (counts, scale * g[2]),
        (Product(gaussian, bits, choice), [cones.Gradient(g[3], np.diag(g[2])), g[0], g[1]]),
    ):
        step = cones.solve_step(belief, gradient, radius)
        assert step.status is StepStatus.OPTIMAL
        assert step.divergence <= radius**2 * (1.0 + 1e-12)
        assert step.objective >= 0.0
        assert 0.0 <= step.gap <= 1e-6 * step.objective + 1e-12 * scale
        assert step.divergence == pytest.approx(step.belief.kl(belief), rel=1e-5, abs=1e-9)


@every_family
def test_a_ball_that_holds_every_belief_leads_to_the_edge(kind: str) -> None:
    if kind == "poisson":
        return
    belief = free(kind, 0)
    step = cones.solve_step(belief, [1.0, 2.0, 3.0], 50.0)
    best = max(outcomes(belief) @ [1.0, 2.0, 3.0])
    assert step.objective == pytest.approx(best - belief.mean @ [1.0, 2.0, 3.0])
    assert step.gap <= 1e-9


@every_family
def test_small_steps_follow_the_natural_gradient(kind: str) -> None:
    """Proposition 1: the angle to F^-1 dl/deta, in the metric of Fisher, is of the order of the radius."""
    belief, g = free(kind, 1), np.array([1.0, -0.5, 2.0])
    natural = belief.natural_gradient(belief.covariance_times(g))
    for radius in (1e-1, 1e-2, 1e-3):
        change = cones.solve_step(belief, g, radius).belief.mean - belief.mean
        inner = change @ natural
        cosine = inner / math.sqrt(
            (change @ belief.precision_times(change)) * (natural @ belief.covariance_times(natural))
        )
        assert math.sqrt(max(0.0, 2.0 - 2.0 * cosine)) < 3.0 * radius + 1e-6


@every_family
@pytest.mark.parametrize("mirrored", [False, True])
def test_the_score_function_finds_the_gradient_of_the_expected_loss(kind: str, mirrored: bool) -> None:
    belief, slope = random_belief(kind, 3, 4), np.array([1.0, -2.0, 0.5])
    population = Population(belief, Plan(40_000, mirrored), NoiseStream(3), 0)
    utilities = np.asarray(population) @ slope
    utilities = utilities - utilities.mean()
    estimate = score_function(Sample(population, NoiseBlock(population), utilities, utilities))
    expected = belief.precision_times(belief.covariance_times(slope))
    np.testing.assert_allclose(estimate.gradient.mean, expected, atol=0.15)


@every_family
def test_the_noise_level_is_the_size_under_losses_that_say_nothing(kind: str) -> None:
    belief, seen, said = random_belief(kind, 8, 0), [], []
    for iteration in range(800):
        utilities = np.random.default_rng((3, iteration)).standard_normal(20)
        estimate = score_function(sample_of(belief, Plan(20), utilities, 1, iteration))
        seen.append(np.linalg.norm(belief.whitened(belief.covariance_times(estimate.gradient.mean))))
        said.append(estimate.noise.mean)
    assert np.sqrt(np.mean(np.square(said))) == pytest.approx(np.sqrt(np.mean(np.square(seen))), rel=0.06)


def test_the_best_candidate_so_far_is_one_more_sample() -> None:
    belief, elite = Bernoulli(np.full(4, 0.5)), make("estimator", "elite", {})
    losses = np.array([3.0, 1.0, 2.0, np.nan])
    first = sample_of(belief, Plan(4), losses, 0, 0)
    estimate, state = elite.estimate(None, first)
    np.testing.assert_array_equal(state.candidate, np.asarray(first.candidates())[1])
    second = sample_of(belief, Plan(4), losses + 5.0, 0, 1)
    estimate, after = elite.estimate(state, second)
    assert after is state
    X, u = (
        np.vstack([second.candidates(), state.candidate]),
        cones.estimators.shaping.recombination_weights(np.append(losses + 5.0, 1.0)),
    )
    np.testing.assert_allclose(estimate.gradient.mean, (u @ (X - 0.5)) / 5 / 0.25)
    _, tied = elite.estimate(state, sample_of(belief, Plan(4), np.full(4, 1.0), 0, 2))
    assert tied is not state  # of two equal ones, the later
    with pytest.raises(InputError, match="estimator: expected one for a DiagonalGaussian, got 'elite'"):
        cones.NES(np.zeros(3), estimator=elite)


def test_a_product_is_estimated_factor_by_factor() -> None:
    belief = Product(random_belief("full", 3, 0), random_belief("bernoulli", 4, 1), random_belief("poisson", 2, 2))
    utilities = np.random.default_rng(0).standard_normal(30)
    sample = sample_of(belief, Plan(30), utilities, 5)
    estimate = score_function(sample)
    for factor, part, columns in zip(belief.factors, estimate.factors, belief.slices, strict=True):
        noise = sample.noise.matrix()[:, columns]
        if isinstance(factor, FullGaussian):
            np.testing.assert_allclose(part.gradient.mean, utilities @ noise / 30)
        else:
            centred = factor.candidates(noise) - factor.mean
            np.testing.assert_allclose(part.gradient.mean, factor.precision_times(utilities @ centred / 30))


def estimate_of(belief, seed: int, factor: float = 1.0) -> Estimate:
    if isinstance(belief, Product):
        gradient = belief.factors[0].whiten(random_gradient("diagonal", 1, seed))
        scaled = gradient._replace(
            mean=factor * gradient.mean, covariance=gradient.covariance.map(lambda v: factor * v)
        )
        noise = NoiseLevel(0.3 * factor, 0.2 * factor, 0.1 * factor)
        return Estimate.joined([Estimate(scaled, noise, 12), estimate_of(belief.factors[1], seed, factor)])
    g = factor * belief.whiten(np.random.default_rng(seed).standard_normal(belief.dim)).mean
    return Estimate(FamilyGradient(g, belief), NoiseLevel(0.05 * factor * math.sqrt(belief.freedom)), 12)


@every_rule
@pytest.mark.parametrize("kind", [*PURE, "product"])
def test_steps_ascend_keep_their_state_and_leave_what_they_are_given_alone(
    name: str, options, kind: str, tmp_path: Path
) -> None:
    if kind == "product" and name in ("balls", "family_path"):  # "factors" composes them
        return
    rule, belief, info = make("step", name, options), random_belief(kind, 6, 0), IterationInfo(240, 10_000.0)
    state, zero = None, estimate_of(belief, 1, 0.0)
    step, _ = rule.propose(None, belief, zero, info)
    assert not step.shift.any()
    for seed in range(6):
        estimate = estimate_of(belief, seed)
        before = pickle.dumps((state, estimate))
        step, after = rule.propose(state, belief, estimate, info)
        again, _ = rule.propose(through_a_file(state, tmp_path), belief, estimate, info)
        assert_same_step(step, again)
        assert pickle.dumps((state, estimate)) == before
        moved, kl = belief.move(step)
        assert step.status.ok
        assert kl > 0.0
        assert moved.kl(belief) == pytest.approx(kl)
        if seed == 0 and kind != "product":
            assert estimate.gradient.mean @ (moved.mean - belief.mean) > 0.0
        other, _ = rule.propose(state, belief, estimate_of(belief, seed, 1e20), info)
        if name not in ("plain", "natural") and seed == 0:  # the units of the loss do not matter
            np.testing.assert_allclose(other.shift, step.shift, rtol=1e-8)
        state = after
    assert_same(through_a_file(state, tmp_path), state)


@pytest.mark.parametrize("kind", [*PURE, "product"])
@pytest.mark.parametrize("method", [cones.ES, cones.NES, cones.CoNES])
@pytest.mark.parametrize("options", [{}, {"radius": "adaptive"}, {"radius": 0.5}], ids=["default", "adaptive", "ball"])
def test_every_method_descends_and_goes_on_from_a_checkpoint(kind: str, method, options, tmp_path: Path) -> None:
    if options and method is not cones.CoNES:
        return
    belief = random_belief(kind, 12, 0)
    goal = belief.candidates(np.random.default_rng(5).standard_normal((1, 12)))[0]
    es = method(belief, rng=0, maxiter=60, **options)
    while not es.stop():
        X = es.ask()
        if es.state.iteration == 20:
            es.save(tmp_path / "run.ckpt")
        es.tell(X, np.abs(X - goal).sum(axis=1))
    losses = es.history["mean_loss"]
    assert losses[-10:].mean() < 0.8 * losses[:5].mean()
    loaded = cones.load(tmp_path / "run.ckpt")
    while not loaded.stop():
        X = loaded.ask()
        loaded.tell(X, np.abs(X - goal).sum(axis=1))
    np.testing.assert_array_equal(loaded.history["mean_loss"], losses)
    assert_same(loaded.state.belief.state(), es.state.belief.state())


@every_family
def test_nothing_dies_out(kind: str) -> None:
    belief = random_belief(kind, 6, 0)
    for _ in range(50):
        belief = belief.moved(cones.Step(shift=np.array([5.0, -5.0, 3.0, -3.0, 0.0, -9.0])))
    least = belief.margin / max(getattr(belief, "choices", (2,))) if kind != "poisson" else belief.margin
    assert belief.mean.min() >= 0.99 * least > 0.0
    if kind == "bernoulli":
        assert belief.mean.max() <= 1.0 - 0.99 * least
    if kind == "categorical":
        np.testing.assert_allclose(np.add.reduceat(belief.mean, [0, 3]), 1.0)


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: Bernoulli([0.5, 1.5]), "mean: expected probabilities, got 1.5 at index 1"),
        (lambda: Bernoulli([]), "mean: expected a vector"),
        (lambda: Bernoulli([0.5], margin=0.7), r"margin: expected a number in \[0, 0.5\), got 0.7"),
        (lambda: Poisson([0.0]), "mean: expected positive numbers"),
        (lambda: Categorical(), "probabilities: expected at least one variable"),
        (lambda: Categorical(1), r"probabilities\[0\]: expected at least 2, got 1"),
        (lambda: Categorical([0.5, 0.6]), r"probabilities\[0\]: expected at least two probabilities with the sum 1"),
        (lambda: Product(), "factors: expected at least one belief"),
        (lambda: Product(3), "factors: expected Gaussians or exponential families"),
        (lambda: cones.solve_step(Bernoulli([0.5]), [np.nan], 1.0), "gradient: expected finite numbers"),
        (
            lambda: cones.solve_step(Bernoulli([0.5]), [1.0], 1.0, solver="clarabel"),
            "solver: expected 'dual' for a Bernoulli",
        ),
        (lambda: cones.solve_step(Product(Bernoulli([0.5])), [1.0, 2.0], 1.0), "gradient: expected a sequence of 1"),
        (lambda: cones.CoNES([0.5], belief="product"), "belief: expected Product"),
    ],
)
def test_bad_input_is_named(make_it, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_it()


def test_the_tables_are_complete() -> None:
    assert {*PURE, "product"} == {name for name, kind in components("belief").items() if not hasattr(kind, "moments")}
