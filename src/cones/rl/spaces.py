"""Observation and action spaces of gymnasium as plain data, and vectors to and from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cones.checks import check_integer, check_shape
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["action_from", "action_range", "check_space", "describe_spaces", "flat", "flat_size"]


def describe_spaces(environment: Any) -> dict[str, Any]:
    """The two spaces of an environment, or an error that says which are supported."""
    observation = _described("observation", environment.observation_space)
    action = _described("action", environment.action_space)
    if action["kind"] == "box":
        for name in ("low", "high"):
            side = np.asarray(getattr(environment.action_space, name), dtype=np.float64).ravel()
            action[name] = [float(v) if np.isfinite(v) else None for v in side]  # JSON has no infinity
    return {"observation": observation, "action": action}


def _described(name: str, space: Any) -> dict[str, Any]:
    kind = type(space).__name__
    if kind == "Discrete":
        return {"kind": "discrete", "count": int(space.n), "first": int(space.start)}
    if kind == "Box" and np.issubdtype(space.dtype, np.number):
        return {"kind": "box", "shape": list(space.shape), "dtype": str(space.dtype)}
    raise InputError(f"{name} space: expected Box or Discrete, got {space}; wrap the environment in one of these")


def check_space(name: str, space: Any) -> None:
    """Refuse what `describe_spaces` cannot have written."""
    if not isinstance(space, dict) or space.get("kind") not in ("discrete", "box"):
        raise InputError(f"{name} space: expected Box or Discrete, got {space!r:.80}")
    if space["kind"] == "discrete":
        check_integer(f"{name} space", space.get("count"), 1)
        check_integer(f"{name} space", space.get("first"), -(2**63))
        return
    shape = space.get("shape")
    if not isinstance(shape, list) or np.dtype(str(space.get("dtype"))).kind not in "biuf":
        raise InputError(f"{name} space: expected shape and dtype of a Box, got {space!r:.80}")
    size = math.prod(check_integer(f"{name} space", length, 0) for length in shape)
    for side in ("low", "high"):
        if side in space:
            check_shape(side, np.array(space[side], dtype=np.float64), (size,))


def flat_size(space: dict[str, Any]) -> int:
    """Inputs that a policy needs for an observation of this space: one per number, or one per choice."""
    return int(space["count"]) if space["kind"] == "discrete" else int(np.prod(space["shape"], dtype=int))


def flat(observation: Any, space: dict[str, Any]) -> Vector:
    """An observation as a vector; a choice as a one in zeros."""
    if space["kind"] == "discrete":
        vector = np.zeros(space["count"])
        vector[int(observation) - space["first"]] = 1.0
        return vector
    return np.asarray(observation, dtype=np.float64).ravel()


def action_from(outputs: Vector, space: dict[str, Any]) -> Any:
    """The action of a policy's outputs: the largest one's choice, or the numbers within the space's bounds."""
    if space["kind"] == "discrete":
        return int(np.argmax(outputs)) + int(space["first"])
    if "low" in space:
        low, high, middle, half = action_range(space)
        outputs = np.fmin(np.fmax(middle + half * outputs, low), high)
    return outputs.reshape(space["shape"]).astype(space["dtype"])


def action_range(space: dict[str, Any]) -> Matrix:
    """Four rows for the numbers of a Box: lowest, highest (NaN if unbounded), and the affine map of outputs.

    An output of -1 means the lowest action and 1 the highest. Where a bound is missing, outputs are actions.
    """
    low, high = (np.array(space[name], dtype=np.float64) for name in ("low", "high"))  # null is NaN
    middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    bounded = np.isfinite(half)
    return np.stack([low, high, np.where(bounded, middle, 0.0), np.where(bounded, half, 1.0)])
