import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from cones.estimators.shaping import SHAPINGS, centred_ranks, normal_scores, raw, standardised

losses = arrays(np.float64, st.integers(2, 40), elements=st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0]))
any_losses = arrays(np.float64, st.integers(2, 40), elements=st.floats(allow_nan=True, allow_infinity=True))


@given(losses)
def test_centred_ranks_are_scipys_ranks(values: np.ndarray) -> None:
    expected = (rankdata(values) - 1) / (len(values) - 1) - 0.5
    np.testing.assert_allclose(centred_ranks(values), expected, atol=1e-14)


@given(any_losses)
@pytest.mark.parametrize("name", SHAPINGS)
def test_utilities_are_finite_and_ordered_like_the_losses(name: str, values: np.ndarray) -> None:
    utilities = SHAPINGS[name](values)
    assert utilities.shape == values.shape
    assert np.isfinite(utilities).all()
    order = np.argsort(values)  # NaN last
    assert (np.diff(utilities[order]) >= -1e-9 * np.abs(utilities).max()).all()


@given(any_losses)
@pytest.mark.parametrize("shaping", [centred_ranks, normal_scores])
def test_ranks_do_not_see_monotone_changes_of_the_loss(shaping, values: np.ndarray) -> None:
    with np.errstate(over="ignore"):
        changed = np.arctan(values) if len(np.unique(np.arctan(values))) == len(np.unique(values)) else values
    np.testing.assert_array_equal(shaping(values), shaping(changed))


def test_nan_ranks_worst_and_nans_tie() -> None:
    np.testing.assert_allclose(centred_ranks(np.array([np.nan, np.inf, -np.inf, np.nan])), [1 / 3, -1 / 6, -0.5, 1 / 3])


def test_ties_share_their_mean_rank_and_ranks_sum_to_zero() -> None:
    utilities = centred_ranks(np.array([1.0, 1.0, 0.0, 5.0]))
    np.testing.assert_allclose(utilities, [0.0, 0.0, -0.5, 0.5])


def test_normal_scores_and_standardised_have_unit_variance() -> None:
    values = np.random.default_rng(0).exponential(size=50)
    for shaping in (normal_scores, standardised):
        assert np.mean(shaping(values) ** 2) == pytest.approx(1.0)
        assert np.mean(shaping(values)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("shaping", [centred_ranks, normal_scores, standardised])
def test_equal_losses_have_utility_zero(shaping) -> None:
    np.testing.assert_array_equal(shaping(np.full(6, 0.1)), np.zeros(6))


def test_raw_is_the_loss_with_the_infinite_tamed() -> None:
    np.testing.assert_array_equal(raw(np.array([1.0, np.nan, 4.0, -np.inf])), [1.0, 4.0, 4.0, 1.0])


def test_standardised_survives_huge_losses() -> None:
    np.testing.assert_allclose(standardised(np.array([1e308, -1e308])), [1.0, -1.0])
