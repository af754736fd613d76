"""Observation and action spaces of gymnasium as plain data, and vectors to and from them.

| space | numbers of an observation | outputs for an action |
| --- | --- | --- |
| Box | its numbers | one per number, scaled to its bounds |
| Discrete | a one in zeros | one per choice; the largest is chosen |
| MultiDiscrete | the same for each of its choices | the same for each of its choices |
| MultiBinary | its bits | one per bit, which is set if the output is positive |
| Dict, Tuple | those of its parts | those of its parts |
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cones.checks import check_integer, check_shape
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["action_from", "action_range", "check_space", "describe_spaces", "flat", "flat_size"]

MOST = 10**6  # numbers of an observation, or outputs for an action
IMAGE = 1000  # numbers from which on a box of three dimensions is taken for an image
SUPPORTED = "Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of them"


def describe_spaces(environment: Any) -> dict[str, Any]:
    """The two spaces of an environment, or an error that says which are supported."""
    names = {"observation": "observation_space", "action": "action_space"}
    spaces = {name: _described(name, getattr(environment, attribute, None)) for name, attribute in names.items()}
    for name, space in spaces.items():
        if not 1 <= flat_size(space) <= MOST:
            raise InputError(
                f"{name} space: expected 1 to {MOST} numbers, got {flat_size(space)}; wrap the environment so that it "
                "has another"
            )
    return spaces


def _described(name: str, space: Any) -> dict[str, Any]:
    match type(space).__name__:
        case "Discrete":
            return {"kind": "discrete", "count": int(space.n), "first": int(space.start)}
        case "MultiDiscrete":
            first, shape = np.broadcast_to(space.start, space.nvec.shape), list(space.nvec.shape)
            return {
                "kind": "multi_discrete",
                "shape": shape,
                "counts": [int(n) for n in space.nvec.ravel()],
                "first": [int(n) for n in first.ravel()],
                "dtype": str(space.dtype),
            }
        case "MultiBinary":
            return {"kind": "box", "shape": list(space.shape), "dtype": str(space.dtype), "binary": True}
        case "Dict":
            return {"kind": "dict", "spaces": {key: _described(name, part) for key, part in space.spaces.items()}}
        case "Tuple":
            return {"kind": "tuple", "spaces": [_described(name, part) for part in space.spaces]}
        case "Box" if np.issubdtype(space.dtype, np.number):
            return _described_box(name, space)
    raise InputError(
        f"{name} space: expected {SUPPORTED}, got {space!s:.200}; wrap the environment so that it has one of these"
    )


def _described_box(name: str, space: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"kind": "box", "shape": list(space.shape), "dtype": str(space.dtype)}
    pixels = space.dtype == np.uint8 and len(space.shape) >= 2
    if name == "observation" and (pixels or (len(space.shape) == 3 and np.prod(space.shape) >= IMAGE)):
        raise InputError(
            f"{name} space: expected numbers that a small network can read, got images of shape {space.shape}; wrap "
            "the environment so that it returns features, or a few pixels by gymnasium.wrappers.ResizeObservation, "
            "GrayscaleObservation and FlattenObservation"
        )
    if name == "action":
        for side in ("low", "high"):
            values = np.asarray(getattr(space, side), dtype=np.float64).ravel()
            described[side] = [float(v) if np.isfinite(v) else None for v in values]  # JSON has no infinity
    return described


def check_space(name: str, space: Any, depth: int = 0) -> None:
    """Refuse what `describe_spaces` cannot have written."""
    kind = space.get("kind") if isinstance(space, dict) else None
    if kind in ("dict", "tuple") and depth < 20:
        for part in _parts(space):
            check_space(name, part, depth + 1)
        return
    if kind not in ("discrete", "multi_discrete", "box"):
        raise InputError(f"{name} space: expected {SUPPORTED}, got {space!r:.80}")
    if kind == "discrete":
        check_integer(f"{name} space", space.get("count"), 1)
        check_integer(f"{name} space", space.get("first"), -(2**63))
        return
    shape = space.get("shape")
    if not isinstance(shape, list) or np.dtype(str(space.get("dtype"))).kind not in "biuf":
        raise InputError(f"{name} space: expected shape and dtype of a Box, got {space!r:.80}")
    size = math.prod(check_integer(f"{name} space", length, 0) for length in shape)
    for side, least in (("counts", 1), ("first", -(2**63))) if kind == "multi_discrete" else ():
        check_shape(side, np.array([check_integer(side, n, least) for n in space[side]]), (size,))
    for side in ("low", "high"):
        if side in space:
            check_shape(side, np.array(space[side], dtype=np.float64), (size,))


def _parts(space: dict[str, Any]) -> list[Any]:
    """The spaces that a Dict or a Tuple consists of."""
    return list(space["spaces"].values()) if space["kind"] == "dict" else list(space["spaces"])


def flat_size(space: dict[str, Any]) -> int:
    """Inputs that a policy needs for an observation of this space, or outputs for an action."""
    match space["kind"]:
        case "discrete":
            return int(space["count"])
        case "multi_discrete":
            return sum(space["counts"])
        case "box":
            return int(np.prod(space["shape"], dtype=int))
    return sum(map(flat_size, _parts(space)))


def flat(observation: Any, space: dict[str, Any]) -> Vector:
    """An observation as a vector."""
    match space["kind"]:
        case "discrete":
            return _ones([observation], [space["count"]], [space["first"]])
        case "multi_discrete":
            return _ones(np.asarray(observation).ravel(), space["counts"], space["first"])
        case "box":
            return np.asarray(observation, dtype=np.float64).ravel()
        case "dict":
            parts = [flat(observation[key], part) for key, part in space["spaces"].items()]
        case _:
            parts = [flat(value, part) for value, part in zip(observation, space["spaces"], strict=True)]
    return np.concatenate(parts) if parts else np.empty(0)


def _ones(choices: Any, counts: list[int], first: list[int]) -> Vector:
    """A one in zeros for each choice."""
    vector, place = np.zeros(sum(counts)), 0
    for choice, count, least in zip(choices, counts, first, strict=True):
        index = int(choice) - least
        if not 0 <= index < count:
            raise InputError(f"observation: expected a choice from {least} to {least + count - 1}, got {choice!r:.80}")
        vector[place + index] = 1.0
        place += count
    return vector


def action_from(outputs: Vector, space: dict[str, Any]) -> Any:
    """The action of a policy's outputs."""
    match space["kind"]:
        case "discrete":
            return int(np.argmax(outputs)) + int(space["first"])
        case "multi_discrete":
            groups = np.split(outputs, np.cumsum(space["counts"])[:-1])
            choices = [int(np.argmax(group)) + least for group, least in zip(groups, space["first"], strict=True)]
            return np.array(choices, dtype=space["dtype"]).reshape(space["shape"])
        case "box":
            if space.get("binary"):
                outputs = np.heaviside(outputs, 0.0)
            elif "low" in space:
                low, high, middle, half = action_range(space)
                outputs = np.fmin(np.fmax(middle + half * outputs, low), high)
            if np.dtype(space["dtype"]).kind in "iu":
                outputs = np.rint(outputs)
            return outputs.reshape(space["shape"]).astype(space["dtype"])
    sizes = list(map(flat_size, _parts(space)))
    pieces = np.split(outputs, np.cumsum(sizes)[:-1])
    parts = [action_from(piece, part) for piece, part in zip(pieces, _parts(space), strict=True)]
    return dict(zip(space["spaces"], parts, strict=True)) if space["kind"] == "dict" else tuple(parts)


def action_range(space: dict[str, Any]) -> Matrix:
    """Four rows for the numbers of a Box: lowest, highest (NaN if unbounded), and the affine map of outputs.

    An output of -1 means the lowest action and 1 the highest. Where a bound is missing, outputs are actions.
    """
    low, high = (np.array(space[name], dtype=np.float64) for name in ("low", "high"))  # null is NaN
    middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    bounded = np.isfinite(half)
    return np.stack([low, high, np.where(bounded, middle, 0.0), np.where(bounded, half, 1.0)])
