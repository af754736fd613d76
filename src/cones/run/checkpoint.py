"""Checkpoints: a run on disk, from which it goes on bit for bit.

The file is a zip of `.npy` arrays with one JSON header among them (NumPy's `.npz`), so it holds data and
nothing that could be executed. It is written beside its place and moved there when it is complete, so
that a crash or a full disk leaves the previous checkpoint as it was.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cones.baselines import CMAStrategy, SepCMAStrategy
from cones.beliefs import Belief, DiagonalGaussian, FullGaussian
from cones.errors import CheckpointError
from cones.evolution import Memory, Pipeline
from cones.files import atomic_write
from cones.optimizers import SGD, Adam, AdamMemory, Direct, SGDMemory
from cones.progress import stopping
from cones.progress.history import COLUMNS, History, State
from cones.radius import DirectionPath, Fixed, PathLength, PathMemory, SignalRatio
from cones.sampling import AntitheticNoise, IndependentNoise
from cones.space.bounds import Box
from cones.steps import Balls, BallsMemory, Convex, Natural, Plain
from cones.strategy import Strategy

__all__ = ["load", "read", "save", "write_arrays"]

FORMAT, VERSION = "cones checkpoint", 4

_KNOWN_CLASSES: tuple[type, ...] = (
    *(State, Box, DiagonalGaussian, FullGaussian, AntitheticNoise, IndependentNoise),
    *(Plain, Natural, Convex, Balls, BallsMemory, Fixed, PathLength, PathMemory, DirectionPath, SignalRatio),
    *(Memory, Adam, AdamMemory, SGD, SGDMemory, Direct),
    *(stopping.FTarget, stopping.XTol, stopping.FTol, stopping.MaxFev, stopping.MaxIter),
    *(stopping.MaxTime, stopping.Stagnation),
)
# What a checkpoint may name. Any other name is refused.
KNOWN = {known.__name__: known for known in _KNOWN_CLASSES}
STRATEGIES: dict[str, type[Strategy]] = {known.__name__: known for known in (Pipeline, CMAStrategy, SepCMAStrategy)}


def save(path: str | PathLike[str], strategy: Strategy, run: Mapping[str, Any] | None = None) -> None:
    """Write a checkpoint of a strategy, with the settings of the run around it."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "columns": COLUMNS,
        "class": type(strategy).__name__,
        "strategy": {part: _pack(getattr(strategy, part), arrays) for part in strategy.PARTS},
        "history": _pack(strategy.history.table()[: strategy.state.iteration], arrays),
        "run": dict(run or {}),
    }
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    write_arrays(Path(path), arrays)


def load(path: str | PathLike[str]) -> Strategy:
    """The strategy of a checkpoint, ready to `ask`.

    Example:
        >>> import cones, tempfile, pathlib
        >>> es = cones.CoNES([1.0, 2.0], popsize=10, rng=0)
        >>> path = pathlib.Path(tempfile.mkdtemp(), "run.ckpt")
        >>> es.save(path)
        >>> bool((cones.load(path).ask() == es.ask()).all())
        True
    """
    return read(path)[0]


def read(path: str | PathLike[str]) -> tuple[Strategy, dict[str, Any]]:
    """The strategy of a checkpoint and the settings of the run around it."""
    if not Path(path).exists():
        raise CheckpointError(f"{path}: no such checkpoint")
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is cut short, or something else")
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            header = json.loads(bytes(archive["header"]))
            if header["format"] != FORMAT:
                raise ValueError(f"format {header['format']!r}")
            if header["version"] != VERSION:
                raise CheckpointError(
                    f"{path}: written in version {header['version']} of the checkpoint format; "
                    f"this release of cones reads version {VERSION}"
                )
            arrays = {name: archive[name] for name in archive.files if name != "header"}
        known = STRATEGIES[header["class"]]
        parts = {part: _unpack(header["strategy"][part], arrays) for part in known.PARTS}
        parts["criteria"] = tuple(parts["criteria"])
        if tuple(header["columns"]) != COLUMNS:
            raise ValueError("other columns of history")
        return known(**parts, history=History(_unpack(header["history"], arrays))), dict(header["run"])
    except CheckpointError:
        raise
    except Exception as error:  # whatever is wrong with a file, it is one error
        raise CheckpointError(
            f"{path}: not a complete cones checkpoint ({type(error).__name__}: {error}); it was not used"
        ) from error


def _pack(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """The value as JSON, its arrays put aside."""
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, (tuple, list)):
        return [_pack(item, arrays) for item in value]
    if isinstance(value, dict):
        return {"dict": {str(key): _pack(item, arrays) for key, item in value.items()}}
    if isinstance(value, Belief):
        parts = value.state()
    elif is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
    elif value is None or isinstance(value, (bool, int, float, str)):
        return value
    else:
        parts = {}
    if type(value).__name__ not in KNOWN:
        raise CheckpointError(f"a {type(value).__name__} cannot be written to a checkpoint: {value!r}")
    return {"type": type(value).__name__, "parts": {name: _pack(part, arrays) for name, part in parts.items()}}


def _unpack(value: Any, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, list):
        return [_unpack(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "dict" in value:
        return {key: _unpack(item, arrays) for key, item in value["dict"].items()}
    known = KNOWN[value["type"]]
    parts = {name: _unpack(part, arrays) for name, part in value["parts"].items()}
    return known.from_state(parts) if issubclass(known, Belief) else known(**parts)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Arrays by name as one file, complete or not at all."""
    try:
        with atomic_write(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise CheckpointError(f"{path}: it could not be written ({error})") from error
