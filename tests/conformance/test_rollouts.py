"""What every rollout engine must do: gymnasium's episodes, in order, whatever the number of workers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cones import InputError
from cones.rl.environments import made
from cones.rl.gymnasium_rollouts import GymnasiumRollouts
from cones.rl.mujoco_rollouts import MujocoRollouts
from cones.rl.policy import Network, Policy
from cones.rl.rollouts import Rollouts
from cones.rl.spaces import flat, flat_size

ENGINES: dict[str, Callable[[int], Rollouts]] = {
    "mujoco": lambda workers: MujocoRollouts("Hopper-v4", workers),
    "gymnasium": lambda workers: GymnasiumRollouts("Pendulum-v1", workers),
    "discrete": lambda workers: GymnasiumRollouts("CartPole-v1", workers),
    "custom": lambda workers: GymnasiumRollouts("environments:PointBox-v0", workers),
    "choices": lambda workers: GymnasiumRollouts("environments:PointChoices-v0", workers),
}
pytestmark = pytest.mark.parametrize("engine", list(ENGINES))


def candidates(rollouts: Rollouts, count: int) -> tuple[Network, np.ndarray, np.ndarray, np.ndarray]:
    width, height = flat_size(rollouts.space["observation"]), flat_size(rollouts.space["action"])
    network = Network((width, 3, height))
    rng = np.random.default_rng(1)
    return network, rng.standard_normal((count, network.dim)), rng.standard_normal(width), rng.uniform(0.5, 1, width)


def test_episodes_are_gymnasium_s(engine: str) -> None:
    with ENGINES[engine](1) as rollouts, made(rollouts.task) as environment:
        network, parameters, shift, scale = candidates(rollouts, 3)
        seeds = [11, 12, 11]
        episodes = rollouts.episodes(network, parameters, shift, scale, seeds)
        assert episodes.problems == {}
        assert episodes.timesteps == episodes.lengths.sum()
        for place, seed in enumerate(seeds):
            policy = Policy(rollouts.task, network, parameters[place], shift, scale, rollouts.space)
            observation, _ = environment.reset(seed=seed)
            seen, total, over = [], 0.0, False
            while not over:
                seen.append(flat(observation, rollouts.space["observation"]))
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
        with ENGINES[engine](workers) as rollouts:
            network, parameters, shift, scale = candidates(rollouts, 7)
            results.append(rollouts.episodes(network, parameters, shift, scale, range(7)))
            again = rollouts.episodes(network, parameters[:2], shift, scale, [0, 1])
            np.testing.assert_array_equal(again.returns, results[-1].returns[:2])
    for other in results[1:]:
        np.testing.assert_array_equal(other.returns, results[0].returns)
        np.testing.assert_array_equal(other.lengths, results[0].lengths)
        np.testing.assert_array_equal(other.moments, results[0].moments)


def test_a_policy_that_is_not_a_number_is_a_problem_of_its_episode(engine: str) -> None:
    with ENGINES[engine](1) as rollouts:
        network, parameters, shift, scale = candidates(rollouts, 3)
        parameters[1] = np.nan
        episodes = rollouts.episodes(network, parameters, shift, scale, range(3))
        assert list(episodes.problems) == [1]
        assert "finite number" in episodes.problems[1]
        assert np.isnan(episodes.returns).tolist() == [False, True, False]


def test_seeds_and_policies_must_match(engine: str) -> None:
    with ENGINES[engine](1) as rollouts:
        network, parameters, shift, scale = candidates(rollouts, 3)
        with pytest.raises(InputError, match="seeds: expected 3, one per row of parameters, got 2"):
            rollouts.episodes(network, parameters, shift, scale, [0, 1])
