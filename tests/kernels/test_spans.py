"""Formulas and sums over vectors in pieces, against NumPy on whole vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cones.kernels.spans import PIECE, SPAN, TILE, elementwise, extremes, inner, tile_sums, weighted_sum

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


@settings(max_examples=30, deadline=None)
@given(size=SIZES, seed=st.integers(0, 2**32 - 1))
def test_elementwise_is_the_formula_on_whole_vectors(size: int, seed: int) -> None:
    x, y = np.random.default_rng(seed).normal(size=(2, size))
    np.testing.assert_array_equal(elementwise(lambda x, y: x * y + 1.0, x, y), x * y + 1.0)
    total, single = elementwise(lambda x, y: (x + y, (x - y).astype("float32")), x, y)
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(single, (x - y).astype("float32"))
    assert single.dtype == np.float32


@settings(max_examples=30, deadline=None)
@given(size=SIZES, seed=st.integers(0, 2**32 - 1), width=st.sampled_from([TILE, SPAN]))
def test_tile_sums_are_the_sums_of_what_the_formula_gives(size: int, seed: int, width: int) -> None:
    x, y = np.random.default_rng(seed).normal(size=(2, size))
    one = tile_sums(lambda x, y: float((x * y).sum()), x, y, width=width)
    assert one == pytest.approx(float((x * y).sum()), abs=1e-11 * size)
    several = tile_sums(lambda x: (float(x.sum()), float(x.size)), x, width=width)
    assert several == pytest.approx((x.sum(), size), abs=1e-11 * size)


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=9 * SPAN + 5)
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr("cones.kernels.threads.thread_count", lambda threads=threads: threads)
        sums = tile_sums(lambda x: (float(x.sum()), float((x**3).sum())), x)
        found.append((sums, inner(x, x), elementwise(np.exp, x).tobytes()))
    assert found[0] == found[1] == found[2]


def test_an_error_in_any_piece_reaches_the_caller() -> None:
    x = np.zeros(5 * SPAN)
    x[-1] = 1.0

    def fails_at_the_end(x: np.ndarray) -> np.ndarray:
        if x[-1]:
            raise ZeroDivisionError
        return x

    for verb in (elementwise, tile_sums):
        with pytest.raises(ZeroDivisionError):
            verb(lambda x, verb=verb: fails_at_the_end(x) if verb is elementwise else fails_at_the_end(x).sum(), x)


def test_what_overflows_in_a_thread_is_seen_in_the_result_and_warns_nobody() -> None:
    x = np.full(5 * SPAN, 1e3)
    x[: SPAN + 1] = 0.0
    assert np.isinf(elementwise(np.exp, x)[-1])
