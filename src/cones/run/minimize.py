"""minimize(), and CoNES as a method of SciPy."""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from typing import Any, Literal, Never

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from cones.beliefs import Belief
from cones.checks import check_bool, check_integer, check_non_negative, check_one_of, check_positive
from cones.component import suggestion
from cones.divergences import Chart, Divergence
from cones.errors import InputError
from cones.estimators import Estimator
from cones.evaluate import Evaluator, Objective, Workers, evaluator_from
from cones.evaluate.replicate import ReplicatingEvaluator
from cones.methods import METHODS, Text, settings_of_method
from cones.optimizers import Optimizer
from cones.progress import CATOL
from cones.restarts import Bipop, Restarts
from cones.result import Result
from cones.run import checkpoint as checkpoints
from cones.run.iterate import check_asynchronous
from cones.run.loop import run_to_end
from cones.run.noise import with_reserve
from cones.run.racing import racing_evaluator
from cones.run.replicating import check_replicates
from cones.run.warm import Initial, warm_start
from cones.sampling import Rng
from cones.solvers import Solver
from cones.space.constraints import constraints_from
from cones.space.named import NamedFunction, named_constraints
from cones.space.reading import space_from
from cones.space.space import Space
from cones.steps import Balls, StepRule
from cones.types import Vector

__all__ = ["minimize", "scipy_method"]

# Methods that know a `cones.Space`.
SPACE_METHODS = ("cones", "nes", "es")
# By default, `minimize` restarts if more than this share of the budget is left after the first descent, ...
SHARE_LEFT = 0.5
RESTARTS_UP_TO = 10_000  # ... and up to this dimension: beyond, descents do not end early, and the start takes memory


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike | Belief | Space | None = None,
    args: Any = (),
    *,
    initial: Initial | None = None,
    method: str = "cones",
    sigma0: ArrayLike | None = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    vectorized: bool = False,
    workers: Workers = 1,
    timeout: float | None = None,
    retries: int | None = None,
    early_end: bool = False,
    asynchronous: bool = False,
    disp: bool = False,
    rng: Rng = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    ftarget: float | None = None,
    maxfev: float | None = None,
    maxiter: float | None = None,
    maxtime: float | None = None,
    xtol: float | None = 1e-11,
    ftol: float | None = 1e-11,
    stagnation: float | Literal["auto"] | None = "auto",
    plateau: float | None = None,
    popsize: int | None = None,
    radius: float | Literal["auto", "adaptive", "paper"] | Balls | None = None,
    belief: str | None = None,
    antithetic: bool | Literal["auto"] | None = None,
    estimator: Text | Estimator | None = None,
    shaping: str | Callable[[Vector], Any] | None = None,
    step: Text | StepRule | None = None,
    solver: Text | Solver | None = None,
    divergence: Text | Divergence | None = None,
    chart: Chart | None = None,
    optimizer: Text | Optimizer[Any] | None = None,
    restarts: int | Text | Restarts | None = None,
    noisy: bool | None = None,
    replicates: Literal["auto"] | None = None,
    catol: float = CATOL,
    dtype: DTypeLike | None = None,
    noise_table: int | None = None,
    chunked: bool | None = None,
    diagonal: bool | None = None,
    options: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> Result:
    """Minimise a function without its gradient.

    Args:
        fun: `fun(x, *args)` returns the loss of a candidate, a number. With `vectorized` it takes a (k, n) array, one
            candidate per row, and returns k losses. NaN ranks worst.
        x0: initial candidate, shape (n,), a belief, or a `cones.Space`: `fun` then takes a dict of values by name (a
            list of them with `vectorized`), and the result's x is one. The start, which is the belief's most likely
            candidate, is evaluated first, and is the result if nothing is better. It is skipped if `maxfev` has no room
            for it beside the first population.
        initial: instead of x0, what is known: evaluations (X, y) of this function or of a similar one, a result, the
            path of a checkpoint, or a belief. Mean and spread come from it; see `cones.start_from`. From 41 to 1000
            dimensions the first evaluations refine a start that evaluations have given; see `cones.run.refine`.
        args: further arguments of `fun`; a value that is not a tuple is a single argument.
        method: "cones", "nes", "es"; its relatives "ars", "tres", "more", "trcma"; those of other packages "cma",
            "sepcma", "openes" and "pgpe".
        sigma0: initial standard deviation, one number or one per coordinate; see `cones.CoNES`.
        constraints: SciPy's `LinearConstraint`, `NonlinearConstraint` or dicts with type and fun, one or a list. They
            are evaluated with `fun`, by the same workers; with `vectorized` their functions take a (k, n) array, too,
            and return k rows. A candidate for which one is NaN ranks worst.
        catol: largest violation of a constraint that counts as feasible.
        callback: called after each iteration, as `callback(intermediate_result=r)` if that is its only parameter, else
            as `callback(x)` with the best candidate. To stop the run, it raises StopIteration.
        workers: 1, a number of processes (-1: one per core), a map-like callable, any `concurrent.futures.Executor`
            (such as MPI's), "ray" or a Ray address, a Dask client or the address of its scheduler. The run is the same
            for all of them, bit for bit.
        timeout: seconds per candidate before it counts as lost; for processes, executors and clusters.
        retries: how many times to retry a candidate that raises, hangs or loses its worker before it counts as NaN. By
            default, exceptions of `fun` propagate, and lost workers and hanging calls are retried twice.
        asynchronous: True: a free worker gets a new candidate at once, without waiting for the slowest of a population.
            The belief moves whenever the results are worth a population. For evaluations of unequal length. The run
            depends on the order in which results arrive; see `cones.Journal`.
        early_end: end candidates that are sure to be among the worse half of their population. `fun` is called with
            the further argument `race`: `race.is_over(loss_so_far, share_done)` is True when it may return; see
            `cones.Race`. An ended candidate is ranked by the loss that is expected of it.
        disp: show progress on standard error, or as a bar in a notebook.
        checkpoint: file for checkpoints, for `cones.resume` after a crash.
        checkpoint_every: iterations between checkpoints; by default, one after each iteration that ends at least 30
            seconds after the last one.
        restarts: what follows a descent that has ended while budget is left: a number of restarts, each with twice the
            popsize; "auto", large and small populations in turn until the budget is spent; 0, none. By default "auto"
            if `maxfev` or `maxtime` is given, more than half of it is left after the first descent, and x0 has at most
            10000 coordinates.
        noisy: True: the loss is stochastic. A share of the budget, 1% and at least 10 evaluations, is kept to measure
            the loss at the mean and at x. False: it is not. None: one evaluation of x at the end tells.
        replicates: "auto": evaluate each candidate of a noisy loss as often as it takes to rank them, and use the mean.
            How often that is, is measured. The noise must be new in every call.
        bounds, rng, popsize, radius, belief, antithetic, estimator, shaping, step, solver, divergence, chart,
            optimizer, dtype, noise_table, chunked: settings of the method; see `cones.CoNES` and
            `cones.methods.Settings`. None is the method's default.
        ftarget, maxfev, maxiter, maxtime, xtol, ftol, stagnation, plateau: stop criteria; None switches one off.
            Without maxfev, maxiter and maxtime, maxiter is 1000.
        diagonal, options: settings of `cones.CMA`.

    Returns:
        A `scipy.optimize.OptimizeResult` with x and fun (the best candidate and its loss), nfev, nit, success, status,
        message, stop (the criterion's name), history (a dict of arrays, one number per iteration each), failures (why
        candidates counted as NaN after `retries`), failed_steps (iterations whose solver found no step), restarts, and
        the final belief and its mean, those of the best descent. Ctrl-C returns the best so far, with status 7.

        With constraints, x is the best feasible candidate, or the one with the smallest violation if none is feasible;
        then success is False. maxcv and constr_violation are the largest violation of a constraint at x.

        On a noisy loss `fun` is the lowest of many values and biased low. `noisy` says whether the loss is noisy (None:
        unknown), mean_fun and mean_fun_error are the loss at the mean and its standard error, x_fun and x_fun_error
        those at x, measured again at the end (NaN if they were not), and `use` is "mean" or "best": the better answer.

        If `fun` raises, the exception propagates with a note that names the candidate. Its attribute `cones_result` is
        the result so far.

    Example:
        >>> import cones
        >>> result = cones.minimize(lambda x: ((x - 3) ** 2).sum(), [0.0] * 5, rng=0, ftarget=0.01)
        >>> result.success, result.stop
        (True, 'ftarget')
    """
    if unknown:
        name = next(iter(unknown))
        names = [known for known in inspect.signature(minimize).parameters if known != "unknown"]
        raise TypeError(f"minimize() got an unexpected keyword argument {name!r}{suggestion(name, names)}")
    curvatures = None
    if initial is not None:
        if x0 is not None:
            raise InputError("x0: expected none beside initial, which says where to start, got both")
        start = warm_start(initial, None if sigma0 is None else check_positive("sigma0", sigma0), bounds)
        x0, sigma0, curvatures = start
        chosen = method == "tres" or belief is not None or dtype is not None  # the kind of belief
        if chosen and isinstance(x0, Belief) and isinstance(initial, (tuple, list)):
            sigma0 = x0.standard_deviations()
            x0 = x0.mean
    elif x0 is None:
        raise InputError("x0: expected a start, or initial, got neither")
    x0 = space_from(x0)
    if isinstance(x0, Space):
        if method not in SPACE_METHODS:
            raise InputError(f"method: expected one of {', '.join(SPACE_METHODS)} in a space, got {method!r}")
        if bounds is not None:
            raise InputError("bounds: expected none in a space, which has its own")
        fun = NamedFunction(fun, x0, bool(vectorized))
        constraints = named_constraints(constraints, x0, bool(vectorized))
    make = METHODS[check_one_of("method", method, tuple(METHODS))]
    settings: dict[str, Any] = {
        "bounds": bounds, "rng": rng, "popsize": popsize, "radius": radius, "belief": belief,
        "antithetic": antithetic, "estimator": estimator, "shaping": shaping, "step": step, "solver": solver,
        "divergence": divergence, "chart": chart, "optimizer": optimizer, "restarts": restarts, "noisy": noisy,
        "dtype": dtype, "noise_table": noise_table, "chunked": chunked, "diagonal": diagonal, "options": options,
    }  # fmt: skip
    limits = {
        "ftarget": ftarget, "maxfev": maxfev, "maxiter": maxiter, "maxtime": maxtime, "xtol": xtol, "ftol": ftol,
        "stagnation": stagnation, "plateau": plateau,
    }  # fmt: skip
    noisy = None if noisy is None else check_bool("noisy", noisy)
    known = settings_of_method(method)
    if "noisy" not in known:  # the end of the run is the same for all methods
        settings["noisy"] = None
    if restarts is None and "restarts" in known and _worth_restarts(x0, maxfev, maxtime):
        settings["restarts"] = Bipop(share=SHARE_LEFT)
    given = {name: value for name, value in settings.items() if value is not None}
    for name in given:
        if name not in known:
            raise TypeError(f"{name}: not a setting of method {method!r}")
    strategy = make(x0, sigma0, **given, **limits)
    if check_bool("asynchronous", asynchronous):
        check_asynchronous(strategy)
    strategy.criteria = with_reserve(strategy.criteria, noisy, strategy.popsize)
    strategy.state = replace(strategy.state, catol=check_non_negative("catol", catol))
    parts = constraints_from(constraints, strategy.start_point(), bool(vectorized))
    if asynchronous and (parts is not None or early_end):
        other = "early_end" if parts is None else "constraints"
        raise InputError(f"asynchronous: expected False with {other}, which needs whole populations, got True")
    if parts is not None:
        strategy.begin_constraints(parts.count)
    objective = Objective(fun, args if isinstance(args, tuple) else (args,), bool(vectorized), constraints=parts)
    check_replicates(replicates, noisy, early_end, asynchronous, constrained=parts is not None)
    if checkpoint is not None and not isinstance(checkpoint, (str, PathLike)):
        raise InputError(f"checkpoint: expected a path, got {checkpoint!r}")
    if checkpoint_every is not None:
        checkpoint_every = check_integer("checkpoint_every", checkpoint_every, 1)
        if checkpoint is None:
            raise InputError("checkpoint_every: expected together with checkpoint, got no checkpoint")
    with nullcontext() if checkpoint is None else checkpoints.owned(checkpoint):
        if checkpoint is not None and os.path.exists(checkpoint):
            raise InputError(
                f"checkpoint: {checkpoint} exists; continue it with cones.resume, or move it away to start a new run"
            )
        if check_bool("early_end", early_end):
            evaluator: Evaluator = racing_evaluator(
                strategy, fun, tuple(objective.args), bool(vectorized), workers, timeout, retries
            )
        else:
            evaluator = evaluator_from(objective, workers, timeout, retries)
        if replicates is not None:
            evaluator = ReplicatingEvaluator(evaluator)
        return run_to_end(
            strategy,
            evaluator,
            bool(vectorized),
            callback,
            disp,
            checkpoint,
            checkpoint_every,
            noisy,
            function=checkpoints.name_of(fun),
            asynchronous=asynchronous,
            curvatures=curvatures if not (noisy or early_end or asynchronous or replicates) else None,
        )


def _worth_restarts(x0: ArrayLike | Belief | Space, maxfev: float | None, maxtime: float | None) -> bool:
    """True if `minimize` restarts by default: a budget was given, and a second belief costs little memory."""
    budget = any(limit is not None and limit != math.inf for limit in (maxfev, maxtime))
    return budget and (x0.dim if isinstance(x0, (Belief, Space)) else np.size(x0)) <= RESTARTS_UP_TO


def scipy_method(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: Any = (),
    *,
    bounds: Any = None,
    callback: Callable[..., Any] | None = None,
    constraints: Any = (),
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    tol: float | None = None,
    **options: Any,
) -> Result:
    """CoNES as a method of SciPy: `scipy.optimize.minimize(fun, x0, method=cones.scipy_method)`.

    `options` are the keyword arguments of `cones.minimize`; `tol` sets xtol and ftol.

    Example:
        >>> from scipy.optimize import minimize, rosen
        >>> import cones
        >>> options = {"rng": 0, "maxiter": 50, "popsize": 20}
        >>> minimize(rosen, [0.0, 0.0], method=cones.scipy_method, options=options).nit
        50
    """
    if any(derivative is not None for derivative in (jac, hess, hessp)):
        warnings.warn("jac, hess and hessp are ignored: cones uses no derivatives", RuntimeWarning, stacklevel=3)
    if tol is not None:
        options = {"xtol": tol, "ftol": tol, **options}
    return minimize(fun, x0, args, bounds=bounds, constraints=constraints, callback=callback, **options)
