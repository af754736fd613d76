"""benchmarks.bbob: when targets are reached, what the records keep, and how a run is resumed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.bbob import methods
from benchmarks.bbob.__main__ import setting
from benchmarks.bbob.problems import Task, coco_problem, numbers, optimal_value, start
from benchmarks.bbob.records import Record, Run, header, read_records
from benchmarks.bbob.run import run_problem, run_suite
from benchmarks.bbob.targets import EXPONENTS, TARGETS, Counted, Finished

METHODS = [name for name in methods.METHODS if name not in ("random", "lmmaes", "pycma-constrained")]


def test_targets() -> None:
    assert len(TARGETS) == 51
    assert EXPONENTS[:3] == (2.0, 1.8, 1.6)
    assert TARGETS[0] == 100.0
    assert TARGETS[-1] == 1e-8


def test_each_target_is_noted_when_it_is_first_reached() -> None:
    fun = Counted(lambda x: 5.0 + x, optimum=5.0, budget=100)
    for x in (1000.0, 100.0, 200.0, 1.0, 50.0, 0.5):
        assert fun(x) == 5.0 + x
    # 100 is reached by the second evaluation, the nine below it, 10^1.8 to 10^0.2, and 1 by the fourth.
    assert fun.hits[:13] == [2, *[4] * 10, 6, None]
    assert fun.best == 0.5
    assert fun.evaluations == 6
    assert fun.left == 94


def test_a_violation_counts_as_precision() -> None:
    fun = Counted(lambda x: float(x[0]), 5.0, 100, lambda x: np.array([x[1], -1.0]))
    assert fun(np.array([1.0, 20.0])) == 1.0  # better than the optimum, and infeasible
    assert fun.best == 20.0
    fun(np.array([8.0, -1.0]))
    assert fun.best == 3.0


@pytest.mark.parametrize("method", ["cones", "pycma-constrained"])
def test_constrained_problems(method: str) -> None:
    pytest.importorskip("cocoex")
    if method != "cones":
        pytest.importorskip("cma")
    run = run_problem(method, {}, "bbob-constrained", 2, 1, 1, 300)
    assert run.error is None
    assert run.best < 1e-2
    assert run.hits[0] is not None


def test_the_last_target_ends_the_run() -> None:
    fun = Counted(lambda x: x, optimum=0.0, budget=100)
    fun(1.0)
    with pytest.raises(Finished):
        fun(1e-9)
    assert fun.hits == [1] * 11 + [2] * 40


def test_the_budget_ends_the_run_and_nothing_is_evaluated_after_it() -> None:
    calls: list[float] = []
    fun = Counted(lambda x: calls.append(x) or 1.0, optimum=0.0, budget=3)  # type: ignore[func-returns-value]
    for x in range(3):
        fun(x)
    with pytest.raises(Finished):
        fun(3)
    assert calls == [0, 1, 2]
    assert fun.evaluations == 3


def test_nan_reaches_nothing() -> None:
    fun = Counted(lambda x: math.nan, optimum=0.0, budget=3)
    fun(0.0)
    assert fun.hits == [None] * 51
    assert fun.best == math.inf


def test_the_start_is_that_of_the_problem_and_restarts_are_elsewhere() -> None:
    x0, seed = start(10, 3, 1)
    again, _ = start(10, 3, 1)
    other, _ = start(10, 3, 2)
    assert (x0 == again).all()
    assert not (x0 == other).any()
    assert np.abs(x0).max() < 4
    task = Task(Counted(np.sum, 0.0, 1), x0, 2.0, seed)
    assert (task.point() == x0).all()
    second, third = task.point(), task.point()
    assert not (second == x0).any()
    assert not (second == third).any()
    assert np.abs(second).max() < 4


@pytest.mark.parametrize("function", [1, 7, 13, 24])
def test_optimal_values_have_two_decimals(function: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of bbob are rounded by construction. Nothing is left in the working directory."""
    monkeypatch.chdir(tmp_path)
    with coco_problem("bbob", 5, function, 2) as problem:
        value = optimal_value(problem)
        assert value == pytest.approx(round(value, 2), abs=1e-12)
        rng = np.random.default_rng(0)
        assert all(problem(x) > value for x in rng.uniform(-5, 5, (200, 5)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_solves_the_sphere_and_is_counted(method: str) -> None:
    for package in methods.PACKAGES[method]:
        pytest.importorskip(package)
    run = run_problem(method, {}, "bbob", 10, 1, 1, 2000)
    assert run.error is None
    assert run.hits[-1] == run.evaluations
    assert run.best <= 1e-8
    assert 300 < run.evaluations < 5000


def test_a_method_with_restarts_spends_the_budget_and_no_more() -> None:
    run = run_problem("pycma", {}, "bbob", 2, 24, 1, 300)
    assert run.evaluations == 600
    assert run.hits[-1] is None


def test_an_interrupted_record_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def method(task: Task, settings: Any) -> None:
        seen.append(task.x0[0])
        if len(seen) == 3:
            raise KeyboardInterrupt
        task.fun(task.x0)

    monkeypatch.setitem(methods.METHODS, "random", method)
    problems = ("random", "bbob", 2, (1, 2), (1, 2), 10, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_suite(*problems)
    (record,) = read_records(tmp_path)
    assert set(record.runs) == {(1, 1), (2, 1)}  # all functions of an instance first
    finished = run_suite(*problems)
    assert len(seen) == 5
    assert seen[2] == seen[3]
    assert set(finished.runs) == {(1, 1), (2, 1), (1, 2), (2, 2)}
    (written,) = read_records(tmp_path)
    assert {key: run.hits for key, run in written.runs.items()} == {key: run.hits for key, run in finished.runs.items()}
    run_suite(*problems)
    assert len(seen) == 5
    run_suite(*problems, fresh=True)
    assert len(seen) == 9


def test_a_record_made_in_another_way_is_not_resumed(tmp_path: Path) -> None:
    run_suite("random", "bbob", 2, [1], [1], 5, tmp_path)
    with pytest.raises(ValueError, match="budget = 5 there, 6 now"):
        run_suite("random", "bbob", 2, [1], [1], 6, tmp_path)
    run_suite("random", "bbob", 2, [1], [1], 6, tmp_path, label="other")
    assert [record.label for record in read_records(tmp_path)] == ["other", "random"]
    assert [record.label for record in read_records(tmp_path, ["random"])] == ["random"]


def test_trouble_in_a_method_is_part_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def method(task: Task, settings: Any) -> None:
        task.fun(task.x0)
        raise FloatingPointError("overflow")

    monkeypatch.setitem(methods.METHODS, "random", method)
    run = run_problem("random", {}, "bbob", 2, 1, 1, 10)
    assert run.error == "FloatingPointError: overflow"
    assert run.evaluations == 1


def test_wrong_settings_are_not_a_result() -> None:
    with pytest.raises(TypeError, match="popsiz"):
        run_problem("cones", {"popsiz": 3}, "bbob", 2, 1, 1, 10)


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    run = Run([1, 2, *[None] * 49], 12.5, 40, 0.25, "ValueError: x")
    record = Record(header("cones", "a", {"popsize": 3}, "bbob", 2, 20, {"cma": "4"}), {(1, 2): run, (3, 1): run})
    record.write(tmp_path)
    assert Record.read(tmp_path / "bbob-002-a.json") == record
    assert len((tmp_path / "bbob-002-a.json").read_text().splitlines()) == 5  # one line per problem


def test_arguments_of_the_command_line() -> None:
    assert numbers("1,3,8-10") == [1, 3, 8, 9, 10]
    assert setting("popsize=3") == ("popsize", 3)
    assert setting("restarts=auto") == ("restarts", "auto")
