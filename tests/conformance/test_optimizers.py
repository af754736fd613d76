"""What every optimizer must do on both kinds of covariance."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from conformance.variants import GAUSSIANS, assert_same, make, through_a_file, variants
from helpers import random_step

from cones import InputError, Step, StepStatus
from cones.component import components, settings_of

every_optimizer = variants("optimizer")
every_kind = pytest.mark.parametrize("kind", GAUSSIANS)
WITH_RATES = [name for name, kind in components("optimizer").items() if "learning_rate" in settings_of(kind)]
DIM = 5


def after(optimizer, kind: str, count: int, state=None, first: int = 0):
    """The state after some steps, and the last change."""
    change = None
    for seed in range(first, first + count):
        step = random_step(kind, DIM, seed)
        state = optimizer.start(step) if state is None and seed == 0 else state
        change, state = optimizer.update(state, step)
    return change, state


def assert_same_change(one: Step, other: Step) -> None:
    np.testing.assert_array_equal(one.shift, other.shift)
    assert_same(one.log_ratio, other.log_ratio)


@every_optimizer
@every_kind
def test_first_step_descends(name: str, settings, kind: str) -> None:
    optimizer, step = make("optimizer", name, settings), random_step(kind, DIM, 0)
    change, _ = optimizer.update(optimizer.start(step), step)
    assert change.shift @ step.shift < 0.0
    assert np.sum(change.log_ratio.dense() * step.log_ratio.dense()) < 0.0


@every_optimizer
@every_kind
def test_zero_steps_change_nothing(name: str, settings, kind: str) -> None:
    optimizer, step = make("optimizer", name, settings), random_step(kind, DIM, 0)
    zero = step._replace(shift=0.0 * step.shift, log_ratio=step.log_ratio.map(np.zeros_like))
    state = optimizer.start(zero)
    for _ in range(3):
        change, state = optimizer.update(state, zero)
        assert not change.shift.any()
        assert not change.log_ratio.spectrum().any()


@every_optimizer
@every_kind
def test_updates_are_functions_of_state_and_step(name: str, settings, kind: str) -> None:
    """Nothing is kept inside, and nothing is written over: an update that is repeated gives the same bits."""
    optimizer = make("optimizer", name, settings)
    state = optimizer.start(random_step(kind, DIM, 0))
    for seed in range(5):
        step = random_step(kind, DIM, seed)
        before = pickle.dumps((state, step.shift, step.log_ratio))
        one, new = optimizer.update(state, step)
        other, _ = optimizer.update(state, step)
        assert_same_change(one, other)
        remembered = pickle.dumps(new)
        one.shift[:] = np.nan  # what is done to the change does not reach the state
        assert pickle.dumps(new) == remembered
        assert pickle.dumps((state, step.shift, step.log_ratio)) == before
        state = new


@every_optimizer
@every_kind
def test_the_state_survives_a_file_and_the_run_goes_on_bit_for_bit(
    name: str, settings, kind: str, tmp_path: Path
) -> None:
    optimizer = make("optimizer", name, settings)
    expected, _ = after(optimizer, kind, 9)
    _, state = after(optimizer, kind, 4)
    again = through_a_file(state, tmp_path)
    assert_same(again, state)
    resumed = None
    for seed in range(4, 9):
        resumed, again = optimizer.update(again, random_step(kind, DIM, seed))
    assert_same_change(resumed, expected)


@every_optimizer
@every_kind
def test_what_the_solver_said_is_handed_on(name: str, settings, kind: str) -> None:
    step = random_step(kind, DIM, 0)._replace(status=StepStatus.INACCURATE, gap=0.5, columns={"trust": 0.25})
    optimizer = make("optimizer", name, settings)
    change, _ = optimizer.update(optimizer.start(step), step)
    assert (change.status, change.gap, dict(change.columns)) == (StepStatus.INACCURATE, 0.5, {"trust": 0.25})


@every_optimizer
def test_full_covariance_moves_on_the_basis_of_the_step_only(name: str, settings) -> None:
    optimizer = make("optimizer", name, settings)
    state = optimizer.start(random_step("full", DIM, 0))
    for seed in range(3):
        step = random_step("full", DIM, seed)
        change, state = optimizer.update(state, step)
        assert change.log_ratio.basis is step.log_ratio.basis
        ratio = change.log_ratio.values / step.log_ratio.values
        np.testing.assert_allclose(ratio, ratio[0])
        assert change.log_ratio.rest == pytest.approx(ratio[0] * step.log_ratio.rest)


@every_optimizer
def test_single_precision_stays_single(name: str, settings) -> None:
    step = random_step("diagonal", DIM, 0)
    step = step._replace(
        shift=step.shift.astype("float32"), log_ratio=step.log_ratio.map(lambda values: values.astype("float32"))
    )
    optimizer = make("optimizer", name, settings)
    state = optimizer.start(step)
    for _ in range(2):
        change, state = optimizer.update(state, step)
        assert change.shift.dtype == change.log_ratio.values.dtype == np.float32


@pytest.mark.parametrize("name", WITH_RATES)
@every_kind
def test_variance_learning_rate_zero_freezes_the_covariance(name: str, kind: str) -> None:
    frozen = make("optimizer", name, {"learning_rate": 0.1, "variance_learning_rate": 0.0})
    step = random_step(kind, DIM, 1)
    change, _ = frozen.update(frozen.start(step), step)
    np.testing.assert_array_equal(np.abs(change.log_ratio.spectrum()), 0.0)
    assert change.shift.any()


@pytest.mark.parametrize("name", WITH_RATES)
@pytest.mark.parametrize(
    ("setting", "value"), [("learning_rate", 0.0), ("learning_rate", np.nan), ("variance_learning_rate", -1.0)]
)
def test_bad_rates_are_named(name: str, setting: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{setting}: expected"):
        make("optimizer", name, {setting: value})
