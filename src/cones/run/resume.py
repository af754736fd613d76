"""resume(): a run of `minimize` goes on from its checkpoint."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, Unpack

from cones.checks import check_bool, check_integer, check_kind
from cones.errors import CheckpointError, InputError
from cones.evaluate import Evaluator, Objective, Workers, evaluator_from
from cones.evaluate.race import RacingEvaluator
from cones.evaluate.replicate import ReplicatingEvaluator, Replication
from cones.files import check_path
from cones.incremental import IncrementalStrategy
from cones.progress.limits import LIMITS, Limits, criteria_from, trials_of
from cones.progress.stopping import Stagnation
from cones.result import Result
from cones.run import checkpoint as checkpoints
from cones.run.journal import events_of, replay_events
from cones.run.loop import journal_of, run_to_end
from cones.run.noise import Estimate, with_reserve
from cones.run.racing import racing_evaluator
from cones.run.replicating import check_replicates
from cones.space.constraints import constraints_from
from cones.space.named import NamedFunction, named_constraints
from cones.strategy import Strategy

__all__ = ["resume"]


def resume(
    path: str | PathLike[str],
    fun: Callable[..., Any],
    args: Any = (),
    *,
    constraints: Any = (),
    vectorized: bool | None = None,
    callback: Callable[..., Any] | None = None,
    workers: Workers = 1,
    timeout: float | None = None,
    retries: int | None = None,
    early_end: bool | None = None,
    disp: bool = False,
    checkpoint_every: int | None = None,
    allow: Iterable[Any] = (),
    **limits: Unpack[Limits],
) -> Result:
    """Continue a run of `minimize` from its checkpoint, bit for bit as if it had not stopped.

    Args:
        path: the checkpoint. The run continues to write it.
        fun, args, constraints: as given to `minimize`; a checkpoint contains no code. A function of another name warns.
        vectorized, early_end, checkpoint_every: by default, as given to `minimize`.
        callback, workers, timeout, retries, disp: as for `minimize`.
        allow: custom components that the checkpoint may contain: classes, functions, or "module:Class". Nothing else is
            imported or executed.
        **limits: stop criteria to change, such as a larger `maxfev`; None switches one off. Adaptive radii plan for
            the budget: with another one, the run differs from one that had it from its start.

    Example:
        >>> import cones, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "run.ckpt")
        >>> first = cones.minimize(lambda x: (x**2).sum(), [1.0, 1.0], rng=0, maxiter=5, checkpoint=path)
        >>> cones.resume(path, lambda x: (x**2).sum(), maxiter=10).nit
        10
    """
    check_path("path", path)
    if not os.path.exists(path):
        raise CheckpointError(f"{path}: no such file")
    with checkpoints.owned(path):
        strategy, run = checkpoints.read(path, allow)
        noisy, every, estimate = _settings_of(run, path)
        events = _replayed(strategy, run, path)
        strategy.state = replace(strategy.state, fault="")  # the cause may be fixed by now
        if limits:
            kept = {  # an implied maxiter is implied again, unless there is a budget now
                criterion.name: "auto" if isinstance(criterion, Stagnation) and criterion.popsize else criterion.limit
                for criterion in strategy.criteria
                if not getattr(criterion, "implied", False)
            }
            off = dict.fromkeys(LIMITS)  # criteria not in `kept` were off before
            belief = strategy.state.belief
            criteria = criteria_from(belief.dim, strategy.popsize, {**off, **kept, **limits}, trials_of(belief))
            strategy.criteria = with_reserve(criteria, noisy, strategy.popsize) if run else criteria
            strategy.restart_if_ended()  # the budget may suffice now
        rows = bool(run.get("vectorized", False)) if vectorized is None else bool(vectorized)
        if strategy.space is not None:
            fun = NamedFunction(fun, strategy.space, rows)
            constraints = named_constraints(constraints, strategy.space, rows)
        parts = constraints_from(constraints, strategy.start_point(), rows)
        count, known = (0 if parts is None else parts.count), strategy.state.lagrangian
        if count != (expected := 0 if known is None else known.count):
            raise InputError(f"constraints: expected {expected} numbers per candidate, as before, got {count}")
        objective = Objective(fun, args if isinstance(args, tuple) else (args,), rows, constraints=parts)
        if checkpoint_every is not None:
            every = check_integer("checkpoint_every", checkpoint_every, 1)
        if bool(run.get("early_end", False)) if early_end is None else check_bool("early_end", early_end):
            evaluator: Evaluator = racing_evaluator(
                strategy, fun, tuple(objective.args), rows, workers, timeout, retries
            )
        else:
            evaluator = evaluator_from(objective, workers, timeout, retries)
        if (replication := run.get("replication")) is not None:
            check_replicates("auto", noisy, isinstance(evaluator, RacingEvaluator), False, constrained=False)
            evaluator = ReplicatingEvaluator(evaluator)
        function, asynchronous = checkpoints.name_of(fun), bool(run.get("asynchronous"))
        if (before := run.get("function")) and checkpoints.is_another(function, before):
            warnings.warn(
                f"fun: the run in {path} was started with {before}, and continues with {function}",
                RuntimeWarning,
                stacklevel=2,
            )
        return run_to_end(
            strategy,
            evaluator,
            rows,
            callback,
            disp,
            path,
            every,
            noisy,
            estimate,
            function,
            asynchronous,
            events,
            replication,
        )


def _replayed(strategy: Strategy, run: Mapping[str, Any], path: str | PathLike[str]) -> int | None:
    """Tell an asynchronous run what its journal has after the checkpoint. The length of the journal."""
    known, journal = run.get("events"), journal_of(path)
    if known is None or not isinstance(strategy, IncrementalStrategy):
        return None
    known = check_integer("events", known, 0)
    if not os.path.exists(journal):
        raise CheckpointError(f"{journal}: no such file; an asynchronous run continues with its journal")
    events = events_of(journal)
    if len(events) < known:
        raise CheckpointError(f"{journal}: expected at least {known} events, got {len(events)}")
    replay_events(events[known:], strategy, journal)
    return len(events)


def _settings_of(run: Mapping[str, Any], path: str | PathLike[str]) -> tuple[bool | None, int | None, Estimate]:
    """`noisy`, `checkpoint_every` and the estimate of the noise from a checkpoint; defaults if it has no run."""
    noisy, every, estimate = (run.get(name) for name in ("noisy", "checkpoint_every", "estimate"))
    try:
        check_bool("vectorized", run.get("vectorized", False))
        check_bool("early_end", run.get("early_end", False))
        if not isinstance(name := run.get("function", ":"), str) or ":" not in name:
            raise InputError(f"function: expected module:name, got {name!r:.80}")
        check_bool("asynchronous", run.get("asynchronous", False))
        check_kind("estimate", estimate, (Estimate, type(None)))
        check_kind("replication", run.get("replication"), (Replication, type(None)))
        noisy = None if noisy is None else check_bool("noisy", noisy)
        every = None if every is None else check_integer("checkpoint_every", every, 1)
        return noisy, every, estimate or Estimate(noisy=noisy)
    except InputError as error:
        raise CheckpointError(f"{path}: not a complete cones checkpoint ({error})") from None
