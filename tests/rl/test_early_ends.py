"""Early ends in training: floors against a count by hand, episodes that end at their floor, and whole runs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from cones import InputError, rl
from cones.rl.early_ends import CONTROL_EVERY, KEPT, MARKS, EarlyEnds
from cones.rl.episode import CUT, Episodes
from cones.rl.rollouts import Placement, Rollouts, episode_of, network_of

TASKS = ("Hopper-v5", "Acrobot-v1")


def controls(so_far: np.ndarray, final: np.ndarray, length: int = 1000) -> EarlyEnds:
    """Controls with the same return so far at all marks."""
    rows = np.column_stack([np.tile(so_far[:, None], len(MARKS)), final, np.full(len(final), float(length))])
    return EarlyEnds(rows)


def test_floors_are_where_a_count_by_hand_puts_them() -> None:
    so_far = np.arange(40.0)
    final = so_far.copy()
    final[3] = 100.0  # one of the worst turns out well
    floors = controls(so_far, final).floors()
    median = np.median(final)
    best = -math.inf
    for value in so_far:
        ended = so_far <= value
        if (np.sum(final[ended] >= median) + 1) / (np.sum(ended) + 2) <= 0.1:
            best = max(best, value)
    # The median is 20.5: of the 21 up to 20, one has turned out well, and (1 + 1) / 23 < 1 / 10.
    assert best == 20.0
    reached = [mark < 1000 for mark in MARKS]
    np.testing.assert_array_equal(floors.floors, np.where(reached, 20.0, -math.inf))
    assert floors.median == median
    assert floors.so_far[0] == 10.0


def test_few_controls_or_order_that_tells_nothing_end_nobody() -> None:
    assert np.all(np.isinf(EarlyEnds.empty().floors().floors))
    few = np.arange(7.0)
    assert np.all(np.isinf(controls(few, few).floors().floors))
    rng = np.random.default_rng(0)
    assert np.all(np.isinf(controls(np.arange(200.0), rng.permutation(np.arange(200.0))).floors().floors))
    over = controls(np.arange(40.0), np.arange(40.0), length=5)  # they were over before the first mark
    assert np.all(np.isinf(over.floors().floors))


def test_an_ended_episode_counts_with_its_expected_return() -> None:
    so_far = np.arange(40.0)
    floors = controls(so_far, 10.0 * so_far).floors()  # the median is 195: 0 to 20 are ended
    episodes = Episodes(
        np.array([2.0, 30.0, 400.0]), np.array([8, 8, 1000]), np.empty((3, 2, 1)), {}, np.empty((3, len(MARKS))),
        np.array([True, True, False]),
    )  # fmt: skip
    returns, saved = floors.expected(episodes)
    np.testing.assert_allclose(returns, [100.0 + 2.0 - 10.0, 100.0 + 30.0 - 10.0, 400.0])
    assert saved.tolist() == [992.0, 992.0, 0.0]
    returns, _ = controls(so_far, so_far).floors().expected(episodes)
    assert returns[1] == 19.5  # at most the median


def test_only_controls_that_did_not_fail_are_remembered() -> None:
    count = 3 * KEPT
    episodes = Episodes(
        np.arange(count, dtype=float), np.full(count, 9), np.empty((count, 2, 1)), {0: "why"},
        np.zeros((count, len(MARKS))), np.zeros(count, np.bool_),
    )  # fmt: skip
    early = EarlyEnds.empty().after(episodes, np.arange(count) % CONTROL_EVERY == 0)
    assert early.controls[:, -2].tolist() == [float(k) for k in range(0, count, CONTROL_EVERY) if k][-KEPT:]
    again = EarlyEnds.restored(early.stored())
    np.testing.assert_array_equal(again.controls, early.controls)
    with pytest.raises(InputError, match="controls: expected rows of 20 numbers"):
        EarlyEnds.restored({"controls": np.zeros((2, 3))})


@pytest.mark.parametrize("task", TASKS)
def test_an_episode_ends_at_the_first_mark_below_its_floor(task: str) -> None:
    """The whole episode is the truth: the same returns so far at all marks up to the end."""
    network, space = network_of(task, (4,), True)
    parameters = 0.3 * np.random.default_rng(1).standard_normal((3, network.dim))
    with Rollouts(episode_of(task, network, space, MARKS), Placement(threads=1)) as rollouts:
        shift, scale = np.zeros(network.sizes[0]), np.ones(network.sizes[0])
        whole = rollouts.episodes(parameters, shift, scale, [1, 2, 3])
        assert not whole.is_cut.any()
        floors = np.full((3, len(MARKS)), -math.inf)
        floors[0, 0] = whole.so_far[0, 0] + 1e-9
        floors[1, 0] = whole.so_far[1, 0]  # not below
        floors[2, 1] = math.inf
        ended = rollouts.episodes(parameters, shift, scale, [1, 2, 3], floors)
    with Rollouts(episode_of(task, network, space), Placement(threads=1)) as plain:
        bare = plain.episodes(parameters, shift, scale, [1, 2, 3])
    np.testing.assert_array_equal(bare.returns, whole.returns)
    np.testing.assert_array_equal(bare.moments, whole.moments)
    assert whole.lengths.min() > MARKS[1]
    assert ended.is_cut.tolist() == [True, False, True]
    assert ended.lengths.tolist() == [MARKS[0], whole.lengths[1], MARKS[1]]
    assert ended.returns.tolist() == [whole.so_far[0, 0], whole.returns[1], whole.so_far[2, 1]]
    assert not ended.problems
    for k, length in enumerate(whole.lengths):
        over = [mark >= length for mark in MARKS]
        np.testing.assert_array_equal(whole.so_far[k][over], whole.returns[k])


def test_a_run_ends_episodes_and_is_the_same_wherever_they_run(tmp_path: Path) -> None:
    more = {"hidden": [], "popsize": 40, "rng": 0, "evaluate_every": 100, "evaluation_episodes": 1}
    first = rl.train("Reacher-v5", timesteps=25_000, threads=1, early_end=True, **more)
    assert first.history["ended"].sum() > 0
    assert 0.0 < first.saved < 0.5
    assert np.all((first.history["saved"] > 0.0) <= (first.history["ended"] > 0.0))
    again = rl.train("Reacher-v5", timesteps=10_000, threads=2, early_end=True, out=tmp_path, **more)
    assert again.timesteps < first.timesteps
    again = rl.resume(tmp_path, timesteps=25_000, threads=2)
    np.testing.assert_array_equal(first.policy.parameters, again.policy.parameters)
    np.testing.assert_array_equal(first.history["ended"], again.history["ended"])
    off = rl.train("Reacher-v5", timesteps=3000, threads=1, **more)
    assert "ended" not in off.history
    assert off.saved == 0.0


def test_the_outcome_of_an_ended_episode_is_none_of_a_failure() -> None:
    assert CUT < 0
    with pytest.raises(InputError, match="early_end: expected True or False, got 'yes'"):
        rl.train("Hopper-v5", early_end="yes")
