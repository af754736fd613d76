"""Run one method on problems of a suite and write a record after each problem."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.bbob.methods import METHODS, PACKAGES
from benchmarks.bbob.problems import SIGMA0, Task, coco_problem, optimal_value, start
from benchmarks.bbob.records import Record, Run, header
from benchmarks.bbob.targets import Counted, Finished

__all__ = ["run_problem", "run_suite", "versions_of"]


def run_suite(
    method: str,
    suite: str,
    dimension: int,
    functions: Iterable[int],
    instances: Iterable[int],
    budget: int,
    folder: Path,
    *,
    label: str | None = None,
    settings: Mapping[str, Any] | None = None,
    fresh: bool = False,
) -> Record:
    """Run a method on all the problems that its record does not have yet.

    All functions of the first instance come first, so that an unfinished record covers all functions.

    Args:
        budget: evaluations per dimension.
        folder: where the records are.
        label: name of the record; by default, that of the method.
        settings: further settings of the method.
        fresh: begin anew whatever is there.
    """
    settings = dict(settings or {})
    record = Record(header(method, label or method, settings, suite, dimension, budget, versions_of(method)))
    if not fresh:
        record = record.resumed(folder)
    functions = list(functions)
    for instance in instances:
        for function in functions:
            if (function, instance) in record.runs:
                continue
            run = run_problem(method, settings, suite, dimension, function, instance, budget)
            record.runs[function, instance] = run
            record.write(folder)
            print(
                f"{record.label} {suite} {dimension}-D f{function} i{instance}: {run.best:.2e} after "
                f"{run.evaluations} evaluations, {run.seconds:.1f} s{' ' + run.error if run.error else ''}",
                flush=True,
            )
    return record


def run_problem(
    method: str, settings: Mapping[str, Any], suite: str, dimension: int, function: int, instance: int, budget: int
) -> Run:
    """One method on one problem. An exception of the method ends its run and is part of the record."""
    x0, seed = start(dimension, function, instance)
    error = None
    with coco_problem(suite, dimension, function, instance) as problem:
        constrained = problem.number_of_constraints > 0
        constraints = problem.constraint if constrained else None
        if constrained:
            x0 = problem.initial_solution  # feasible
        fun = Counted(problem, optimal_value(problem), budget * dimension, constraints)
        begin = time.process_time()
        try:
            with silence():
                METHODS[method](Task(fun, x0, SIGMA0, seed), settings)
        except Finished:
            pass
        except Exception as trouble:
            if fun.evaluations == 0:  # a wrong setting or a missing package, and no result
                raise
            error = f"{type(trouble).__name__}: {trouble}"[:200]
        seconds = time.process_time() - begin
    return Run(fun.hits, fun.best, fun.evaluations, seconds, error)


@contextmanager
def silence() -> Iterator[None]:
    """No output and no warnings."""
    with open(os.devnull, "w") as null, redirect_stdout(null), redirect_stderr(null), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def versions_of(method: str) -> dict[str, str]:
    """Versions of the packages that decide the numbers."""
    found = {}
    for package in ("coco-experiment", "numpy", *PACKAGES[method]):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
