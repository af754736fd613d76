"""COCO: run a method on its benchmark suites and write data for its post-processing, cocopp."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

import cones
from cones.checks import check_integer, check_one_of, check_positive
from cones.errors import InputError
from cones.extras import require_extra
from cones.methods import METHODS
from cones.sampling import Rng, seed_from

try:
    import cocoex
except ImportError:
    require_extra("cocoex", "coco", "cones.integrations.coco")
    raise

__all__ = ["SUITES", "Standing", "run_suite"]

# One objective, real variables, no constraints except bounds.
SUITES = ("bbob", "bbob-boxed", "bbob-largescale", "bbob-noisy")


@dataclass
class Standing:
    """Progress of a run on a suite.

    Attributes:
        folder: contains the data.
        problems: number of problems in the suite.
        done, solved: number of problems that are finished, and that reached COCO's final target.
        problem: COCO's id of the current problem.
        evaluations: so far, of all problems.
        seconds: so far.
    """

    folder: Path
    problems: int
    done: int = 0
    solved: int = 0
    problem: str = ""
    evaluations: int = 0
    seconds: float = 0.0


def run_suite(
    out: str | PathLike[str],
    *,
    suite: str = "bbob-largescale",
    dimensions: Sequence[int] | None = None,
    functions: Sequence[int] | None = None,
    instances: Sequence[int] | None = None,
    budget: float = 100.0,
    method: str = "cones",
    rng: Rng = 0,
    follow: Callable[[Standing], None] = lambda standing: None,
    **settings: Any,
) -> Standing:
    """Run a method on a suite of COCO.

    A run starts at COCO's initial solution with a standard deviation of a fifth of the region's width. When the method
    stops, it starts again at a random point of the region, until the budget is spent or the target is hit.

    Args:
        out: folder for the data, missing or empty; `python -m cocopp OUT` reads it.
        suite: "bbob", "bbob-boxed", "bbob-largescale" or "bbob-noisy".
        dimensions, functions: which of the suite; all by default.
        instances: numbers of instances, any from 1; COCO's fifteen by default.
        budget: evaluations per problem, as a multiple of its dimension.
        method: "cones", "es", "nes" or "cma".
        rng: seed, `numpy.random.Generator`, `SeedSequence` or None.
        follow: called with the `Standing` after every iteration.
        **settings: of the method.

    Ctrl-C raises KeyboardInterrupt. The data written until then is complete.

    Example:
        >>> import pathlib, tempfile
        >>> out = pathlib.Path(tempfile.mkdtemp(), "run")
        >>> standing = run_suite(out, suite="bbob", dimensions=[2], functions=[1], instances=[1], popsize=6)
        >>> standing.done, standing.evaluations <= 200
        (1, True)
    """
    check_one_of("method", method, tuple(METHODS))
    folder = _unused(out)
    problems = _suite(suite, dimensions, functions, instances)
    budget = check_positive("budget", budget)
    smallest = min(problems.dimensions)
    if (popsize := _popsize(method, smallest, settings)) > budget * smallest:
        raise InputError(
            f"budget: expected at least popsize = {popsize} evaluations per problem, got {budget:g} x {smallest} "
            "dimensions; choose a larger budget or a smaller popsize"
        )
    if folder.exists():
        folder.rmdir()  # COCO creates its own folder, and another one if this exists
    folder.parent.mkdir(parents=True, exist_ok=True)
    cocoex.log_level("warning")  # COCO prints the folder otherwise
    observer = cocoex.Observer(
        suite,
        f'outer_folder: "{folder.parent}" result_folder: "{folder.name}" algorithm_name: {method} '
        f'algorithm_info: "cones {cones.__version__}"',
    )
    standing, begin, seed = Standing(folder, len(problems)), time.monotonic(), seed_from(rng)
    before = 0  # evaluations of the finished problems
    for problem in problems:
        problem.observe_with(observer)
        standing.problem = problem.id

        def report(intermediate_result: OptimizeResult, problem: Any = problem, before: int = before) -> None:
            standing.evaluations = before + problem.evaluations
            standing.seconds = time.monotonic() - begin
            follow(standing)
            if problem.final_target_hit:
                raise StopIteration

        try:
            _solve(problem, int(budget * problem.dimension), method, settings, seed, suite, report)
            standing.solved += int(problem.final_target_hit)
            before += problem.evaluations
        finally:
            problem.free()  # completes its data
        standing.done += 1
        standing.evaluations = before
        follow(standing)
    return standing


def _solve(
    problem: Any,
    budget: int,
    method: str,
    settings: dict[str, Any],
    seed: int,
    suite: str,
    report: Callable[..., None],
) -> None:
    lower, upper = np.asarray(problem.lower_bounds), np.asarray(problem.upper_bounds)
    rng = np.random.default_rng((seed, *problem.id_triple))
    x0 = np.asarray(problem.initial_solution)
    popsize = _popsize(method, x0.size, settings)
    bounds: dict[str, Any] = {"bounds": list(zip(lower, upper, strict=True))} if suite == "bbob-boxed" else {}
    exact = suite != "bbob-noisy"
    while problem.evaluations + popsize <= budget and not problem.final_target_hit:
        result = cones.minimize(
            problem,
            x0,
            sigma0=0.2 * (upper - lower),
            method=method,
            maxfev=budget - problem.evaluations,
            rng=int(rng.integers(2**31)),
            callback=report,
            **bounds,
            **{"noisy": False if exact else None, **settings},
        )
        if result.stop == "interrupted":
            raise KeyboardInterrupt
        x0 = rng.uniform(lower, upper)


def _suite(
    name: str, dimensions: Sequence[int] | None, functions: Sequence[int] | None, instances: Sequence[int] | None
) -> Any:
    check_one_of("suite", name, SUITES)
    # Ask small parts of the suite: creating the whole suite takes seconds.
    there = list(cocoex.Suite(name, "instances: 1", "function_indices: 1").dimensions)
    ids = cocoex.Suite(name, "instances: 1", f"dimensions: {there[0]}").ids()
    numbers = [int(problem_id.split("_")[-3][1:]) for problem_id in ids]  # ..._f001_i01_d0020
    options = ""
    if dimensions is not None:
        _check("dimensions", dimensions, there)
        options += f" dimensions: {_listed(dimensions)}"
    if functions is not None:
        _check("functions", functions, numbers)
        options += f" function_indices: {_listed([numbers.index(number) + 1 for number in functions])}"
    if instances is not None:
        for number in instances:
            check_integer("instances", number, 1)
    return cocoex.Suite(name, "" if instances is None else f"instances: {_listed(instances)}", options)


def _check(word: str, chosen: Sequence[int], there: list[int]) -> None:
    for number in chosen:
        if number not in there:
            raise InputError(f"{word}: expected some of {', '.join(map(str, there))}, got {number}")


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, sorted(set(numbers))))


def _popsize(method: str, dimension: int, settings: dict[str, Any]) -> int:
    return METHODS[method](np.zeros(dimension), **settings).popsize


def _unused(out: str | PathLike[str]) -> Path:
    folder = Path(out).absolute()
    if '"' in str(folder):
        raise InputError(f'out: expected a path without ", which COCO cannot read, got {folder}')
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"out: expected a missing or empty folder, got {folder}, which is not empty")
    return folder
