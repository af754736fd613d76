import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds

import cones
from cones import InputError
from cones.space.bounds import Box, box_from

INF = np.inf
sides = st.tuples(st.floats(-5, 5) | st.just(-INF), st.floats(0, 4) | st.just(INF))


def fold(x: float, low: float, high: float) -> float:
    """Reflection step by step."""
    if low == high:
        return low
    while not low <= x <= high:
        x = 2 * low - x if x < low else 2 * high - x
    return x


@given(side=sides, x=st.floats(-30, 30))
def test_reflection_is_repeated_mirroring(side: tuple[float, float], x: float) -> None:
    low = side[0]
    high = INF if side[1] == INF else (max(low, -5.0) + side[1])
    if high - low < 1e-3:
        high = low
    inside = Box(np.array([low]), np.array([high])).reflect(np.array([[x]]))[0, 0]
    assert low <= inside <= high
    assert inside == pytest.approx(fold(x, low, high), abs=1e-6)
    if low <= x <= high:
        assert inside == x


@given(st.floats(-1e300, 1e300))
def test_far_candidates_still_land_inside(x: float) -> None:
    inside = Box(np.array([0.1, -INF]), np.array([0.3, 7.0])).reflect(np.array([[x, x]]))[0]
    assert 0.1 <= inside[0] <= 0.3
    assert inside[1] <= 7.0


@pytest.mark.parametrize(
    "bounds",
    [Bounds([0, -INF], [1, 2]), Bounds(0, 2), [(0, 1), (None, 2)], np.array([[0.0, 1.0], [0.0, 2.0]])],
)
def test_what_scipy_accepts_is_accepted(bounds: object) -> None:
    box = box_from(bounds, np.array([0.5, 0.5]))
    assert box is not None
    assert box.upper[1] == 2.0


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([(0, 1)], "bounds: expected 2 pairs, one per coordinate of x0, got 1"),
        ([(0, 1), (2, 1)], r"bounds: expected low <= high, got \(2.0, 1.0\) for coordinate 1"),
        ([(0, 1), (np.nan, 1)], "bounds: expected low <= high"),
        ([(0, 1), (1, 2)], r"x0: expected a start within bounds, got 0.5 outside \(1.0, 2.0\) at coordinate 1"),
        (3, "bounds: expected a scipy.optimize.Bounds or a sequence"),
        ([1, 2], "bounds: expected a scipy.optimize.Bounds or a sequence"),
        ([("a", 1), (0, 1)], "bounds: expected real numbers"),
        (Bounds([0, 0, 0], [1, 1, 1]), "bounds: expected sides that fit the 2 coordinates"),
    ],
)
def test_bad_bounds_are_named(bounds: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cones.CoNES([0.5, 0.5], bounds=bounds)


@pytest.mark.parametrize("vectorized", [False, True])
def test_every_candidate_lies_inside(vectorized: bool) -> None:
    low, high = np.array([-1.0, 0.0, 2.0]), np.array([1.0, INF, 2.0])
    seen = []

    def fun(x: np.ndarray):
        seen.append(np.atleast_2d(x))
        return ((x - 5.0) ** 2).sum(axis=-1)

    result = cones.minimize(
        fun, [0.0, 1.0, 2.0], sigma0=3.0, bounds=Bounds(low, high), vectorized=vectorized, rng=0, maxiter=60
    )
    X = np.concatenate(seen)
    assert (X >= low).all()
    assert (X <= high).all()
    np.testing.assert_allclose(result.x, [1.0, 5.0, 2.0], atol=0.2)


def test_bounds_may_be_an_iterator_and_the_mean_is_reported_inside() -> None:
    result = cones.minimize(
        lambda x: -float(x.sum()), [0.5, 0.5], bounds=zip([0.0, 0.0], [1.0, 1.0], strict=True), rng=0, maxiter=50
    )
    assert ((result.mean >= 0.0) & (result.mean <= 1.0)).all()
    np.testing.assert_allclose(result.x, 1.0, atol=0.05)


def test_default_spread_is_a_quarter_of_a_finite_width() -> None:
    es = cones.ES([0.5, 0.5], bounds=[(0, 1), (None, 1)])
    np.testing.assert_allclose(es.state.belief.standard_deviations(), [0.25, 1.0])


@given(x=st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=8))
def test_single_precision_stays_single_and_inside(x: list[float]) -> None:
    low, high = 0.1, 0.3  # neither is a float of single precision
    box = box_from([(low, high)] * len(x), np.full(len(x), 0.2))
    assert box is not None
    inside = box.reflect(np.array([x], dtype=np.float32))
    assert inside.dtype == np.float32
    assert np.all((inside >= low) & (inside <= high))


def test_candidates_of_single_precision_in_a_box() -> None:
    def loss(x: np.ndarray) -> float:
        assert x.dtype == np.float32
        assert np.all((x >= 0.1) & (x <= 0.3))
        return float((x**2).sum())

    result = cones.minimize(loss, [0.1, 0.1], bounds=[(0.1, 0.3)] * 2, dtype="float32", rng=0, maxiter=20)
    assert result.x.dtype == np.float32


SIGMAS = {"float64": [1e-140, 1e-9, 1.0, 1e9, 1e140], "float32": [1e-16, 1.0, 1e9, 1e16]}
BOXES = [
    [(0, 3)] * 2,
    [(0, 3), (0.1, 0.1)],
    [(None, 3), (0.1, None)],
    [(0.9, 1.1), (0.1, 0.1 + 1e-12)],  # the second holds no number of single precision
    [(-1e38, 1e38), (-1e300, 1e300)],
    [(-1.7e308, 1.7e308), (0.1, 1.7e308)],
    [(1 - 1e-16, 1 + 3e-16), (0, 1e-300)],
]


@pytest.mark.parametrize("bounds", BOXES, ids=str)
@pytest.mark.parametrize(
    ("dtype", "settings"),
    [
        ("float64", {}),
        ("float64", {"belief": "diagonal", "radius": "paper"}),
        ("float64", {"method": "cma"}),
        ("float32", {}),
        ("float32", {"belief": "diagonal", "step": "evolution_path"}),
        ("float32", {"belief": "low_rank", "chunked": True}),
    ],
)
def test_what_a_function_sees_is_inside_and_finite(bounds: list, dtype: str, settings: dict[str, object]) -> None:
    low, high = (np.array([missing if side[k] is None else side[k] for side in bounds], float)
                 for k, missing in ((0, -INF), (1, INF)))  # fmt: skip
    # The nearest numbers of the dtype on the inner sides of the bounds, by NumPy's own rounding.
    with np.errstate(over="ignore"):
        exact, most = low.astype(dtype), high.astype(dtype)
    least = np.where(exact.astype(float) < low, np.nextafter(exact, np.array(INF, dtype)), exact)
    most = np.where(most.astype(float) > high, np.nextafter(most, np.array(-INF, dtype)), most)
    empty = least > most
    x0 = np.clip([1.0, 0.1], low, high)

    def loss(X: np.ndarray) -> np.ndarray:
        assert X.dtype == dtype
        assert np.isfinite(X).all()
        assert (((X >= least) & (X <= most)) | (empty & (X == exact))).all()
        return np.where(np.arange(len(X)) % 3, np.float64(X[:, 0]) / 7, -1.0)

    chosen = {} if dtype == "float64" else {"dtype": dtype}
    if dtype == "float32" and not settings:
        settings = {"belief": "diagonal"}
    for sigma0 in [None, *SIGMAS[dtype]]:
        cones.minimize(
            loss, x0, sigma0=sigma0, bounds=bounds, rng=0, maxiter=4, vectorized=True, maxfev=200, **chosen, **settings
        )


@pytest.mark.parametrize("sigma0", [1e39, 1e20, 1e-60])
def test_deviations_beyond_single_precision_are_refused(sigma0: float) -> None:
    with pytest.raises(InputError, match=r"sigma0: expected numbers between 1e-16 and 1e\+16 as float32"):
        cones.minimize(lambda x: float(x @ x), [1.0, 2.0], sigma0=sigma0, dtype="float32", rng=0, maxiter=1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_run_that_diverges_sees_finite_candidates_only(dtype: str) -> None:
    """The loss pulls the mean away from a start near the end of the range."""
    start = 0.4 * float(np.finfo(dtype).max)

    def loss(X: np.ndarray) -> np.ndarray:
        assert np.isfinite(X).all()
        return -np.float64(X[:, 0])

    sigma0 = 1e9 if dtype == "float32" else 1e99
    settings = {"belief": "diagonal", "radius": "paper", "dtype": dtype, "optimizer": cones.Adam(0.1 * start / sigma0)}
    cones.minimize(loss, [start], sigma0=sigma0, rng=0, maxiter=60, vectorized=True, xtol=None, **settings)
