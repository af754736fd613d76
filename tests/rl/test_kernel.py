"""Compiled episodes against gymnasium, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cones import InputError
from cones.rl.environments import import_gymnasium, made
from cones.rl.mujoco_episode import Simulator
from cones.rl.physics import PHYSICS
from cones.rl.rollouts import Placement, Rollouts, episode_of, network_of
from cones.rl.tasks import PAPER

on_the_paper_s = pytest.mark.parametrize("task", list(PAPER))


def rollouts_of(task: str, threads: int, hidden: tuple[int, ...] = (), bias: bool = True) -> Rollouts:
    network, space = network_of(task, hidden, bias)
    return Rollouts(episode_of(task, network, space), Placement(threads))


CASES = [(task, seed, 1000) for task in PAPER for seed in (0, 1, 2**32 - 1)]
CASES += [(task, 3, 150) for task in PHYSICS if task not in PAPER]


def test_every_mujoco_task_of_gymnasium_is_compiled() -> None:
    gymnasium = import_gymnasium()
    ids = {name for name, spec in gymnasium.registry.items() if "envs.mujoco." in str(spec.entry_point)}
    assert ids - {"Pusher-v4"} == set(PHYSICS)  # Pusher-v4 is for MuJoCo 2


@pytest.mark.parametrize(("task", "seed", "steps"), CASES)
def test_given_actions_do_what_gymnasium_does(task: str, seed: int, steps: int) -> None:
    """Through terminations, with actions within and beyond their bounds."""
    with made(task) as environment:
        inner = environment.unwrapped
        rng = np.random.default_rng(seed)
        actions = rng.uniform(-1.5, 1.5, (steps, inner.model.nu))
        observations, rewards, terminals = Simulator.of(task).replay(seed, actions)
        observation, _ = inner.reset(seed=seed)
        np.testing.assert_array_equal(observations[0], observation)
        for k, action in enumerate(actions):
            observation, reward, terminal, _, _ = inner.step(action)
            np.testing.assert_array_equal(observations[k + 1], observation)
            assert rewards[k] == reward
            assert terminals[k] == terminal
        if PHYSICS[task].bounds:
            assert terminals.any()


@pytest.mark.parametrize(
    ("task", "bias"),
    [*((task, bias) for task in PAPER for bias in (True, False)), ("InvertedPendulum-v5", True), ("Reacher-v4", False)],
)
def test_whole_episodes_are_gymnasium_s(task: str, bias: bool) -> None:
    """The return, the length and the moments of the observations, with the same policy."""
    from cones.rl import kernel

    with rollouts_of(task, 2, (7,), bias) as rollouts, made(task) as environment:
        network = rollouts.episode.network
        width, _, count = network.sizes
        rng = np.random.default_rng(3)
        parameters = rng.standard_normal((4, network.dim))
        shift, scale = 0.1 * rng.standard_normal(width), rng.uniform(0.5, 1.5, width)
        episodes = rollouts.episodes(parameters, shift, scale, [5, 6, 7, 8])
        assert not episodes.problems
        sizes, layers, action = np.array(network.sizes), np.empty((3, max(network.sizes))), np.empty(count)
        low, high = environment.action_space.low.astype(float), environment.action_space.high.astype(float)
        middle, half = (low + high) / 2, (high - low) / 2
        for place, seed in enumerate([5, 6, 7, 8]):
            observation, _ = environment.reset(seed=seed)
            seen, total, over = [], 0.0, False
            while not over:
                seen.append(observation)
                kernel.act(sizes, network.bias, parameters[place], observation, shift, scale, layers, action)
                expected = network.outputs(parameters[place], (observation - shift) * scale)
                np.testing.assert_allclose(action, expected, rtol=1e-9, atol=1e-12)
                observation, reward, terminated, truncated, _ = environment.step(
                    np.clip(middle + half * action, low, high)
                )
                total += reward
                over = terminated or truncated
            assert episodes.returns[place] == total
            assert episodes.lengths[place] == len(seen)
            mean = np.mean(seen, axis=0)
            np.testing.assert_allclose(episodes.moments[place, 0], mean, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(
                episodes.moments[place, 1], np.square(seen - mean).sum(axis=0), rtol=1e-7, atol=1e-9
            )


@on_the_paper_s
def test_a_diverged_simulation_is_reported(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with rollouts_of(task, 2) as rollouts:
        simulator = Simulator.of(task)
        sound = simulator.start(0)
        network = rollouts.episode.network
        still = np.zeros((3, network.dim))
        zeros, ones = np.zeros(network.sizes[0]), np.ones(network.sizes[0])
        before = rollouts.episodes(still, zeros, ones, [0, 1, 2])
        wild = sound.copy()
        wild[-1] = 1e9  # a velocity that no integrator survives
        with monkeypatch.context() as patch:
            patch.setattr(simulator, "start", lambda seed: wild if seed == 1 else sound)
            episodes = rollouts.episodes(still, zeros, ones, [0, 1, 2])
            with pytest.raises(InputError, match="actions: the simulation diverged in step"):
                simulator.replay(1, np.zeros((1000, network.sizes[1])))
        assert list(episodes.problems) == [1]
        assert episodes.problems[1].startswith("the simulation diverged in step ")
        assert np.isnan(episodes.returns).tolist() == [False, True, False]
        # The simulation that has diverged is as good as new.
        after = rollouts.episodes(still, zeros, ones, [0, 1, 2])
        np.testing.assert_array_equal(before.returns, after.returns)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().out == ""


@on_the_paper_s
def test_actions_that_are_not_numbers_are_reported(task: str) -> None:
    with rollouts_of(task, 1) as rollouts:
        network = rollouts.episode.network
        parameters = np.zeros((2, network.dim))
        parameters[1, -1] = np.nan
        zeros, ones = np.zeros(network.sizes[0]), np.ones(network.sizes[0])
        episodes = rollouts.episodes(parameters, zeros, ones, [0, 0])
        assert episodes.problems == {1: "the policy's action in step 1 was not a finite number"}
        assert np.isfinite(episodes.returns[0])


@on_the_paper_s
def test_an_output_however_large_is_clipped(task: str) -> None:
    """As in the engine for any other environment: only what is no number fails."""
    with rollouts_of(task, 1) as rollouts, made(task) as environment:
        network = rollouts.episode.network
        parameters = np.zeros((2, network.dim))
        parameters[:, -environment.action_space.shape[0] :] = [[2e10], [1.0]]
        size = network.sizes[0]
        episodes = rollouts.episodes(parameters, np.zeros(size), np.ones(size), [0, 0])
    assert episodes.problems == {}
    assert episodes.returns[0] == episodes.returns[1]
