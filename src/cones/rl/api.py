"""Training from Python: `train`, `resume`, `load_policy`, `evaluate`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cones.checks import check_integer
from cones.component import identifier
from cones.errors import InputError
from cones.evaluate import Workers
from cones.files import check_path
from cones.records.folder import Folder
from cones.records.record import read_record
from cones.records.session import UnwrittenError, execute, read_checkpoint
from cones.rl.environments import check_task_allowed
from cones.rl.episode import Episodes
from cones.rl.policy import Policy
from cones.rl.rollouts import Placement, Rollouts, episode_of
from cones.rl.spec import TrainingRun, new_run
from cones.rl.training import Training
from cones.types import Vector

__all__ = ["Trained", "evaluate", "execute_training", "kept_run", "load_policy", "resume", "train"]


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
    """

    policy: Policy
    reward: float
    timesteps: int
    history: dict[str, Vector]
    stop: str
    problem: str = ""


def train(
    task: str,
    method: str = "cones",
    *,
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
        task: its id, such as "Swimmer-v4"; "module:Name-v0" imports the module that registers it first.
        method: "cones", "es", "nes", "ars", "tres", "more", "trcma", "cma" or "sepcma".
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
            `bias` (True if units have one), `sigma` (initial standard deviation of the weights), `episodes` per
            candidate, `evaluate_every` iterations, `evaluation_episodes`, `target`; and of the method: popsize,
            learning_rate, variance_learning_rate, radius, belief and others. The paper's for its tasks by default.

    Ctrl-C ends the training. The result so far is returned, and kept in `out`. Environments other than the paper's run
    in processes: a script keeps its own code under `if __name__ == "__main__":`, or trains with `threads=1`.

    Example:
        >>> trained = train("CartPole-v1", timesteps=2000, popsize=4, hidden=[], threads=1)
        >>> trained.policy(np.zeros(4)) in (0, 1)
        True
    """
    placement = Placement(threads, workers, timeout, retries)
    run = new_run(task, method, rng, timesteps, settings)
    return execute_training(run, out, placement, callback, allow=run.method.own_components())


def resume(
    folder: str | PathLike[str],
    *,
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
        timesteps: another budget, to train longer.
        threads, workers, timeout, retries, callback: as for `train`.
        allow: components of your own that the run may name, and the task if it is "module:Name-v0"; nothing else is
            imported. See `cones.load`.
    """
    placement = Placement(threads, workers, timeout, retries)
    run, components = kept_run(folder, timesteps, allow)
    return execute_training(run, folder, placement, callback, timesteps is not None, components)


def load_policy(folder: str | PathLike[str], allow: Iterable[Any] = ()) -> Policy:
    """Load the policy of a training run: `action = policy(observation)`.

    Args:
        folder: that of the run, or a `.policy.npz` file. Of several runs in one folder, name the file.
        allow: the task, if it is "module:Name-v0" and its module is not imported yet: a file alone imports nothing.
    """
    check_path("folder", folder)
    path = Path(folder)
    if path.is_dir():
        found = sorted((path / "runs").glob("*.policy.npz"))
        if not found:
            raise InputError(f"{path}: expected the folder of a training run; there is no policy in it")
        if len(found) > 1:
            names = ", ".join(str(file) for file in found[:3])
            raise InputError(f"{path}: holds {len(found)} policies; name the file of one of them: {names}, ...")
        path = found[0]
    return Policy.load(path, allow)


def evaluate(policy: Policy, episodes: int = 100, *, rng: int = 0, threads: int | None = None) -> Episodes:
    """Run episodes of a policy: their `returns`, `lengths`, and `problems` where one failed."""
    words = np.random.SeedSequence(check_integer("rng", rng, 0)).generate_state(check_integer("episodes", episodes, 1))
    with Rollouts(episode_of(policy.task, policy.network, policy.space), Placement(threads)) as rollouts:
        parameters = np.tile(policy.parameters, (len(words), 1))
        return rollouts.episodes(parameters, policy.shift, policy.scale, [int(word) for word in words])


def kept_run(
    folder: str | PathLike[str], timesteps: float | None = None, allow: Iterable[Any] = ()
) -> tuple[TrainingRun, list[Any]]:
    """The only run of a folder, with another budget if one is given, and the components that `allow` has for it.

    What the folder names of the user's own must be in `allow`.
    """
    place = Folder(folder)
    data = place.experiment()
    try:
        run = TrainingRun.from_experiment(data)
        components = _allowed(run, [allow] if isinstance(allow, str) or callable(allow) else list(allow))
    except InputError as error:
        raise InputError(f"{folder}: {error}") from None
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{folder}: expected an experiment in experiment.json ({error})") from None
    record, checkpoint = place.record_path(run), place.checkpoint_path(run)
    recorded = read_record(record).columns["timesteps"] if record.exists() else np.empty(0)
    done = int(recorded[-1]) if recorded.size else 0  # none, if not even the first iteration was complete
    if done and not checkpoint.exists():
        raise InputError(f"{folder}: {done} timesteps are recorded, but the checkpoint {checkpoint.name} is not there")
    if timesteps is None:
        return run, components
    budget = check_integer("timesteps", timesteps, 1)
    if budget < done:
        raise InputError(f"timesteps: expected at least the {done} that are done, got {budget}")
    return replace(run, task=replace(run.task, timesteps=budget)), components


def _allowed(run: TrainingRun, allow: list[Any]) -> list[Any]:
    """The components in `allow`; an error if the run names one, or a task with a module, that is not there."""
    check_task_allowed(run.task.task, [thing for thing in allow if isinstance(thing, str)])
    components = [thing for thing in allow if thing != run.task.task]
    known = {thing if isinstance(thing, str) else identifier(thing) for thing in components}
    for name in run.method.own_components():
        if name not in known:
            raise InputError(f"the run names {name}; if you trust it, allow it by name: --allow {name}")
    return components


def execute_training(
    run: TrainingRun,
    out: str | PathLike[str] | None,
    placement: Placement | None = None,
    callback: Callable[[Training], None] | None = None,
    another_budget: bool = False,
    allow: Iterable[Any] = (),
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
        try:
            execute(partial(Training, placement=placement), run, place, follow, allow=allow)
        except KeyboardInterrupt:
            stop = "interrupted"
            if not sessions:
                raise
        except StopIteration:
            stop = "callback"
        except UnwrittenError:
            pass  # it was warned of; the result is not lost
        session = sessions[0]
        reason = session.reason()
        return Trained(
            session.policy(),
            session.last("mean_reward"),
            session.timesteps,
            {name: np.asarray(column, dtype=np.float64) for name, column in session.columns().items()},
            stop or ("" if reason is None else reason.name),
            next(iter(session.problems.values()), ""),
        )
