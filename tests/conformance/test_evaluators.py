"""What every evaluator must do: losses in order, exceptions with the candidate's index, bad returns named."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from cones import InputError
from cones.evaluate import Evaluator, Objective, evaluator_from
from cones.evaluate.replicate import ReplicatingEvaluator


def loss(x: np.ndarray, shift: float = 0.0) -> float:
    x -= shift  # `fun` may change its argument
    return float((x**2).sum())


def losses(X: np.ndarray, shift: float = 0.0) -> np.ndarray:
    return ((X - shift) ** 2).sum(axis=1)


def fails_above_five(x: np.ndarray) -> float:
    if x[0] > 5.5:
        raise ZeroDivisionError("boom")
    return float(x[0])


def text(x: np.ndarray) -> str:
    return "high"


@contextmanager
def made(kind: str, objective: Objective) -> Iterator[Evaluator]:
    if kind == "map":
        yield evaluator_from(objective, map)
    elif kind == "pool.map":
        with multiprocessing.Pool(2) as pool:
            yield evaluator_from(objective, pool.map)
    elif kind == "threads":
        with ThreadPoolExecutor(2) as executor:
            yield evaluator_from(objective, executor)
    elif kind == "executor":
        with ProcessPoolExecutor(2) as executor:
            yield evaluator_from(objective, executor)
    elif kind == "replicated":
        with ReplicatingEvaluator(evaluator_from(objective, 1)) as replicating:
            replicating.prepare(2, 1)
            yield replicating
    else:
        with evaluator_from(objective, int(kind)) as evaluator:
            yield evaluator


KINDS = ["1", "2", "-1", "map", "pool.map", "threads", "executor", "replicated"]
pytestmark = [
    pytest.mark.parametrize("kind", KINDS),
    # Python 3.12 and later warn of fork in a process with threads, such as the ones of BLAS.
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]


@pytest.mark.parametrize(("fun", "vectorized"), [(loss, False), (losses, True)])
def test_losses_in_order_and_candidates_unchanged(kind: str, fun: Callable[..., object], vectorized: bool) -> None:
    X = np.random.default_rng(0).standard_normal((23, 3))
    before = X.copy()
    with made(kind, Objective(fun, (1.0,), vectorized)) as evaluator:
        for _ in range(2):  # evaluators are used again and again
            np.testing.assert_allclose(evaluator.losses(X), ((before - 1.0) ** 2).sum(axis=1))
    np.testing.assert_array_equal(X, before)


def test_exception_goes_on_with_the_candidates_index(kind: str) -> None:
    X = np.arange(10.0)[:, None]
    with made(kind, Objective(fails_above_five)) as evaluator, pytest.raises(ZeroDivisionError, match="boom") as caught:
        evaluator.losses(X)
    # A map may report any of the failures, the others report the first.
    failing = range(6, 10 if "map" in kind else 7)
    assert any(f"for candidate {index}" in note for index in failing for note in caught.value.__notes__)


def test_losses_that_are_not_numbers_are_named(kind: str) -> None:
    with (
        made(kind, Objective(text)) as evaluator,
        pytest.raises(InputError, match=r"fun: expected it to return a number, got str 'high'"),
    ):
        evaluator.losses(np.zeros((2, 1)))


def test_a_stream_gives_back_what_was_put_in_or_the_evaluator_says_that_it_has_none(kind: str) -> None:
    X = np.random.default_rng(0).standard_normal((17, 3))
    with made(kind, Objective(loss, (1.0,))) as evaluator:
        if "map" in kind or kind == "replicated":
            with pytest.raises(InputError, match=f"got {type(evaluator).__name__}, which evaluates whole populations"):
                evaluator.stream()
            return
        found: dict[int, float] = {}
        with evaluator.stream() as stream:
            waiting = list(range(len(X)))
            while len(found) < len(X):
                for _ in range(min(stream.free(), len(waiting))):
                    stream.put(waiting[0], X[waiting[0]])
                    waiting.pop(0)
                for key, value in stream.take():
                    assert key not in found
                    found[key] = value
        assert not stream.failures
        np.testing.assert_allclose([found[k] for k in range(len(X))], losses(X, 1.0))
        np.testing.assert_allclose(evaluator.losses(X), losses(X, 1.0))  # and populations after it
