"""Experiments on tasks: curves whose seeds count differently, the way to the target, Table 1, the report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import BROWSER, probe

from cones import InputError
from cones.cli import main
from cones.experiments.figures import draw_figures
from cones.experiments.report import write_report
from cones.experiments.runner import run_experiment
from cones.experiments.spec import Experiment
from cones.experiments.summary import Group, Summary, summarise
from cones.experiments.tables import end_table, time_table
from cones.experiments.toml import experiment_from, read_experiment
from cones.records import Folder, Record
from cones.rl.training import TrainingPause

NAN = float("nan")


def record(seed: int, timesteps: list[float], rewards: list[float], finished: bool = True) -> Record:
    ones = np.ones(len(timesteps))
    columns = {
        "evaluations": 40.0 * np.arange(1, len(timesteps) + 1),
        "timesteps": np.array(timesteps),
        "mean_reward": np.array(rewards),
        "population_reward": np.array(rewards),
        "evaluation_seconds": ones,
        "optimizer_seconds": 0.1 * ones,
    }
    return Record({"seed": seed}, finished, "timesteps" if finished else "", {}, columns)


def group(*records: Record, method: str = "CoNES", target: float | None = 340.0) -> Group:
    return Group("Swimmer-v4", method, "", len(records), "timesteps", 1000, list(records), target)


def test_curves_of_seeds_that_count_differently_are_averaged_at_the_same_timesteps() -> None:
    one = record(0, [100.0, 200.0, 300.0, 400.0], [NAN, 200.0, NAN, 400.0])
    two = record(1, [150.0, 250.0, 350.0], [100.0, 200.0, 300.0])
    x, mean, deviation = group(one, two).curve("mean_reward")
    assert (x[0], x[-1]) == (200.0, 350.0)
    np.testing.assert_allclose(mean, (x + (x - 50.0)) / 2.0)
    np.testing.assert_allclose(deviation, 25.0)


def test_a_method_that_does_not_fit_the_policy_is_named_before_anything_runs() -> None:
    task, method = {"task": "HalfCheetah-v4", "hidden": []}, {"method": "more"}  # 108 weights
    with pytest.raises(InputError, match=r"methods\[0\]\.x0: expected at most 64 coordinates for MORE's quadratic"):
        experiment_from({"name": "a", "timesteps": 10, "tasks": [task], "methods": [method]})


def test_the_way_to_the_target() -> None:
    one = record(0, [100.0, 200.0, 300.0, 400.0], [NAN, 200.0, NAN, 400.0])
    two = record(1, [100.0, 200.0, 300.0, 400.0], [NAN, 320.0, NAN, 360.0])
    average, each = group(one, two).to_target()
    assert each == [pytest.approx(340.0), pytest.approx(300.0)]
    # (260, 380) at (200, 400): 340 at two thirds.
    assert average == pytest.approx(200.0 + 200.0 * (340.0 - 260.0) / 120.0)
    never = group(one, two, target=1000.0).to_target()
    assert np.isnan(never[0])
    assert np.isnan(never[1]).all()
    at_once = group(one, two, target=100.0).to_target()
    assert at_once == (200.0, [200.0, 200.0])


def test_table_one_stands_beside_the_paper_s() -> None:
    fast = group(record(0, [100.0, 200.0], [300.0, 380.0]))
    slow = group(record(0, [100.0, 400.0], [300.0, 340.0]), record(1, [100.0, 400.0], [300.0, 310.0]), method="NES")
    other = group(record(0, [100.0], [NAN]), method="ES")
    summary = Summary({"name": "rl", "tasks": [{}]}, [], [other, slow, fast])
    table = end_table(summary)
    assert table.best == [False, False, True]
    cells = {row[1]: row for row in table.rows}
    assert cells["CoNES"][-3:] == ["150", "150, 1 of 1 seeds", "3.01e+06"]
    assert cells["NES"][-3:] == ["not in 400", "400, 1 of 2 seeds", "3.6e+06"]
    assert cells["ES"][-3:] == ["not in 100", "0 of 1 seeds", "1.99e+07"]
    assert cells["ES"][4] == "-"
    assert [row[0] for row in time_table(summary).rows] == ["ES", "NES", "CoNES"]
    hopper = Group("Hopper-v4", "CMA", "", 1, "timesteps", 1, [record(0, [1.0], [1.0])], 1400.0)
    assert end_table(Summary({"tasks": [{}]}, [], [hopper])).rows[0][-1] == "not in 5e7"


def test_without_a_target_there_are_no_columns_about_it() -> None:
    table = end_table(Summary({"tasks": [{}]}, [], [group(record(0, [100.0], [300.0]), target=None)]))
    assert table.head[-1] == "mean reward of the population"
    assert table.rows[0][-1] == "300"


def test_seeds_that_were_left_at_the_target_have_no_average_beyond() -> None:
    quick, slow = record(0, [100.0, 200.0], [300.0, 350.0]), record(1, [100.0, 400.0], [300.0, 345.0])
    row = end_table(Summary({"tasks": [{}]}, [], [group(quick, slow)])).rows[0]
    assert row[-3].startswith("-")
    assert row[-2].endswith("2 of 2 seeds")


def test_seeds_without_a_timestep_in_common_have_no_mean() -> None:
    apart = group(record(0, [100.0], [300.0]), record(1, [200.0], [100.0]))
    x, mean, deviation = apart.curve("mean_reward")
    assert x.size == mean.size == deviation.size == 0
    assert end_table(Summary({"tasks": [{}]}, [], [apart])).rows[0][4] == "-"


def test_methods_come_in_the_order_of_the_experiment() -> None:
    groups = [group(record(0, [1.0], [1.0]), method=name) for name in ("NES", "ES")]
    declared = {"methods": [{"label": name} for name in ("ES", "NES", "CMA")], "tasks": [{}]}
    assert Summary(declared, [], groups).methods == ["ES", "NES"]


def test_an_environment_that_is_not_there_is_found_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text('name = "x"\ntimesteps = 10\n[[tasks]]\ntask = "Swimer-v4"\n[[methods]]\nmethod = "es"\n')
    assert main(["run", str(spec), "--out", str(tmp_path / "out")]) == 2
    assert "tasks[0].task: 'Swimer-v4' is no environment" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    outcome = run_experiment(small(), folder, workers=2)
    assert outcome.finished == 4
    return folder


def small(**more: Any) -> Experiment:
    task = {"task": "Hopper-v4", "timesteps": 2000, "hidden": 3, "evaluate_every": 1, "evaluation_episodes": 1}
    methods = [{"method": name, "popsize": 10} for name in ("nes", "cones")]
    return experiment_from({"name": "small", "seeds": 2, "tasks": [{**task, **more}], "methods": methods})


def test_an_experiment_on_tasks_from_runs_to_report(results: Path, tmp_path: Path) -> None:
    summary = summarise(Folder(results))
    assert summary.notes == []
    assert [figure.name for figure in draw_figures(summary, tmp_path) if figure.suffix == ".png"] == [
        "reward.png",
        "population.png",
    ]
    page = write_report(summary, tmp_path / "report.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))
    assert [chart["x"] for chart in data["charts"]] == ["timesteps", "timesteps"]
    assert data["charts"][0]["target"] == 1400.0
    for line, group in zip(data["charts"][0]["lines"], summary.groups, strict=True):
        for (x, y), record in zip(line["each"], group.records, strict=True):  # the seeds, as they were recorded
            reward, steps = record.columns["mean_reward"], record.columns["timesteps"]
            np.testing.assert_allclose(y, reward[~np.isnan(reward)], rtol=1e-5)
            np.testing.assert_allclose(x, steps[~np.isnan(reward)], rtol=1e-5)
    assert "<h2>Reward of the mean policy</h2>" in page
    if BROWSER is not None:
        out = probe(tmp_path / "report.html", 1000)
        assert out["charts"] == 2
        assert out["before"] == 4
        assert out["hidden"] == 2
        assert "timesteps" in out["read"]


def test_runs_can_be_left_for_now_and_taken_up(results: Path, tmp_path: Path) -> None:
    paused = run_experiment(small(), tmp_path, pause=TrainingPause(1.0), workers=2)
    assert (paused.finished, paused.paused) == (0, 4)
    notes = summarise(Folder(tmp_path)).notes
    assert len(notes) == 2
    assert "of 2000 timesteps" in notes[0]
    rest = run_experiment(small(), tmp_path, workers=2)
    assert (rest.finished, rest.paused) == (4, 0)
    straight, pieces = (Folder(path).records() for path in (results, tmp_path))
    for one, other in zip(straight, pieces, strict=True):
        np.testing.assert_array_equal(one.columns["mean_reward"], other.columns["mean_reward"])
        np.testing.assert_array_equal(one.columns["timesteps"], other.columns["timesteps"])


def test_declared_experiments_are_the_paper_s() -> None:
    folder = Path(str(experiment_from.__code__.co_filename)).parent / "declared"
    full = read_experiment(folder / "rl.toml")
    assert len(full.runs()) == 200
    assert {task.task: task.timesteps for task in full.tasks} == {
        "HalfCheetah-v4": 5e7,
        "Walker2d-v4": 5e7,
        "Hopper-v4": 5e7,
        "Swimmer-v4": 2e7,
    }
    assert [method.label for method in full.methods] == ["ES", "NES", "CMA", "CoNES", "CoNES adaptive"]
    assert full.methods[-1].settings == {"radius": "adaptive"}  # nothing is set per task
    sweep = read_experiment(folder / "rl-sweep.toml")
    radii = [method.settings["radius"] for method in sweep.methods]
    np.testing.assert_allclose(np.square(radii), [0.1, 1.0, 10.0, 100.0, 1000.0])
    assert len({run.name for run in sweep.runs()}) == 60
    assert Experiment.from_specification(sweep.specification()) == sweep
    ten = read_experiment(folder / "rl-ten.toml")
    assert len(ten.tasks) == 10
    for task in ten.tasks:  # nothing is set per task
        assert task == replace(ten.tasks[0], task=task.task, target=task.target)
    assert ten.methods[0].settings == {}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"problems": [{"problem": "sphere", "dim": 3}]}, "problems: expected tasks alone"),
        ({"maxfev": 5}, "maxfev: expected tasks alone"),
        ({"start": {}}, "start: expected tasks alone"),
        ({"tasks": [{"task": "Hopper-v4", "layers": 3}]}, r"tasks\[0\]\.layers: unknown key"),
        ({"tasks": [{"timesteps": 3}]}, r"tasks\[0\]\.task: expected the id"),
        ({"methods": [{"method": "es", "maxfev": 3}]}, r"methods\[0\]\.maxfev: unknown key"),
        ({"tasks": []}, r"tasks: expected at least one \[\[tasks\]\]"),
    ],
)
def test_bad_specifications_are_named(more: dict[str, Any], message: str) -> None:
    good = {"name": "t", "tasks": [{"task": "Hopper-v4"}], "methods": [{"method": "es"}]}
    with pytest.raises(InputError, match=message):
        experiment_from({**good, **more})


def test_reproduce_in_pieces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "rl", "--full", "--env", "hopper-v4", "--methods", "cones", "--seeds", "1"]
    assert main([*arguments, "--timesteps", "1", "--out", str(tmp_path)]) == 0
    output = capsys.readouterr()
    assert "1 run, results in" in output.err
    assert "paused" in output.err
    assert "CoNES on Hopper-v4: 1 of 10 seeds; stopped at" in output.out


def test_an_experiment_file_in_pieces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(
        'name = "mine"\nseeds = 2\ntimesteps = 100_000\n[[tasks]]\ntask = "CartPole"\ntarget = 5.0\n[[tasks]]\n'
        'task = "Acrobot-v1"\n[[methods]]\nmethod = "cones"\n'
    )
    arguments = ["run", str(spec), "--env", "cartpole-v1", "--seeds", "1", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--until-target"]) == 0
    output = capsys.readouterr()
    assert "1 run, results in" in output.err
    assert "CoNES on CartPole-v1: 1 of 2 seeds; stopped at" in output.out  # any policy is worth more than 5
    assert main(["run", str(spec), "--env", "Nothing-v0"]) == 2
    assert "--env: expected some of CartPole-v1, Acrobot-v1" in capsys.readouterr().err
