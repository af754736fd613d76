"""The steps of ES, NES and CoNES against the paper's formulas, for both beliefs."""

import numpy as np
import pytest
from helpers import covariance_of, random_belief, random_gradient

import cones
from cones import InputError, Step, StepStatus
from cones.estimators import Estimate, NoiseLevel
from cones.steps import Convex, IterationInfo, Natural, Plain

pytestmark = pytest.mark.parametrize("kind", ["diagonal", "full"])


def proposed(rule, belief, gradient) -> Step:
    step, state = rule.propose(None, belief, Estimate(belief.whiten(gradient), NoiseLevel(), 10), IterationInfo())
    assert state is None
    return step


def test_plain_is_the_gradient_in_mean_and_log_covariance(kind: str) -> None:
    belief, gradient = random_belief(kind, 4, 0), random_gradient(kind, 4, 1)
    step = proposed(Plain(), belief, gradient)
    np.testing.assert_allclose(step.shift, gradient.mean, atol=1e-12)
    np.testing.assert_allclose(step.log_ratio.dense(), belief.whiten(gradient).covariance.dense(), atol=1e-12)
    assert np.isnan(step.multiplier)
    assert step.status is StepStatus.FORMULA


def test_natural_is_the_natural_gradient(kind: str) -> None:
    belief, gradient = random_belief(kind, 4, 2), random_gradient(kind, 4, 3)
    step = proposed(Natural(), belief, gradient)
    natural = belief.natural_gradient(gradient)
    np.testing.assert_allclose(step.shift, natural.mean, atol=1e-12)
    # dSigma = L S L^T to first order
    L = np.column_stack([belief.from_frame(e) for e in np.eye(4)])
    change = L @ step.log_ratio.dense() @ L.T
    expected = np.diag(natural.covariance) if kind == "diagonal" else natural.covariance
    np.testing.assert_allclose(change, expected, atol=1e-11)


def test_convex_points_to_the_solution_of_the_step(kind: str) -> None:
    belief, gradient = random_belief(kind, 4, 4), random_gradient(kind, 4, 5)
    step, solved = proposed(Convex(2.0), belief, gradient), cones.solve_step(belief, gradient, 2.0)
    moved = belief.moved(step)
    np.testing.assert_allclose(moved.mean, solved.belief.mean, atol=1e-9)
    np.testing.assert_allclose(covariance_of(moved), covariance_of(solved.belief), atol=1e-9)
    assert step.multiplier == pytest.approx(solved.multiplier)
    assert step.gap >= 0.0
    assert step.status is StepStatus.OPTIMAL
    assert dict(step.columns) == {"mean_radius": 2.0, "scale_radius": 2.0, "shape_radius": 2.0}


def test_convex_checks_its_settings(kind: str) -> None:
    with pytest.raises(InputError, match="radius: expected a positive number, got -1"):
        Convex(-1.0)
    with pytest.raises(InputError, match="solver: expected a Solver"):
        Convex(1.0, kind)
