"""As a method of `scipy.optimize.minimize`, with what SciPy itself accepts and hands on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, rosen, rosen_der

import cones

SMALL = {"rng": 0, "popsize": 20, "maxiter": 10}


def minimize(fun: Any, x0: Any, **settings: Any) -> Any:
    settings.setdefault("options", SMALL)
    return scipy.optimize.minimize(fun, x0, method=cones.scipy_method, **settings)


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def test_is_the_run_of_cones_itself() -> None:
    result, own = minimize(rosen, [0, 1, 2]), cones.minimize(rosen, [0.0, 1.0, 2.0], **SMALL)
    np.testing.assert_array_equal(result.x, own.x)
    assert (result.fun, result.nfev, result.nit, result.status) == (own.fun, own.nfev, 10, own.status)
    assert result.nfev == 202  # the start, ten populations, and the best candidate again
    assert isinstance(result, scipy.optimize.OptimizeResult)
    assert not result.success  # a spent budget, as SciPy's own methods have it


@pytest.mark.parametrize(
    "bounds", [Bounds([0.5, -np.inf], [2.0, -0.25]), [(0.5, 2.0), (None, -0.25)], [(0.5, 2.0), (-np.inf, -0.25)]]
)
def test_bounds_in_all_forms(bounds: Any) -> None:
    seen = []

    def fun(x: np.ndarray) -> float:
        seen.append(x.copy())
        return sphere(x)

    result = minimize(fun, [1.0, -1.0], bounds=bounds, options={"rng": 0, "maxiter": 200, "popsize": 20})
    X = np.array(seen)
    assert X[:, 0].min() >= 0.5
    assert X[:, 0].max() <= 2.0
    assert X[:, 1].max() <= -0.25
    np.testing.assert_allclose(result.x, [0.5, -0.25], atol=0.02)


def test_tol_sets_both_tolerances_and_options_go_before() -> None:
    stops = {}
    for tol, more in ((1e-2, {}), (1e-2, {"xtol": None, "ftol": None}), (None, {})):
        result = minimize(sphere, [1.0, 1.0], tol=tol, options={"rng": 0, "popsize": 20, "maxiter": 400, **more})
        stops[(tol, bool(more))] = result.stop
    assert stops[(1e-2, False)] in ("xtol", "ftol")
    assert stops[(1e-2, True)] not in ("xtol", "ftol")


def test_callback_in_both_forms_and_stop_iteration() -> None:
    results, points = [], []

    def with_result(intermediate_result: Any) -> None:
        results.append(intermediate_result)
        if len(results) == 4:
            raise StopIteration

    stopped = minimize(sphere, [1.0, 1.0], callback=with_result)
    assert (stopped.nit, stopped.stop) == (4, "callback")
    assert results[-1].fun == stopped.fun
    minimize(sphere, [1.0, 1.0], callback=lambda xk: points.append(xk))
    assert len(points) == 10
    assert points[-1].shape == (2,)


def test_args() -> None:
    result = minimize(lambda x, a, b: sphere(x - a) + b, [0.0], args=(2.0, 1.0), options={"rng": 0, "ftarget": 1.01})
    assert result.x == pytest.approx([2.0], abs=0.1)


@pytest.mark.parametrize(
    "constraints",
    [
        {"type": "eq", "fun": lambda x: x[0]},
        [{"type": "ineq", "fun": lambda x: x[0]}],
        LinearConstraint([[1.0, 1.0]], 0.0, 1.0),
        [NonlinearConstraint(lambda x: x[0], 0.0, 1.0)],
    ],
)
def test_constraints_reach_the_method(constraints: Any) -> None:
    assert minimize(sphere, [1.0, 1.0], constraints=constraints).maxcv >= 0.0


def test_no_constraints_are_none() -> None:
    assert minimize(sphere, [1.0, 1.0], constraints=[]).nit == 10


def test_derivatives_are_not_used_and_said_to_be() -> None:
    plain = minimize(rosen, [0.0, 0.0])
    with pytest.warns(RuntimeWarning, match="jac, hess and hessp are ignored"):
        given = minimize(rosen, [0.0, 0.0], jac=rosen_der)
    with pytest.warns(RuntimeWarning, match="jac, hess and hessp are ignored"):
        joined = minimize(lambda x: (rosen(x), rosen_der(x)), [0.0, 0.0], jac=True)
    assert plain.fun == given.fun == joined.fun
    assert minimize(rosen, [0.0, 0.0], jac="2-point").fun == plain.fun  # says how, asks for nothing


def test_options_are_those_of_minimize() -> None:
    by_es = minimize(sphere, [1.0, 1.0], options={**SMALL, "method": "es"})
    assert np.isnan(by_es.history["multiplier"]).all()
    many = minimize(lambda X: (X**2).sum(axis=1), [1.0, 1.0], options={**SMALL, "vectorized": True})
    assert many.fun == pytest.approx(minimize(sphere, [1.0, 1.0]).fun)
    with pytest.raises(TypeError, match="unexpected keyword argument 'gtol'"):
        minimize(sphere, [1.0, 1.0], options={"gtol": 1e-3})


def test_inside_basinhopping() -> None:
    kwargs = {"method": cones.scipy_method, "options": SMALL}
    result = scipy.optimize.basinhopping(rosen, [0.0, 0.0], niter=2, minimizer_kwargs=kwargs, rng=0)
    assert result.nfev == 3 * 202
    assert result.fun < rosen([0.0, 0.0])
