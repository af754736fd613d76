from __future__ import annotations

from copy import deepcopy
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cones
from cones import InputError
from cones.experiments.session import session_of
from cones.experiments.spec import Experiment
from cones.experiments.toml import experiment_from, read_experiment
from cones.records import Folder, execute, read_record
from cones.restarts import Bipop, Growing

GOOD: dict[str, Any] = {
    "name": "small",
    "seeds": 2,
    "maxfev": 400,
    "problems": [{"problem": "sphere", "dim": 4}, {"problem": "sphere", "dim": 4, "shift": 3.0, "rotation": 1}],
    "methods": [
        {"method": "cones", "radius": 2.0, "learning_rate": 0.05},
        {"method": "nes", "label": "NES with SGD", "optimizer": "sgd", "learning_rate": 0.5, "momentum": 0.5},
        {"method": "cma", "seeds": [7], "diagonal": True, "maxfev": 80, "note": "reduced budget"},
    ],
}


def test_runs_are_all_combinations_with_the_first_seeds_first() -> None:
    runs = experiment_from(GOOD).runs()
    assert len(runs) == 2 * (2 + 2 + 1)
    assert len({run.name for run in runs}) == len(runs)
    assert [run.seed for run in runs if run.method.label == "CMA"] == [7, 7]
    assert [run.seed for run in runs if run.method.label == "CoNES"] == [0, 0, 1, 1]
    assert runs[0].name == "sphere-4-d-cones-seed-0"
    assert runs[3].name == "sphere-+3-rotated-1-4-d-cones-seed-0"


def test_settings_reach_the_strategy() -> None:
    experiment = experiment_from(GOOD)
    by_label = {run.method.label: session_of(run).strategy for run in experiment.runs()}
    assert by_label["CoNES"].algorithm.step.radius == 2.0
    assert by_label["CoNES"].algorithm.optimizer == cones.Adam(0.05)
    assert by_label["NES with SGD"].algorithm.optimizer == cones.SGD(0.5, momentum=0.5)
    assert by_label["CMA"].options["CMA_diagonal"] is True
    assert {c.name for c in by_label["CoNES"].criteria} == {"maxfev"}


def test_a_problem_may_have_a_budget_of_its_own() -> None:
    problems = [{"problem": "sphere", "dim": 4}, {"problem": "sphere", "dim": 5, "maxfev": 600}]
    experiment = experiment_from({**GOOD, "problems": problems})
    budgets = {(run.on.dim, run.method.label): run.method.maxfev for run in experiment.runs() if run.seed in (0, 7)}
    assert budgets == {
        **{(4, "CoNES"): 400, (4, "NES with SGD"): 400, (4, "CMA"): 80},
        **{(5, label): 600 for label in ("CoNES", "NES with SGD", "CMA")},
    }
    assert {run.specification()["maxfev"] for run in experiment.runs() if run.on.dim == 5} == {600}
    assert Experiment.from_specification(experiment.specification()) == experiment


def test_restarts_keep_the_tolerances_they_need() -> None:
    data = {"name": "t", "maxfev": 5000, "problems": [{"problem": "sphere", "dim": 3}]}
    (run,) = experiment_from({**data, "methods": [{"method": "cones", "restarts": 2}]}).runs()
    assert {c.name for c in session_of(run).strategy.criteria} == {"xtol", "ftol", "maxfev", "stagnation"}
    for value, policy in (
        ("auto", Bipop()),
        ("growing,limit=4", Growing(4)),
        ({"name": "bipop", "limit": 2}, Bipop(2)),
    ):
        (run,) = experiment_from({**data, "methods": [{"method": "cones", "restarts": value}]}).runs()
        assert session_of(run).strategy.restarts == policy


def test_specification_is_the_experiment() -> None:
    experiment = experiment_from(GOOD)
    assert Experiment.from_specification(experiment.specification()) == experiment
    other = deepcopy(GOOD)
    other["methods"][0]["radius"] = 3.0
    assert experiment_from(other).specification() != experiment.specification()


@pytest.mark.parametrize("name", ["functions", "functions-quick"])
def test_declared_experiments_are_the_papers(name: str) -> None:
    experiment = read_experiment(str(files("cones.experiments").joinpath(f"declared/{name}.toml")))
    assert [(p.problem, p.dim) for p in experiment.problems] == [
        (problem, 5000) for problem in ("sphere", "rosenbrock", "rastrigin", "lunacek")
    ]
    methods = {method.label: method for method in experiment.methods}
    assert list(methods) == ["ES", "NES", "CoNES", "CMA"]
    for label in ("ES", "NES", "CoNES"):
        settings = methods[label].settings
        assert (settings["popsize"], settings["learning_rate"], settings["variance_learning_rate"]) == (100, 0.1, 0.1)
    assert methods["CoNES"].settings["radius"] == 100.0
    assert (experiment.mean, experiment.sigma) == (0.0, 1.0)
    assert len(methods["ES"].seeds) == (10 if name == "functions" else 3)
    assert methods["ES"].maxfev == (100_000 if name == "functions" else 30_000)


def test_the_experiments_on_adaptive_radii_declare_what_the_docs_say() -> None:
    def declared(name: str) -> Experiment:
        return read_experiment(str(files("cones.experiments").joinpath(f"declared/{name}.toml")))

    full = declared("adaptive")
    assert len(full.runs()) == 16 * 6 * 5
    assert {problem.shift for problem in full.problems} == {None, 3.0}
    assert full.methods[0].settings == {"radius": "adaptive"}  # nothing is set
    robust = declared("robustness")
    assert {problem.relative_noise for problem in robust.problems} == {None, 0.1, 1.0}
    sigmas = {run.on.label: run.sigma for run in robust.runs()}
    assert sigmas["Sphere +3, 1000-D"] == sigmas["Sphere +3 noise 10%, 1000-D"] == 1.0
    assert sigmas["Sphere +3 sigma 0.1, 1000-D"] == 0.1
    assert Experiment.from_specification(robust.specification()) == robust


def change(*path: Any, value: Any) -> dict[str, Any]:
    data = deepcopy(GOOD)
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (change("sedes", value=3), "sedes: unknown key; expected one of name, title, seeds"),
        (change("methods", 0, "radios", value=3), r"methods\[0\].radios: unknown key; expected one of .*radius"),
        (change("methods", 1, "radius", value=3), r"methods\[1\].radius: unknown key"),
        (change("problems", 0, "problem", value="spere"), r"problems\[0\].problem: expected one of 'sphere'"),
        (change("methods", 0, "method", value="cone"), r"methods\[0\].method: expected one of 'es'"),
        (change("maxfev", value=-5), "maxfev: expected at least 1, got -5"),
        (change("methods", 2, "maxfev", value=3), "maxfev: expected at least popsize = 8, got 3"),
        (change("problems", 0, "maxfev", value=0), r"problems\[0\].maxfev: expected at least 1, got 0"),
        (change("problems", 0, "maxfev", value=3), "maxfev: expected at least popsize = .*, got 3"),
        (change("seeds", value=0), "seeds: expected at least 1, got 0"),
        (change("seeds", value=[1, 1]), "seeds: expected different seeds"),
        (change("problems", value=[]), r"problems: expected at least one \[\[problems\]\] table"),
        (change("problems", 0, "dim", value="many"), r"problems\[0\].dim: expected an integer, got 'many'"),
        (change("methods", 1, "label", value="CoNES"), "methods: expected a label for each"),
        (change("methods", 0, "radius", value=-1.0), "radius: expected a positive number, got -1.0"),
        (change("methods", 0, "optimizer", value="lion"), "optimizer: expected one of 'adam', 'direct', 'sgd'"),
        (change("methods", 0, "momentum", value=0.9), r"methods\[0\].optimizer.momentum: unknown setting of Adam"),
        (
            change("methods", 0, "antithetic", value="false"),
            r"methods\[0\].antithetic: expected True, False or 'auto', got 'false'",
        ),
        (change("methods", 2, "diagonal", value="no"), r"methods\[2\].diagonal: expected True or False"),
        (change("methods", 2, "options", value=3), r"methods\[2\].options: expected a mapping"),
        (change("methods", 0, "sigma", value=0.0), r"methods\[0\].sigma: expected a positive number, got 0.0"),
        (change("methods", 0, value=3), r"methods\[0\]: expected a table, got 3"),
        (change("methods", 1, "label", value="cones"), "methods: expected a label for each"),
        (change("methods", 1, "label", value="CoNES!"), "expected runs with different names"),
        (change("problems", 1, value={"problem": "sphere", "dim": 4}), "expected runs with different names"),
        (
            change("problems", 1, value={"problem": "lunacek", "dim": 1}),
            r"problems\[1\].dim: expected at least 2, got 1",
        ),
        (change("name", value=".."), "name: expected letters, digits"),
        (change("start", value=3), "start: expected a table, got 3"),
        (change("start", value={"sigma": 0.0}), "start.sigma: expected a positive number"),
        ({"name": "x"}, "maxfev: missing required key"),
    ],
)
def test_mistakes_are_named(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        experiment_from(data)


def test_a_method_may_have_its_own_start_deviation() -> None:
    methods = [{"method": "cones"}, {"method": "ars", "sigma": 0.03}]
    problems = [{"problem": "sphere", "dim": 4, "sigma": 2.0}]
    on_function = experiment_from({"name": "a", "maxfev": 100, "problems": problems, "methods": methods})
    on_task = experiment_from(
        {"name": "a", "tasks": [{"task": "CartPole-v1", "hidden": [], "sigma": 2.0}], "methods": methods}
    )
    for runs in (on_function.runs(), on_task.runs()):
        started = [session_of(run).strategy.state.belief.standard_deviations() for run in runs]
        np.testing.assert_allclose([deviations[0] for deviations in started], [2.0, 0.03])


def test_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: expected an experiment file \(No such file"):
        read_experiment(tmp_path / "none.toml")
    path = tmp_path / "bad.toml"
    path.write_text("name = ")
    with pytest.raises(InputError, match=r"bad\.toml: expected TOML"):
        read_experiment(path)
    path.write_text('name = "x"\nmaxfev = 10\nproblms = []\n')
    with pytest.raises(InputError, match=r"bad\.toml: problms: unknown key"):
        read_experiment(path)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "a = " + "{a = " * 10_000,
        "a." * 50_000 + "a = 1",
        "['b'." + '" " . ' * 30_000 + "a]",
        "a = 1\n" * 200_000,
    ],
    ids=["arrays", "tables", "dotted key", "quoted keys", "large"],
)
def test_files_that_nest_or_grow_without_bound_are_refused_at_once(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(InputError, match="expected TOML"):
        read_experiment(path)


def test_numbers_and_prose_are_no_long_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("seeds = 1\nlist = [" + "1.5, " * 500 + "]\nnote = '" + "e.g. this. " * 20 + "'\n")
    with pytest.raises(InputError, match="list: unknown key"):
        read_experiment(path)


def test_a_share_of_corrupted_losses_is_declared_like_noise() -> None:
    problems = [{"problem": "sphere", "dim": 3, "corrupted": 0.2}]
    experiment = experiment_from({**GOOD, "problems": problems})
    (problem,) = experiment.problems
    assert problem.label == "Sphere 20% corrupted, 3-D"
    assert problem.make().name == "sphere 20% corrupted"
    assert Experiment.from_specification(experiment.specification()) == experiment
    with pytest.raises(InputError, match=r"problems\[0\].corrupted: expected a number in \[0, 1\), got 1.5"):
        experiment_from({**GOOD, "problems": [{**problems[0], "corrupted": 1.5}]})


def test_the_loss_at_the_mean_is_not_corrupted(tmp_path: Path) -> None:
    problems = [{"problem": "sphere", "dim": 3, "corrupted": 0.9}]
    experiment, place, means = experiment_from({**GOOD, "problems": problems}), Folder(tmp_path / "results"), []
    place.claim(experiment.specification())
    run = next(iter(experiment.runs()))
    execute(session_of, run, place, lambda session: means.append(session.strategy.state.belief.mean))
    recorded = read_record(next((tmp_path / "results" / "runs").glob("*.json.gz"))).columns["loss_at_mean"]
    expected = [float(mean @ mean) for mean in means[: len(recorded)]]
    np.testing.assert_allclose(np.asarray(recorded, float), expected, rtol=1e-6)
