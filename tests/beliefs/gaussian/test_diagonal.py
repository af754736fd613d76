import numpy as np
import pytest

from cones import DiagonalGaussian, InputError, Step
from cones.beliefs import DiagonalMatrix


def test_one_variance_for_all_coordinates() -> None:
    np.testing.assert_array_equal(DiagonalGaussian([1.0, 2.0], 4.0).variance, [4.0, 4.0])


@pytest.mark.parametrize(
    ("mean", "variance", "message"),
    [
        ([], 1.0, "mean: expected a vector with at least one number"),
        ([[1.0]], 1.0, "mean: expected a vector"),
        ([np.inf], 1.0, r"mean: expected finite numbers, got inf at index \(0,\)"),
        ([1.0, 1.0], [1.0, 0.0], "variance: expected positive numbers, got 0.0 at index 1"),
        ([1.0, 1.0], [1.0], r"variance: expected shape \(2,\), got shape \(1,\)"),
        ([1j], 1.0, "mean: expected real numbers"),
    ],
)
def test_bad_input_is_named(mean: object, variance: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DiagonalGaussian(mean, variance)


def test_later_changes_of_the_arguments_do_not_reach_the_belief() -> None:
    mean, variance = np.zeros(2), np.ones(2)
    belief = DiagonalGaussian(mean, variance)
    mean[0] = variance[0] = 7.0
    assert belief.mean[0] == 0.0
    assert belief.variance[0] == 1.0


def test_variance_stays_representable() -> None:
    belief = DiagonalGaussian([0.0, 0.0], [1e-200, 1e200])
    moved = belief.moved(Step(shift=np.zeros(2), log_ratio=DiagonalMatrix(np.array([-1e4, 1e4]))))
    assert np.isfinite(moved.variance).all()
    assert (moved.variance > 0.0).all()
    assert np.isfinite(moved.to_frame(np.ones(2))).all()
