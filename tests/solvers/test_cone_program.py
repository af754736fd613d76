"""The dual against the paper's cone programs by CVXPY."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from helpers import random_belief, random_gradient
from hypothesis import given, settings
from hypothesis import strategies as st

import cones
from cones import DiagonalGaussian, Gradient, MissingExtraError, StepStatus
from cones.solvers import Mosek

pytest.importorskip("cvxpy")


@pytest.mark.parametrize(("kind", "largest"), [("diagonal", 30), ("full", 6)])
@given(data=st.data())
@settings(max_examples=15)
def test_dual_agrees_with_clarabel(kind: str, largest: int, data: st.DataObject) -> None:
    dim = data.draw(st.integers(1, largest))
    seed = data.draw(st.integers(0, 10**6))
    radius = data.draw(st.sampled_from([0.1, 1.0, 10.0**0.5, 10.0]))
    belief, gradient = random_belief(kind, dim, seed), random_gradient(kind, dim, seed + 1)
    exact = cones.solve_step(belief, gradient, radius)
    cone = cones.solve_step(belief, gradient, radius, solver="cvxpy")
    if not cone.status.ok:
        return
    assert exact.objective >= cone.objective * (1 - 1e-5)
    assert cone.objective == pytest.approx(exact.objective, rel=1e-5)
    assert cone.multiplier == pytest.approx(exact.multiplier, rel=1e-3)
    assert cone.belief.kl(exact.belief) <= 1e-4 * radius**2
    assert abs(cone.gap) <= 1e-5 * exact.objective


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_dual_agrees_with_scs(kind: str) -> None:
    belief, gradient = random_belief(kind, 4, 0), random_gradient(kind, 4, 1)
    exact, cone = (cones.solve_step(belief, gradient, 1.0, solver=name) for name in ("dual", "scs"))
    assert cone.status.ok
    assert cone.objective == pytest.approx(exact.objective, rel=1e-2)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_zero_gradient_needs_no_solver(kind: str) -> None:
    zero = Gradient(np.zeros(3), np.zeros(3) if kind == "diagonal" else np.zeros((3, 3)))
    step = cones.solve_step(random_belief(kind, 3, 0), zero, 1.0, solver="cvxpy")
    assert step.status is StepStatus.ZERO_GRADIENT


@pytest.mark.parametrize("how", ["it raises", "it finds nothing"])
def test_trouble_inside_the_solver_is_a_status(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import cvxpy

    def solve(self: object, solver: str) -> None:
        if how == "it raises":
            raise cvxpy.SolverError("no luck")

    monkeypatch.setattr(cvxpy.Problem, "solve", solve)
    belief, gradient = random_belief("diagonal", 5, 0), random_gradient("diagonal", 5, 1)
    step = cones.solve_step(belief, gradient, 1.0, solver="clarabel")
    assert step.status is StepStatus.FAILED
    assert step.gap == np.inf
    assert step.belief.kl(belief) == 0.0


def test_the_dual_solves_what_a_cone_solver_does_not() -> None:
    """Clarabel gives up on a ball this large, or is inaccurate, depending on its release."""
    belief, gradient = random_belief("diagonal", 500, 0), random_gradient("diagonal", 500, 1)
    assert cones.solve_step(belief, gradient, 1e5).status is StepStatus.OPTIMAL


def test_cone_solver_inside_cones() -> None:
    """CoNES with the paper's solver follows CoNES with the dual."""
    ends = []
    for solver in ("dual", "cvxpy"):
        es = cones.CoNES([3.0, 3.0, 3.0], popsize=10, radius=1.0, solver=solver, rng=0, maxiter=5)
        while not es.stop():
            X = es.ask()
            es.tell(X, (X**2).sum(axis=1))
        ends.append(es.state.belief.mean)
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-3)


def test_status_is_judged_by_what_was_returned() -> None:
    """SCS calls a step optimal that leaves a tiny ball far behind."""
    belief, gradient = random_belief("diagonal", 3, 0), random_gradient("diagonal", 3, 1)
    step = cones.solve_step(belief, gradient, 1e-6, solver="scs")
    good = step.divergence <= 1.0001e-12 and abs(step.gap) <= 1e-4 * abs(step.objective)
    assert step.status is (StepStatus.OPTIMAL if good else StepStatus.INACCURATE)
    assert cones.solve_step(belief, gradient, 1.0, solver="clarabel").status is StepStatus.OPTIMAL


def test_an_invalid_mosek_licence_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    import cvxpy

    licence = tmp_path / "mosek.lic"
    licence.write_text("nonsense")
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "mosek" else real(name))
    monkeypatch.setenv("MOSEKLM_LICENSE_FILE", f"{tmp_path / 'none.lic'}:{licence}")

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("rescode.err_license_version(1000): license is not valid")

    monkeypatch.setattr(cvxpy.Problem, "solve", refuse)
    with pytest.raises(MissingExtraError, match=r"no valid licence.*solver=\"dual\""):
        cones.solve_step(DiagonalGaussian([0.0], 1.0), Gradient([1.0], [1.0]), 1.0, solver="mosek")
    # Other trouble inside an engine is a status.
    step = cones.solve_step(DiagonalGaussian([0.0], 1.0), Gradient([1.0], [1.0]), 1.0, solver="clarabel")
    assert step.status is StepStatus.FAILED


def test_missing_package_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "cvxpy" else real(name))
    with pytest.raises(MissingExtraError, match=r"needs the package cvxpy.*pip install .*'cvxpy>="):
        cones.solve_step(DiagonalGaussian([0.0], 1.0), Gradient([1.0], [1.0]), 1.0, solver="cvxpy")


def test_missing_mosek_or_its_licence_is_an_error_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    belief, gradient = DiagonalGaussian([0.0], 1.0), Gradient([1.0], [1.0])
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mosek" else real(name))
    with pytest.raises(MissingExtraError, match=r"needs the package mosek.*pip install .*'mosek>="):
        cones.solve_step(belief, gradient, 1.0, solver="mosek")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "mosek" else real(name))
    monkeypatch.setenv("MOSEKLM_LICENSE_FILE", str(tmp_path / "none.lic"))
    with pytest.raises(MissingExtraError, match=r"needs a MOSEK licence.*none\.lic.*MOSEKLM_LICENSE_FILE"):
        cones.solve_step(belief, gradient, 1.0, solver="mosek")
    assert Mosek.engine == "MOSEK"
