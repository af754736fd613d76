"""Many dimensions: candidates in chunks, memory of a few vectors, the same run to the last bit."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import cones
from cones import InputError, StateError
from cones.evaluate import Objective, SerialEvaluator
from cones.kernels.spans import SPAN, TILE
from cones.sampling import Population

DIM = SPAN + TILE + 100


def sphere(X: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", X, X)


def norm(x: np.ndarray) -> float:
    return float(x @ x)


def run(chunked: bool, **settings: Any) -> cones.Strategy:
    chosen: dict[str, Any] = {"popsize": 10, "rng": 0, "method": cones.CoNES, **settings}
    es = chosen.pop("method")(np.ones(DIM), 0.5, chunked=chunked, maxiter=4, **chosen)
    while not es.stop():
        X = es.ask()
        assert isinstance(X, Population) == chunked
        es.tell(X, np.concatenate([sphere(chunk) for chunk in X]) if isinstance(X, Population) else sphere(X))
    return es


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"method": cones.ES},
        {"method": cones.NES, "optimizer": cones.SGD(0.1, momentum=0.5)},
        {"antithetic": False, "popsize": 7},
        {"dtype": "float32"},
        {"noise_table": 2**20},
        {"bounds": [(-0.5, 2.0)] * DIM},
        {"shaping": "standardised"},
    ],
    ids=["CoNES", "ES", "NES", "independent", "float32", "table", "bounds", "standardised"],
)
def test_chunks_change_nothing(settings: dict[str, Any]) -> None:
    one, other = run(False, **settings), run(True, **settings)
    np.testing.assert_array_equal(one.state.belief.mean, other.state.belief.mean)
    np.testing.assert_array_equal(one.state.belief.deviation, other.state.belief.deviation)
    np.testing.assert_array_equal(one.state.best_x, other.state.best_x)
    assert one.state.best_fun == other.state.best_fun
    for name in ("mean_loss", "step", "kl", "spread"):
        np.testing.assert_array_equal(one.history[name], other.history[name])


@pytest.mark.parametrize("popsize", [24, 200])
@pytest.mark.parametrize("dim", [5, 130])
def test_chunks_of_a_full_covariance_change_nothing(dim: int, popsize: int) -> None:
    """The last bits of a matrix product depend on its number of rows: all products are of the same blocks."""
    settings = {"belief": "full", "popsize": popsize, "shaping": "standardised", "rng": 0, "maxiter": 6}
    expected = cones.minimize(norm, np.ones(dim), **settings)
    for more in ({"workers": 1}, {"workers": 2}, {"workers": map}):
        result = cones.minimize(norm, np.ones(dim), chunked=True, **more, **settings)
        np.testing.assert_array_equal(result.mean, expected.mean)
        np.testing.assert_array_equal(result.x, expected.x)


def test_a_population_is_its_candidates() -> None:
    es, whole = (cones.CoNES(np.ones(DIM), 0.5, popsize=6, rng=0, chunked=chunked) for chunked in (True, False))
    population, X = es.ask(), whole.ask()
    assert isinstance(population, Population)
    assert population.shape == X.shape
    np.testing.assert_array_equal(np.concatenate(list(population)), X)
    np.testing.assert_array_equal(np.asarray(population), X)
    np.testing.assert_array_equal(population[3], X[3])
    np.testing.assert_array_equal(population.block(1, 4), X[1:4])
    for first, last in ((-3, 2), (0, len(X) + 1), (3, 2)):
        with pytest.raises(cones.InputError, match="first, last: expected a range within"):
            population.block(first, last)
    assert es.ask() is population
    losses = sphere(np.asarray(X))
    with pytest.raises(InputError, match=r"X: expected the return value of the last ask\(\)"):
        es.tell(X, losses)
    with pytest.raises(InputError, match=r"X: expected the return value of the last ask\(\)"):
        whole.tell(population, losses)
    es.tell(population, losses)
    with pytest.raises(StateError, match=r"expected a call of ask"):
        es.tell(population, losses)


@pytest.mark.parametrize("dim", [7, DIM, 10**5 + 1])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"dtype": "float32"},
        {"antithetic": False},
        {"bounds": scipy.optimize.Bounds(-0.5, 1.5)},
        {"noise_table": 2**20},
    ],
    ids=str,
)
def test_one_candidate_is_that_of_the_population(dim: int, settings: dict[str, Any]) -> None:
    population = cones.CoNES(np.ones(dim), 0.5, popsize=6, rng=0, chunked=True, **settings).ask()
    X = np.asarray(population)
    for place in (0, 3, -1):
        np.testing.assert_array_equal(population[place], X[place])
        assert population[place].dtype == X.dtype


def test_float32_throughout() -> None:
    es = run(True, dtype="float32", radius="paper")
    assert es.state.belief.mean.dtype == es.state.belief.deviation.dtype == np.float32
    assert np.asarray(es.ask()).dtype == np.float32
    assert es.state.components.optimizer.mean_first.dtype == np.float32
    assert es.state.components.optimizer.covariance_second.dtype == np.float32
    double = run(True, radius="paper")
    np.testing.assert_allclose(es.history["mean_loss"], double.history["mean_loss"], rtol=0.02)
    adaptive = run(True, dtype="float32")
    assert adaptive.state.belief.deviation.dtype == np.float32
    assert adaptive.state.components.step.mean.path.vector.dtype == np.float32
    assert adaptive.state.components.step.shape.path.vector.dtype == np.float32
    np.testing.assert_allclose(adaptive.history["mean_loss"], run(True).history["mean_loss"], rtol=0.2)
    for same in (np.float32, np.dtype("float32"), "f4"):
        assert np.asarray(cones.CoNES(np.ones(3), dtype=same).ask()).dtype == np.float32
    with pytest.raises(InputError, match="dtype: expected one of"):
        cones.CoNES([0.0, 0.0], dtype="some")
    with pytest.raises(InputError, match="dtype: expected 'float64' with this belief"):
        cones.CoNES([0.0, 0.0], belief="full", dtype="float32")
    with pytest.raises(InputError, match="dtype: expected one of"):
        cones.CoNES([0.0, 0.0], dtype="float16")


@pytest.mark.parametrize("settings", [{"dtype": "float32"}, {"chunked": True}, {"noise_table": 2**20}], ids=str)
def test_checkpoints_keep_it(settings: dict[str, Any], tmp_path: Path) -> None:
    es = cones.CoNES(np.ones(DIM), 0.5, popsize=6, rng=0, **settings)
    for _ in range(2):
        X = es.ask()
        es.tell(X, sphere(np.asarray(X)))
    es.save(tmp_path / "run.ckpt")
    again = cones.load(tmp_path / "run.ckpt")
    for one in (es, again):
        X = one.ask()
        one.tell(X, sphere(np.asarray(X)))
    assert type(again.ask()) is type(es.ask())
    assert again.state.belief.mean.dtype == es.state.belief.mean.dtype
    np.testing.assert_array_equal(again.state.belief.mean, es.state.belief.mean)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("workers", [1, 2, map, "threads"], ids=["serial", "processes", "map", "threads"])
def test_minimize_evaluates_chunks_anywhere(workers: Any) -> None:
    settings: dict[str, Any] = {"sigma0": 0.5, "popsize": 6, "rng": 0, "maxiter": 3}
    expected = cones.minimize(norm, np.ones(DIM), **settings)
    if workers == "threads":
        with ThreadPoolExecutor(2) as executor:
            result = cones.minimize(norm, np.ones(DIM), chunked=True, workers=executor, **settings)
    else:
        result = cones.minimize(norm, np.ones(DIM), chunked=True, workers=workers, **settings)
    np.testing.assert_array_equal(result.x, expected.x)
    assert result.fun == expected.fun
    vectorized = cones.minimize(sphere, np.ones(DIM), chunked=True, vectorized=True, **settings)
    np.testing.assert_array_equal(vectorized.mean, expected.mean)


MEMORY = """
import re, sys
import numpy as np, cones
resident = lambda name: 1024 * int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
before = resident("VmRSS")
n, popsize = 1_000_000, int(sys.argv[1])
sphere = lambda X: np.einsum("ij,ij->i", X, X)
cones.minimize(sphere, np.ones(n), popsize=popsize, maxiter=2, vectorized=True, chunked=True, rng=0)
print((resident("VmHWM") - before) / (8 * n))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_memory_does_not_grow_with_the_population() -> None:
    """In vectors of float64: the candidates alone would take as many as there are."""
    vectors = [
        float(subprocess.check_output([sys.executable, "-c", MEMORY, str(popsize)], text=True)) for popsize in (20, 60)
    ]
    # A chunk is 64 MB here, eight vectors.
    assert max(vectors) < 34.0
    assert vectors[1] < vectors[0] + 4.0


def test_memory_that_fun_keeps_is_not_written_over() -> None:
    seen: list[np.ndarray] = []

    def keeps(x: np.ndarray) -> float:
        seen.append(x)
        return norm(x)

    es = cones.CoNES(np.ones(2_000_000), 0.5, popsize=8, rng=0, chunked=True)
    population = es.ask()
    assert isinstance(population, Population)
    assert population.chunk_size < 8
    SerialEvaluator(Objective(keeps)).losses(population)
    np.testing.assert_array_equal(seen, np.asarray(population))
