"""`cones methods`, `cones components`, `cones problems` and `cones doctor`."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import os
import platform
from dataclasses import is_dataclass
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
    "mosek": ("mosek", "the cone solver of the paper"),
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
    "torch": ("torch", "training modules without gradients"),
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
        print(f"{name:8}{(inspect.getdoc(method) or '').splitlines()[0]}")
    return 0


def list_components(_: argparse.Namespace) -> int:
    for kind in ("belief", "estimator", "step", "divergence", "solver", "radius", "optimizer", "restarts"):
        print(f"{kind}:")
        for name, component in components(kind).items():
            print(f"  {name:16}{(inspect.getdoc(component) or '').splitlines()[0]}")
            if is_dataclass(component):
                for setting, sentence in settings_of(component).items():
                    print(f"  {'':16}  {setting}: {sentence}")
    print("shaping:")
    for name, function in SHAPINGS.items():
        print(f"  {name:16}{(inspect.getdoc(function) or '').splitlines()[0]}")
    print('\nWrite NAME, "NAME,setting=value,...", or MODULE:CLASS for one of your own.')
    return 0


def problems(_: argparse.Namespace) -> int:
    for name, problem in PROBLEMS.items():
        low, high = problem.domain
        print(f"{name:17}{inspect.getdoc(problem)}\n{'':17}domain [{low:g}, {high:g}]")
    print("\nIn an experiment file each needs dim. Optional keys: shift, rotation (a seed), noise (a deviation),")
    print("corrupted (a share of the losses).")
    return 0


def doctor(_: argparse.Namespace) -> int:
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    print(f"cones {cones.__version__}, Python {platform.python_version()}, {platform.platform()}")
    print(f"numpy {version('numpy')}, scipy {version('scipy')}; BLAS of numpy: {blas['name']} {blas['version']}")
    limit = os.environ.get("OMP_NUM_THREADS")
    print(
        f"{os.cpu_count()} cores; noise is drawn in {thread_count()} threads (OMP_NUM_THREADS is {limit or 'not set'})"
    )
    for package, (extra, purpose) in EXTRAS.items():
        if importlib.util.find_spec(package) is None:
            print(f"  missing    {package}: {purpose}; {install_command(extra, package)}")
            continue
        try:
            print(f"  installed  {package} {version(NAMES.get(package, package))}: {purpose}")
        except PackageNotFoundError:
            print(f"  installed  {package}: {purpose}")
    licence, found = mosek_licence()
    print(f"  {'found    ' if found else 'missing  '}  MOSEK licence: looked for at {licence}")
    return 0
