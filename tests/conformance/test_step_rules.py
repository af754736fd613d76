"""What every step rule must do: ascend, keep its state in a value, and leave what it is given alone."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from conformance.variants import FOR_FAMILIES, GAUSSIANS, assert_same, assert_same_step, make, through_a_file, variants
from helpers import random_belief, random_gradient

from cones import StepStatus
from cones.beliefs import FrameGradient
from cones.component import components
from cones.estimators import Estimate, NoiseLevel
from cones.steps import IterationInfo, StepRule

every_rule = variants("step")
# Rules whose covariance goes on by what they remember where all losses are tied.
FOLLOWS_MEMORY = ("balls", "low_rank", "factors")
# What a step does if the gradient is multiplied by a positive number.
INVARIANT = ("convex", "balls", "evolution_path", "low_rank", "ars", "tr_cma", "more", "factors")
LINEAR = ("plain", "natural")
FORMULAS = (*LINEAR, "ars")
DIM, SAMPLES = 6, 12
INFO = IterationInfo(240, 10_000.0)


def estimate_of(kind: str, seed: int, factor: float = 1.0) -> Estimate:
    belief, gradient = random_belief(kind, DIM, 0), random_gradient(kind, DIM, seed)
    frame = belief.whiten(gradient)
    scaled = FrameGradient(factor * frame.mean, frame.covariance.map(lambda values: factor * values))
    unit = factor * math.sqrt(DIM / SAMPLES)
    shape = factor * math.sqrt(belief.covariance_freedom / (2 * SAMPLES))
    return Estimate(scaled, NoiseLevel(unit, unit / math.sqrt(2.0), shape), SAMPLES)


def steps(rule: StepRule, kind: str, seeds, factor: float = 1.0, state=None):
    belief = random_belief(kind, DIM, 0)
    for seed in seeds:
        step, state = rule.propose(state, belief, estimate_of(kind, seed, factor), INFO)
        yield step, state


def test_every_rule_says_what_scaling_does_to_it() -> None:
    assert {*INVARIANT, *LINEAR, *FOR_FAMILIES["step"]} == set(components("step"))


@every_rule
@pytest.mark.parametrize("kind", GAUSSIANS)
def test_a_step_ascends_and_can_be_taken(name: str, settings, kind: str) -> None:
    belief = random_belief(kind, DIM, 0)
    for seed, (step, _) in enumerate(steps(make("step", name, settings), kind, range(8))):
        frame = estimate_of(kind, seed).gradient
        assert step.status.ok
        assert belief.to_frame(step.shift) @ frame.mean > 0.0
        assert np.isfinite(step.log_ratio.spectrum()).all()
        after, kl = belief.move(step)
        assert after.is_finite()
        assert kl > 0.0
        for key, number in step.columns.items():
            assert isinstance(key, str)
            assert np.isfinite(number) or key == "path_length"


@every_rule
@pytest.mark.parametrize("kind", GAUSSIANS)
def test_a_zero_gradient_gives_a_zero_step(name: str, settings, kind: str) -> None:
    rule, belief = make("step", name, settings), random_belief(kind, DIM, 0)
    (_, state), *_ = steps(rule, kind, [1])
    for remembered in (None, state):
        step, after = rule.propose(remembered, belief, estimate_of(kind, 1, 0.0), INFO)
        np.testing.assert_array_equal(step.shift, np.zeros(DIM))
        logs = step.log_ratio.spectrum()
        if name in FOLLOWS_MEMORY and remembered is not None:
            assert np.abs(logs).max() <= 0.6 + 1e-12  # the scale's radius has a memory; at most 0.3 of log sigma
            np.testing.assert_allclose(logs, logs[0])
        else:
            np.testing.assert_array_equal(np.abs(logs), np.zeros(DIM))
        assert step.status.ok
        again, _ = rule.propose(after, belief, estimate_of(kind, 2), INFO)
        assert again.shift.any()  # it goes on


@every_rule
@pytest.mark.parametrize("kind", GAUSSIANS)
@pytest.mark.parametrize("factor", [1e-30, 2.0**-10, 2.0**20, 1e30])
def test_scaling_of_the_utilities(name: str, settings, kind: str, factor: float) -> None:
    rule = make("step", name, settings)
    expected = factor if name in LINEAR else 1.0
    for (one, _), (other, _) in zip(steps(rule, kind, range(6)), steps(rule, kind, range(6), factor), strict=True):
        np.testing.assert_allclose(other.shift, expected * one.shift, rtol=1e-9)
        np.testing.assert_allclose(
            other.log_ratio.dense(), expected * one.log_ratio.dense(), rtol=1e-8, atol=1e-9 * expected
        )


@every_rule
@pytest.mark.parametrize("kind", GAUSSIANS)
def test_the_state_survives_a_file_and_the_run_goes_on_bit_for_bit(
    name: str, settings, kind: str, tmp_path: Path
) -> None:
    rule = make("step", name, settings)
    straight = list(steps(rule, kind, range(8)))
    for count in (1, 4):
        state = through_a_file(straight[count - 1][1], tmp_path)
        assert_same(state, straight[count - 1][1])
        resumed = steps(rule, kind, range(count, 8), state=state)
        for (one, _), (other, _) in zip(straight[count:], resumed, strict=True):
            assert_same_step(one, other)


@every_rule
@pytest.mark.parametrize("kind", GAUSSIANS)
def test_a_call_changes_nothing_but_what_it_returns(name: str, settings, kind: str) -> None:
    rule, belief = make("step", name, settings), random_belief(kind, DIM, 0)
    *_, (_, state) = steps(rule, kind, range(3))
    estimate = estimate_of(kind, 5)
    before = pickle.dumps((state, belief, estimate))
    one, after = rule.propose(state, belief, estimate, INFO)
    other, _ = rule.propose(state, belief, estimate, INFO)
    assert pickle.dumps((state, belief, estimate)) == before
    assert_same_step(one, other)
    # What is done to the step later on does not reach the estimate, nor what the rule remembers.
    remembered = pickle.dumps(after)
    for array in (one.shift, one.log_ratio.values):
        if array.flags.writeable and not any(
            np.shares_memory(array, given) for given in (estimate.gradient.mean, estimate.gradient.covariance.values)
        ):
            array[:] = np.nan
    assert pickle.dumps(after) == remembered
    assert pickle.dumps((state, belief, estimate)) == before


@every_rule
def test_formulas_and_solvers_say_which_they_are(name: str, settings) -> None:
    (step, _), *_ = steps(make("step", name, settings), "diagonal", [3])
    assert step.status is (StepStatus.FORMULA if name in FORMULAS else StepStatus.OPTIMAL)
    assert np.isfinite(step.multiplier) == (name not in FORMULAS)
