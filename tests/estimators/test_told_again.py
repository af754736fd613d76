"""What an estimator keeps from earlier iterations counts with the merit that it has today."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cones
from cones.sampling import NoiseBlock, Population

WEIGHTS = np.linspace(1.0, 2.0, 12)


def loss(x: np.ndarray) -> float:
    return float(-(WEIGHTS * x).sum())


def excess(x: np.ndarray) -> float:
    return float(x.sum() - 4.0)


def told(es: Any, iterations: int) -> Any:
    for _ in range(iterations):
        X = es.ask()
        es.tell(X, [loss(x) for x in X], constraints=[[excess(x)] for x in X])
    return es


def test_the_best_candidate_has_the_merit_of_today() -> None:
    es = cones.CoNES(cones.Bernoulli(np.full(12, 0.5)), rng=0)
    for iteration in range(1, 16):
        told(es, 1)
        (elite,), lagrangian = es.state.components.estimator, es.state.lagrangian
        row = np.array([[loss(elite.candidate), excess(elite.candidate)]])
        assert elite.loss == pytest.approx(float(lagrangian.merits(row)[0])), iteration


def test_populations_that_are_used_again_have_the_merits_of_today() -> None:
    es = told(cones.NES(np.zeros(12), popsize=10, estimator="rbo,reuse=3", rng=0), 6)
    state = es.state
    population = Population(state.belief, es.algorithm.design.plan(None, 10, 0), es.noise, state.iteration)
    assert len(state.components.estimator) == 3
    values = np.zeros((10, 2))
    now = cones.estimators.Sample(
        population,
        NoiseBlock(population),
        np.zeros(10),
        np.zeros(10),
        told=cones.space.lagrangian.Told(values, state.lagrangian),
    )
    for past in state.components.estimator:
        rows = np.array([[loss(x), excess(x)] for x in past.candidates])
        np.testing.assert_allclose(now.today(past), state.lagrangian.merits(rows), rtol=1e-9)
    assert any(not np.allclose(now.today(past), past.losses) for past in state.components.estimator)
