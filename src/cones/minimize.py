"""minimize(): the loop around ask and tell, and resume() after a crash."""

from __future__ import annotations

import inspect
import os
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from cones import checkpoint as checkpoints
from cones.beliefs import Belief
from cones.checks import check_integer, check_one_of
from cones.display import ProgressLine
from cones.errors import CheckpointError, InputError
from cones.evaluate import Evaluator, Objective, Workers, evaluator_from
from cones.methods import METHODS
from cones.stopping import CALLBACK, INTERRUPTED, RUNNING, StopReason, criteria_from
from cones.strategy import Strategy

__all__ = ["minimize", "resume", "scipy_method"]

# Without `checkpoint_every`, a checkpoint is written when the last one is this many seconds old.
CHECKPOINT_SECONDS = 30.0


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike | Belief,
    args: Any = (),
    *,
    method: str = "cones",
    sigma0: ArrayLike | None = None,
    callback: Callable[..., Any] | None = None,
    vectorized: bool = False,
    workers: Workers = 1,
    timeout: float | None = None,
    retries: int | None = None,
    disp: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    **settings: Any,
) -> OptimizeResult:
    """Minimise a function without its gradient.

    Args:
        fun: `fun(x, *args)` returns the loss of a candidate, a number. With `vectorized` it takes a
            (k, n) array, one candidate per row, and returns k losses. NaN ranks worst.
        x0: where to start, shape (n,), or a belief.
        args: further arguments of `fun`; one that is not a tuple is taken as the only one.
        method: "cones", "nes", "es", "cma" or "sepcma".
        sigma0: initial standard deviation, one number or one per coordinate; see `cones.CoNES`.
        callback: called after each iteration as `callback(intermediate_result=r)` if that is its one
            parameter, else as `callback(x)` with the best candidate. It may raise StopIteration.
        workers: 1, a number of processes (-1: one per core), a map-like callable, any
            `concurrent.futures.Executor` (MPI's, for one), "ray" or a Ray address, a Dask client or the address of its
            scheduler. The run is the same, bit for bit, wherever it is evaluated.
        timeout: seconds a candidate may take before it counts as lost; for processes, executors and clusters.
        retries: how often a candidate that raises, hangs or loses its worker is tried again before it counts as NaN. If
            not given, what `fun` raises is raised, and lost workers and hanging calls are tried again twice.
        disp: show progress on standard error.
        checkpoint: a file from which `cones.resume` goes on after a crash.
        checkpoint_every: iterations between checkpoints; by default one is written at the end of the
            iteration in which the last one has become 30 seconds old.
        **settings: the keyword arguments of the method, `cones.CoNES`, `cones.NES`, `cones.ES`, `cones.CMA` or
            `cones.SepCMA`:
            radius, solver, belief, popsize, antithetic, shaping, optimizer, restarts, bounds, rng, dtype, noise_table,
            chunked, and the stop criteria ftarget, maxfev, maxiter, maxtime, xtol, ftol, stagnation.

    Returns:
        A `scipy.optimize.OptimizeResult` with x and fun (the best candidate and its loss), nfev, nit,
        success, status, message, stop (the criterion's name), history (a dict of arrays, one number per
        iteration each), failures (why candidates counted as NaN after `retries`), restarts, and the final belief.
        Ctrl-C returns the best so far, with status 7.

        If `fun` raises, the exception goes on with a note that names the candidate, and the result so
        far is its attribute `cones_result`.

    Example:
        >>> import cones
        >>> result = cones.minimize(lambda x: ((x - 3) ** 2).sum(), [0.0] * 5, rng=0, ftarget=0.01)
        >>> result.success, result.stop
        (True, 'ftarget')
    """
    objective = Objective(fun, args if isinstance(args, tuple) else (args,), bool(vectorized))
    make = METHODS[check_one_of("method", method, tuple(METHODS))]
    strategy = make(x0, sigma0, **settings)
    if checkpoint is not None and not isinstance(checkpoint, (str, PathLike)):
        raise InputError(f"checkpoint: expected a path, got {checkpoint!r}")
    if checkpoint is not None and os.path.exists(checkpoint):
        raise InputError(
            f"checkpoint: {checkpoint} exists; go on from it with cones.resume, or move it away to start anew"
        )
    if checkpoint_every is not None:
        checkpoint_every = check_integer("checkpoint_every", checkpoint_every, 1)
        if checkpoint is None:
            raise InputError("checkpoint_every: expected together with checkpoint, the file to write")
    evaluator = evaluator_from(objective, workers, timeout, retries)
    return _run(strategy, evaluator, bool(vectorized), callback, disp, checkpoint, checkpoint_every)


def resume(
    path: str | PathLike[str],
    fun: Callable[..., Any],
    args: Any = (),
    *,
    vectorized: bool | None = None,
    callback: Callable[..., Any] | None = None,
    workers: Workers = 1,
    timeout: float | None = None,
    retries: int | None = None,
    disp: bool = False,
    checkpoint_every: int | None = None,
    **limits: Any,
) -> OptimizeResult:
    """Go on with a run of `minimize` from its checkpoint, bit for bit as if it had not stopped.

    Args:
        path: the checkpoint. The run goes on writing it as before.
        fun, args: as given to `minimize`; a checkpoint does not hold code.
        vectorized: as given to `minimize`, unless said otherwise.
        callback, workers, timeout, retries, disp: as for `minimize`.
        checkpoint_every: as given to `minimize`, unless said otherwise.
        **limits: stop criteria to change, such as a larger `maxfev`; None switches one off.

    Example:
        >>> import cones, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "run.ckpt")
        >>> first = cones.minimize(lambda x: (x**2).sum(), [1.0, 1.0], rng=0, maxiter=5, checkpoint=path)
        >>> cones.resume(path, lambda x: (x**2).sum(), maxiter=10).nit
        10
    """
    strategy, run = checkpoints.read(path)
    strategy.state = replace(strategy.state, fault="")  # what was wrong may be repaired
    if limits:
        kept = {  # what was implied is implied again, unless there is a budget now
            criterion.name: criterion.limit
            for criterion in strategy.criteria
            if not getattr(criterion, "implied", False)
        }
        off = dict.fromkeys(("xtol", "ftol", "stagnation"))  # not in `kept`: switched off before
        strategy.criteria = criteria_from(strategy.state.belief.dim, strategy.popsize, {**off, **kept, **limits})
    rows = bool(run.get("vectorized", False)) if vectorized is None else bool(vectorized)
    objective = Objective(fun, args if isinstance(args, tuple) else (args,), rows)
    every = run.get("checkpoint_every")
    if checkpoint_every is not None:
        every = check_integer("checkpoint_every", checkpoint_every, 1)
    evaluator = evaluator_from(objective, workers, timeout, retries)
    return _run(strategy, evaluator, rows, callback, disp, path, every)


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
) -> OptimizeResult:
    """CoNES as a method of SciPy: `scipy.optimize.minimize(fun, x0, method=cones.scipy_method)`.

    `options` are the keyword arguments of `cones.minimize`; `tol` sets xtol and ftol.

    Example:
        >>> from scipy.optimize import minimize, rosen
        >>> import cones
        >>> options = {"rng": 0, "maxiter": 50, "popsize": 20}
        >>> minimize(rosen, [0.0, 0.0], method=cones.scipy_method, options=options).nit
        50
    """
    if constraints:
        raise InputError("constraints: expected none, got some; only bounds are supported")
    if any(derivative is not None for derivative in (jac, hess, hessp)):
        warnings.warn("jac, hess and hessp are not used: cones needs no derivatives", RuntimeWarning, stacklevel=3)
    if tol is not None:
        options = {"xtol": tol, "ftol": tol, **options}
    return minimize(fun, x0, args, bounds=bounds, callback=callback, **options)


def _run(
    strategy: Strategy,
    evaluator: Evaluator,
    vectorized: bool,
    callback: Callable[..., Any] | None,
    disp: bool,
    checkpoint: str | PathLike[str] | None,
    checkpoint_every: int | None,
) -> OptimizeResult:
    try:
        if callback is not None and not callable(callback):
            raise InputError(f"callback: expected a callable, got {type(callback).__name__}")
        run = {"vectorized": vectorized, "checkpoint_every": checkpoint_every}
        saver = None if checkpoint is None else _Saver(strategy, fspath(checkpoint), run)
        report = None if callback is None else _reporter(callback)
        line = ProgressLine() if disp else None
        if saver:
            saver.write()  # before any work is done: a place that cannot be written to is an error now
    except BaseException:
        evaluator.abort()
        raise
    failures: list[str] = []
    reason: StopReason | None = None
    begun = -1  # the last iteration whose evaluation began
    try:
        with evaluator:
            while (reason := strategy.stop()) is None:
                candidates = strategy.ask()
                begun = strategy.state.iteration
                losses = evaluator.losses(candidates)
                failures += [f"iteration {begun}, candidate {k}: {why}" for k, why in evaluator.failures.items()]
                strategy.tell(candidates, losses)
                if saver:
                    saver.write_if_due()
                if line:
                    line.update(strategy)
                if report and not report(strategy):
                    reason = CALLBACK
                    break
    except KeyboardInterrupt:
        reason = INTERRUPTED
    except Exception as error:
        state = strategy.state
        error.add_note(f"cones: in iteration {state.iteration}, after {state.evaluations} evaluations")
        with suppress(AttributeError):  # some exceptions take no attributes
            error.cones_result = _result(strategy, evaluator, begun, failures, RUNNING)  # type: ignore[attr-defined]
        raise
    finally:
        if line:
            line.close()
        if saver:
            saver.write_again()
    if line:
        told = f" {len(failures)} evaluations failed, the last in {failures[-1]}." if failures else ""
        line.finish(strategy, reason.message + told)
    return _result(strategy, evaluator, begun, failures, reason)


def _result(
    strategy: Strategy, evaluator: Evaluator, begun: int, failures: list[str], reason: StopReason
) -> OptimizeResult:
    """The result, with what is known of a population whose evaluation was cut short."""
    result, partial = strategy.result_with(reason), evaluator.partial
    result.failures = failures
    cut_short = begun == strategy.state.iteration  # its losses were not told
    if cut_short and partial is not None and not np.isnan(partial).all():
        best = int(np.nanargmin(partial))
        result.nfev += int((~np.isnan(partial)).sum())
        if not result.fun <= partial[best]:
            result.x, result.fun = strategy.ask()[best].copy(), float(partial[best])
    return result


def _reporter(callback: Callable[..., Any]) -> Callable[[Strategy], bool]:
    """The callback in SciPy's two forms; False when it asks to stop."""
    try:
        keyword = set(inspect.signature(callback).parameters) == {"intermediate_result"}
    except (TypeError, ValueError):
        keyword = False

    def report(strategy: Strategy) -> bool:
        result = strategy.intermediate_result()
        try:
            if keyword:
                callback(intermediate_result=result)
            else:
                callback(result.x)
        except StopIteration:
            return False
        return True

    return report


class _Saver:
    """Writes checkpoints when they are due. A failure after the first is a warning: the run goes on."""

    def __init__(self, strategy: Strategy, path: str, run: dict[str, Any]) -> None:
        self._strategy, self._path, self._run = strategy, path, run
        self._every: int | None = run["checkpoint_every"]
        self._iteration, self._time = -1, 0.0

    def write(self) -> None:
        checkpoints.save(self._path, self._strategy, self._run)
        self._iteration, self._time = self._strategy.state.iteration, time.monotonic()

    def write_if_due(self) -> None:
        if self._every is None:
            due = time.monotonic() - self._time >= CHECKPOINT_SECONDS
        else:
            due = self._strategy.state.iteration % self._every == 0
        if due:
            self.write_again()

    def write_again(self) -> None:
        if self._iteration in (-1, self._strategy.state.iteration):  # never begun, or up to date
            return
        try:
            self.write()
        except CheckpointError as error:
            warnings.warn(f"{error}; the previous checkpoint is kept", RuntimeWarning, stacklevel=2)
