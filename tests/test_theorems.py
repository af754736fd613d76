"""What the paper proves, as tests."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import covariance_of, random_belief, random_gradient

import cones
from cones import Gradient
from cones.beliefs import ENCODINGS, decode, encode, gradient_from_encoding, gradient_to_encoding

KINDS = ["diagonal", "full"]


def tangent(belief, mean, covariance) -> np.ndarray:
    """A change of (mean, covariance) in the frame, scaled so that the Fisher norm is Euclidean."""
    L = np.column_stack([belief.from_frame(e) for e in np.eye(belief.dim)])
    covariance = np.diag(covariance) if np.ndim(covariance) == 1 else covariance
    inner = np.linalg.solve(L, np.linalg.solve(L, covariance).T) / np.sqrt(2.0)
    return np.concatenate([np.linalg.solve(L, mean), inner.ravel()])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_proposition_1_small_balls_give_the_natural_gradient(kind: str, seed: int) -> None:
    """The angle to the natural gradient is O(radius)."""
    belief, gradient = random_belief(kind, 5, seed), random_gradient(kind, 5, seed + 50)
    natural = belief.natural_gradient(gradient)
    direction = tangent(belief, natural.mean, natural.covariance)
    angles = []
    for radius in (1e-1, 1e-2, 1e-3):
        new = cones.solve_step(belief, gradient, radius).belief
        step = tangent(belief, new.mean - belief.mean, covariance_of(new) - covariance_of(belief))
        chord = step / np.linalg.norm(step) - direction / np.linalg.norm(direction)
        angles.append(np.linalg.norm(chord))
    assert angles[0] < 0.2
    assert angles[1] < 0.15 * angles[0]
    assert angles[2] < 0.15 * angles[1]


@pytest.mark.parametrize("kind", KINDS)
def test_proposition_1_small_steps_have_the_fisher_length_of_the_ball(kind: str) -> None:
    belief, gradient = random_belief(kind, 4, 0), random_gradient(kind, 4, 1)
    new = cones.solve_step(belief, gradient, 1e-4).belief
    step = tangent(belief, new.mean - belief.mean, covariance_of(new) - covariance_of(belief))
    assert np.linalg.norm(step) == pytest.approx(np.sqrt(2.0) * 1e-4, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_theorem_1_the_ball_is_convex(kind: str) -> None:
    """KL(. || belief) along the segment between two beliefs, in (mean, covariance), is below the chord."""
    center = random_belief(kind, 3, 0)
    for seed in range(20):
        p, q = random_belief(kind, 3, 1 + seed), random_belief(kind, 3, 100 + seed)
        middle = type(center)(0.5 * (p.mean + q.mean), 0.5 * (encode(p, "covariance") + encode(q, "covariance")))
        assert middle.kl(center) <= 0.5 * (p.kl(center) + q.kl(center)) + 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("radius", [0.1, 3.0, 30.0])
def test_theorem_2_all_encodings_give_the_same_distribution(kind: str, radius: float) -> None:
    """A user who holds the gradient in some encoding pulls it back and gets the same new belief."""
    belief, gradient = random_belief(kind, 4, 2), random_gradient(kind, 4, 3)
    expected = cones.solve_step(belief, gradient, radius).belief
    for encoding in ENCODINGS:
        held = gradient_to_encoding(belief, gradient, encoding)
        start = decode(type(belief), belief.mean, encode(belief, encoding), encoding)
        new = cones.solve_step(start, gradient_from_encoding(start, held, encoding), radius).belief
        assert new.kl(expected) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_finite_natural_gradient_step_is_not_invariant(kind: str) -> None:
    """The contrast to Theorem 2: the same finite step, taken in two encodings, ends in two beliefs."""
    belief, gradient = random_belief(kind, 3, 4), random_gradient(kind, 3, 5)
    natural = belief.natural_gradient(gradient)
    rate = 0.2 / np.abs(natural.covariance).max()
    straight = type(belief)(belief.mean + rate * natural.mean, encode(belief, "covariance") + rate * natural.covariance)
    # The same tangent vector in the log-variance encoding, by a finite difference of the encoding.
    h = 1e-6
    ahead = type(belief)(belief.mean, encode(belief, "covariance") + h * rate * natural.covariance)
    velocity = (encode(ahead, "log-variance") - encode(belief, "log-variance")) / h
    curved = decode(
        type(belief),
        belief.mean + rate * natural.mean,
        encode(belief, "log-variance") + velocity,
        "log-variance",
    )
    assert straight.kl(curved) > 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_may_be_made_of_lists(kind: str) -> None:
    belief, gradient = random_belief(kind, 3, 4), random_gradient(kind, 3, 5)
    lists = Gradient(np.asarray(gradient.mean).tolist(), np.asarray(gradient.covariance).tolist())
    expected, step = (cones.solve_step(belief, given, 1.0) for given in (gradient, lists))
    assert expected.belief.kl(belief) == pytest.approx(1.0)
    np.testing.assert_array_equal(step.belief.mean, expected.belief.mean)
    np.testing.assert_array_equal(encode(step.belief, "covariance"), encode(expected.belief, "covariance"))
