"""Asynchronous training: budgets, workers, killed runs and replays."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cones import CheckpointError, InputError, rl
from cones.experiments.toml import experiment_from
from cones.records import Folder, execute, read_record
from cones.rl.spec import TrainingRun
from cones.rl.training import Training, TrainingPause
from cones.run.journal import events_of

SETTINGS: dict[str, Any] = {"hidden": [4], "popsize": 6, "evaluate_every": 4, "evaluation_episodes": 2, "rng": 0}


def train(task: str = "Hopper-v5", timesteps: float = 3000, **more: Any) -> Any:
    return rl.train(task, timesteps=timesteps, asynchronous=True, **{**SETTINGS, **more})


def same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one.policy.parameters, other.policy.parameters)
    np.testing.assert_array_equal(one.policy.shift, other.policy.shift)
    assert (one.timesteps, one.reward) == (other.timesteps, other.reward)
    for name in ("timesteps", "population_reward", "mean_reward", "spread"):
        np.testing.assert_array_equal(one.history[name], other.history[name])


def test_one_worker_is_reproducible_and_spends_the_budget() -> None:
    first, again = train(threads=1), train(threads=1)
    same(first, again)
    assert first.stop == "timesteps"
    assert first.timesteps >= 3000
    assert np.all(np.diff(first.history["timesteps"]) > 0)
    assert not np.isnan(first.reward)


@pytest.mark.parametrize("episodes", [1, 3])
def test_many_workers_train_and_the_journal_replays_the_run(tmp_path: Path, episodes: int) -> None:
    with ThreadPoolExecutor(3) as pool:
        done = train(workers=pool, out=tmp_path, episodes=episodes)
    same(rl.replay(tmp_path), done)
    journal = next((tmp_path / "runs").glob("*.journal"))
    kinds = [event[0] for event in events_of(journal)]
    # A warm-up of the task, whose observations nobody knew, and then one for each candidate.
    assert kinds.count("seen") == 1 + sum(len(event[1]) for event in events_of(journal) if event[0] == "tell")


def test_early_ends_and_environments_in_processes(tmp_path: Path) -> None:
    done = train("Reacher-v5", 12_000, threads=2, early_end=True, popsize=20, out=tmp_path / "a")
    assert done.history["ended"].sum() > 0
    same(rl.replay(tmp_path / "a"), done)
    other = train("CartPole-v1", 2000, threads=1, out=tmp_path / "b")
    same(rl.replay(tmp_path / "b"), other)


RUN = """
import sys
from concurrent.futures import ThreadPoolExecutor
from cones import rl
if __name__ == "__main__":
    with ThreadPoolExecutor(3) as pool:
        rl.train("Hopper-v5", timesteps=1e9, asynchronous=True, out=sys.argv[1], workers=pool, hidden=[4], popsize=6,
                 evaluate_every=4, evaluation_episodes=2, rng=0)
"""


def test_a_killed_run_goes_on_and_nothing_evaluated_is_lost(tmp_path: Path) -> None:
    script, folder = tmp_path / "run.py", tmp_path / "run"
    script.write_text(RUN)
    process = subprocess.Popen([sys.executable, str(script), str(folder)])
    try:
        deadline = time.monotonic() + 120
        while sum(path.read_bytes().count(b'"tell"') for path in (folder / "runs").glob("*.journal")) < 60:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    journal = next((folder / "runs").glob("*.journal"))
    before = journal.read_bytes()
    seen = [sum(content[1]["lengths"]) for kind, *content in events_of(journal) if kind == "seen"]
    done = rl.resume(folder, timesteps=sum(seen) + 2000, threads=1)
    assert journal.read_bytes().startswith(before[: before.rindex(b"\n") + 1])  # the journal goes on
    after = [sum(content[1]["lengths"]) for kind, *content in events_of(journal) if kind == "seen"]
    assert after[: len(seen)] == seen
    assert sum(seen) < done.timesteps <= sum(after)  # all that was seen counts
    same(rl.replay(folder), done)
    journal.write_bytes(before[:200])
    with pytest.raises(CheckpointError, match="events"):
        rl.resume(folder, timesteps=1e6)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="asynchronous: expected True or False, got 1"):
        rl.train("Hopper-v5", asynchronous=1)
    with pytest.raises(InputError, match="asynchronous: expected False with CMA"):
        rl.train("Hopper-v5", "cma", asynchronous=True)
    with pytest.raises(InputError, match="got MapEvaluator, which evaluates whole populations"):
        train(workers=map)


def test_a_run_by_populations_has_no_journal(tmp_path: Path) -> None:
    rl.train("Hopper-v5", timesteps=500, out=tmp_path, threads=1, **SETTINGS)
    assert not list((tmp_path / "runs").glob("*.journal"))
    with pytest.raises(InputError, match="expected an asynchronous run, got one by populations"):
        rl.replay(tmp_path)


def test_an_experiment_may_be_asynchronous_and_is_left_and_continued(tmp_path: Path) -> None:
    """Without a journal: what was out when it was left is asked for again."""
    task = {"task": "Hopper-v5", "timesteps": 3000, "hidden": 4, "evaluate_every": 3, "asynchronous": True}
    (run,) = experiment_from({"name": "t", "tasks": [task], "methods": [{"method": "cones", "popsize": 6}]}).runs()[:1]
    assert isinstance(run, TrainingRun)
    folder = Folder(tmp_path)
    folder.runs.mkdir(parents=True)
    assert not execute(Training, run, folder, paused=TrainingPause(timesteps=1000))
    before = read_record(folder.record_path(run)).columns["timesteps"]
    assert 1000 <= before[-1] < 3000
    assert execute(Training, run, folder)
    after = read_record(folder.record_path(run)).columns["timesteps"]
    np.testing.assert_array_equal(after[: len(before)], before)
    assert after[-1] >= 3000
