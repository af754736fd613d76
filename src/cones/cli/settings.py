"""The start and the method from flags, and whether they agree with a checkpoint."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cones.checks import check_array, check_integer, check_vector
from cones.cli.flags import METHOD_FLAGS, RATES, allowed_by, flag, method_settings
from cones.errors import InputError
from cones.evolution import EvolutionStrategy
from cones.files import parsed_json
from cones.methods import METHODS, settings_of_method
from cones.run import checkpoint as checkpoints
from cones.space.reading import read_space
from cones.space.space import Space
from cones.types import Vector

__all__ = ["check_method", "check_resumed", "settings", "start_from"]

# For each flag, the part of a strategy that it sets and a checkpoint stores.
SET_BY: dict[str, Callable[[Any], Any]] = {
    "radius": lambda es: es.algorithm.step,
    "step": lambda es: es.algorithm.step,
    "solver": lambda es: es.algorithm.step,
    "divergence": lambda es: es.algorithm.step,
    "chart": lambda es: es.algorithm.step,
    "estimator": lambda es: es.algorithm.estimator,
    "optimizer": lambda es: es.algorithm.optimizer,
    "learning_rate": lambda es: getattr(es.algorithm.optimizer, "learning_rate", None),
    "variance_learning_rate": lambda es: getattr(es.algorithm.optimizer, "variance_learning_rate", None),
    "belief": lambda es: type(es.state.belief),
    "shaping": lambda es: es.algorithm.shaping,
    "independent": lambda es: es.algorithm.design,
    "restarts": lambda es: es.restarts,
    "seed": lambda es: es.noise.seed if isinstance(es, EvolutionStrategy) else es.seed,
    "bounds": lambda es: None if es.box is None else (es.box.lower.tolist(), es.box.upper.tolist()),
}


def start_from(options: argparse.Namespace) -> Vector | Space:
    given = [flag(name) for name in ("x0", "dim", "space") if getattr(options, name) is not None]
    if len(given) != 1:
        raise InputError(
            f"where to start: expected one of --x0, --dim and --space, got {' and '.join(given) or 'none'}"
        )
    if options.space is not None:
        if options.bounds:
            raise InputError("--bounds: expected none with --space, which has its own")
        return read_space(options.space)
    if options.dim is not None:
        return np.zeros(check_integer("--dim", options.dim, 1))
    return check_vector("--x0", np.atleast_1d(_numbers("--x0", options.x0)))


def _numbers(name: str, text: str) -> Vector:
    """Numbers of a flag: separated by commas, or a JSON file with an array. One number is a scalar."""
    with suppress(ValueError):
        numbers = [float(number) for number in text.split(",")]
        return np.array(numbers[0] if len(numbers) == 1 else numbers)
    try:
        return check_array(name, parsed_json(Path(text).read_text()))
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        if isinstance(error, FileNotFoundError) and text.endswith(".json"):
            raise InputError(f"{name}: {text} could not be read ({error.strerror})") from None
        raise InputError(f"{name}: expected numbers separated by commas or a JSON file, got {text[:80]!r}") from None


def _one_or_each(name: str, text: str, dim: int) -> Vector:
    """A scalar, or one number per coordinate."""
    numbers = _numbers(name, text)
    if numbers.shape not in ((), (dim,)):
        raise InputError(f"{name}: expected one number, or {dim}, one per coordinate, got shape {numbers.shape}")
    return numbers


def settings(options: argparse.Namespace, dim: int) -> dict[str, Any]:
    """The settings of the method from the flags."""
    said = method_settings(options)
    if options.sigma0 is not None:
        said["sigma0"] = _one_or_each("--sigma0", options.sigma0, dim)
    if options.bounds:
        sides = [np.broadcast_to(_one_or_each("--bounds", side, dim), (dim,)) for side in options.bounds]
        said["bounds"] = np.stack(sides, axis=1)
    return said


def check_resumed(options: argparse.Namespace) -> None:
    """Refuse flags that contradict the method and the settings of the checkpoint.

    A checkpoint does not store x0 and sigma0.
    """
    kept, started = checkpoints.read(options.checkpoint, allow=allowed_by(options))
    dim, method = kept.state.belief.dim, kept.method.lower()
    if options.space is not None and read_space(options.space) != kept.space:
        raise InputError(f"--resume: {options.checkpoint} was started with a different --space")
    begun = None if options.dim is None is options.x0 else start_from(options)
    size = begun.dim if isinstance(begun, Space) else None if begun is None else begun.size
    if size is not None and size != dim:
        raise InputError(f"--resume: {options.checkpoint} has {dim} dimensions, got {size}")
    if options.method is not None and options.method != method:
        raise InputError(f"--resume: {options.checkpoint} is a run of {kept.method}, got --method {options.method}")
    check_method(options, method)
    popsize = getattr(kept, "first_popsize", kept.popsize)  # restarts change it
    if options.popsize is not None and options.popsize != popsize:
        raise InputError(f"--resume: {options.checkpoint} has a popsize of {popsize}, got {options.popsize}")
    if options.noisy is not None and options.noisy != started.get("noisy"):
        raise InputError(f"--resume: {options.checkpoint} was started with a different --noisy; omit the flag")
    if options.replicates is not None and started.get("replication") is None:
        raise InputError(f"--resume: {options.checkpoint} was started without --replicates; omit the flag")
    given = [name for name in SET_BY if _is_given(options, name)]
    if not given:
        return
    said = settings(options, dim)
    # Any valid x0: this strategy does not run.
    start = kept.space or np.clip(np.zeros(dim), *np.transpose(said.get("bounds", [(0.0, 0.0)])))
    described = METHODS[method](start, rng=options.seed, **said)
    for name in given:
        if SET_BY[name](described) != SET_BY[name](kept):
            raise InputError(f"--resume: {options.checkpoint} was started with a different {flag(name)}; omit the flag")


def _is_given(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name, None)
    return value is not None and value is not False


def check_method(options: argparse.Namespace, method: str | None) -> None:
    """Refuse flags that are not settings of the method."""
    known = settings_of_method(method or "cones")
    needs = {**{name: name for name in METHOD_FLAGS}, **dict.fromkeys(RATES, "optimizer"), "independent": "antithetic"}
    for name, needed in needs.items():
        if needed not in known and _is_given(options, name):
            raise InputError(f"{flag(name)}: not a setting of method {method}")
