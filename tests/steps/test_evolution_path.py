"""Steps by a path or a model: beside a second implementation, and on losses where others fail."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cones
from cones.estimators import SHAPINGS
from cones.problems import problem_from
from cones.steps import EvolutionPath


def second_implementation(fun, x0, sigma0: float, noise: list[np.ndarray], rate: float):
    """Section "the step of the path" in plain NumPy, with dense matrices: means and covariances."""
    n, N = len(x0), len(noise[0])
    mean, A, p = np.array(x0, float), sigma0 * np.eye(n), np.zeros(n)
    w = -SHAPINGS["recombination_weights"](np.arange(float(N)))
    away = 0.5 * n / (n + 20)
    of_mean, w = np.where(w > 0.0, w, away * w) / (1 + away), w / (1 + away)
    samples = 1.0 / (of_mean**2).sum()
    cs = (samples + 2) / (n + samples + 5)
    ds = 1 + cs + 2 * max(0.0, math.sqrt((samples - 1) / (n + 1)) - 1)
    c1 = rate * 2 / ((n + 1.3) ** 2 + samples)
    cmu = rate * 2 * (samples - 1.75 + 1 / samples) / ((n + 2) ** 2 + samples)
    chi = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
    for Z in noise:
        order = np.argsort(fun(mean + Z @ A.T))
        a = of_mean @ Z[order]
        p = (1 - cs) * p + math.sqrt(cs * (2 - cs) * samples) * a
        change = c1 * (np.outer(p, p) - np.eye(n))
        for weight, z in zip(w, Z[order], strict=True):
            change += cmu * weight * (np.outer(z, z) - np.eye(n))
        values, vectors = np.linalg.eigh(change)
        grown = np.where(values > 0.0, 1 + values, 1 / (1 - values))
        root = (vectors * np.sqrt(grown)) @ vectors.T
        mean, A = mean + A @ a, A @ root * math.exp(min(1.0, cs / ds * (np.linalg.norm(p) / chi - 1)))
        yield mean, A @ A.T


@pytest.mark.parametrize(("n", "popsize"), [(2, 6), (6, 9), (30, 8)])
def test_the_step_of_the_path_is_its_formula(n: int, popsize: int) -> None:
    loss = problem_from("ellipsoid", n, shift=1.0, rotation=0)
    es = cones.CoNES(np.zeros(n), 0.5, step=EvolutionPath(rate=1.3), estimator="recombination", popsize=popsize, rng=3)
    noise = [es.noise.draw(k, n, 0, popsize) for k in range(25)]
    for mean, covariance in second_implementation(loss, np.zeros(n), 0.5, noise, 1.3):
        X = es.ask()
        es.tell(X, loss(X))
        np.testing.assert_allclose(es.state.belief.mean, mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(es.state.belief.covariance, covariance, rtol=1e-7, atol=1e-10)


def evaluations(fun, n: int, seed: int, **settings) -> int:
    result = cones.minimize(
        fun, np.full(n, 2.0), sigma0=1.0, ftarget=1e-8, maxfev=30_000, rng=seed, vectorized=True, restarts=0, **settings
    )
    assert result.stop == "ftarget", result.message
    return result.nfev


@pytest.mark.parametrize("name", ["ellipsoid", "sphere"])
def test_the_model_saves_evaluations_and_the_path_alone_gets_there(name: str) -> None:
    fun = problem_from(name, 6, shift=1.0, rotation=0)
    with_model, without = (
        np.median([evaluations(fun, 6, seed, **more) for seed in range(3)])
        for more in ({}, {"estimator": "recombination"})
    )
    assert with_model < 0.7 * without


def test_the_history_shows_who_leads() -> None:
    result = cones.minimize(problem_from("ellipsoid", 5, rotation=0), np.full(5, 2.0), rng=0, maxfev=600, restarts=0)
    history = result.history
    assert set(history["model_leads"]) == {0.0, 1.0}
    assert (history["agreement"][history["model_leads"] == 1.0] > 0.5).all()
    assert history["reused"].max() > 0
    assert (history["model_radius"][history["model_leads"] == 1.0] > 0.0).all()
    other = {"step": "evolution_path,threshold=0.99"}
    seldom = cones.minimize(problem_from("ellipsoid", 5, rotation=0), np.full(5, 2.0), rng=0, maxfev=600, **other)
    assert seldom.history["model_leads"].sum() < history["model_leads"].sum()


KINKS = {
    "max": lambda X: np.abs(X - 0.5).max(axis=1),
    "l1": lambda X: np.abs(X - 0.5).sum(axis=1),
    "total variation": lambda X: ((X - 0.5) ** 2).sum(axis=1) + np.abs(np.diff(X, axis=1)).sum(axis=1),
}


@pytest.mark.parametrize(("n", "maxfev", "limit"), [(10, 8000, 1e-6), (50, 12_000, 0.05)])
@pytest.mark.parametrize("name", KINKS)
def test_the_scale_does_not_collapse_on_kinks(name: str, n: int, maxfev: int, limit: float) -> None:
    result = cones.minimize(
        KINKS[name], np.zeros(n), sigma0=1.0, maxfev=maxfev, rng=0, vectorized=True, restarts=0, noisy=False
    )
    assert result.fun < limit


def test_a_noisy_loss_is_not_misled_by_its_model() -> None:
    """Noise of the size of the differences: the mean still finds the neighbourhood, as without the model."""
    errors = {}
    for estimator in ("quadratic", "recombination"):
        found = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            result = cones.minimize(
                lambda X, rng=rng: (X**2).sum(axis=1) + rng.standard_normal(len(X)),
                np.full(5, 3.0),
                estimator=estimator,
                vectorized=True,
                rng=seed,
                maxfev=3000,
                restarts=0,
                stagnation=None,
            )
            found.append(float((result.mean**2).sum()))
        errors[estimator] = np.median(found)
    assert errors["quadratic"] < 1.0
    assert errors["quadratic"] < 3.0 * errors["recombination"]


def test_a_loss_that_is_said_to_be_noisy_is_not_reused() -> None:
    assert cones.CoNES(np.zeros(5), noisy=True).algorithm.estimator.name == "recombination"
    assert cones.CoNES(np.zeros(5)).algorithm.estimator.name == "quadratic"
    assert cones.CoNES(np.zeros(40)).algorithm.estimator.name == "quadratic"
    assert cones.CoNES(np.zeros(41)).algorithm.estimator.name == "recombination"


@pytest.mark.parametrize(
    ("n", "settings", "belief", "step"),
    [
        (5, {}, "full", "evolution_path"),
        (40, {}, "full", "evolution_path"),
        (60, {}, "full", "evolution_path"),
        (61, {}, "low_rank", "low_rank"),
        (500, {}, "low_rank", "low_rank"),
        (10_001, {}, "diagonal", "balls"),
        (100, {"belief": "diagonal"}, "diagonal", "balls"),
        (100, {"radius": "adaptive"}, "diagonal", "balls"),
        (100, {"dtype": "float32"}, "low_rank", "low_rank"),
        (300, {"belief": "full"}, "full", "evolution_path"),
        (5, {"belief": "diagonal"}, "diagonal", "balls"),
        (5, {"dtype": "float32"}, "diagonal", "balls"),
        (5, {"estimator": "score_function"}, "full", "balls"),
        (5, {"radius": "adaptive"}, "full", "balls"),
    ],
)
def test_the_default_is_chosen_by_dimension(n: int, settings, belief: str, step: str) -> None:
    es = cones.CoNES(np.zeros(n), **settings)
    assert (es.state.belief.name, es.algorithm.step.name) == (belief, step)
