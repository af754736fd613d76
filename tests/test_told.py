"""What `tell` takes for the candidates of `ask`: their numbers, as they are or rounded to float32."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cones
from cones.checks import check_same


@pytest.mark.parametrize("converted", [np.float32, lambda X: np.float32(X).tolist(), list])
def test_frameworks_may_round_to_float32(converted) -> None:
    es, same = (cones.CoNES([1.0, 2e-30, 3e5], rng=0, maxiter=5) for _ in range(2))
    while not es.stop():
        X = es.ask()
        losses = (X**2).sum(axis=1)
        es.tell(converted(X), losses)
        same.tell(same.ask(), losses)
    np.testing.assert_array_equal(es.state.belief.mean, same.state.belief.mean)


def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    es = cones.CoNES([1.0, 2.0], rng=0)
    X = es.ask()
    es.tell(torch.tensor(np.array(X), dtype=torch.float32), (X**2).sum(axis=1))
    assert es.state.iteration == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X * (1.0 + 1e-9), r"they differ by up to 1\.0e-09 of their size$"),
        (np.float16, "they have the precision of float16 or bfloat16: use float32 or float64$"),
        (lambda X: np.float32(X)[::-1], "they differ by up to .* of their size$"),
    ],
)
def test_others_are_refused(change, message: str) -> None:
    es = cones.CoNES([1.0, 2.0], rng=0)
    X = es.ask()
    with pytest.raises(cones.InputError, match=message):
        es.tell(change(np.array(X)), np.zeros(len(X)))


@pytest.mark.parametrize("sigma0", [1.0, 1e-10])
def test_another_order_is_known_by_its_rows(sigma0: float) -> None:
    """Those of a narrow population are equal to the precision of float32, but float64 tells them apart."""
    es = cones.CoNES([1.0, 2.0], sigma0=sigma0, rng=0)
    X = es.ask()
    losses = (X[::-1] ** 2).sum(axis=1)
    es.tell(X[::-1], losses)
    assert es.state.evaluations == es.popsize
    np.testing.assert_array_equal(es.result.x, X[::-1][losses.argmin()])


@given(st.lists(st.floats(-1e38, 1e38), min_size=1, max_size=20))
def test_every_rounded_number_is_accepted(numbers: list[float]) -> None:
    asked = np.array([numbers])
    check_same("X", asked.astype(np.float32).astype(np.float64), asked)
