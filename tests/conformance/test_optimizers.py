"""What every optimizer must do on both kinds of covariance."""

import numpy as np
import pytest

from cones import SGD, Adam, Direct, InputError
from cones.beliefs import Spectral
from cones.steps import Direction

WITH_RATES = [Adam(), Adam(0.2, 0.05), SGD(), SGD(0.3, 0.1, momentum=0.9)]
every_optimizer = pytest.mark.parametrize("optimizer", [*WITH_RATES, Direct()], ids=repr)
with_rates = pytest.mark.parametrize("optimizer", WITH_RATES, ids=repr)


def direction_of(kind: str, seed: int, dim: int = 5) -> Direction:
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal(dim)
    if kind == "diagonal":
        return Direction(mean, Spectral(rng.standard_normal(dim)))
    basis = np.linalg.qr(rng.standard_normal((dim, 2)))[0]
    return Direction(mean, Spectral(rng.standard_normal(2), basis, 0.1))


@every_optimizer
@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_first_step_descends(optimizer, kind: str) -> None:
    direction, same = direction_of(kind, 0), direction_of(kind, 0)  # a step may write over what it is given
    change, _ = optimizer.step(optimizer.start(same), same)
    assert change.shift @ direction.mean < 0.0
    assert np.sum(change.log_ratio.dense() * direction.log_covariance.dense()) < 0.0


@every_optimizer
@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_steps_are_functions_of_memory_and_direction(optimizer, kind: str) -> None:
    """Nothing is kept inside: a step that is repeated gives the same bits."""
    memory = optimizer.start(direction_of(kind, 0))
    for seed in range(5):
        one, after = optimizer.step(memory, direction_of(kind, seed))
        other, _ = optimizer.step(memory, direction_of(kind, seed))
        np.testing.assert_array_equal(one.shift, other.shift)
        np.testing.assert_array_equal(one.log_ratio.values, other.log_ratio.values)
        memory = after


@every_optimizer
def test_full_covariance_moves_on_the_basis_of_the_direction_only(optimizer) -> None:
    memory = optimizer.start(direction_of("full", 0))
    for seed in range(3):
        direction = direction_of("full", seed)
        change, memory = optimizer.step(memory, direction)
        assert change.log_ratio.basis is direction.log_covariance.basis
        ratio = change.log_ratio.values / direction.log_covariance.values
        np.testing.assert_allclose(ratio, ratio[0])
        assert change.log_ratio.rest == pytest.approx(ratio[0] * 0.1)


@with_rates
def test_variance_learning_rate_zero_freezes_the_covariance(optimizer) -> None:
    frozen = type(optimizer)(0.1, 0.0)
    for kind in ("diagonal", "full"):
        direction = direction_of(kind, 1)
        change, _ = frozen.step(frozen.start(direction), direction)
        np.testing.assert_array_equal(np.abs(change.log_ratio.values), 0.0)


@with_rates
@pytest.mark.parametrize(
    ("name", "value"), [("learning_rate", 0.0), ("learning_rate", np.nan), ("variance_learning_rate", -1.0)]
)
def test_bad_rates_are_named(optimizer, name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{name}: expected"):
        type(optimizer)(**{name: value})
