import numpy as np
import pytest

from cones import FullGaussian, InputError, Step
from cones.beliefs import SpectralMatrix, StepStatus, decode


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "covariance: expected a positive definite matrix, got one with an eigenvalue of -1"),
        ([[1.0, 0.5], [0.0, 1.0]], "covariance: expected a symmetric matrix"),
        ([1.0, 1.0], r"covariance: expected shape \(2, 2\), got shape \(2,\)"),
        ([[1.0, np.nan], [np.nan, 1.0]], r"covariance: expected finite numbers, got nan at index \(0, 1\)"),
    ],
)
def test_bad_covariance_is_named(covariance: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FullGaussian([0.0, 0.0], covariance)


def test_bad_parameters_are_named() -> None:
    with pytest.raises(InputError, match=r"parameters: expected shape \(2, 2\), got shape \(2,\)"):
        decode(FullGaussian, [0.0, 0.0], [1.0, 2.0], "cholesky")
    with pytest.raises(InputError, match="parameters: expected a valid precision"):
        decode(FullGaussian, [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]], "precision")


def test_inverse_is_computed_anew_when_it_has_drifted() -> None:
    rng = np.random.default_rng(1)
    factor = rng.standard_normal((6, 6))
    state = {"mean": np.zeros(6), "factor": factor, "inverse_transpose": np.linalg.inv(factor).T + 1e-6}
    drifted = FullGaussian.from_state(state)
    v = rng.standard_normal(6)
    assert np.abs(drifted.to_frame(drifted.from_frame(v)) - v).max() > 1e-7
    moved = drifted.moved(Step(shift=np.zeros(6), log_ratio=SpectralMatrix(np.array([0.1]), np.eye(6)[:, :1])))
    np.testing.assert_allclose(moved.to_frame(moved.from_frame(v)), v, atol=1e-11)


def test_precision_is_the_inverse_of_the_covariance() -> None:
    belief = FullGaussian([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(belief.precision, np.linalg.inv(belief.covariance), atol=1e-14)


def test_factor_and_inverse_stay_together_over_many_updates() -> None:
    rng = np.random.default_rng(0)
    dim = 30
    belief = FullGaussian(np.zeros(dim), np.eye(dim))
    for _ in range(2000):
        basis = np.linalg.qr(rng.standard_normal((dim, 4)))[0]
        change = SpectralMatrix(0.1 * rng.standard_normal(4), basis, 0.01 * rng.standard_normal())
        belief = belief.moved(Step(shift=np.zeros(dim), log_ratio=change))
    v = rng.standard_normal(dim)
    np.testing.assert_allclose(belief.to_frame(belief.from_frame(v)), v, atol=1e-9)


class TestResolution:
    """`is_resolved`, beside the eigenvectors of the covariance."""

    @staticmethod
    def belief(deviations: list[float], mean: float, seed: int = 0) -> FullGaussian:
        n = len(deviations)
        rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
        start = FullGaussian(np.full(n, mean), np.eye(n))
        logs = SpectralMatrix(2.0 * np.log(np.array(deviations)), rotation)
        return start.moved(Step(np.zeros(n), logs, StepStatus.OPTIMAL, multiplier=1.0, gap=0.0))

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("narrow", [1e-8, 1e-13, 1e-14, 1e-17, 1e-19])
    def test_an_axis_whose_fifth_does_not_change_the_mean_is_lost(self, narrow: float, seed: int) -> None:
        belief = self.belief([narrow, 3.0 * narrow, 10.0 * narrow, 30.0 * narrow], 1.7, seed)
        values, vectors = np.linalg.eigh(belief.covariance / narrow**2)
        moved = belief.mean + 0.2 * narrow * np.sqrt(values[0]) * vectors[:, 0]
        assert belief.is_resolved() == bool((moved != belief.mean).any())

    def test_around_zero_any_deviation_is_resolved(self) -> None:
        assert self.belief([1e-100, 1e-101], 0.0).is_resolved()

    def test_a_covariance_that_is_as_good_as_singular_is_not_resolved(self) -> None:
        assert self.belief([1.0, 1e-5], 0.0).is_resolved()
        assert not self.belief([1.0, 1e-8], 0.0).is_resolved()

    def test_badly_scaled_coordinates_are_resolved(self) -> None:
        assert FullGaussian([1.0, 1.0], np.diag([1e12, 1e-12])).is_resolved()
