"""Ask and tell for single candidates: any number, any order, in parts, late, never, twice, foreign."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.variants import assert_same
from hypothesis import given, settings
from hypothesis import strategies as st

import cones
from cones import InputError, StateError
from cones.arrivals import OLDEST


def sphere(X: Any) -> np.ndarray:
    return (np.asarray(X, float) ** 2).sum(axis=1)


def made(**more: Any) -> Any:
    return cones.CoNES(np.ones(4), 0.5, **{"rng": 3, "popsize": 6, **more})


def concurrent(es: Any, workers: int, evaluations: int, seed: int = 0) -> Any:
    """Tell candidates in random order while `workers` of them are out."""
    order, out = random.Random(seed), []
    for _ in range(evaluations):
        while len(out) < workers:
            out.append(es.ask(1))
        x = out.pop(order.randrange(len(out)))
        es.tell(x, sphere(x))
    return es


def assert_same_state(one: Any, other: Any) -> None:
    assert_same(one.state.belief.state(), other.state.belief.state())
    assert_same(one.state.components, other.state.components)
    assert (one.state.iteration, one.state.evaluations, one.state.best_fun) == (
        other.state.iteration, other.state.evaluations, other.state.best_fun
    )  # fmt: skip


def test_every_call_asks_for_other_candidates_and_their_number_does_not_matter() -> None:
    one, many = made(), made()
    X = np.concatenate([one.ask(1) for _ in range(14)])
    np.testing.assert_array_equal(X, many.ask(14))
    assert len(np.unique(X, axis=0)) == 14
    assert not many.ask(2).flags.writeable


def test_candidates_are_drawn_from_the_belief() -> None:
    X = cones.CoNES([1.0, -2.0], [0.5, 3.0], rng=0).ask(20_000)
    np.testing.assert_allclose(X.mean(axis=0), [1.0, -2.0], atol=0.08)
    np.testing.assert_allclose(X.std(axis=0), [0.5, 3.0], rtol=0.03)


def test_results_of_one_belief_move_it_as_a_population_does() -> None:
    """The same candidates as a population, told one by one and backwards: the same step up to rounding."""
    whole, parts = made(antithetic=False), made(antithetic=False)
    X = whole.ask()
    whole.tell(X, sphere(X))
    Y = parts.ask()
    for k in reversed(range(len(Y))):
        assert parts.state.iteration == 0
        parts.tell(Y[k : k + 1], sphere(Y[k : k + 1]))
    assert parts.state.iteration == 1
    np.testing.assert_allclose(parts.state.belief.mean, whole.state.belief.mean, rtol=1e-10)
    np.testing.assert_allclose(parts.state.belief.covariance, whole.state.belief.covariance, rtol=1e-9, atol=1e-12)
    assert parts.state.best_fun == whole.state.best_fun
    assert parts.state.evaluations == whole.state.evaluations == 6


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"belief": "diagonal", "radius": "adaptive"},
        {"belief": "low_rank"},
        {"belief": "diagonal", "dtype": "float32"},
        {"radius": "paper"},
        {"estimator": "asebo,warm_up=2"},
        {"bounds": [(-0.2, 1.2)] * 4},
        {"restarts": 3, "ftol": 1e-3},
    ],
    ids=str,
)
def test_all_variants_descend_with_many_out(more: dict[str, Any]) -> None:
    es = concurrent(made(**more), workers=5, evaluations=400)
    assert es.state.evaluations == 400
    assert es.state.best_fun < 0.2 * 4.0
    assert len(es.arrivals.out) == 4
    assert len(es.arrivals.draws) <= 6  # populations whose candidates are all back are forgotten
    if "bounds" in more:
        X = es.ask(50)
        assert X.min() >= -0.2
        assert X.max() <= 1.2


def test_best_counts_at_once_and_the_belief_moves_when_results_are_worth_a_population() -> None:
    es = made()
    X = es.ask(6)
    es.tell(X[3:4], [0.5])
    assert (es.result.fun, es.result.nfev, es.result.nit) == (0.5, 1, 0)
    np.testing.assert_array_equal(es.result.x, X[3])
    es.tell(X[[0, 5, 1, 2]], [1.0, np.nan, 2.0, 3.0])
    assert es.state.iteration == 0
    es.tell(X[4:5], [4.0])
    assert es.state.iteration == 1
    assert es.history["failures"][0] == 1


def test_results_of_an_earlier_descent_count_as_evaluations_only() -> None:
    es = made(restarts=1, ftol=1e-2)
    late = es.ask(1)
    while not es.state.restarts:
        x = es.ask(1)
        es.tell(x, sphere(x))
    waiting = len(es.arrivals.results.losses)
    evaluations = es.state.evaluations
    es.tell(late, [-1.0])
    assert (es.state.best_fun, es.state.evaluations) == (-1.0, evaluations + 1)
    assert len(es.arrivals.results.losses) == waiting


def test_foreign_points_take_part_and_are_no_evaluations() -> None:
    es, other = made(), made()
    X = es.ask(6)
    other.ask(6)
    es.tell_known([[0.0, 0.0, 0.0, 0.0]], [0.0])
    assert (es.result.fun, es.result.nfev) == (0.0, 0)
    for one in (es, other):
        one.tell(X, sphere(X))
    assert es.history["popsize"][0] == 7
    pulled, plain = (np.linalg.norm(one.state.belief.mean) for one in (es, other))
    assert pulled < plain  # towards the known minimum


def test_mistakes_are_named_and_change_nothing() -> None:
    es = made()
    with pytest.raises(StateError, match=r"expected a call of ask\(\)"):
        es.tell(np.zeros((1, 4)), [0.0])
    X = es.ask(3)
    stranger = cones.CoNES(np.ones(4), 0.5, rng=9).ask(1)
    state = es.state
    for rows, values, message in [
        (stranger, [1.0], "row 0, which is none of them: it is from another run"),
        (X + 1e-3, np.zeros(3), "row 0, which is none of them"),
        (X[[0, 0]], [1.0, 1.0], "row 1, a candidate that was told before"),
        (X, [1.0], r"values: expected 3 losses, one per row, got shape \(1,\)"),
    ]:
        with pytest.raises(InputError, match=message):
            es.tell(rows, values)
        assert es.state is state
    es.tell(X[:1], [1.0])
    with pytest.raises(InputError, match="row 0, a candidate that was told before"):
        es.tell(X[:1], [1.0])
    with pytest.raises(InputError, match="count: expected at least 1, got 0"):
        es.ask(0)
    with pytest.raises(InputError, match=r"X: expected points, one per row of 4 numbers, got shape \(1, 3\)"):
        es.tell_known([[0.0, 0.0, 0.0]], [0.0])
    with pytest.raises(InputError, match="values: expected known numbers, got nan in row 1"):
        es.tell_known(np.zeros((2, 4)), [0.0, np.nan])
    with pytest.raises(InputError, match="count: expected none with a population in chunks"):
        made(chunked=True).ask(1)
    with pytest.raises(InputError, match="count: expected none with CMA"):
        cones.CMA(np.ones(4)).ask(1)


def test_a_population_told_in_part_cannot_be_told_as_a_whole() -> None:
    es = made()
    X = es.ask()
    es.tell(X[2:4], sphere(X[2:4]))
    with pytest.raises(InputError, match="row 2, a candidate that was told before"):
        es.tell(X, sphere(X))
    es.tell(X[[5, 0, 1, 4]], sphere(X[[5, 0, 1, 4]]))
    assert (es.state.iteration, es.state.evaluations) == (1, 6)


def test_candidates_that_are_out_for_too_long_are_forgotten() -> None:
    es = cones.ES(np.ones(2), rng=0, popsize=2, antithetic=False, stagnation=None, xtol=None, ftol=None)
    late = es.ask(1)
    for _ in range(2 * (OLDEST + 2)):
        x = es.ask(1)
        es.tell(x, sphere(x))
    assert not es.arrivals.out
    with pytest.raises(InputError, match="expected candidates of ask\\(\\) that were not told yet"):
        es.tell(late, [1.0])


def test_saved_runs_ask_again_for_what_was_out(tmp_path: Path) -> None:
    es = concurrent(made(), 5, 50)
    es.save(tmp_path / "run.ckpt")
    loaded = cones.load(tmp_path / "run.ckpt")
    out = es.arrivals.candidates(list(es.arrivals.out))
    np.testing.assert_array_equal(loaded.ask(4), out)
    assert not (loaded.ask(1) == out).all(axis=1).any()
    for one in (es, loaded):
        one.tell(out[::-1], sphere(out[::-1]))
    assert_same_state(es, loaded)
    with pytest.raises(InputError, match="expected candidates of ask\\(\\) that were not told yet"):
        loaded.tell(out[:1], [0.0])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda es: pickle.loads(pickle.dumps(es))])
def test_copies_share_nothing(copied: Any) -> None:
    es = concurrent(made(), 5, 50)
    twin = copied(es)
    for one in (es, twin):
        concurrent(one, 5, 40, seed=2)
    assert_same_state(es, twin)


@settings(max_examples=15, deadline=None)
@given(actions=st.lists(st.tuples(st.sampled_from("atkwps"), st.integers(0, 10**6)), min_size=20, max_size=80))
def test_any_run_is_replayed_from_its_journal_bit_for_bit(
    tmp_path_factory: Any, actions: list[tuple[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("journal") / "run.journal"
    es = made()
    es.journal = cones.Journal(path)
    es.tell_start(float(sphere(np.ones((1, 4)))[0]))
    out: list[np.ndarray] = []
    for action, number in actions:
        if action == "a":
            out += list(es.ask(1 + number % 7))
        elif action == "t" and out:
            x = out.pop(number % len(out))[None]
            es.tell(x, sphere(x))
        elif action == "k":
            es.tell_known(np.full((1, 4), number / 1e6), [number / 1e5])
        elif action == "w":
            X = es.ask()
            if es._adopted != es.state.iteration:
                es.tell(X, sphere(X))
        elif action == "p":
            X = es.ask()[number % 6 :][:1]
            if es._adopted != es.state.iteration:
                es.tell(X, sphere(X))
        elif action == "s":
            es.ask_again()
            out = []
    again = cones.replay(path, made())
    assert_same_state(es, again)
    np.testing.assert_array_equal(es.ask(9), again.ask(9))


def test_journals_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    es = made()
    es.journal = cones.Journal(path)
    concurrent(es, 3, 30)
    with pytest.raises(cones.CheckpointError, match="does not fit the strategy"):
        cones.replay(path, made(popsize=3))
    with pytest.raises(InputError, match="strategy: expected one that has just begun"):
        cones.replay(path, es)
    with pytest.raises(InputError, match="strategy: expected one of ES, NES or CoNES"):
        cones.replay(path, cones.CMA(np.ones(4)))
    whole = path.read_text()
    path.write_text(whole[:-5])  # killed while it wrote the last line
    assert cones.replay(path, made()).state.evaluations == 29
    path.write_text("x" + whole)
    with pytest.raises(cones.CheckpointError, match="not a cones journal"):
        cones.replay(path, made())
