"""Mistakes in a user's own components are named where they are made, and nothing wrong is stored in silence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import cones
from cones import InputError
from cones.errors import NotStorableError
from cones.estimators.score_function import score_function


def loss(x: np.ndarray) -> float:
    return float(((x - 1.0) ** 2 * np.arange(1, x.size + 1)).sum())


@dataclass
class Derived:
    a: float
    b: float = field(init=False, default=2.0)


BAD_STATES = {
    "set": {1, 2},
    "keys that are no text": {0: "a"},
    "array of objects": np.array([1, None], dtype=object),
    "field without argument": Derived(1.0),
    "lambda": lambda x: x,
}
GOOD_STATES = {
    "float32": np.float32(1.1),
    "int8": np.int8(3),
    "date": np.datetime64("2020-01-01"),
    "nested": {"a": (1, [2.5])},
}


@dataclass(frozen=True)
class Returns(cones.Estimator):
    """The score function with one of the states above, and with diagnostics."""

    state: str = ""
    diagnostics: Any = None

    def estimate(self, state, sample):
        estimate = score_function(sample)
        if self.diagnostics is not None:
            estimate = estimate._replace(diagnostics=self.diagnostics)
        return estimate, {**BAD_STATES, **GOOD_STATES}.get(self.state)


@dataclass(frozen=True)
class NoState(cones.Estimator):
    def estimate(self, state, sample):
        return score_function(sample)


@dataclass(frozen=True)
class Sorts(cones.Estimator):
    def estimate(self, state, sample):
        sample.losses.sort()
        return score_function(sample), None


class Undecorated(cones.Estimator):
    decay: float = cones.setting(0.5, "A share.")

    def estimate(self, state, sample):
        return score_function(sample), None


@dataclass(frozen=True)
class ShortStep(cones.StepRule):
    def propose(self, state, belief, estimate, info):
        return cones.Step(shift=estimate.gradient.mean[:1], log_ratio=estimate.gradient.covariance), None


@dataclass(frozen=True)
class MeanOnly(cones.StepRule):
    def propose(self, state, belief, estimate, info):
        return cones.Step(shift=estimate.gradient.mean), None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": NoState()}, r"NoState: expected to return \(Estimate, state\), got Estimate"),
        ({"estimator": Undecorated()}, "Undecorated: expected a dataclass"),
        ({"estimator": Undecorated}, "Undecorated: expected a dataclass"),
        ({"step": ShortStep()}, r"ShortStep: expected a shift of shape \(4,\)"),
        ({"step": MeanOnly()}, "MeanOnly: expected a step with log_ratio for a DiagonalGaussian"),
        (
            {"estimator": Returns(diagnostics={"best": 0.0})},
            "expected another name for a component's column, got 'best'",
        ),
        ({"estimator": Returns(diagnostics={"fun": 0.0})}, "got 'fun', which is taken"),
        ({"shaping": ["raw"]}, "shaping: expected one of"),
    ],
)
def test_mistakes_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cones.minimize(loss, np.zeros(4), rng=0, maxiter=3, belief="diagonal", **settings)


def test_losses_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        cones.minimize(loss, np.zeros(4), rng=0, maxiter=3, estimator=Sorts())


def test_a_diagnostic_that_is_no_number_leaves_the_history_whole() -> None:
    es = cones.CoNES(np.zeros(4), rng=0, estimator=Returns(diagnostics={"vector": np.ones(3)}))
    with pytest.raises(TypeError):
        es.tell(es.ask(), np.arange(float(es.popsize)))
    assert {len(es.history[name]) for name in es.history.names} == {0}


@pytest.mark.parametrize("state", BAD_STATES)
def test_a_state_that_cannot_be_stored_ends_a_run_with_checkpoints_at_once(state: str, tmp_path) -> None:
    with pytest.raises(NotStorableError, match="checkpoint: expected") as caught:
        cones.minimize(loss, np.zeros(4), rng=0, maxiter=50, estimator=Returns(state), checkpoint=tmp_path / "run.ckpt")
    assert caught.value.cones_result.nit == 1
    assert cones.minimize(loss, np.zeros(4), rng=0, maxiter=5, estimator=Returns(state)).nit == 5  # without, it runs


@pytest.mark.parametrize("state", GOOD_STATES)
def test_states_come_back_as_they_were(state: str, tmp_path) -> None:
    es = cones.CoNES(np.zeros(4), rng=0, estimator=Returns(state))
    X = es.ask()
    es.tell(X, [loss(x) for x in X])
    es.save(tmp_path / "run.ckpt")
    again = cones.load(tmp_path / "run.ckpt", allow=[Returns]).state.components.estimator
    assert again == GOOD_STATES[state]
    assert type(again) is type(GOOD_STATES[state])


def test_words_of_python_are_values() -> None:
    from cones.component import component_from

    assert component_from("optimizer", "sgd,variance_learning_rate=None").variance_learning_rate == 0.1
    for text in (".5", "0.5", "5e-1"):
        assert component_from("divergence", f"renyi:{text}").alpha == 0.5


@pytest.mark.parametrize("belief", ["diagonal", "full"])
def test_a_transformed_population_is_the_same_in_any_chunks(belief: str) -> None:
    es = cones.CoNES(np.zeros(300), popsize=60, estimator="asebo,warm_up=3", belief=belief, rng=1, chunked=True)
    for _ in range(6):
        X = es.ask()
        es.tell(X, [loss(x) for chunk in X for x in chunk])
    population = es.ask()
    assert population.plan.transform is not None
    whole = population.block(0, 60)
    np.testing.assert_array_equal(np.vstack([population.block(0, 14), population.block(14, 60)]), whole)
    np.testing.assert_array_equal(np.array([population[k] for k in range(60)]), whole)


def test_asebo_learns_a_full_covariance() -> None:
    """Rows from a subspace are far from orthogonal."""
    result = cones.minimize(loss, np.zeros(200), estimator="asebo", belief="full", popsize=50, rng=1, maxiter=40)
    assert result.nit == 40
    assert result.fun < loss(np.zeros(200))
