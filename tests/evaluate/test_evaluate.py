import functools
import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from own_evaluators import Reversed

import cones
from cones import InputError, StateError
from cones.evaluate import Objective, evaluator_from, pool


def square(x: np.ndarray) -> float:
    return float((x**2).sum())


def loss_and_more(x: np.ndarray) -> np.ndarray:
    return np.array([x.sum(), *x])


def identity(x: np.ndarray) -> float:
    return float(x[0])


def suicide(x: np.ndarray) -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


@pytest.mark.parametrize("workers", [0, -2, 1.5, "two"])
def test_bad_workers_are_named(workers: object) -> None:
    with pytest.raises(InputError, match="workers: expected"):
        evaluator_from(Objective(identity), workers)  # type: ignore[arg-type]


def test_fun_must_be_callable() -> None:
    with pytest.raises(InputError, match="fun: expected a callable, got int"):
        evaluator_from(Objective(3), 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fun", "message"),
    [
        (lambda x: np.zeros(2), "fun: expected it to return a number, got ndarray"),
        (lambda x: None, "fun: expected it to return a number, got NoneType"),
        (lambda x: 1j, "fun: expected it to return a number, got complex"),
    ],
)
def test_bad_returns_are_named(fun, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Objective(fun).losses(np.zeros((1, 2)), 0)


def test_a_vectorized_fun_returns_one_loss_per_row() -> None:
    with pytest.raises(InputError, match=r"fun: expected it to return 3 numbers, one per row, got float") as caught:
        Objective(lambda X: 1.0, vectorized=True).losses(np.zeros((3, 2)), 4)
    assert "candidates 4 to 6" in caught.value.__notes__[0]
    column = Objective(lambda X: X[:, :1], vectorized=True).losses(np.ones((3, 2)), 0)
    np.testing.assert_array_equal(column, np.ones(3))


def test_a_loss_may_be_an_array_of_one_number() -> None:
    assert Objective(lambda x: np.array([[2.0]])).losses(np.zeros((1, 2)), 0)[0] == 2.0


def test_a_masked_loss_is_none() -> None:
    losses = Objective(lambda x: np.ma.masked if x[0] else 1.0).losses(np.array([[0.0], [1.0]]), 0)
    np.testing.assert_array_equal(losses, [1.0, np.nan])
    rows = Objective(lambda X: np.ma.array([3, 0], mask=[False, True]), vectorized=True).losses(np.zeros((2, 1)), 0)
    np.testing.assert_array_equal(rows, [3.0, np.nan])


def test_a_map_that_reorders_is_refused_by_name() -> None:
    with multiprocessing.Pool(1) as workers:
        for call in (workers.imap_unordered, functools.partial(workers.imap_unordered, chunksize=2)):
            with pytest.raises(InputError, match="a map that keeps the order of candidates, got imap_unordered"):
                evaluator_from(Objective(identity), call)


@pytest.mark.parametrize("vectorized", [False, True])
def test_tensors_that_numpy_cannot_read_are_refused_with_what_to_return(vectorized: bool) -> None:
    torch = pytest.importorskip("torch")
    expected = "return losses.detach" if vectorized else r"return loss.item\(\)"
    for options in ({"requires_grad": True}, {"dtype": torch.bfloat16}):
        with pytest.raises(
            InputError, match=rf"fun: expected it to return what NumPy can read, got Tensor .*{expected}"
        ):
            Objective(lambda x, options=options: torch.ones(1, **options), vectorized=vectorized).losses(
                np.ones((1, 1))
            )
    plain = Objective(lambda x: torch.ones(1), vectorized=vectorized).losses(np.ones((1, 1)))
    np.testing.assert_array_equal(plain, [1.0])


def test_a_map_that_loses_candidates_is_named() -> None:
    with pytest.raises(InputError, match="workers: expected the map-like callable to return 3 losses, got 2"):
        evaluator_from(Objective(identity), lambda f, X: [f(x) for x in X][:2]).losses(np.zeros((3, 1)))


@pytest.mark.parametrize(("vectorized", "tasks"), [(False, [8, 20, 20, 8]), (True, [8, 8, 8, 8])])
def test_slow_candidates_go_out_one_by_one(vectorized: bool, tasks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    pause = 0.06

    def fun(x: np.ndarray) -> np.ndarray:
        time.sleep(pause)
        return x.sum(axis=-1)

    X, sent = np.arange(20.0)[:, None], []
    with ThreadPoolExecutor(2) as executor:
        evaluator, submit = evaluator_from(Objective(fun, vectorized=vectorized), executor), executor.submit
        monkeypatch.setattr(executor, "submit", lambda *arguments: sent.append(1) or submit(*arguments))
        for count, pause in zip(tasks, (0.06, 0.06, 0.0, 0.0), strict=True):  # noqa: B007 - read by fun
            sent.clear()
            np.testing.assert_array_equal(evaluator.losses(X), X[:, 0])
            assert len(sent) == count


def test_candidates_that_kill_their_workers_count_as_nan() -> None:
    with evaluator_from(Objective(suicide), 2) as evaluator:
        assert np.isnan(evaluator.losses(np.zeros((2, 1)))).all()
        assert evaluator.failures == dict.fromkeys((0, 1), "its worker was lost (tried 3 times)")


class AwkwardError(Exception):
    """Pickles, but does not come back: its constructor takes two arguments."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")


def raises_awkward(x: np.ndarray) -> float:
    raise AwkwardError(7, "no such mesh")


def test_an_exception_that_cannot_travel_says_what_it_said() -> None:
    # Where Dask was imported, it has taught pickle to carry any exception; then it arrives as it is.
    with evaluator_from(Objective(raises_awkward), 2) as pool, pytest.raises((StateError, AwkwardError)) as caught:
        pool.losses(np.zeros((4, 1)))
    assert "7: no such mesh" in str(caught.value)
    assert isinstance(caught.value, AwkwardError) or "fun raised AwkwardError" in str(caught.value)
    assert "candidate 0" in caught.value.__notes__[0]


@pytest.mark.parametrize("workers", [1, 2, map])
def test_what_is_known_of_a_population_that_fails(workers) -> None:
    with evaluator_from(Objective(fails_at_three), workers) as evaluator:
        with pytest.raises(ZeroDivisionError):
            evaluator.losses(np.arange(6.0)[:, None])
        assert evaluator.partial is not None
        np.testing.assert_array_equal(evaluator.partial[:3], [0.0, 1.0, 2.0])
        assert np.isnan(evaluator.partial[3])


def fails_at_three(x: np.ndarray) -> float:
    if x[0] == 3.0:
        raise ZeroDivisionError
    return float(x[0])


def test_a_function_that_cannot_be_sent_is_refused_before_work_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool.multiprocessing, "get_start_method", lambda: "spawn")
    with pytest.raises(InputError, match="fun: expected a function that can be sent to worker processes"):
        evaluator_from(Objective(lambda x: 0.0), 2)


@pytest.mark.parametrize("workers", [Reversed, Reversed(Objective(square)), "own_evaluators:Reversed"])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_evaluator_of_one_s_own(workers, chunked: bool) -> None:
    settings = {"sigma0": 0.5, "popsize": 6, "maxiter": 3, "rng": 0, "chunked": chunked}
    expected = cones.minimize(square, np.ones(3), **settings)
    result = cones.minimize(square, np.ones(3), workers=workers, **settings)
    np.testing.assert_array_equal(result.mean, expected.mean)
    np.testing.assert_array_equal(result.history["mean_loss"], expected.history["mean_loss"])


def test_an_evaluator_of_one_s_own_is_closed_however_the_run_ends() -> None:
    own = Reversed(Objective(square))
    cones.minimize(square, np.ones(3), workers=own, maxiter=1)
    assert own.ends == ["closed"]
    own = Reversed(Objective(fails_at_three))
    with pytest.raises(ZeroDivisionError) as caught:
        cones.minimize(square, np.full(1, 3.0), sigma0=1e-30, workers=own, maxiter=1)
    assert own.ends == ["aborted"]
    assert caught.value.cones_result.nit == 0
    with pytest.raises(InputError, match="timeout, retries: expected with processes"):
        cones.minimize(square, np.ones(3), workers=Reversed, timeout=1.0)


@pytest.mark.parametrize("workers", [1, 2, map])
def test_an_objective_may_return_more_than_its_loss(workers) -> None:
    X = np.arange(12.0).reshape(6, 2)
    with evaluator_from(Objective(loss_and_more, width=3), workers) as evaluator:
        np.testing.assert_array_equal(evaluator.losses(X), np.column_stack([X.sum(axis=1), X]))
    with pytest.raises(InputError, match="fun: expected it to return 4 numbers, got ndarray"):
        Objective(loss_and_more, width=4).losses(X)
    both = Objective(lambda X: np.column_stack([X.sum(axis=1), X]), vectorized=True, width=3).losses(X)
    np.testing.assert_array_equal(both, np.column_stack([X.sum(axis=1), X]))
    with pytest.raises(InputError, match="fun: expected it to return 6 rows of 3 numbers"):
        Objective(lambda X: X, vectorized=True, width=3).losses(X)
