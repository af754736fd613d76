from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from cones import InputError, MissingExtraError, StateError
from cones.rl import environments as module
from cones.rl.gymnasium_rollouts import GymnasiumRollouts
from cones.rl.policy import Network


def episodes_of(task: str, workers: int = 1, count: int = 8) -> np.ndarray:
    with GymnasiumRollouts(task, workers) as rollouts:
        network = Network((2, 1))
        return rollouts.episodes(network, np.zeros((count, 3)), np.zeros(2), np.ones(2), range(count)).returns


def test_unknown_environments_are_named() -> None:
    with pytest.raises(InputError, match="task: 'Nonsense-v0' is no environment that gymnasium can make"):
        GymnasiumRollouts("Nonsense-v0")
    with pytest.raises(InputError, match="task: 'no_such_module:X-v0' is no environment"):
        GymnasiumRollouts("no_such_module:X-v0")


def test_spaces_that_are_not_supported_are_named() -> None:
    with pytest.raises(InputError, match=r"observation space: expected Box or Discrete, got Dict.*wrap"):
        GymnasiumRollouts("environments:PointDict-v0")


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_the_environment_is_the_caller_s(workers: int) -> None:
    with pytest.raises(ZeroDivisionError, match="boom") as caught:
        episodes_of("environments:PointCrash-v0", workers)
    if workers == 1:
        assert "raised by environments:PointCrash-v0 in step 1" in caught.value.__notes__[0]


def test_a_worker_that_dies_is_an_error_that_says_so() -> None:
    with pytest.raises(StateError, match="a process that runs environments:PointDeath-v0 died"):
        episodes_of("environments:PointDeath-v0", 2)


def test_returns_that_are_not_numbers_fail() -> None:
    assert np.isnan(episodes_of("environments:PointNan-v0")).all()


def test_an_environment_without_limit_is_cut_off() -> None:
    with GymnasiumRollouts("environments:PointBox-v0", 1, horizon=4) as rollouts:
        episodes = rollouts.episodes(Network((2, 1)), np.zeros((1, 3)), np.zeros(2), np.ones(2), [0])
    assert episodes.lengths.tolist() == [4]


@pytest.mark.parametrize("package", ["gymnasium", "mujoco", "numba"])
def test_a_missing_extra_says_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(MissingExtraError, match=rf"needs the package {package}.*pip install 'cones\[rl\]'"):
        module.import_gymnasium(mujoco=True)
