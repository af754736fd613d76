"""Training from Python: `train`, `resume`, `load_policy`, `evaluate`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cones.checks import check_integer
from cones.errors import InputError
from cones.evaluate import Workers
from cones.files import check_path
from cones.records.folder import Folder
from cones.records.session import Kept, UnwrittenError, execute, read_checkpoint
from cones.rl.environments import spaces_of
from cones.rl.episode import Episodes
from cones.rl.kept import kept_run, listed
from cones.rl.policy import Policy, check_spaces
from cones.rl.rollouts import Placement, Rollouts, episode_of
from cones.rl.source import Source, source_from
from cones.rl.spec import TrainingRun, new_run
from cones.rl.training import Training
from cones.run.journal import events_of
from cones.run.loop import journal_of
from cones.types import Vector

__all__ = ["Trained", "evaluate", "execute_training", "load_policy", "replay", "resume", "train"]


@dataclass(frozen=True)
class Trained:
    """The result of a training run.

    Attributes:
        policy: the mean policy, `action = policy(observation)`.
        reward: its mean reward in the last evaluation.
        timesteps: steps of training, evaluations not counted.
        history: columns by iteration: timesteps, population_reward, mean_reward (NaN where the mean policy was not
            evaluated), spread, step and others.
        stop: why it ended; "interrupted" after Ctrl-C, "callback" if the callback raised StopIteration.
        problem: why an episode of the last iteration failed, if one did.
        saved: the share of timesteps that early ends saved, estimated from episodes that ran to their end.
    """

    policy: Policy
    reward: float
    timesteps: int
    history: dict[str, Vector]
    stop: str
    problem: str = ""
    saved: float = 0.0


def train(
    task: Any,
    method: str = "cones",
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    timesteps: float | None = None,
    rng: int = 0,
    out: str | PathLike[str] | None = None,
    threads: int | None = None,
    workers: Workers | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    callback: Callable[[Training], None] | None = None,
    **settings: Any,
) -> Trained:
    """Train a policy on a gymnasium environment.

    Args:
        task: its id, such as "Swimmer-v4"; "module:Name-v0" imports the module that registers it first. Or its class,
            a function that makes it, an environment or a vector environment; each worker makes its own.
        method: "cones", "es", "nes", "ars", "tres", "more", "trcma", "cma", "sepcma", "openes" or "pgpe".
        env_kwargs: keyword arguments that the environment is made with.
        timesteps: the budget of training steps; the paper's for its tasks, 10^6 for others by default.
        rng: the seed. A run with the same seed gives the same numbers, wherever its episodes run.
        out: a folder that keeps the run: checkpoint, record, policy. `resume` continues it.
        threads: simulations at a time, one per core by default.
        workers: run the episodes elsewhere: "ray", an address of Ray or Dask, a Dask client, an executor, a number of
            processes, an evaluator; see `cones.minimize`.
        timeout: seconds an episode may take before it counts as lost.
        retries: how often an episode that raises, hangs or loses its worker is tried again before its candidate counts
            as NaN. If not given, what the environment raises is raised, and lost workers and hanging episodes are tried
            again twice.
        callback: called with the `Training` after every iteration and every evaluation, and once more at the end. It
            may raise StopIteration to end the training.
        **settings: settings of the policy and of training: `hidden` (units per hidden layer; [] for a linear policy),
            `bias` (True if units have one), `sigma` (initial standard deviation of the weights; by default
            from the fan-in of each unit and the popsize), `start` (the first weights: "zeros", or "random" ones of
            hidden units), `episodes` per candidate, `common_starts` (True if all candidates of an
            iteration have the same starts), `evaluate_every` iterations, `evaluation_episodes`, `target`, `early_end`
            (True: end episodes whose return so far puts them almost surely among the worse half; see
            `cones.rl.early_ends`),
            `asynchronous` (True: a worker that is free gets a new candidate at once; the run then depends on the order
            in which results arrive); and of the method: popsize, learning_rate, variance_learning_rate, radius, belief
            and others. The paper's for its tasks by default, but with radius="adaptive" one setting for all tasks.

    Ctrl-C ends the training. The result so far is returned, and kept in `out`. Environments other than MuJoCo's run in
    processes: a script keeps its own code under `if __name__ == "__main__":`, or trains with `threads=1`.

    Example:
        >>> trained = train("CartPole-v1", timesteps=2000, popsize=4, hidden=[], threads=1)
        >>> trained.policy(np.zeros(4)) in (0, 1)
        True
    """
    placement = Placement(threads, workers, timeout, retries)
    source = source_from(task, env_kwargs)
    run = new_run(source, method, rng, timesteps, settings)
    return execute_training(run, out, placement, callback, allow=run.method.own_components(), source=source)


def resume(
    folder: str | PathLike[str],
    *,
    task: Any = None,
    timesteps: float | None = None,
    threads: int | None = None,
    workers: Workers | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    callback: Callable[[Training], None] | None = None,
    allow: Iterable[Any] = (),
) -> Trained:
    """Continue a training run, bit for bit as if it had not been stopped.

    Args:
        folder: what `train` was given as `out`.
        task: what `train` was given as `task`, if it was an environment or a function that has no name in a module.
        timesteps: another budget, to train longer.
        threads, workers, timeout, retries, callback: as for `train`.
        allow: components of your own that the run may name, and the task if it is "module:Name-v0"; nothing else is
            imported. See `cones.load`.
    """
    placement = Placement(threads, workers, timeout, retries)
    run, components = kept_run(folder, timesteps, [*listed(allow), *listed(task)])
    source = None if task is None else _same(source_from(task, run.task.env_kwargs or None), run.task.task)
    return execute_training(run, folder, placement, callback, timesteps is not None, components, source)


def load_policy(folder: str | PathLike[str], allow: Iterable[Any] = ()) -> Policy:
    """Load the policy of a training run: `action = policy(observation)`.

    Args:
        folder: that of the run, or a `.policy.npz` file. Of several runs in one folder, name the file.
        allow: the task, if it is "module:Name-v0" and its module is not imported yet: a file alone imports nothing.
    """
    check_path("folder", folder)
    path = Path(folder)
    if path.is_dir():
        found = Folder(path).policies()
        if not found:
            raise InputError(f"{path}: expected the folder of a training run; there is no policy in it")
        if len(found) > 1:
            names = ", ".join(str(file) for file in found[:3])
            raise InputError(f"{path}: holds {len(found)} policies; name the file of one of them: {names}, ...")
        path = found[0]
    return Policy.load(path, allow)


def evaluate(
    policy: Policy, episodes: int = 100, *, task: Any = None, rng: int = 0, threads: int | None = None
) -> Episodes:
    """Run episodes of a policy: their `returns`, `lengths`, and `problems` where one failed.

    `summary()` of the result has the mean with its confidence interval.

    Args:
        policy: of `train` or `load_policy`.
        episodes: how many.
        task: another environment of the same spaces; by default the one that the policy was trained on.
        rng: the seed.
        threads: simulations at a time, one per core by default.
    """
    source = policy.source or Source(policy.task, policy.env_kwargs)
    if task is not None:
        source = source_from(task)
    check_spaces(policy, spaces_of(source), source.name)
    words = np.random.SeedSequence(check_integer("rng", rng, 0)).generate_state(check_integer("episodes", episodes, 1))
    with Rollouts(episode_of(source, policy.network, policy.space), Placement(threads)) as rollouts:
        parameters = np.tile(policy.parameters, (len(words), 1))
        return rollouts.episodes(parameters, policy.shift, policy.scale, [int(word) for word in words])


def _same(source: Source, name: str) -> Source:
    """The source, if it has the name that a folder has."""
    if source.name != name:
        raise InputError(f"task: expected {name}, of which the folder is, got {source.name}")
    return source


def execute_training(
    run: TrainingRun,
    out: str | PathLike[str] | None,
    placement: Placement | None = None,
    callback: Callable[[Training], None] | None = None,
    another_budget: bool = False,
    allow: Iterable[Any] = (),
    source: Source | None = None,
) -> Trained:
    """Start a run, or continue it from its checkpoint in `out`, and train until it ends or Ctrl-C."""
    sessions: list[Training] = []

    def follow(session: Training) -> None:
        if not sessions:
            sessions.append(session)
        if callback is not None:
            callback(session)

    stop = ""
    with ExitStack() as stack:
        place = Folder(out if out is not None else stack.enter_context(tempfile.TemporaryDirectory()))
        place.make()
        stack.enter_context(place.locked())
        if another_budget:
            read_checkpoint(place.checkpoint_path(run), allow)  # or an error, before anything is changed
            place.declare(run.experiment())
        else:
            place.claim(run.experiment())

        def make(run: TrainingRun, kept: Kept | None) -> Training:
            session = Training(run, kept, placement, source)
            session.journal_to(Path(journal_of(place.checkpoint_path(run))))
            return session

        try:
            execute(make, run, place, follow, allow=allow)
        except KeyboardInterrupt:
            stop = "interrupted"
            if not sessions:
                raise
        except StopIteration:
            stop = "callback"
        except UnwrittenError:
            pass  # it was warned of; the result is not lost
        return _trained(sessions[0], stop)


def replay(folder: str | PathLike[str], *, task: Any = None, allow: Iterable[Any] = ()) -> Trained:
    """Train again from the journal of an asynchronous run, bit for bit and without a simulation.

    Args:
        folder: what `train` was given as `out`.
        task, allow: as for `resume`.
    """
    run, _ = kept_run(folder, None, [*listed(allow), *listed(task)])
    if not run.task.asynchronous:
        raise InputError(f"{folder}: expected an asynchronous run, got one by populations, which its seed repeats")
    source = None if task is None else _same(source_from(task, run.task.env_kwargs or None), run.task.task)
    journal = Path(journal_of(Folder(folder).checkpoint_path(run)))
    session = Training(run, None, Placement(threads=1), source)
    try:
        session.replay(events_of(journal), journal)
    finally:
        session.rollouts.close()
    return _trained(session)


def _trained(session: Training, stop: str = "") -> Trained:
    """The result of a training run so far."""
    reason = session.reason()
    columns = {name: np.asarray(column, dtype=np.float64) for name, column in session.columns().items()}
    saved = 0.0
    if "saved" in columns and len(columns["saved"]):
        spent, shares = np.diff(columns["timesteps"], prepend=0.0), columns["saved"]
        steps = float((spent * shares / (1.0 - shares)).sum())
        saved = steps / (session.timesteps + steps)
    return Trained(
        session.policy(),
        session.last("mean_reward"),
        session.timesteps,
        columns,
        stop or ("" if reason is None else reason.name),
        next(iter(session.problems.values()), ""),
        saved,
    )
