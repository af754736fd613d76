"""`cones train`, `cones resume`, `cones evaluate` and `cones play`."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from cones.checks import check_integer
from cones.cli.flags import add_method, add_method_flags, allowed_by, flag, flags_given, workers
from cones.cli.parser import OnceBoolean
from cones.cli.settings import check_method
from cones.errors import InputError
from cones.files import parsed_json
from cones.integrations.trackers import TensorBoard
from cones.rl.api import Trained, evaluate, execute_training, load_policy
from cones.rl.kept import kept_run
from cones.rl.rollouts import Placement
from cones.rl.source import source_from
from cones.rl.spec import TrainingRun, new_run
from cones.rl.training import TIMESTEPS, Training
from cones.rl.video import record_video
from cones.run.display import ProgressLine, duration

__all__ = ["add_to"]

TRAIN = """\
Train a policy on a gymnasium environment: a network with tanh units, on
observations that are normalised by their running mean and variance.

  cones train Swimmer-v4 --seed 0 --timesteps 3e6
  cones train CartPole-v1 --timesteps 1e5 --hidden 8
  cones train mymodule:MyEnv-v0      imports mymodule, which registers the id
  cones train mymodule:MyEnv         a class, or a function that makes one
  cones train Pendulum-v1 --env-kwargs g=9.8

On MuJoCo's tasks, such as Ant-v5, whole episodes run in compiled code, one
simulation per thread. Any other environment runs in processes, one environment
each. For HalfCheetah-v4, Walker2d-v4, Hopper-v4 and Swimmer-v4, the paper's
tasks, the defaults are the paper's setting. --radius adaptive, the default
elsewhere, is one setting for all tasks.

The folder DIR keeps record, policy and checkpoint. After Ctrl-C or a crash
`cones resume DIR` continues the run bit for bit. `cones evaluate DIR`,
`cones play DIR --video out.mp4`, `cones plot DIR` and `cones report DIR` show
what was learnt.
"""

TASK_SETTINGS = (
    ("sigma", float, "S", "initial standard deviation of the weights (default: by the fan-in of each unit and the "
     "popsize; in the paper's setting 0.02, Swimmer-v4 1)"),
    ("start", str, "KIND", "the first weights: zeros, or random ones of hidden units (default: random; in the "
     "paper's setting zeros)"),
    ("episodes", int, "M", "episodes per candidate and iteration (default 1)"),
    ("evaluate_every", int, "K", "iterations between evaluations of the mean policy (default 5)"),
    ("evaluation_episodes", int, "M", "episodes per evaluation (default 10); they do not count as training"),
    ("target", float, "R", "a reward to mark in figures and tables (default: the paper's on its tasks, none "
     "on others)"),
)  # fmt: skip


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    text = "train a policy on a gymnasium environment"
    train = commands.add_parser(
        "train", usage="cones train ENV [options]", parents=[common], help=text, description=TRAIN, formatter_class=raw
    )
    train.add_argument("task", metavar="ENV", help="the id of an environment, or MODULE:NAME")
    add_method(train, "cones")
    train.add_argument("--seed", metavar="K", type=int, default=0, help="seed of the run (default 0)")
    train.add_argument(
        "--env-kwargs",
        metavar="NAME=VALUE",
        type=_keyword,
        nargs="+",
        help="keyword arguments of the environment",
    )
    train.add_argument(
        "--timesteps",
        metavar="T",
        type=float,
        help="budget (default: 10^6; on the paper's tasks 5*10^7, Swimmer-v4 2*10^7)",
    )
    train.add_argument("--out", metavar="DIR", help="folder of the run (default: cones-results/ENV-METHOD-seed-K)")
    policy = train.add_argument_group("the policy and its episodes")
    shape = policy.add_mutually_exclusive_group()
    shape.add_argument(
        "--hidden",
        metavar="N",
        type=int,
        nargs="+",
        help="units of the hidden layers (default 16; the paper's 50 on its tasks but Swimmer-v4)",
    )
    shape.add_argument("--linear", action="store_true", help="no hidden layer")
    policy.add_argument(
        "--bias",
        action=OnceBoolean,
        help="whether units have biases (default: all but those of Swimmer-v4)",
    )
    policy.add_argument(
        "--common-starts",
        action=OnceBoolean,
        help="whether all candidates of an iteration have the same starts (default: yes; no in the paper's setting)",
    )
    for name, kind, metavar, help_text in TASK_SETTINGS:
        policy.add_argument(flag(name), metavar=metavar, type=kind, help=help_text)
    policy.add_argument(
        "--early-end",
        action="store_true",
        help="end episodes whose return so far puts them almost surely among the worse half (default: no)",
    )
    policy.add_argument(
        "--asynchronous",
        action="store_true",
        help="a free worker gets a new candidate at once; for episodes of unequal length on many workers (default: no)",
    )
    add_method_flags(
        train.add_argument_group("the method"),
        popsize="In training of ES, NES and CoNES: 4 + 3 log(n), even, for n weights; in the paper's setting 40. ARS "
        "16, TRES 100, the others 4 + 3 log(n) on all tasks.",
        radius="In training: adaptive; on the paper's tasks, its ε.",
        learning_rate="In training: 0.05 for ES and NES; on the paper's tasks the paper's. TRES 0.01.",
        shaping="In training: normal scores with adaptive radii, else centred ranks; ARS standardised, MORE and TRCMA "
        "recombination weights.",
        variance_learning_rate="In training as for the mean, but Swimmer-v4 0.1.",
        restarts='In training with adaptive radii: "refining", after a plateau. In all other training, and with '
        "--asynchronous: 0.",
        belief="In training: diagonal, with at most 10 weights full.",
    )
    _running(train)
    train.set_defaults(call=run_train)

    text = "continue a training run"
    again = commands.add_parser(
        "resume",
        parents=[common],
        help=text,
        description=f"{text.capitalize()} where it stopped, bit for bit as if it had not stopped.",
    )
    again.add_argument("folder", metavar="DIR", help="folder that `cones train` has written")
    again.add_argument("--timesteps", metavar="T", type=float, help="a new total budget, to train longer")
    _allow(again, "a component or an environment of your own that the run names; its module is imported")
    _running(again)
    again.set_defaults(call=run_resume)

    text = "run episodes of a trained policy"
    test = commands.add_parser(
        "evaluate",
        parents=[common],
        help=text,
        description="Run episodes of a trained policy: mean reward with its 95% confidence interval, standard "
        "deviation and range.",
    )
    test.add_argument("folder", metavar="DIR", help="folder that `cones train` has written, or a .policy.npz file")
    test.add_argument("--episodes", metavar="M", type=int, default=100, help="number of episodes (default 100)")
    test.add_argument("--seed", metavar="K", type=int, default=0, help="seed of the episodes (default 0)")
    test.add_argument("--threads", metavar="K", type=int, help="simulations at a time (default: one per core)")
    _allow(test, "the environment, if it is MODULE:NAME and you trust the module, which is imported")
    test.set_defaults(call=run_evaluate)

    text = "write a video of a trained policy"
    play = commands.add_parser(
        "play",
        parents=[common],
        help=text,
        description="Write a video of an episode, rendered off-screen. Needs the extra video (see `cones doctor`); "
        "MuJoCo needs OpenGL without a screen: Debian's libosmesa6 (MUJOCO_GL=osmesa, chosen where it is found) or "
        "libegl1 with a driver (MUJOCO_GL=egl).",
    )
    play.add_argument("folder", metavar="DIR", help="folder that `cones train` has written, or a .policy.npz file")
    play.add_argument("--video", metavar="FILE", required=True, help="the file to write: .mp4 or .gif")
    play.add_argument("--steps", metavar="N", type=int, default=1000, help="the most steps (default 1000)")
    play.add_argument("--seed", metavar="K", type=int, default=0, help="seed of the episode (default 0)")
    _allow(play, "the environment, if it is MODULE:NAME and you trust the module, which is imported")
    play.set_defaults(call=run_play)


def _keyword(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value as JSON or text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    with suppress(ValueError):
        return name, parsed_json(value)
    return name, value


def _allow(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--allow", metavar="MODULE:NAME", action="append", help=text)


def _running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", metavar="K", type=int, help="simulations at a time (default: one per core)")
    parser.add_argument(
        "--workers", metavar="W", type=workers,
        help="run episodes elsewhere: a number of processes, ray, ray://HOST:PORT, tcp://HOST:PORT (Dask), or "
        "MODULE:CLASS of an evaluator (default: this machine, see --threads)",
    )  # fmt: skip
    parser.add_argument("--timeout", metavar="S", type=float, help="seconds an episode may take (default: no limit)")
    parser.add_argument(
        "--retries",
        metavar="K",
        type=int,
        help="retry a failed episode up to K times before it counts as NaN (default: an error of the environment ends "
        "the run; 2 for lost workers and hanging episodes)",
    )
    parser.add_argument("--tensorboard", metavar="DIR", help="also log to this folder; needs the package tensorboardX")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run_train(options: argparse.Namespace) -> int:
    check_method(options, options.method)
    check_integer("--seed", options.seed, 0)
    names = [*(setting[0] for setting in TASK_SETTINGS), "bias", "common_starts"]
    settings = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    settings |= flags_given(options)
    settings |= {name: True for name in ("early_end", "asynchronous") if getattr(options, name)}
    if options.linear or options.hidden is not None:
        settings["hidden"] = [] if options.linear else options.hidden
    given = options.env_kwargs or []
    keywords = dict(given)
    if len(keywords) < len(given):
        raise InputError(f"--env-kwargs: expected each name once, got {' '.join(name for name, _ in given)}")
    source = source_from(options.task, keywords)
    run = new_run(source, options.method, options.seed, options.timesteps, settings)
    folder = options.out or Path("cones-results", run.name)
    return _trained(run, folder, options, run.method.own_components(), another_budget=False)


def run_resume(options: argparse.Namespace) -> int:
    run, components = kept_run(options.folder, options.timesteps, allowed_by(options))
    return _trained(run, options.folder, options, components, another_budget=options.timesteps is not None)


def _trained(
    run: TrainingRun, folder: str | Path, options: argparse.Namespace, allow: list[Any], another_budget: bool
) -> int:
    if options.threads is not None:
        check_integer("--threads", options.threads, 1)
    with ExitStack() as stack:
        followers: list[Callable[[Training], None]] = []
        if not options.quiet:
            print(f"{run.task.task}, {run.method.label}, seed {run.seed}: results in {folder}", file=sys.stderr)
            progress = _Progress()
            stack.callback(progress.close)
            followers.append(progress)
        if options.tensorboard:
            followers.append(stack.enter_context(TensorBoard(options.tensorboard)))

        def follow(training: Training) -> None:
            for follower in followers:
                follower(training)

        placement = Placement(options.threads, options.workers, options.timeout, options.retries)
        trained = execute_training(run, folder, placement, follow, another_budget, allow)
    _say(trained, folder)
    if trained.stop == "interrupted":
        task = [run.task.task] if ":" in run.task.task else []
        flags = "".join(f" --allow {name}" for name in (*task, *allow))
        print(f"cones: interrupted; `cones resume {folder}{flags}` goes on from here", file=sys.stderr)
        return 130
    if trained.stop in ("no_finite_loss", "diverged") or (trained.problem and math.isnan(trained.reward)):
        why = f"every episode failed, the first: {trained.problem}" if trained.problem else "the weights diverged"
        print(
            f"cones: the training failed: {why}; if the environment is not the cause, try a smaller --sigma or "
            "--learning-rate in another folder",
            file=sys.stderr,
        )
        return 1
    return 0


def _say(trained: Trained, folder: str | Path) -> None:
    why = "the budget is spent" if trained.stop == TIMESTEPS.name else trained.stop
    print(f"reward of the mean policy {trained.reward:.5g} after {trained.timesteps} timesteps ({why})")
    if trained.saved > 0.0:
        print(f"early ends saved about {trained.saved:.1%} of the timesteps, judged by episodes that ran to their end")
    print(f"policy, record and checkpoint are in {folder}")
    print("next: cones evaluate, play, plot, report or resume, each with this folder")


def run_evaluate(options: argparse.Namespace) -> int:
    policy = load_policy(options.folder, options.allow or ())
    check_integer("--seed", options.seed, 0)
    episodes = evaluate(policy, options.episodes, rng=options.seed, threads=options.threads)
    found = episodes.summary()
    if found.episodes:
        text = f"{policy.task}: reward {found.mean:.6g}, "
        if found.episodes > 1:
            text += (
                f"95% confidence interval {found.low:.6g} to {found.high:.6g}, over {found.episodes} episodes\n"
                f"standard deviation {found.deviation:.4g}, from {found.least:.6g} to {found.most:.6g}; "
            )
        else:
            text += "of one episode, too few for a confidence interval; "
        print(f"{text}{found.length:.4g} steps{' per episode on average' if found.episodes > 1 else ''}")
    if episodes.problems:
        first = next(iter(episodes.problems.values()))
        print(f"cones: {len(episodes.problems)} episodes failed, the first: {first}", file=sys.stderr)
        return 1
    return 0


def run_play(options: argparse.Namespace) -> int:
    policy = load_policy(options.folder, options.allow or ())
    check_integer("--steps", options.steps, 1)
    check_integer("--seed", options.seed, 0)
    reward, frames = record_video(policy, options.video, options.steps, options.seed)
    print(f"{options.video}: {frames} frames, reward {reward:.6g}")
    return 0


class _Progress(ProgressLine):
    """Timesteps, rewards, steps per second and the time left."""

    def __init__(self) -> None:
        super().__init__()
        self._begin: tuple[float, int] | None = None

    def __call__(self, training: Training) -> None:
        now, steps = time.monotonic(), training.timesteps
        if self._begin is None:
            self._begin = now, steps  # what was done before it was resumed says nothing about its speed
        self.show(lambda: self._line(training, now, steps))

    def _line(self, training: Training, now: float, steps: int) -> str:
        assert self._begin is not None
        rate = (steps - self._begin[1]) / max(now - self._begin[0], 1e-9)
        total = training.run.task.timesteps
        left = f", {duration((total - steps) / rate)} left" if rate > 0.0 and steps < 0.995 * total else ""
        parts = [
            f"{training.run.method.label} {100.0 * min(1.0, steps / total):.0f}% of {total:,} timesteps{left}",
            f"population {training.last('population_reward'):.5g}",
        ]
        if not math.isnan(reward := training.last("mean_reward")):
            parts.append(f"mean policy {reward:.5g}")
        if rate > 0.0:
            parts.append(f"{rate:.0f} steps/s")
        if training.problems:
            parts.append(f"{len(training.problems)} episodes failed: {next(iter(training.problems.values()))}")
        return "  ".join(parts)
