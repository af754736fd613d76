"""What every rollout engine must do: gymnasium's episodes, in order, whatever the number of workers."""

from __future__ import annotations

import numpy as np
import pytest

from cones import InputError
from cones.rl.environments import made
from cones.rl.policy import Network, Policy
from cones.rl.rollouts import Placement, Rollouts, episode_of, network_of
from cones.rl.spaces import flat

TASKS = {
    "mujoco": "Hopper-v4",
    "gymnasium": "Pendulum-v1",
    "discrete": "CartPole-v1",
    "custom": "environments:PointBox-v0",
    "choices": "environments:PointChoices-v0",
    "parts": "environments:PointDict-v0",
}
pytestmark = pytest.mark.parametrize("engine", list(TASKS))


def rollouts_of(engine: str, threads: int = 1) -> Rollouts:
    network, space = network_of(TASKS[engine], (3,), bias=True)
    return Rollouts(episode_of(TASKS[engine], network, space), Placement(threads))


def candidates(rollouts: Rollouts, count: int) -> tuple[Network, np.ndarray, np.ndarray, np.ndarray]:
    network = rollouts.episode.network
    width = network.sizes[0]
    rng = np.random.default_rng(1)
    return network, rng.standard_normal((count, network.dim)), rng.standard_normal(width), rng.uniform(0.5, 1, width)


def test_episodes_are_gymnasium_s(engine: str) -> None:
    with rollouts_of(engine) as rollouts, made(TASKS[engine]) as environment:
        network, parameters, shift, scale = candidates(rollouts, 3)
        seeds = [11, 12, 11]
        episodes = rollouts.episodes(parameters, shift, scale, seeds)
        assert episodes.problems == {}
        assert episodes.timesteps == episodes.lengths.sum()
        for place, seed in enumerate(seeds):
            policy = Policy(TASKS[engine], network, parameters[place], shift, scale, rollouts.episode.space)
            observation, _ = environment.reset(seed=seed)
            seen, total, over = [], 0.0, False
            while not over:
                seen.append(flat(observation, rollouts.episode.space["observation"]))
                observation, reward, terminated, truncated, _ = environment.step(policy(observation))
                total += float(reward)
                over = terminated or truncated
            # NumPy's float32 actions are not the kernel's: close, but not equal.
            tolerance = 1e-2 if engine == "mujoco" else 1e-12
            assert episodes.returns[place] == pytest.approx(total, rel=tolerance)
            assert abs(episodes.lengths[place] - len(seen)) <= (1 if engine == "mujoco" else 0)
            np.testing.assert_allclose(
                episodes.moments[place, 0], np.mean(seen, axis=0), rtol=tolerance, atol=tolerance
            )


def test_the_number_of_workers_changes_nothing(engine: str) -> None:
    results = []
    for workers in (1, 2, 3):
        with rollouts_of(engine, workers) as rollouts:
            _, parameters, shift, scale = candidates(rollouts, 7)
            results.append(rollouts.episodes(parameters, shift, scale, range(7)))
            again = rollouts.episodes(parameters[:2], shift, scale, [0, 1])
            np.testing.assert_array_equal(again.returns, results[-1].returns[:2])
    for other in results[1:]:
        np.testing.assert_array_equal(other.returns, results[0].returns)
        np.testing.assert_array_equal(other.lengths, results[0].lengths)
        np.testing.assert_array_equal(other.moments, results[0].moments)


def test_a_policy_that_is_not_a_number_is_a_problem_of_its_episode(engine: str) -> None:
    with rollouts_of(engine) as rollouts:
        _, parameters, shift, scale = candidates(rollouts, 3)
        parameters[1] = np.nan
        episodes = rollouts.episodes(parameters, shift, scale, range(3))
        assert list(episodes.problems) == [1]
        assert "finite number" in episodes.problems[1]
        assert np.isnan(episodes.returns).tolist() == [False, True, False]


def test_seeds_and_policies_must_match(engine: str) -> None:
    with rollouts_of(engine) as rollouts:
        _, parameters, shift, scale = candidates(rollouts, 3)
        with pytest.raises(InputError, match="seeds: expected 3, one per row of parameters, got 2"):
            rollouts.episodes(parameters, shift, scale, [0, 1])
