"""minimize with constraints: SciPy's optimum, workers, checkpoints, failures, infeasible problems."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize, rosen

import cones
from cones import InputError

DISK = NonlinearConstraint(lambda x: (x**2).sum(), -np.inf, 1.5)
SUM = {"type": "eq", "fun": lambda x: x.sum() - 1.0}


def sphere(x: np.ndarray) -> float:
    return float(((x - 2.0) ** 2).sum())


def product(x: np.ndarray) -> float:
    return float(np.prod(x))


def norm(x: np.ndarray) -> float:
    return float((x**2).sum())


@pytest.mark.parametrize(
    ("fun", "x0", "bounds", "constraints"),
    [
        (rosen, [0.0, 0.0, 0.0], None, DISK),
        (sphere, [0.0] * 4, None, [LinearConstraint(np.ones((1, 4)), -np.inf, 1.0), DISK]),
        (lambda x: x[0] * x[3] * x[:3].sum() + x[2], [1.0, 5.0, 5.0, 1.0], [(1, 5)] * 4, [
            {"type": "ineq", "fun": lambda x: np.prod(x) - 25.0}, {"type": "eq", "fun": lambda x: (x**2).sum() - 40.0}
        ]),  # Hock and Schittkowski's problem 71
    ],
    ids=["rosenbrock in a ball", "sphere, two constraints", "hs71"],
)  # fmt: skip
def test_the_optimum_is_that_of_slsqp(fun: Any, x0: Any, bounds: Any, constraints: Any) -> None:
    exact = minimize(fun, x0, method="SLSQP", bounds=bounds, constraints=constraints, options={"ftol": 1e-12})
    result = cones.minimize(fun, x0, bounds=bounds, constraints=constraints, maxfev=6000, rng=1, restarts=0)
    assert result.fun == pytest.approx(exact.fun, abs=1e-6)
    assert result.maxcv == result.constr_violation <= 1e-8
    assert result.fun == fun(result.x)


@pytest.mark.parametrize("seed", [0, 2])  # without a limit, multipliers and penalties explode for seed 2
def test_a_simplex_in_twenty_dimensions(seed: int) -> None:
    rng = np.random.default_rng(0)
    square, slope = rng.standard_normal((20, 20)), rng.standard_normal(20)
    curvature = square @ square.T / 20 + 0.1 * np.eye(20)

    def fun(x: np.ndarray) -> float:
        return float(0.5 * x @ curvature @ x + slope @ x)

    def inside(x: np.ndarray) -> float:
        assert ((x >= 0.0) & (x <= 1.0)).all()
        return fun(x)

    x0, bounds = np.full(20, 0.05), [(0.0, 1.0)] * 20
    options = {"ftol": 1e-14, "maxiter": 500}
    exact = minimize(fun, x0, method="SLSQP", bounds=bounds, constraints=SUM, options=options)
    result = cones.minimize(inside, x0, bounds=bounds, constraints=SUM, maxfev=6000, rng=seed, restarts=0)
    assert result.success
    assert abs(result.fun - exact.fun) < 1e-6
    assert result.maxcv <= 1e-8
    assert (exact.x < 1e-9).sum() > 5  # many bounds are active


def ball_of_rows(X: np.ndarray) -> np.ndarray:
    return (X**2).sum(axis=1) - 1.5


def ball(x: np.ndarray) -> float:
    return float((x**2).sum() - 1.5)


def settings(**more: Any) -> dict[str, Any]:
    return {"maxiter": 12, "rng": 3, "restarts": 0, **more}


def assert_same_run(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one.x, other.x)
    assert (one.fun, one.maxcv, one.nfev) == (other.fun, other.maxcv, other.nfev)
    np.testing.assert_array_equal(one.history["mean_loss"], other.history["mean_loss"])


def test_workers_do_not_change_the_run() -> None:
    limit = NonlinearConstraint(ball, -np.inf, 0.0)
    one = cones.minimize(sphere, [0.0] * 3, constraints=limit, **settings())
    for workers in (2, map):
        assert_same_run(cones.minimize(sphere, [0.0] * 3, constraints=limit, workers=workers, **settings()), one)


def test_vectorized_functions_give_the_same_run() -> None:
    one = cones.minimize(norm, [2.0] * 3, constraints=NonlinearConstraint(ball, 0.0, np.inf), **settings())
    other = cones.minimize(
        lambda X: np.array([norm(x) for x in X]),
        [2.0] * 3,
        constraints=NonlinearConstraint(lambda X: np.array([[ball(x)] for x in X]), 0.0, np.inf),
        vectorized=True,
        **settings(),
    )
    assert_same_run(one, other)


@pytest.mark.parametrize("method", ["cones", "nes", "cma"])
def test_resume_continues_bit_for_bit(method: str, tmp_path: Path) -> None:
    limit, path = NonlinearConstraint(ball, -np.inf, 0.0), tmp_path / "run.ckpt"
    more = {} if method == "cma" else {"restarts": 0}
    common: dict[str, Any] = {"constraints": limit}
    whole = cones.minimize(sphere, [0.0] * 3, method=method, rng=3, maxiter=12, **common, **more)
    cones.minimize(sphere, [0.0] * 3, method=method, rng=3, maxiter=5, checkpoint=path, **common, **more)
    multipliers = cones.load(path).state.lagrangian.multipliers
    assert multipliers.shape == (1,)
    with pytest.raises(InputError, match="constraints: expected 1 numbers per candidate, as before, got 0"):
        cones.resume(path, sphere, maxiter=12)
    assert_same_run(cones.resume(path, sphere, constraints=limit, maxiter=12), whole)


def test_an_infeasible_problem_says_by_how_much() -> None:
    apart = [{"type": "ineq", "fun": lambda x: x[0] - 1.0}, {"type": "ineq", "fun": lambda x: -1.0 - x[0]}]
    result = cones.minimize(sphere, [0.0, 0.0], constraints=apart, maxfev=1000, rng=0)
    assert not result.success
    assert result.status != 0
    assert 1.0 <= result.maxcv < 1.05  # 1 at x[0] = 0
    assert "No candidate was feasible: x violates a constraint by 1" in result.message


def test_a_run_that_ends_beside_the_feasible_region_has_not_converged() -> None:
    # Feasible is only x0, or so it looks to a search that never hits it again.
    def only_x0(x: np.ndarray) -> float:
        return 0.0 if (x == 0.0).all() else 1.0

    result = cones.minimize(sphere, [0.0, 0.0], constraints={"type": "eq", "fun": only_x0}, maxfev=3000, rng=0)
    assert (result.fun, result.maxcv) == (8.0, 0.0)
    assert not result.success
    assert "x is an earlier candidate" in result.message


def test_the_best_feasible_candidate_is_kept() -> None:
    seen: list[tuple[float, float, tuple[float, ...]]] = []

    def fun(x: np.ndarray) -> float:
        violation = max(0.0, ball(x))
        seen.append((violation if violation > 1e-3 else 0.0, sphere(x), tuple(x)))
        return sphere(x)

    limit = NonlinearConstraint(ball, -np.inf, 0.0)
    result = cones.minimize(fun, [3.0] * 3, constraints=limit, catol=1e-3, maxfev=400, rng=2, noisy=False)
    assert (0.0, result.fun, tuple(result.x)) == min(seen)
    assert result.maxcv == max(0.0, ball(result.x)) <= 1e-3


def test_a_target_counts_only_where_it_is_feasible() -> None:
    limit = LinearConstraint([[1.0, 1.0]], -np.inf, 1.0)
    result = cones.minimize(sphere, [3.0, 3.0], constraints=limit, ftarget=4.6, maxfev=2000, rng=0)
    assert result.stop == "ftarget"  # 4.5 is the optimum; x0 has 2
    assert result.maxcv <= 1e-8
    assert result.nfev > 20


def test_nan_ranks_worst_and_is_no_answer() -> None:
    def narrow(x: np.ndarray) -> float:
        return math.nan if x[0] > 2.5 else x[1] - 0.5

    result = cones.minimize(
        sphere, [0.0, 0.0], constraints=NonlinearConstraint(narrow, -np.inf, 0.0), maxfev=2000, rng=0
    )
    assert result.maxcv <= 1e-8
    np.testing.assert_allclose(result.x, [2.0, 0.5], atol=1e-4)
    assert result.history["failures"].sum() > 0


def test_what_a_constraint_raises_arrives_with_the_result_so_far() -> None:
    calls = iter(range(10**6))

    def limit(x: np.ndarray) -> float:
        if next(calls) > 40:
            raise ZeroDivisionError("no more")
        return ball(x)

    with pytest.raises(ZeroDivisionError) as caught:
        cones.minimize(sphere, [0.0] * 3, constraints=[{"type": "ineq", "fun": limit}], rng=0)
    assert "cones: raised by constraints[0]" in caught.value.__notes__
    assert caught.value.cones_result.nfev == 40  # type: ignore[attr-defined]


def test_an_interrupt_keeps_the_best_feasible_candidate_of_a_part() -> None:
    seen: list[tuple[float, float]] = []

    def fun(x: np.ndarray) -> float:
        if len(seen) == 6:
            raise KeyboardInterrupt
        seen.append((max(0.0, ball(x)), sphere(x)))
        return sphere(x)

    result = cones.minimize(fun, [2.0] * 3, constraints=NonlinearConstraint(ball, -np.inf, 0.0), rng=0)
    assert result.stop == "interrupted"
    assert (result.maxcv, result.fun) == min(seen)
    assert result.nfev == 6


def test_an_evaluator_without_the_constraints_is_refused() -> None:
    class Losses(cones.Evaluator):
        def losses(self, candidates: Any) -> Any:
            return np.asarray(candidates).sum(axis=1)

    with pytest.raises(InputError, match="constraints: expected 1 numbers per candidate, got none"):
        cones.minimize(sphere, [0.0] * 3, constraints=NonlinearConstraint(ball, -np.inf, 0.0), workers=Losses())


def test_scipy_passes_its_constraints_on() -> None:
    result = minimize(sphere, [0.0, 0.0], method=cones.scipy_method, constraints=[SUM], options={"maxfev": 2000})
    np.testing.assert_allclose(result.x, [0.5, 0.5], atol=1e-4)


def test_a_tolerance_is_not_negative() -> None:
    with pytest.raises(InputError, match="catol: expected"):
        cones.minimize(sphere, [0.0, 0.0], constraints=SUM, catol=-1.0)


@pytest.mark.parametrize("seed", [1, 2])
def test_integers_keep_their_neighbours_beside_constraints(seed: int) -> None:
    space = cones.Space(a=cones.Float(-5, 5), b=cones.Integer(0, 20), c=cones.Integer(0, 20))

    def fun(values: dict[str, Any]) -> float:
        return float(values["a"] ** 2 + (values["b"] - 13.3) ** 2 + (values["c"] - 7) ** 2)

    room = {"type": "ineq", "fun": lambda values: 15 - values["b"] - values["c"]}
    exact = min((b - 13.3) ** 2 + (c - 7) ** 2 for b in range(21) for c in range(16 - b if b < 16 else 0))
    result = cones.minimize(fun, space, constraints=room, maxfev=800, rng=seed, restarts=0)
    assert result.fun == pytest.approx(exact, abs=1e-7)
    assert result.belief.standard_deviations()[1:].min() > 0.2  # of a cell: a neighbour keeps a probability


def test_a_known_loss_is_no_answer_where_its_constraints_are_unknown() -> None:
    space = cones.Space(a=cones.Float(-5, 5)).knowing([({"a": 4.0}, -100.0)])
    room = {"type": "ineq", "fun": lambda values: 1.0 - values["a"]}
    result = cones.minimize(lambda values: -values["a"], space, constraints=room, maxfev=300, rng=0)
    assert result.fun == pytest.approx(-1.0, abs=1e-6)
    assert result.maxcv <= 1e-8

    es = cones.CoNES([0.0, 0.0], rng=0)
    es.tell_known([[9.0, 9.0]], [-100.0])
    X = es.ask()
    es.tell(X, X.sum(axis=1), constraints=-10.0 - X.sum(axis=1, keepdims=True))
    assert es.result.fun == pytest.approx(X.sum(axis=1).min())
