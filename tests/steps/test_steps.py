"""ES, NES and CoNES directions against the paper's formulas, for both beliefs."""

import numpy as np
import pytest
from helpers import covariance_of, random_belief, random_gradient

import cones
from cones import InputError
from cones.steps import Convex, Natural, Plain, Situation

pytestmark = pytest.mark.parametrize("kind", ["diagonal", "full"])


def test_plain_is_the_gradient_in_mean_and_log_covariance(kind: str) -> None:
    belief, gradient = random_belief(kind, 4, 0), random_gradient(kind, 4, 1)
    direction = Plain().refine(belief, belief.whiten(gradient), Situation())
    np.testing.assert_allclose(direction.mean, gradient.mean, atol=1e-12)
    np.testing.assert_allclose(direction.log_covariance.dense(), belief.whiten(gradient).covariance.dense(), atol=1e-12)
    assert np.isnan(direction.multiplier)


def test_natural_is_the_natural_gradient(kind: str) -> None:
    belief, gradient = random_belief(kind, 4, 2), random_gradient(kind, 4, 3)
    direction = Natural().refine(belief, belief.whiten(gradient), Situation())
    natural = belief.natural_gradient(gradient)
    np.testing.assert_allclose(direction.mean, natural.mean, atol=1e-12)
    # dSigma = L S L^T to first order
    L = np.column_stack([belief.from_frame(e) for e in np.eye(4)])
    change = L @ direction.log_covariance.dense() @ L.T
    expected = np.diag(natural.covariance) if kind == "diagonal" else natural.covariance
    np.testing.assert_allclose(change, expected, atol=1e-11)


def test_convex_points_to_the_solution_of_the_step(kind: str) -> None:
    belief, gradient = random_belief(kind, 4, 4), random_gradient(kind, 4, 5)
    direction = Convex(2.0).refine(belief, belief.whiten(gradient), Situation())
    step = cones.solve_step(belief, gradient, 2.0)
    moved = belief.moved(direction.mean, direction.log_covariance)
    np.testing.assert_allclose(moved.mean, step.belief.mean, atol=1e-9)
    np.testing.assert_allclose(covariance_of(moved), covariance_of(step.belief), atol=1e-9)
    assert direction.multiplier == pytest.approx(step.multiplier)
    assert direction.gap >= 0.0


def test_convex_checks_its_settings(kind: str) -> None:
    with pytest.raises(InputError, match="radius: expected a positive number, got -1"):
        Convex(-1.0)
    with pytest.raises(InputError, match="solver: expected one of"):
        Convex(1.0, kind)
