import numpy as np
import pytest

from cones import Adam, InputError, Step
from cones.beliefs import DiagonalMatrix, SpectralMatrix


def algorithm_1(gradients: list[np.ndarray], rate: float, beta1=0.9, beta2=0.999, epsilon=1e-8) -> list[np.ndarray]:
    """Kingma & Ba's Algorithm 1, line by line."""
    m, v, changes = np.zeros_like(gradients[0]), np.zeros_like(gradients[0]), []
    for t, g in enumerate(gradients, start=1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
        changes.append(-rate * m_hat / (np.sqrt(v_hat) + epsilon))
    return changes


def test_is_algorithm_1_in_both_blocks() -> None:
    rng = np.random.default_rng(0)
    means, logs = [list(rng.standard_normal((30, 4)) * 10.0 ** rng.uniform(-9, 3, 4)) for _ in range(2)]
    adam = Adam(0.1, 0.02)
    state = adam.start(Step(shift=means[0], log_ratio=DiagonalMatrix(logs[0])))
    expected = zip(algorithm_1(means, 0.1), algorithm_1(logs, 0.02), strict=True)
    for mean, log, (mean_change, log_change) in zip(means, logs, expected, strict=True):
        change, state = adam.update(state, Step(shift=mean, log_ratio=DiagonalMatrix(log)))
        np.testing.assert_allclose(change.shift, mean_change, rtol=1e-10)
        np.testing.assert_allclose(change.log_ratio.values, log_change, rtol=1e-10)


def test_full_covariance_is_scaled_by_the_running_size_of_its_eigenvalues() -> None:
    adam = Adam(0.1)
    basis = np.eye(3)[:, :2]
    step = Step(shift=np.zeros(3), log_ratio=SpectralMatrix(np.array([3.0, -4.0]), basis))
    change, state = adam.update(adam.start(step), step)
    size = np.sqrt((9.0 + 16.0) / 2.0)
    np.testing.assert_allclose(change.log_ratio.values, [-0.3 / size, 0.4 / size], rtol=1e-6)
    larger = Step(shift=np.zeros(3), log_ratio=SpectralMatrix(np.array([30.0, -40.0]), basis))
    change, _ = adam.update(state, larger)
    running = np.sqrt((0.999 * 0.001 * size**2 + 0.001 * 100 * size**2) / (1 - 0.999**2))
    np.testing.assert_allclose(change.log_ratio.values, np.array([-3.0, 4.0]) / running, rtol=1e-6)


@pytest.mark.parametrize("settings", [{"beta1": 1.0}, {"beta2": -0.1}, {"epsilon": 0.0}])
def test_bad_settings_are_named(settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(settings))}: expected"):
        Adam(**settings)
