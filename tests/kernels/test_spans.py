"""Sums over vectors in pieces, against NumPy's own."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cones.kernels.spans import PIECE, SPAN, TILE, extremes, inner, weighted_sum

SIZES = st.one_of(
    st.integers(1, 50), st.sampled_from([PIECE - 1, PIECE, PIECE + 1, TILE, SPAN + 3]), st.integers(1, 3 * SPAN)
)


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 5), size=SIZES, seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from(["float64", "float32"])
)
def test_weighted_sum(count: int, size: int, seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    weights, wide = rng.normal(size=count).astype(dtype), rng.normal(size=(count, size + 11)).astype(dtype)
    rows = wide[:, 3 : size + 3]  # not contiguous, and not aligned
    out = np.full(size, np.nan, dtype)
    assert weighted_sum(weights, rows, out) is out
    exact = (weights[:, None].astype(np.longdouble) * rows).sum(axis=0)
    scale = (np.abs(weights[:, None]) * np.abs(rows)).sum(axis=0)
    assert (np.abs(out - exact) <= 4 * count * np.finfo(dtype).eps * scale).all()
    # Whatever memory the rows lie in, it is the same to the last bit.
    np.testing.assert_array_equal(weighted_sum(weights, rows.copy(), np.empty(size, dtype)), out)


@settings(max_examples=30, deadline=None)
@given(size=SIZES, seed=st.integers(0, 2**32 - 1))
def test_inner_products_and_extremes(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, size))
    np.testing.assert_allclose(inner(x, y), float(np.sum(x.astype(np.longdouble) * y)), rtol=0, atol=1e-12 * size)
    assert extremes(x) == (x.min(), x.max())
