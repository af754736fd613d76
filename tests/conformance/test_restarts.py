"""What every restart policy must do: decide from what it is given alone, keep its limit, and survive a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.variants import assert_same, make, through_a_file, variants

import cones
from cones.restarts import DescentEnd, NextDescent


def ends(policy: Any, first_popsize: int = 8, seed: int = 0, restarts: int = 12) -> list[tuple[DescentEnd, Any, Any]]:
    """A run of descents of random lengths: each end, the descent that follows and the state."""
    lengths, seen = np.random.default_rng(seed), []
    state, popsize = None, first_popsize
    for number in range(restarts):
        end = DescentEnd(number, first_popsize, popsize, int(popsize * lengths.integers(20, 200)), 1e6, 0.9)
        following, state = policy.next(state, end, np.random.default_rng(number))
        seen.append((end, following, state))
        if following is None:
            break
        popsize = following.popsize
    return seen


@variants("restarts")
def test_descents_can_be_run(name: str, settings: dict[str, Any]) -> None:
    for end, following, _ in ends(make("restarts", name, settings)):
        if following is None:
            continue
        assert isinstance(following, NextDescent)
        assert following.popsize >= end.first_popsize
        assert following.popsize % 2 == 0  # pairs of candidates stay pairs
        assert 0.0 < following.factor <= 1.0
        assert following.plan is None or following.plan > 0.0
        assert following.limit > 0.0


@variants("restarts")
def test_the_limit_is_kept(name: str, settings: dict[str, Any]) -> None:
    limit = 3
    seen = ends(make("restarts", name, {**settings, "limit": limit}))
    assert [following is None for _, following, _ in seen] == [False] * limit + [True]


@variants("restarts")
def test_the_same_end_has_the_same_continuation(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    policy = make("restarts", name, settings)
    assert_same(ends(policy), ends(policy))
    state = None
    for number, (end, following, after) in enumerate(ends(policy)):
        stored = through_a_file(state, tmp_path)
        again, state = through_a_file(policy, tmp_path).next(stored, end, np.random.default_rng(number))
        assert again == following
        assert_same(state, after)


@variants("restarts")
def test_a_run_with_it_goes_on_bit_for_bit_from_any_iteration(
    name: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    def advanced(es: cones.Strategy) -> cones.Strategy:
        X = es.ask()
        es.tell(X, np.abs(X - 1.0).sum(axis=1) + np.cos(5.0 * X).sum(axis=1))
        return es

    limits = {"ftol": 0.1, "maxfev": 3000, "rng": 3, "restarts": make("restarts", name, settings)}
    straight = cones.CoNES(np.zeros(3), 1.0, **limits)
    while straight.stop() is None:
        advanced(straight)
    es = cones.CoNES(np.zeros(3), 1.0, **limits)
    while es.stop() is None:
        es.save(tmp_path / "run.ckpt")
        es = advanced(cones.load(tmp_path / "run.ckpt"))
    assert es.result.restarts == straight.result.restarts >= 3
    assert es.stop() == straight.stop()
    assert_same(es.state.belief.state(), straight.state.belief.state())
    for column in set(es.history.names) - {"seconds"}:
        np.testing.assert_array_equal(es.history[column], straight.history[column], err_msg=column)


def test_wrong_policies_are_named() -> None:
    for wrong in (None, 1.5, "bipops", [3]):
        with pytest.raises(cones.InputError, match=r"^restarts: expected"):
            cones.restarts.restarts_from(wrong)
