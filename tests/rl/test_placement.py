"""Training gives the same numbers on threads, in processes, on Dask, on Ray and with an evaluator of one's own."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import killing, worker_processes
from own_evaluators import Reversed

from cones import InputError, rl
from cones.cli import main
from cones.records import read_record

TASKS = {"mujoco": "Hopper-v4", "gymnasium": "CartPole-v1"}
SETTINGS: dict[str, Any] = {"timesteps": 600, "popsize": 6, "hidden": [3], "evaluate_every": 2, "rng": 1}

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module", params=list(TASKS))
def straight(request: pytest.FixtureRequest) -> tuple[str, Any]:
    task = TASKS[request.param]
    return task, rl.train(task, threads=1, **SETTINGS)


def assert_same(trained: Any, expected: Any) -> None:
    np.testing.assert_array_equal(trained.policy.parameters, expected.policy.parameters)
    np.testing.assert_array_equal(trained.policy.scale, expected.policy.scale)
    for name, column in expected.history.items():
        if "seconds" not in name:
            np.testing.assert_array_equal(trained.history[name], column, err_msg=name)


@pytest.mark.parametrize(
    "settings",
    [
        {"threads": 2},
        {"threads": 2, "timeout": 60.0, "retries": 1},
        {"workers": 1},
        {"workers": 2},
        {"workers": Reversed},
        {"workers": "own_evaluators:Reversed"},
    ],
    ids=str,
)
def test_places_on_this_machine(straight: tuple[str, Any], settings: dict[str, Any]) -> None:
    task, expected = straight
    assert_same(rl.train(task, **settings, **SETTINGS), expected)


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_of_the_caller(straight: tuple[str, Any], kind: Any) -> None:
    task, expected = straight
    with kind(2) as executor:
        assert_same(rl.train(task, workers=executor, **SETTINGS), expected)


def test_killed_processes_are_replaced_and_their_episodes_repeated() -> None:
    settings = {**SETTINGS, "timesteps": 20_000}
    expected = rl.train("CartPole-v1", threads=1, **settings)
    with killing(worker_processes, [0.0, 1.0, 0.3]) as killed:  # the first while it starts
        assert_same(rl.train("CartPole-v1", threads=2, **settings), expected)
    assert killed


def test_dask(straight: tuple[str, Any], tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    task, expected = straight
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True, silence_logs=50
    ) as cluster:
        address = cluster.scheduler_address
        assert_same(rl.train(task, workers=address, retries=1, out=tmp_path / "dask", **SETTINGS), expected)
        arguments = ["train", task, "--workers", address, "--retries", "1", "--out", str(tmp_path / "cli"), "--quiet"]
        arguments += ["--timesteps", "600", "--popsize", "6", "--hidden", "3", "--evaluate-every", "2", "--seed", "1"]
        assert main(arguments) == 0
        with pytest.raises(InputError, match="holds records of another specification"):
            rl.train(task, workers=address, out=tmp_path / "dask", **{**SETTINGS, "rng": 2})
    one, other = (read_record(next((tmp_path / name / "runs").glob("*.json.gz"))) for name in ("dask", "cli"))
    assert one.run == other.run
    for name, column in one.columns.items():
        if "seconds" not in name:
            np.testing.assert_array_equal(column, other.columns[name])


SCRIPT = """
import sys
import numpy as np
from cones import rl

if __name__ == "__main__":
    settings = dict(timesteps=600, popsize=6, hidden=[3], evaluate_every=2, rng=1)
    for task in ("Hopper-v4", "CartPole-v1"):
        expected = rl.train(task, threads=1, **settings)
        trained = rl.train(task, workers="ray", timeout=60.0, retries=1, **settings)
        np.testing.assert_array_equal(trained.policy.parameters, expected.policy.parameters)
        np.testing.assert_array_equal(trained.history["mean_reward"], expected.history["mean_reward"])
        print("same", task, flush=True)
"""


def test_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=400)
    assert done.stdout.split() == ["same", "Hopper-v4", "same", "CartPole-v1"], done.stderr[-3000:]


def test_an_environment_that_fails_now_and_then_is_trained_on() -> None:
    """Episodes that raise cost their candidate, and say why; the others count."""
    trained = rl.train(
        "environments:PointCrash-v0",
        timesteps=300,
        popsize=8,
        hidden=[],
        threads=2,
        retries=0,
        evaluate_every=100,
        common_starts=False,
    )
    assert trained.stop == "timesteps"
    assert "ZeroDivisionError: boom" in trained.problem
    assert np.isfinite(trained.history["population_reward"]).any()
    assert trained.history["failures"].sum() > 0


def test_what_is_wrong_with_workers_is_named() -> None:
    for settings, message in (
        ({"workers": "nowhere"}, "workers: expected 'ray', an address"),
        ({"workers": "own_evaluators:Nothing"}, "workers: .*Nothing"),
        ({"workers": "own_evaluators:np"}, "workers: expected 'own_evaluators:np' to be a class of Evaluator"),
        ({"workers": 2, "threads": 2}, "threads: expected without workers"),
        ({"timeout": -1.0}, "timeout: expected a positive number"),
        ({"seed": 1}, "seed: unknown key"),
    ):
        with pytest.raises(InputError, match=message):
            rl.train("CartPole-v1", timesteps=100, popsize=4, **settings)
