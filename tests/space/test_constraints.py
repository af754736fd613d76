"""Constraints as SciPy has them: the same violations as SciPy's, and errors that say what is wrong."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint
from scipy.optimize._constraints import PreparedConstraint
from scipy.sparse import csr_array

from cones import InputError
from cones.space.constraints import constraints_from
from cones.space.lagrangian import violations_of

X0 = np.array([0.5, -1.0, 2.0])


def curve(x: np.ndarray) -> np.ndarray:
    return np.array([x[0] ** 2 + x[1], np.sin(x[2])])


def curve_of_rows(X: np.ndarray) -> np.ndarray:
    return np.stack([X[:, 0] ** 2 + X[:, 1], np.sin(X[:, 2])], axis=1)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_violations_are_those_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((5, 3)) * 2
    low = np.where(rng.random(2) < 0.3, -np.inf, rng.normal(size=2) - 1)
    high = np.where(rng.random(2) < 0.3, np.inf, np.where(np.isfinite(low), low, 0) + rng.choice([0.0, 1.0], 2))
    given = [
        LinearConstraint(rng.standard_normal((2, 3)), low, high),
        NonlinearConstraint(curve, low, high),
        NonlinearConstraint(lambda x: x.sum(), 0.0, 0.0),
    ]
    found = constraints_from(given, X0)
    assert found is not None
    expected = [max(PreparedConstraint(part, X0).violation(x).max(initial=0.0) for part in given) for x in X]
    np.testing.assert_allclose(violations_of(found.sides(X)), expected, rtol=1e-12, atol=1e-14)
    assert found.sides(X).shape == (5, found.count)


def test_dicts_are_at_least_zero_or_zero() -> None:
    found = constraints_from(
        ({"type": "ineq", "fun": lambda x, k: x[0] - k, "args": (2.0,)}, {"type": "eq", "fun": lambda x: x[1:]}), X0
    )
    assert found is not None
    np.testing.assert_array_equal(found.sides(X0[None, :]), [[1.5, 1.0, -2.0, -1.0, 2.0]])


def test_vectorized_functions_take_rows() -> None:
    X = np.random.default_rng(0).standard_normal((4, 3))
    sparse = LinearConstraint(csr_array(np.eye(3)), -1.0, 1.0)
    one = constraints_from([NonlinearConstraint(curve, 0.0, 1.0), sparse], X0)
    other = constraints_from([NonlinearConstraint(curve_of_rows, 0.0, 1.0), sparse], X0, vectorized=True)
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(one.sides(X), other.sides(X), rtol=1e-15)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).sides(X), one.sides(X))


@pytest.mark.parametrize("nothing", [None, (), [], LinearConstraint(np.eye(3), -np.inf, np.inf)])
def test_no_finite_side_is_no_constraint(nothing: Any) -> None:
    assert constraints_from(nothing, X0) is None


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (3, "constraints: expected a LinearConstraint, .* got int 3"),
        ([Bounds(0, 1)], r"constraints\[0\]: expected .* got Bounds .*; pass it as bounds"),
        ({"type": "le", "fun": curve}, "expected type 'eq' or 'ineq', got 'le'"),
        ({"fun": curve}, "expected the keys type, fun and args, got fun"),
        ({"type": "eq", "fun": curve, "tol": 1}, "expected the keys type, fun and args, got type, fun, tol"),
        ([{"type": "eq", "fun": 1.0}], r"constraints\[0\]: expected fun to be callable, got float"),
        (LinearConstraint(np.eye(2), 0, 1), r"expected A with 3 columns, one per coordinate, got shape \(2, 2\)"),
        (LinearConstraint(np.full((1, 3), np.nan), 0, 1), "A: expected finite numbers, got nan"),
        (NonlinearConstraint(curve, [0, 0, 0], 1), r"expected lb to fit 2 values, got shape \(3,\)"),
        (NonlinearConstraint(curve, 2.0, 1.0), "expected lb <= ub, got 2.0 and 1.0 at index 0"),
        (NonlinearConstraint(curve, np.nan, 1.0), "expected lb <= ub, got nan"),
        (NonlinearConstraint(lambda x: "three", 0, 1), "value of fun: expected real numbers, got 'three'"),
    ],
)
def test_bad_constraints_are_named(constraints: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        constraints_from(constraints, X0)


def test_a_function_that_changes_its_shape_is_refused() -> None:
    found = constraints_from(NonlinearConstraint(lambda x: x[x > 0], 0, 1), X0)
    assert found is not None
    with pytest.raises(InputError, match=r"constraints: expected fun to return 2 numbers, got shape \(3,\)"):
        found.sides(np.ones((1, 3)))


def test_an_exception_names_the_constraint() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        constraints_from([LinearConstraint(np.eye(3), 0, 1), {"type": "eq", "fun": lambda x: 1 / 0}], X0)
    assert caught.value.__notes__ == ["cones: raised by constraints[1]"]
