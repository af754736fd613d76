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
    ],
)
def test_others_are_refused(change, message: str) -> None:
    es = cones.CoNES([1.0, 2.0], rng=0)
    X = es.ask()
    with pytest.raises(cones.InputError, match=message):
        es.tell(change(np.array(X)), np.zeros(len(X)))


def test_a_narrow_population_in_float32_is_known_by_its_order_alone() -> None:
    es = cones.CoNES([1.0, 2.0], sigma0=1e-10, rng=0)
    X = es.ask()
    with pytest.raises(cones.InputError, match="X: expected shape"):
        es.tell(np.float32(X[:1]), [1.0])
    es.tell(np.float32(X), (X**2).sum(axis=1))
    assert es.state.iteration == 1


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


def test_some_candidates_may_be_rounded_to_float32() -> None:
    """One at a time, some of a population, told before, and of less precision."""
    es, same = (cones.CoNES([1.0, 2.0, 3.0], rng=0) for _ in range(2))
    for strategy, converted in ((es, np.float32), (same, np.float64)):
        single, whole = strategy.ask(2), strategy.ask()
        strategy.tell(converted(single[::-1]), [1.0, 2.0])
        strategy.tell(converted(whole[2:5]), [3.0, 4.0, 5.0])
        strategy.tell(converted(whole[[0, 1, 5, 6]]), [6.0, 7.0, 8.0, 9.0])
    assert es.state.iteration == same.state.iteration == 1
    np.testing.assert_array_equal(es.state.belief.mean, same.state.belief.mean)
    with pytest.raises(cones.InputError, match="row 0, a candidate that was told before"):
        es.tell(np.float32(single[:1]), [1.0])
    other = es.ask(1)
    with pytest.raises(cones.InputError, match=r"row 0, which is none of them: .* less than the precision of float32"):
        es.tell(np.float16(other), [1.0])
    es.tell(np.float32(other), [1.0])


def test_a_candidate_of_another_run_is_named_beside_a_population() -> None:
    es = cones.CoNES([1.0, 2.0, 3.0], rng=0)
    es.ask()
    es.ask(1)
    with pytest.raises(cones.InputError, match="row 0, which is none of them: it is from another run"):
        es.tell(cones.CoNES([1.0, 2.0, 3.0], rng=5).ask(1), [1.0])
