import numpy as np
import pytest

from cones import SGD, InputError, Step
from cones.beliefs import DiagonalMatrix


def test_velocity_is_a_geometric_sum() -> None:
    rng = np.random.default_rng(0)
    gradients = rng.standard_normal((10, 3))
    sgd = SGD(0.5, 0.25, momentum=0.8)
    state = sgd.start(Step(shift=gradients[0], log_ratio=DiagonalMatrix(gradients[0])))
    for t, gradient in enumerate(gradients):
        change, state = sgd.update(state, Step(shift=gradient, log_ratio=DiagonalMatrix(2.0 * gradient)))
        velocity = sum(0.8 ** (t - s) * gradients[s] for s in range(t + 1))
        np.testing.assert_allclose(change.shift, -0.5 * velocity)
        np.testing.assert_allclose(change.log_ratio.values, -0.5 * velocity)


def test_bad_momentum_is_named() -> None:
    with pytest.raises(InputError, match=r"momentum: expected a number in \[0, 1\), got 1.0"):
        SGD(momentum=1.0)
