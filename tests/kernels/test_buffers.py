"""Memory that is used again, and never while somebody looks at it."""

import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import cones
from cones.kernels.buffers import (
    LARGE,
    LARGEST_POOL,
    LINE,
    MOST_FREE,
    WORTH_ALIGNING,
    BufferPool,
    aligned,
    new_vector,
)

DIM = LARGE // 8 + 5  # vectors of this size come from the pool


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def owners(arrays: list[np.ndarray]) -> list[weakref.ref]:
    """References to the memory of arrays that do not keep it."""
    return [weakref.ref(array.base) for array in arrays]


def test_memory_is_given_again_when_it_and_its_views_are_gone() -> None:
    pool = BufferPool()
    first = pool.take((4, 3), "float64")
    place, row = address(first), first[1]
    del first
    assert address(pool.take((4, 3), "float64")) != place  # `row` is left
    del row
    assert address(pool.take((4, 3), "float64")) == place


def test_memory_of_another_shape_or_type_is_not_given() -> None:
    pool = BufferPool()
    place = address(pool.take((6,), "float64"))
    assert {address(pool.take((5,), "float64")), address(pool.take((6,), "float32"))}.isdisjoint({place})
    assert address(pool.take((6,), "float64")) == place


def test_what_is_held_does_not_fill_the_pool() -> None:
    pool = BufferPool()
    held = [pool.take((2,), "float64") for _ in range(LARGEST_POOL + 10)]
    assert len({address(vector) for vector in held}) == len(held)
    memory = owners(held)
    del held
    assert sum(alive() is not None for alive in memory) == LARGEST_POOL


def test_large_arrays_begin_at_a_cache_line() -> None:
    pool = BufferPool()
    for number in range(10):
        shape = (3, WORTH_ALIGNING // 8 + number)
        for array in (aligned(shape, "float64"), aligned(shape, "float32"), pool.take(shape, "float64")):
            assert array.shape == shape
            assert array.flags.c_contiguous
            assert array.flags.writeable
            assert address(array) % LINE == 0


def test_a_read_only_vector_can_be_written_when_it_is_given_again() -> None:
    pool = BufferPool()
    vector = pool.take((3,), "float64")
    vector.flags.writeable = False
    place = address(vector)
    del vector
    again = pool.take((3,), "float64")
    again[:] = 1.0
    assert address(again) == place


def test_only_large_vectors_inside_a_block_come_from_the_pool() -> None:
    pool = BufferPool()
    with pool:
        small, large = new_vector(10, "float64"), new_vector(DIM, "float64")
    outside = new_vector(DIM, "float64")
    assert small.base is None
    kept, lost = owners([large, outside])
    del large, outside
    assert kept() is not None
    assert lost() is None
    assert pool.take((DIM,), "float64").base is kept()


@pytest.mark.parametrize(
    "settings", [{}, {"radius": "paper"}, {"optimizer": cones.SGD(0.1)}, {"chunked": True}], ids=str
)
def test_what_a_user_holds_is_never_written_again(settings: dict[str, Any]) -> None:
    es = cones.CoNES(np.full(DIM, 2.0), popsize=8, rng=3, **settings)
    held, copies = [], []
    for _ in range(5):
        X = es.ask()
        es.tell(X, np.einsum("ij,ij->i", *(np.asarray(X),) * 2))
        state = es.state
        held.append((state.belief.mean, state.belief.deviation, state.best_x, es.result.x))
        copies.append([array.copy() for array in held[-1]])
    for arrays, before in zip(held, copies, strict=True):
        for array, copy in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, copy)


def test_iterations_take_the_memory_of_earlier_ones() -> None:
    es = cones.CoNES(np.full(DIM, 2.0), popsize=8, radius="paper", rng=3)
    memory = []
    for _ in range(6):
        X = es.ask()
        es.tell(X, np.einsum("ij,ij->i", X, X))
        memory += owners([es.state.belief.mean])
    assert all(alive() is not None for alive in memory)
    assert len({id(alive()) for alive in memory}) < len(memory)


def test_what_was_let_go_does_not_stay_for_good() -> None:
    pool = BufferPool()
    held = [pool.take((2,), "float64") for _ in range(LARGEST_POOL)]
    memory = owners(held)
    del held
    pool.take((2,), "float64")
    assert sum(alive() is not None for alive in memory) == MOST_FREE


def test_a_pickle_has_no_memory_that_is_not_used() -> None:
    es = cones.CoNES(np.full(DIM, 2.0), popsize=8, rng=3)
    for _ in range(3):
        X = es.ask()
        es.tell(X, np.einsum("ij,ij->i", X, X))
    assert len(pickle.dumps(es)) < 10 * 8 * DIM


def test_chunks_are_made_in_the_same_memory_unless_somebody_holds_it() -> None:
    places: list[int] = []

    def loss(X: np.ndarray) -> np.ndarray:
        places.append(address(X))
        return np.einsum("ij,ij->i", X, X)

    start = np.full(10**6, 2.0)
    cones.minimize(loss, start, popsize=10, maxiter=2, vectorized=True, chunked=True, rng=0)
    assert len(places) == 1 + 4  # the start, and two chunks twice, the last of them smaller
    assert len(set(places[1:])) == 1
    held, copies = [], []

    def keeps(X: np.ndarray) -> np.ndarray:
        held.append(X)
        copies.append(X.copy())
        return np.einsum("ij,ij->i", X, X)

    cones.minimize(keeps, start, popsize=10, maxiter=1, vectorized=True, chunked=True, rng=0)
    chunks = list(cones.CoNES(start, popsize=10, chunked=True, rng=0).ask())
    for chunk, copy, again in zip(held, copies, [start[None, :], *chunks], strict=True):
        np.testing.assert_array_equal(chunk, copy)
        np.testing.assert_array_equal(chunk, again)
