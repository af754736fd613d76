"""What users bring: ids, classes, functions, environments; with keyword arguments; on processes and in this one."""

from __future__ import annotations

import pickle
import threading
from functools import partial
from pathlib import Path
from typing import Any

import environments
import gymnasium
import numpy as np
import pytest
from environments import Point
from gymnasium import spaces

from cones import InputError, rl
from cones.rl.environments import made, spaces_of
from cones.rl.physics import PHYSICS
from cones.rl.rollouts import episode_of
from cones.rl.source import Source, source_from
from cones.rl.spaces import action_from, describe_spaces, flat, flat_size
from cones.rl.spec import new_run, task_from

SETTINGS: dict[str, Any] = {"timesteps": 100, "popsize": 4, "hidden": [], "evaluation_episodes": 1, "rng": 3}


def of_mode(mode: str = "box") -> Point:
    return Point(mode)


of_mode.__module__, environments.of_mode = "environments", of_mode  # as if it were written there


@pytest.mark.parametrize(
    "task",
    [
        "environments:Point",
        Point,
        of_mode,
        partial(Point, "box"),
        lambda: Point("box"),
        Point("box"),
        gymnasium.make("environments:PointBox-v0"),
        gymnasium.vector.SyncVectorEnv([partial(Point, "box")] * 2),
        gymnasium.make_vec("environments:PointBox-v0", num_envs=2, vectorization_mode="sync"),
    ],
    ids=["name", "class", "function", "partial", "lambda", "environment", "made", "vector", "made-vector"],
)
def test_all_of_them_train_alike(task: Any) -> None:
    expected = rl.train("environments:PointBox-v0", threads=1, **SETTINGS)
    trained = rl.train(task, threads=1, **SETTINGS)
    np.testing.assert_array_equal(trained.policy.parameters, expected.policy.parameters)
    np.testing.assert_array_equal(
        rl.evaluate(trained.policy, 3, threads=1).returns, rl.evaluate(expected.policy, 3, threads=1).returns
    )


def test_an_id_without_a_version_is_the_newest_and_runs_in_compiled_episodes() -> None:
    assert source_from("Hopper") == source_from("Hopper-v5")
    assert source_from("Hopper").name in PHYSICS
    assert new_run(source_from("CartPole"), "cones", 0, 100, {}).task.task == "CartPole-v1"
    assert source_from("environments:Point").name == "environments:Point"
    assert source_from("NoSuchTask").name == "NoSuchTask"  # an error when it is made
    assert task_from({"task": "Swimmer", "timesteps": 10}).task == "Swimmer-v5"


def test_whatever_makes_an_environment_goes_to_processes() -> None:
    expected = rl.train(Point, threads=1, **SETTINGS)
    flat = gymnasium.wrappers.FlattenObservation(Point("box"))  # it holds a lambda
    for task in (Point, flat, gymnasium.vector.SyncVectorEnv([lambda: Point("box")] * 2)):
        trained = rl.train(task, threads=2, **SETTINGS)
        np.testing.assert_array_equal(trained.policy.parameters, expected.policy.parameters)


def test_a_worker_that_is_sent_a_source_again_knows_its_environment() -> None:
    source = source_from(lambda: Point("box"))
    assert pickle.loads(pickle.dumps(source)) == pickle.loads(pickle.dumps(source))


class Doubled(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that gymnasium cannot make again."""

    def step(self, action: Any) -> Any:
        seen, reward, *rest = self.env.step(action)
        return seen, 2.0 * float(reward), *rest


def test_a_wrapper_of_the_user_s_own_is_copied() -> None:
    doubled = Doubled(gymnasium.make("environments:PointBox-v0"))
    trained, plain = (rl.train(task, threads=1, **SETTINGS) for task in (doubled, Point))
    assert trained.reward == pytest.approx(2.0 * plain.reward)


def test_what_a_vector_environment_was_made_with_counts() -> None:
    limited = gymnasium.make_vec("environments:PointBox-v0", 2, "sync", max_episode_steps=4)
    wrapped = gymnasium.make_vec(
        "environments:PointBox-v0", 2, "sync", wrappers=[lambda env: gymnasium.wrappers.TimeLimit(env, 4)]
    )
    for task in (limited, wrapped):
        policy = rl.train(task, threads=1, **SETTINGS).policy
        assert rl.evaluate(policy, 3, threads=1).lengths.tolist() == [4, 4, 4]
    assert source_from(gymnasium.make_vec("Swimmer-v5", 2, vector_kwargs={"copy": False})) == Source("Swimmer-v5")
    assert source_from(gymnasium.spec("Swimmer-v5")) == Source("Swimmer-v5")
    from gymnasium.wrappers import vector

    assert source_from(vector.RecordEpisodeStatistics(limited)) == source_from(limited)
    with pytest.raises(InputError, match=r"without wrappers of its own, got NormalizeObservation.*single environments"):
        source_from(vector.NormalizeObservation(limited))


def test_wrappers_that_remember_are_warned_of() -> None:
    with pytest.warns(RuntimeWarning, match="the wrapper NormalizeObservation learns from the episodes of one worker"):
        spaces_of(source_from(gymnasium.wrappers.NormalizeObservation(Point("box"))))


def test_keyword_arguments_reach_the_environment_and_its_files(tmp_path: Path) -> None:
    chosen = {**SETTINGS, "env_kwargs": {"mode": "choices"}, "threads": 1}
    trained = rl.train(Point, out=tmp_path, **chosen)
    assert trained.policy.network.sizes == (5, 3)
    policy = rl.load_policy(tmp_path, allow=[Point])
    assert policy.env_kwargs == {"mode": "choices"}
    np.testing.assert_array_equal(
        rl.evaluate(policy, 3, threads=1).returns, rl.evaluate(trained.policy, 3, threads=1).returns
    )
    longer = rl.resume(tmp_path, timesteps=200, threads=1, allow=["environments:Point"])
    straight = rl.train(Point, **{**chosen, "timesteps": 200})
    np.testing.assert_array_equal(longer.policy.parameters, straight.policy.parameters)
    with pytest.raises(InputError, match="env_kwargs: expected names with numbers"):
        rl.train(Point, env_kwargs={"mode": Point}, **SETTINGS)
    with pytest.raises(InputError, match="with wind=3: TypeError"):
        rl.train(Point, env_kwargs={"wind": 3}, **SETTINGS)


def test_a_function_without_a_name_is_given_again(tmp_path: Path) -> None:
    def local() -> Point:
        return Point("box")

    rl.train(local, out=tmp_path, threads=1, **SETTINGS)
    with pytest.raises(InputError, match="is no environment that gymnasium can make"):
        rl.resume(tmp_path, timesteps=200, threads=1)
    longer = rl.resume(tmp_path, task=local, timesteps=200, threads=1)
    straight = rl.train(local, threads=1, **{**SETTINGS, "timesteps": 200})
    np.testing.assert_array_equal(longer.policy.parameters, straight.policy.parameters)
    lock = threading.Lock()
    for placement in ({"threads": 2}, {"workers": 2}):
        with pytest.raises(InputError, match=r"^task: .*lambda> cannot be sent to worker processes .*threads=1"):
            rl.train(lambda: (lock, Point("box"))[1], **placement, **SETTINGS)
    with pytest.raises(InputError, match=r"task: expected .*local, of which the folder is, got environments:Point"):
        rl.resume(tmp_path, task=Point, timesteps=300, threads=1)


def test_a_file_calls_nothing_that_was_not_named(tmp_path: Path) -> None:
    policy = rl.train(Point, threads=1, **SETTINGS).policy
    for task in ("os:system", "environments:Point"):
        object.__setattr__(policy, "task", task)
        policy.save(tmp_path / "a.policy.npz")
        with pytest.raises(InputError, match=f"allow it by name: allow=.*{task}"):
            rl.load_policy(tmp_path / "a.policy.npz")


def test_a_policy_of_another_task_is_refused() -> None:
    policy = rl.train(Point, threads=1, **SETTINGS).policy
    with pytest.raises(
        InputError, match=r"policy: trained on environments:Point with the observation space .*CartPole-v1"
    ):
        rl.evaluate(policy, 1, task="CartPole-v1", threads=1)


@pytest.mark.parametrize("task", [None, "", 3, object()], ids=["none", "empty", "number", "object"])
def test_what_is_no_environment_is_named(task: Any) -> None:
    with pytest.raises(
        InputError, match="task: expected the id of a gymnasium environment, such as Swimmer-v4, a class"
    ):
        rl.train(task)
    with pytest.raises(InputError, match="task: expected int to make an environment of gymnasium, got 0"):
        rl.train(partial(int), threads=1)


def test_compiled_episodes_are_for_tasks_as_they_are_registered() -> None:
    for source, compiled in (
        (source_from(gymnasium.make("Hopper-v5")), True),
        (source_from(gymnasium.make("Hopper-v5", healthy_reward=2.0)), False),
        (source_from(gymnasium.make("Hopper-v5", max_episode_steps=10)), False),
        (source_from("Hopper-v5", {"frame_skip": 2}), False),
    ):
        assert source.name in PHYSICS
        network = rl.policy.Network((11, 3))
        assert episode_of(source, network, spaces_of(source)).RELEASES_LOCK is compiled
        pickle.loads(pickle.dumps(source))
    with made(source_from(gymnasium.make("Hopper-v5", max_episode_steps=10))) as environment:
        assert environment.spec.max_episode_steps == 10
    assert source_from(Source("a")) == Source("a")


PARTS = spaces.Dict(
    {
        "a": spaces.Box(-2.0, 4.0, (2,), np.float64),
        "b": spaces.Tuple((spaces.Discrete(3, start=5), spaces.MultiBinary(2))),
        "c": spaces.MultiDiscrete([[2, 3]], start=[[1, -1]]),
        "d": spaces.Box(0, 9, (1,), np.int64),
    }
)


def test_flattening_is_gymnasium_s_and_actions_are_in_their_space() -> None:
    space = describe_spaces(type("E", (), {"observation_space": PARTS, "action_space": PARTS}))
    PARTS.seed(0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        sample = PARTS.sample()
        np.testing.assert_array_equal(flat(sample, space["observation"]), spaces.flatten(PARTS, sample))
        action = action_from(3.0 * rng.standard_normal(flat_size(space["action"])), space["action"])
        assert PARTS.contains(action), action
    assert flat_size(space["observation"]) == spaces.flatdim(PARTS)


def test_outputs_of_one_reach_the_bounds() -> None:
    box = spaces.Box(np.array([-2.0, 0.0, -np.inf]), np.array([4.0, 1.0, 0.5]), dtype=np.float64)
    space = describe_spaces(type("E", (), {"observation_space": box, "action_space": box}))["action"]
    np.testing.assert_array_equal(action_from(np.full(3, -1.0), space), [-2.0, 0.0, -1.0])
    np.testing.assert_array_equal(action_from(np.zeros(3), space), [1.0, 0.5, 0.0])
    np.testing.assert_array_equal(action_from(np.full(3, 1.0), space), [4.0, 1.0, 0.5])
    np.testing.assert_array_equal(action_from(np.full(3, 9.0), space), [4.0, 1.0, 0.5])
