from __future__ import annotations

import importlib.util
import warnings
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from environments import Point
from gymnasium.spaces import Box, Discrete

from cones import InputError, MissingExtraError, rl
from cones.rl import environments as module
from cones.rl.environments import spaces_of
from cones.rl.episode import Episodes
from cones.rl.gymnasium_episode import GymnasiumEpisode
from cones.rl.policy import Network
from cones.rl.rollouts import Placement, Rollouts
from cones.rl.source import source_from


def episodes_of(task: str, count: int = 8, horizon: int = 100, **placement: Any) -> Episodes:
    episode = GymnasiumEpisode(source_from(task), Network((2, 1)), spaces_of(task), horizon)
    with Rollouts(episode, Placement(**placement)) as rollouts:
        return rollouts.episodes(np.zeros((count, 3)), np.zeros(2), np.ones(2), range(count))


def test_unknown_environments_are_named() -> None:
    with pytest.raises(InputError, match="task: 'Nonsense-v0' is no environment that gymnasium can make"):
        spaces_of("Nonsense-v0")
    with pytest.raises(InputError, match="task: 'no_such_module:X-v0' is no environment"):
        spaces_of("no_such_module:X-v0")


def test_spaces_that_are_not_supported_are_named() -> None:
    with pytest.raises(InputError, match=r"observation space: expected Box, Discrete, .* got Text.*wrap"):
        spaces_of("environments:PointText-v0")
    with pytest.raises(InputError, match=r"got images of shape \(8, 8, 3\); wrap the environment so that"):
        spaces_of("environments:PointImage-v0")
    for box, message in (
        (Box(0.0, 1.0, (84, 84, 3)), r"got images of shape \(84, 84, 3\)"),
        (Box(0.0, 1.0, (0,)), "observation space: expected 1 to 1000000 numbers, got 0"),
        (Discrete(10**9), "observation space: expected 1 to 1000000 numbers, got 1000000000"),
    ):
        point = Point()
        point.observation_space = box
        with pytest.raises(InputError, match=message):
            spaces_of(source_from(point))
    with pytest.raises(InputError, match=r"got <.*> without action_space"):
        spaces_of(source_from(type("Half", (gymnasium.Env,), {"observation_space": Discrete(2)})))


def test_an_observation_that_is_not_finite_fails_its_episode() -> None:
    episodes = episodes_of("environments:PointBlind-v0", count=2, threads=1)
    assert episodes.problems == dict.fromkeys((0, 1), GymnasiumEpisode.OUTCOMES[4].format(step=3))
    assert np.isnan(episodes.returns).all()


def test_an_observation_of_another_shape_is_an_error() -> None:
    with pytest.raises(
        InputError, match="observation: expected 2 numbers, got 3; the environment must return the shape"
    ):
        episodes_of("environments:PointGrow-v0", count=1, threads=1)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_the_environment_is_the_caller_s(threads: int) -> None:
    with pytest.raises(ZeroDivisionError, match="boom") as caught:
        episodes_of("environments:PointCrash-v0", threads=threads)
    if threads == 1:
        assert "raised by environments:PointCrash-v0 in step 1" in caught.value.__notes__[0]


def test_an_environment_that_raises_fails_its_episodes_alone() -> None:
    episodes = episodes_of("environments:PointCrash-v0", threads=2, retries=1)
    assert 0 < len(episodes.problems) < 8
    assert set(episodes.problems.values()) == {"ZeroDivisionError: boom (tried 2 times)"}
    good = episodes_of("environments:PointBox-v0", threads=1)
    for k in range(8):
        assert np.isnan(episodes.returns[k]) if k in episodes.problems else episodes.returns[k] == good.returns[k]
    assert episodes.timesteps == 10 * (8 - len(episodes.problems))


def test_an_environment_that_hangs_is_ended() -> None:
    episodes = episodes_of("environments:PointHang-v0", count=3, threads=2, timeout=3.0, retries=0)
    assert set(episodes.problems.values()) == {"no answer in 3 seconds (tried once)"}
    assert 0 < len(episodes.problems) < 3


def test_an_environment_that_kills_its_process_is_a_problem_of_its_episode() -> None:
    episodes = episodes_of("environments:PointDeath-v0", count=2, threads=2, retries=0)
    assert episodes.problems == dict.fromkeys((0, 1), "its worker was lost (tried once)")


def test_an_environment_without_limit_is_cut_off_and_that_is_said() -> None:
    with pytest.warns(RuntimeWarning, match="PointBox-v0: an episode had not ended after 4 steps and was cut"):
        episodes = episodes_of("environments:PointBox-v0", count=1, horizon=4, threads=1)
    assert episodes.lengths.tolist() == [4]
    assert not episodes.problems
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        episodes_of("environments:PointBox-v0", count=1, horizon=10, threads=1)  # ends in its last step


class Odd(Point):
    """An environment whose `reset` and `step` return what they are told to."""

    def __init__(self, **answers: Any) -> None:
        super().__init__()
        self.answers = answers

    def reset(self, **_: Any) -> Any:
        return self.answers.get("reset", super().reset(seed=0))

    def step(self, action: Any) -> Any:
        seen, reward, *rest = super().step(action)
        return self.answers.get("step", (seen, self.answers.get("reward", reward), *rest))


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"reward": "good"}, "reward: expected a number, got str 'good'"),
        ({"reward": None}, "reward: expected a number, got NoneType None"),
        ({"reward": np.ones(2)}, r"reward: expected a number, got ndarray array\(\[1., 1.\]\)"),
        (
            {"step": (np.zeros(2), 0.0, True, {})},
            r"step: expected .* \(observation, reward, terminated, truncated, info",
        ),
        ({"reset": np.zeros(2)}, r"reset: expected .* to return \(observation, info\), got ndarray"),
        ({"reset": (None, {})}, "observation: expected 2 numbers, got 1"),
    ],
    ids=str,
)
def test_what_breaks_gymnasium_s_interface_is_named(answers: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rl.train(partial(Odd, **answers), timesteps=100, popsize=4, hidden=[], threads=1, retries=2)


def test_a_reward_that_is_not_finite_ends_its_episode() -> None:
    episodes = episodes_of("environments:PointNan-v0", threads=1)
    assert set(episodes.problems.values()) == {"the return after step 1 is not a finite number; check the rewards"}
    assert np.isnan(episodes.returns).all()


def test_threads_and_workers_exclude_each_other() -> None:
    with pytest.raises(InputError, match="threads: expected without workers, got both"):
        episodes_of("environments:PointBox-v0", threads=1, workers=2)


@pytest.mark.parametrize("package", ["gymnasium", "mujoco", "numba"])
def test_a_missing_extra_says_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(MissingExtraError, match=rf"needs the package {package}.*pip install .*'{package}>="):
        module.import_gymnasium(mujoco=True)
