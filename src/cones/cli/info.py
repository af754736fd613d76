"""`cones methods`, `cones components`, `cones problems` and `cones doctor`."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import os
import platform
import shutil
import textwrap
from dataclasses import fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import cones
from cones.component import components, settings_of
from cones.estimators import SHAPINGS
from cones.extras import install_command
from cones.kernels.threads import thread_count
from cones.methods import METHODS
from cones.problems import PROBLEMS
from cones.solvers.cone_program import mosek_licence

__all__ = ["add_to"]

EXTRAS = {
    "cvxpy": ("cvxpy", 'the paper\'s cone programs (solver="cvxpy")'),
    "clarabel": ("cvxpy", "the free cone solver"),
    "scs": ("cvxpy", "another free cone solver"),
    "mosek": ("mosek", "the paper's cone solver; needs a licence"),
    "cma": ("cma", 'CMA-ES (method "cma")'),
    "cmaes": ("cma", 'separable CMA-ES (method "sepcma")'),
    "evosax": ("peers", 'OpenAI-ES and PGPE (methods "openes" and "pgpe")'),
    "matplotlib": ("experiments", "figures"),
    "gymnasium": ("rl", "reinforcement learning environments"),
    "mujoco": ("rl", "the paper's tasks; 3.3.0 is the fastest on them"),
    "numba": ("rl", "compiled rollouts of the paper's tasks"),
    "imageio_ffmpeg": ("video", "videos of policies as .mp4"),
    "PIL": ("video", "videos of policies as .gif"),
    "tensorboardX": ("tensorboard", "logs for TensorBoard"),
    "mlflow": ("mlflow", "runs in MLflow"),
    "wandb": ("wandb", "runs in Weights & Biases"),
    "optuna": ("optuna", "an Optuna sampler"),
    "torch": ("torch", "PyTorch modules, trained without gradients"),
    "ray": ("ray", 'evaluation on a Ray cluster (workers="ray")'),
    "distributed": ("dask", "evaluation on a Dask cluster"),
    "ConfigSpace": ("configspace", "spaces of ConfigSpace"),
    "nevergrad": ("nevergrad", "a nevergrad optimizer, and its functions as problems"),
    "cocoex": ("coco", "COCO benchmarks (cones bench coco)"),
    "cocopp": ("coco", "figures and tables of COCO data"),
}


# Names of distributions that differ from those of their packages.
NAMES = {"PIL": "pillow", "mlflow": "mlflow-skinny", "cocoex": "coco-experiment"}


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:
    for name, text, call in (
        ("methods", "list the methods", methods),
        ("components", "list the components of methods with their settings", list_components),
        ("problems", "list the test problems", problems),
        ("doctor", "show versions, threads and optional packages", doctor),
    ):
        commands.add_parser(name, parents=[common], help=text, description=text).set_defaults(call=call)


def methods(_: argparse.Namespace) -> int:
    for name, method in METHODS.items():
        _entry(name, _first_line(method), 8)
    return 0


def list_components(_: argparse.Namespace) -> int:
    for kind in ("belief", "estimator", "step", "divergence", "solver", "radius", "optimizer", "restarts"):
        print(f"{kind}:")
        for name, component in components(kind).items():
            _entry(f"  {name}", _first_line(component), 18)
            if is_dataclass(component):
                defaults = {field.name: field.default for field in fields(component)}
                for setting, sentence in settings_of(component).items():
                    plain = isinstance(defaults[setting], (bool, int, float, str))
                    shown = f"{setting}={defaults[setting]}" if plain else setting
                    _entry(f"    {shown}: ", sentence, 8)
        print()
    print("shaping:")
    for name, function in SHAPINGS.items():
        _entry(f"  {name}", _first_line(function), 18)
    print('\nWrite NAME, "NAME,setting=value,...", or MODULE:CLASS for one of your own.')
    return 0


def problems(_: argparse.Namespace) -> int:
    for name, problem in PROBLEMS.items():
        low, high = problem.domain
        _entry(name, inspect.getdoc(problem) or "", 17)
        _entry("", f"domain [{low:g}, {high:g}]", 17)
    print("\nIn an experiment file each needs dim. Optional keys: shift, rotation (a seed),")
    print("noise (a standard deviation), corrupted (a share of the losses).")
    return 0


def doctor(_: argparse.Namespace) -> int:
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    limit, threads = os.environ.get("OMP_NUM_THREADS"), thread_count()
    print(f"cones {cones.__version__}, Python {platform.python_version()}, {platform.platform()}")
    print(f"numpy {version('numpy')}, scipy {version('scipy')}; BLAS of numpy: {blas['name']} {blas['version']}")
    print(f"{os.cpu_count()} cores; OMP_NUM_THREADS is {limit or 'not set'}: noise is drawn in ", end="")
    print(f"{threads} thread{'s' if threads > 1 else ''}")
    print("\nOptional packages. cones works without them.")
    for package, (extra, purpose) in EXTRAS.items():
        if importlib.util.find_spec(package) is None:
            print(f"  missing    {package}: {purpose}\n             {install_command(extra, package)}")
            continue
        try:
            print(f"  installed  {package} {version(NAMES.get(package, package))}: {purpose}")
        except PackageNotFoundError:
            print(f"  installed  {package}: {purpose}")
    licence, found = mosek_licence()
    print(f"  {'found    ' if found else 'missing  '}  MOSEK licence: looked for at {licence}")
    return 0


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").splitlines()[0]


def _entry(name: str, text: str, column: int) -> None:
    """Print a name and a text that begins in a column, wrapped to the terminal; a long name moves the text."""
    width = max(40, shutil.get_terminal_size().columns - 1)
    start = name.ljust(column) if len(name) < column else f"{name.rstrip()} "
    print(textwrap.fill(text, width, initial_indent=start, subsequent_indent=" " * column))
