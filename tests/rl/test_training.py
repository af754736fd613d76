from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cones
from cones import CheckpointError, InputError, rl
from cones.experiments.summary import summarise
from cones.experiments.toml import experiment_from
from cones.progress.stopping import CALLBACK, StopReason
from cones.records import Folder, execute, read_record
from cones.restarts import Refining
from cones.rl.policy import Network
from cones.rl.rollouts import Placement, Rollouts
from cones.rl.spec import TrainingRun
from cones.rl.tasks import PAPER
from cones.rl.training import Training, TrainingPause
from cones.run.iterate import Observer, iterate


def run_of(method: str = "cones", task: str = "Hopper-v4", timesteps: int = 14_000, **more: Any) -> TrainingRun:
    entry = {"task": task, "timesteps": timesteps, "evaluate_every": 3, "evaluation_episodes": 2, "hidden": 4, **more}
    own: dict[str, Any] = {"method": method}
    if method in ("adaptive", "restarting"):
        own = {"method": "cones", "radius": "adaptive"}
    if method == "restarting":  # after every few iterations
        own |= {"restarts": "refining", "plateau": 3, "popsize": 4}
    experiment = experiment_from({"name": "t", "tasks": [entry], "methods": [own]})
    run = experiment.runs()[0]
    assert isinstance(run, TrainingRun)
    return run


class Once(Observer):
    """Ends a loop after one iteration."""

    over = False

    def told(self, seconds: float) -> None:
        self.over = True

    def stop(self) -> StopReason | None:
        return CALLBACK if self.over else None


def one_iteration(training: Training) -> None:
    iterate(training.strategy, training.evaluator, [training, Once()])


def columns_of(folder: Folder, run: TrainingRun) -> dict[str, np.ndarray]:
    columns = read_record(folder.record_path(run)).columns
    return {name: column for name, column in columns.items() if "seconds" not in name}


def new(path: Path) -> Folder:
    folder = Folder(path)
    folder.runs.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("method", ["cones", "adaptive", "restarting", "nes", "es", "cma", "sepcma"])
def test_a_run_in_pieces_is_the_run_in_one(method: str, tmp_path: Path) -> None:
    budget = 14_000 if method != "restarting" else 30_000
    run = run_of(method, timesteps=budget)
    straight, broken = new(tmp_path / "straight"), new(tmp_path / "broken")
    assert execute(Training, run, straight)
    calls = iter(range(10**6))
    while not execute(Training, run, broken, paused=lambda _: next(calls) % 4 == 3):
        assert not read_record(broken.record_path(run)).finished
    one, other = columns_of(straight, run), columns_of(broken, run)
    for name, column in one.items():
        np.testing.assert_array_equal(column, other[name], err_msg=name)
    assert one["timesteps"][-1] >= budget > one["timesteps"][-2]
    assert method != "restarting" or one["restart"][-1] > 1
    policies = [rl.load_policy(folder.path) for folder in (straight, broken)]
    np.testing.assert_array_equal(policies[0].parameters, policies[1].parameters)
    np.testing.assert_array_equal(policies[0].scale, policies[1].scale)


@pytest.mark.parametrize("at", [1, 3, 4, 5])  # the fourth is an evaluation
def test_ctrl_c_loses_nothing_that_was_complete(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of()
    straight, broken = new(tmp_path / "straight"), new(tmp_path / "broken")
    execute(Training, run, straight)
    inner, calls = Rollouts.episodes, iter(range(1, 100))

    def interrupted(self: Rollouts, *arguments: Any) -> Any:
        if next(calls) == at:
            raise KeyboardInterrupt
        return inner(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Rollouts, "episodes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            execute(Training, run, broken)
    assert execute(Training, run, broken)
    one, other = columns_of(straight, run), columns_of(broken, run)
    for name, column in one.items():
        np.testing.assert_array_equal(column, other[name], err_msg=name)


def test_the_number_of_threads_changes_nothing() -> None:
    results = [
        rl.train("Hopper-v4", timesteps=4000, hidden=4, popsize=10, rng=3, threads=threads) for threads in (1, 2)
    ]
    np.testing.assert_array_equal(results[0].policy.parameters, results[1].policy.parameters)
    np.testing.assert_array_equal(results[0].history["mean_reward"], results[1].history["mean_reward"])
    other = rl.train("Hopper-v4", timesteps=4000, hidden=4, popsize=10, rng=4)
    assert not np.array_equal(other.policy.parameters, results[0].policy.parameters)


def test_one_iteration_by_hand() -> None:
    """The losses are negative returns, the normaliser has seen the training episodes, and no others."""
    run = run_of(timesteps=40)
    training = Training(run)
    start = training.policy()
    np.testing.assert_array_equal(start.scale, 1.0)
    strategy = cones.CoNES(
        np.zeros(training.network.dim), 0.02, popsize=40, radius=1.0, optimizer=cones.Adam(0.01, 0.01), rng=0
    )
    X = strategy.ask()
    np.testing.assert_array_equal(training.strategy.ask(), X)
    seeds = [int(word) for word in np.random.SeedSequence((0, 0, 0)).generate_state(40)]
    episodes = training.rollouts.episodes(X, start.shift, start.scale, seeds)
    strategy.tell(X, -episodes.returns)
    one_iteration(training)
    np.testing.assert_array_equal(training.strategy.state.belief.mean, strategy.state.belief.mean)
    seen = training.normaliser
    assert seen.count == training.timesteps == episodes.timesteps
    assert training.row()["population_reward"] == pytest.approx(episodes.returns.mean())
    assert training.reason() is not None
    assert training.timesteps == episodes.timesteps
    assert np.isfinite(training.last("mean_reward"))


def test_other_tasks_see_normalised_observations_from_the_first_iteration_on() -> None:
    run = run_of(task="environments:PointBox-v0", timesteps=40)
    assert run.task.sigma is None
    training = Training(run)
    X = training.strategy.ask()
    unit = training.network.deviations()  # PointBox: 2 observations, 1 action
    share = min(1.0, 3.0 * np.sqrt(training.strategy.popsize / unit.size))
    np.testing.assert_allclose(training.strategy.state.belief.standard_deviations(), share * unit, rtol=1e-12)
    nothing = training.normaliser

    def words(purpose: int) -> list[int]:
        (word,) = np.random.SeedSequence((0, purpose, 0)).generate_state(1)
        return [int(word)] * len(X)  # one start for all candidates

    first = training.rollouts.episodes(X, nothing.shift, nothing.scale, words(2))
    warm = first.merged_into(nothing)
    second = training.rollouts.episodes(X, warm.shift, warm.scale, words(0))
    one_iteration(training)
    assert training.timesteps == first.timesteps + second.timesteps
    assert training.row()["population_reward"] == pytest.approx(second.returns.mean())
    np.testing.assert_array_equal(training.normaliser.mean, second.merged_into(warm).mean)


@pytest.mark.parametrize(("common", "distinct"), [(True, 2), (False, 8)])
def test_common_starts_are_the_same_for_every_candidate(
    monkeypatch: pytest.MonkeyPatch, common: bool, distinct: int
) -> None:
    training = Training(run_of(task="environments:PointBox-v0", timesteps=40, episodes=2, common_starts=common))
    seeds: list[list[int]] = []
    original = training.rollouts.episodes
    monkeypatch.setattr(
        training.rollouts,
        "episodes",
        lambda rows, shift, scale, words, floors: seeds.append(words) or original(rows, shift, scale, words, floors),
    )
    training.returns(training.strategy.ask()[:4])
    for words in seeds:
        assert len(words) == 8
        assert len(set(words)) == distinct
        assert not common or words == words[:2] * 4


def test_other_tasks_have_a_popsize_by_their_weights_and_hold_their_size() -> None:
    network = Network((3, 16, 1))
    strategy = run_of(task="environments:PointBox-v0").strategy(network)
    assert strategy.popsize == 16  # 4 + 3 log(81) = 17.2
    size = np.sqrt(np.mean(network.deviations() ** 2))
    assert strategy.algorithm.step.hold == pytest.approx(3.0 * size)
    many = Network((17, 50, 6))
    strategy = run_of("adaptive", task="HalfCheetah-v4").strategy(many)
    spread = 3.0 * np.sqrt(24 / many.dim) * many.deviations()
    np.testing.assert_allclose(strategy.state.belief.standard_deviations(), spread)
    assert strategy.algorithm.step.hold == pytest.approx(3.0 * np.sqrt(np.mean(spread**2)))
    narrow = run_of(task="environments:PointBox-v0", sigma=0.01).strategy(network)
    assert narrow.algorithm.step.hold == pytest.approx(size)


def test_hidden_units_of_the_first_candidates_have_inputs_of_variance_one_or_little_more() -> None:
    observations = np.random.default_rng(0).standard_normal((50, 17))
    # A spread of 0.42 of the size by fan-in, to which the mean adds 1, and one of all of it, to which it adds 1/2.
    for size, units, of_weights, of_biases in ((17, 50, 1.18, 0.18), (3, 4, 1.25, 1.0)):
        network, inputs = Network((size, units, 1)), []
        for seed in range(400 // units):
            candidates = replace(run_of("adaptive"), seed=seed).strategy(network).ask()
            weights, biases, _ = np.split(candidates, [size * units, (size + 1) * units], axis=1)
            inputs.append(observations[:, :size] @ weights.reshape(-1, size, units) + biases[:, None])
        assert np.var(inputs) == pytest.approx((size * of_weights + of_biases) / (size + 1), rel=0.1)
    mean = run_of("adaptive", sigma=10.0).strategy(network).state.belief.mean
    assert not mean[12:].any()
    assert mean[:12].all()


def test_a_restart_learns_its_own_normaliser_and_the_best_policy_is_kept() -> None:
    run = run_of("restarting", timesteps=60_000)
    training = Training(run, placement=Placement(threads=1))
    # Restarts, whether the descent began at the last mean, and how many observations the normaliser has seen.
    seen: list[tuple[int, bool, int]] = []
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    rewards: dict[bytes, set[float]] = {}  # of each policy that is kept

    class Watch(Observer):
        def told(self, seconds: float) -> None:
            state = training.strategy.state
            seen.append((state.restarts, state.descent.at_mean, training.normaliser.count))
            belief, policy = training.strategy.best_belief(), training.policy()
            np.testing.assert_array_equal(policy.parameters, belief.mean)
            if belief is state.belief:
                np.testing.assert_array_equal(policy.shift, training.normaliser.shift)
            else:
                kept.append((policy.parameters, policy.shift, policy.scale))
                if training.iteration % run.task.evaluate_every == 0:
                    rewards.setdefault(policy.parameters.tobytes(), set()).add(training.last("mean_reward"))

    iterate(training.strategy, training.evaluator, [training, Watch()])
    new = [(at_mean, count) for (before, *_), (after, at_mean, count) in pairwise(seen) if after > before]
    assert len(new) > 2
    assert {at_mean for at_mean, _ in new} == {True, False}
    for at_mean, count in new:
        assert (count > 0) == at_mean
    # A policy that is kept keeps the normaliser it was trained with.
    for one, other in pairwise(kept):
        assert not (one[0] == other[0]).all() or ((one[1] == other[1]).all() and (one[2] == other[2]).all())
    assert any((one[0] == other[0]).all() for one, other in pairwise(kept))
    assert rewards
    assert all(len(of_policy) == 1 for of_policy in rewards.values())  # or its luckiest evaluation would count


@pytest.mark.parametrize("bad", [{"mean_reward": "x"}, [1.0]])
def test_damaged_numbers_of_an_earlier_policy_are_refused(bad: Any) -> None:
    training = Training(run_of("restarting"), placement=Placement(threads=1))
    extra = {**training.state(), "earlier_test": bad}
    with pytest.raises(CheckpointError, match="the checkpoint has earlier_test"):
        Training(training.run, (training.strategy, extra))


def test_adaptive_radii_start_anew_on_plateaus_and_nothing_else_does() -> None:
    def strategy(method: str = "adaptive", **more: Any) -> Any:
        run = run_of(method, **more)
        run = replace(run, method=replace(run.method, settings={**run.method.settings, **settings}))
        return run.strategy(Network((11, 50, 3)))

    settings: dict[str, Any] = {}
    by_default = strategy()
    assert by_default.restarts == Refining()
    assert [(c.name, c.limit) for c in by_default.criteria] == [("plateau", 150)]
    assert strategy("cones", task="Pendulum-v1").restarts == Refining()
    settings = {"popsize": 10}
    assert strategy().criteria[0].limit == 226  # 3 n / popsize iterations of 753 weights
    settings = {}
    assert strategy("cones").restarts is None  # the paper's setting
    assert strategy("nes", task="Pendulum-v1").restarts is None
    assert strategy(asynchronous=True).restarts is None
    settings = {"restarts": 0}
    assert strategy().restarts is None
    assert strategy().criteria == ()
    for given in ("refining,factor=0.5", {"name": "refining", "factor": 0.5}, Refining(factor=0.5)):
        settings = {"restarts": given}
        for method in ("adaptive", "nes"):
            assert strategy(method).restarts == Refining(factor=0.5)
            assert [criterion.name for criterion in strategy(method).criteria] == ["plateau"]
    settings = {"restarts": "refining", "plateau": 20}
    assert [criterion.limit for criterion in strategy().criteria] == [20]


def test_the_paper_s_settings_are_the_defaults() -> None:
    for task, paper in PAPER.items():
        experiment = experiment_from(
            {"name": "t", "tasks": [{"task": task}], "methods": [{"method": m} for m in ("cones", "nes", "cma")]}
        )
        ours, nes, cma = experiment.runs()
        assert isinstance(ours, TrainingRun)
        assert (ours.task.hidden, ours.task.bias) == ((paper.hidden,), paper.bias)
        assert (ours.sigma, ours.task.timesteps, ours.task.target) == (paper.sigma, paper.limit, paper.target)
        assert ours.specification()["task"]["sigma"] == paper.sigma
        assert not ours.common_starts
        assert ours.strategy(Network((3, 2, 1))).state.belief.mean.tolist() == [0.0] * 11
        rates = {
            "popsize": 40,
            "learning_rate": paper.learning_rate,
            "variance_learning_rate": paper.variance_learning_rate,
        }
        assert ours.settings == {**rates, "radius": paper.radius}
        assert isinstance(nes, TrainingRun)
        assert nes.settings == rates
        assert isinstance(cma, TrainingRun)
        assert cma.settings == {}
    assert PAPER["HalfCheetah-v4"].radius ** 2 == pytest.approx(1000.0)


def test_adaptive_radii_have_no_learning_rates_and_are_the_default_elsewhere() -> None:
    assert run_of("adaptive").settings == {"radius": "adaptive"}
    assert run_of(task="CartPole-v1").settings == {"radius": "adaptive"}
    adam = experiment_from(
        {"name": "t", "tasks": [{"task": "Swimmer-v4"}], "methods": [{"method": "nes", "optimizer": "adam"}]}
    )
    assert adam.runs()[0].settings["learning_rate"] == 0.5  # the default by its name changes nothing
    assert run_of("nes", task="CartPole-v1").settings == {"learning_rate": 0.05, "variance_learning_rate": 0.05}
    strategy = Training(run_of("adaptive")).strategy
    few_iterations = cones.radius.PathLength(1.2, largest=1e6)
    assert strategy.algorithm.step == cones.Balls(mean=few_iterations, hold=strategy.algorithm.step.hold)
    assert [criterion.name for criterion in strategy.criteria] == ["plateau"]  # which ends a descent, not the run
    with pytest.raises(InputError, match="optimizer: expected none with adaptive radii"):
        rl.train("Hopper-v4", timesteps=100, radius="adaptive", learning_rate=0.1)


def test_the_start_is_random_hidden_units_unless_the_setting_is_the_paper_s() -> None:
    network = Network((3, 400, 5, 2))
    mean = run_of("adaptive").strategy(network).state.belief.mean
    assert mean.tolist() == run_of(task="CartPole-v1").strategy(network).state.belief.mean.tolist()  # of the seed alone
    first, biases, second, last = np.split(mean, np.cumsum([1200, 400, 2000]))
    assert first.std() == pytest.approx(0.5, rel=0.1)  # 3 inputs and a bias
    assert second.std() == pytest.approx((400 * 0.394 + 1) ** -0.5, rel=0.1)
    assert not biases.any()
    assert not last.any()  # biases of the second layer, and the outputs
    one, other = (network.outputs(mean, np.array(x)) for x in ([1.0, 0.0, 0.0], [0.0, 2.0, 0.0]))
    assert one.tolist() == other.tolist() == [0.0, 0.0]
    for run in (run_of(), run_of("nes"), run_of("adaptive", start="zeros"), run_of(task="CartPole-v1", start="zeros")):
        assert not run.strategy(network).state.belief.mean.any()
    assert run_of(start="random").strategy(network).state.belief.mean.tolist() == mean.tolist()
    assert run_of("adaptive").specification()["task"]["start"] == "random"
    assert "start" not in run_of().specification()["task"]  # as in records from before there was another one


@pytest.mark.parametrize("belief", ["diagonal", "full"])
def test_it_learns(belief: str) -> None:
    trained = rl.train(
        "environments:PointBox-v0", timesteps=12000, hidden=[], popsize=20, belief=belief, threads=1, episodes=2
    )
    first, last = trained.history["population_reward"][0], trained.reward
    assert trained.stop == "timesteps"
    assert last > -4.0 > first
    result = rl.evaluate(trained.policy, 20, threads=1)
    assert result.returns.mean() == pytest.approx(last, abs=2.0)
    assert result.lengths.tolist() == [10] * 20


def test_training_goes_on_with_another_budget(tmp_path: Path) -> None:
    settings = {"hidden": 4, "popsize": 10, "evaluate_every": 1, "evaluation_episodes": 1}
    straight = rl.train("Hopper-v4", timesteps=3000, **settings)
    rl.train("Hopper-v4", timesteps=1000, out=tmp_path / "run", **settings)
    longer = rl.resume(tmp_path / "run", timesteps=3000)
    np.testing.assert_array_equal(longer.policy.parameters, straight.policy.parameters)
    np.testing.assert_array_equal(longer.history["mean_reward"], straight.history["mean_reward"])
    assert json.loads((tmp_path / "run" / "experiment.json").read_text())["tasks"][0]["timesteps"] == 3000
    again = rl.resume(tmp_path / "run")
    assert again.timesteps == longer.timesteps
    with pytest.raises(InputError, match="holds records of another specification"):
        rl.train("Hopper-v4", timesteps=1000, out=tmp_path / "run", **settings)


def test_a_failed_candidate_ranks_worst_and_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(run_of(timesteps=100_000))
    inner = training.rollouts.episodes

    def some_fail(*arguments: Any) -> Any:
        episodes = inner(*arguments)
        episodes.returns[5], episodes.problems[5] = np.nan, "the simulation diverged in step 3"
        return episodes

    monkeypatch.setattr(training.rollouts, "episodes", some_fail)
    one_iteration(training)
    assert training.strategy.history["failures"].tolist() == [1.0]
    assert training.problems == {5: "the simulation diverged in step 3"}
    assert np.isfinite(training.row()["population_reward"])
    assert training.normaliser.count < training.timesteps


def test_components_may_be_objects(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"timesteps": 60, "popsize": np.int64(4), "rng": 0, "threads": 1}
    balls = cones.Balls(mean=cones.radius.PathLength(0.4), hold=2.0)
    whole = rl.train("CartPole-v1", **settings | {"timesteps": 400}, radius=balls)
    part = rl.train("CartPole-v1", **settings, radius=balls, out=tmp_path / "run")
    again = rl.resume(tmp_path / "run", timesteps=400, threads=1)
    assert part.timesteps < again.timesteps == whole.timesteps
    assert again.policy.parameters.tolist() == whole.policy.parameters.tolist()
    text = "balls,hold=2.0"
    table = {"name": "balls", "mean": "path_length:0.4", "hold": 2.0}
    assert rl.train("CartPole-v1", **settings, step=text).policy.parameters.tolist() != part.policy.parameters.tolist()
    assert rl.train("CartPole-v1", **settings, step=table).policy.parameters.tolist() == part.policy.parameters.tolist()
    own = rl.train("Hopper-v4", **settings, radius=cones.Balls())  # no learning rates, as on other tasks
    assert own.timesteps >= 60


def test_settings_that_no_record_can_hold_are_refused_before_training() -> None:
    with pytest.raises(InputError, match="estimator: expected something that a record can hold"):
        rl.train("CartPole-v1", timesteps=60, estimator=object())
    with pytest.raises(InputError, match="step: expected something that a record can hold"):
        rl.train("CartPole-v1", timesteps=60, step={"name": "balls", "hold": float("nan")})
    with pytest.raises(InputError, match="step: expected neither radius"):
        rl.train("CartPole-v1", timesteps=60, radius=cones.Balls(), step="balls")


def test_checkpoints_of_another_task_are_refused(tmp_path: Path) -> None:
    folder = new(tmp_path)
    run = run_of(timesteps=1000)
    execute(Training, run, folder)
    other = run_of(task="Walker2d-v4", timesteps=1000)
    folder.checkpoint_path(run).rename(folder.checkpoint_path(other))
    with pytest.raises(CheckpointError, match=r"the checkpoint is of Hopper-v4, not of Walker2d-v4"):
        execute(Training, other, folder)
    wider = run_of(timesteps=1000, hidden=5)
    folder.checkpoint_path(other).rename(folder.checkpoint_path(wider))
    with pytest.raises(CheckpointError, match=r"the checkpoint has 63 parameters, and the policy 78"):
        execute(Training, wider, folder)


def test_pauses(tmp_path: Path) -> None:
    run = run_of(timesteps=100_000, target=-1e9)
    folder = new(tmp_path)
    assert not execute(Training, run, folder, paused=TrainingPause(6000))
    spent = columns_of(folder, run)["timesteps"]
    assert spent[-1] >= 6000 > spent[-2]
    folder = new(tmp_path / "target")
    assert not execute(Training, run, folder, paused=TrainingPause(at_target=True))
    assert np.isfinite(columns_of(folder, run)["mean_reward"][-1])
    assert columns_of(folder, run)["mean_reward"].size == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": ""}, "task: expected the id of a gymnasium environment"),
        ({"task": "Hopper-v4", "timesteps": 0}, r"timesteps: expected at least 1, got 0"),
        ({"task": "Hopper-v4", "hidden": [0]}, r"hidden: expected at least 1, got 0"),
        ({"task": "Hopper-v4", "bias": "no"}, r"^bias: expected True or False, got 'no'"),
        ({"task": "Hopper-v4", "sigma": -1.0}, r"sigma: expected a positive number"),
        ({"task": "Hopper-v4", "start": "ones"}, r"^start: expected one of 'zeros', 'random', got 'ones'"),
        ({"task": "Hopper-v4", "episodes": 0}, r"episodes: expected at least 1"),
        ({"task": "Hopper-v4", "radius": -1.0}, r"^radius: expected a positive number"),
        ({"task": "Hopper-v4", "radios": 1.0}, r"^radios: unknown key"),
        ({"task": "Hopper-v4", "method": "cna"}, r"method: expected one of"),
        ({"task": "Hopper-v4", "popsize": 3}, r"popsize: expected an even number"),
        ({"task": "Nothing-v4"}, "'Nothing-v4' is no environment that gymnasium can make"),
    ],
)
def test_bad_input_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rl.train(**settings)


def test_folders_that_are_no_training_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no experiment\.json in it"):
        rl.resume(tmp_path)
    (tmp_path / "experiment.json").write_text("{}")
    with pytest.raises(InputError, match=r"expected an experiment in experiment\.json"):
        rl.resume(tmp_path)


def test_ctrl_c_on_the_command_line_and_resume(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "cones", "train", "Hopper-v4", "--timesteps", "1e7", "--out", "run"]
    arguments += ["--popsize", "10", "--hidden", "4", "--threads", "1"]
    with subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "timesteps" in line:  # at work
                break
        time.sleep(1.0)
        os.kill(process.pid, signal.SIGINT)
        out = process.stderr.read()
        assert process.wait(60) == 130
    assert "`cones resume run` goes on from here" in out
    record = read_record(next((tmp_path / "run" / "runs").glob("*.json.gz")))
    spent = record.columns["timesteps"][-1]
    assert not record.finished
    budget = int(spent) + 3000
    done = subprocess.run(
        [sys.executable, "-m", "cones", "resume", "run", "--timesteps", str(budget), "--quiet"],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert "reward of the mean policy" in done.stdout
    ours = rl.load_policy(tmp_path / "run")
    straight = rl.train("Hopper-v4", timesteps=budget, hidden=4, popsize=10)
    np.testing.assert_array_equal(ours.parameters, straight.policy.parameters)


def test_a_longer_budget_for_a_run_that_has_done_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Training, candidates: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Training, "returns", interrupt)
        with pytest.raises(KeyboardInterrupt):
            rl.train("CartPole-v1", timesteps=100, popsize=4, threads=1, out=tmp_path)
    assert rl.resume(tmp_path, timesteps=150, threads=1).timesteps >= 150


def test_a_longer_budget_that_cannot_be_had_changes_nothing(tmp_path: Path) -> None:
    rl.train("CartPole-v1", timesteps=60, popsize=4, threads=1, out=tmp_path)
    before = (tmp_path / "experiment.json").read_text()
    (checkpoint,) = (tmp_path / "runs").glob("*.ckpt")
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    with pytest.raises(CheckpointError):
        rl.resume(tmp_path, timesteps=900, threads=1)
    assert (tmp_path / "experiment.json").read_text() == before


def test_the_record_of_a_smaller_budget_is_of_the_same_run(tmp_path: Path) -> None:
    """As it is between `resume` with another budget and the first record that it writes."""
    rl.train("CartPole-v1", timesteps=60, popsize=4, threads=1, out=tmp_path)
    path = tmp_path / "experiment.json"
    path.write_text(path.read_text().replace('"timesteps": 60', '"timesteps": 90'))
    assert summarise(Folder(tmp_path)).groups[0].budget == 90


def test_it_goes_on_after_a_fault_that_was_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"timesteps": 400, "popsize": 4, "threads": 1, "hidden": []}
    with monkeypatch.context() as patch:
        patch.setattr("cones.rl.gymnasium_episode.played", lambda *_: iter([([0.0, 0.0], float("nan"), True)]))
        assert rl.train("environments:PointBox-v0", out=tmp_path, **settings).stop == "no_finite_loss"
    assert rl.resume(tmp_path, threads=1).stop == "timesteps"


def test_a_run_whose_checkpoint_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    rl.train("environments:PointBox-v0", timesteps=400, popsize=4, threads=1, hidden=[], out=tmp_path)
    (checkpoint,) = (tmp_path / "runs").glob("*.ckpt")
    checkpoint.unlink()
    before = {path.name: path.read_bytes() for path in (tmp_path / "runs").iterdir()}
    with pytest.raises(InputError, match=f"timesteps are recorded, but the checkpoint {checkpoint.name} is not there"):
        rl.resume(tmp_path, timesteps=800, threads=1)
    assert {path.name: path.read_bytes() for path in (tmp_path / "runs").iterdir()} == before


def test_the_callback_can_stop_it() -> None:
    def stop(training: Training) -> None:
        raise StopIteration

    trained = rl.train("CartPole-v1", timesteps=10**6, popsize=4, threads=1, callback=stop)
    assert trained.stop == "callback"
    assert 0 < trained.timesteps < 10**5


def test_a_script_without_a_guard_is_told_of_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("from cones import rl\nrl.train('CartPole-v1', timesteps=80, popsize=4, threads=2)\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "StateError: workers: a worker process could not start" in done.stderr
