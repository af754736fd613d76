"""Policies: a network with tanh between its layers, its weights one flat vector; and policies as files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cones.archive import read_archive, write_archive
from cones.checks import check_array, check_bool, check_finite, check_integer, check_kind, check_shape
from cones.errors import InputError
from cones.files import check_path
from cones.rl.environments import check_task_allowed
from cones.rl.source import Source
from cones.rl.spaces import action_from, action_range, check_space, flat, flat_size
from cones.types import Vector

__all__ = ["Network", "NotFiniteError", "Policy", "check_spaces"]

FORMAT, VERSION = "cones policy", 3
TANH_SQUARE = 0.39429449  # the mean of tanh(z)^2 for z ~ N(0, 1)
LARGEST = 1.25  # variance of the first candidates' hidden weights, over that by fan-in


class NotFiniteError(InputError):
    """An observation, or an action, with numbers that are not finite."""

    def __init__(self, message: str, of_observation: bool) -> None:
        super().__init__(message)
        self.of_observation = of_observation


@dataclass(frozen=True)
class Network:
    """Layers of `sizes` units with tanh between them; without hidden layers it is linear.

    The flat vector holds for each layer its weights, shape (inputs, outputs), and its biases, if it has any.

    Example:
        >>> Network((8, 16, 2)).dim, Network((8, 16, 2), bias=False).dim
        (178, 160)
    """

    sizes: tuple[int, ...]
    bias: bool = True

    @property
    def dim(self) -> int:
        """The number of parameters."""
        return sum((inputs + self.bias) * outputs for inputs, outputs in pairwise(self.sizes))

    def deviations(self) -> Vector:
        """Deviations of random parameters that give units inputs of variance about 1, if observations have it.

        A unit with m inputs of mean square q and a bias has the deviation 1 / sqrt(m q + 1) (LeCun et al., Efficient
        BackProp, 1998); q is 1 for observations, and that of tanh(z) with z ~ N(0, 1) for hidden units.
        """
        parts = []
        for layer, (inputs, outputs) in enumerate(pairwise(self.sizes)):
            variance = inputs * (TANH_SQUARE if layer else 1.0) + self.bias
            parts.append(np.full((inputs + self.bias) * outputs, variance**-0.5))
        return np.concatenate(parts)

    def random_start(self, rng: np.random.Generator, spread: Vector | float) -> Vector:
        """Random hidden units without biases, and outputs that are 0, as the mean of candidates with this spread.

        Hidden weights of the mean have the variances by fan-in, or less where the spread is wide: those of candidates
        are at most 1.25 times as large. A mean of 0 is a saddle, as negating all weights into and out of hidden units
        changes nothing, so that a quarter is left to it in any case.
        """
        parameters, place = np.zeros(self.dim), 0
        variances = self.deviations() ** 2
        deviations = np.sqrt(variances * np.clip(LARGEST - np.square(spread) / variances, LARGEST - 1.0, 1.0))
        for inputs, outputs in pairwise(self.sizes[:-1]):
            weights = slice(place, place + inputs * outputs)
            parameters[weights] = deviations[weights] * rng.standard_normal(inputs * outputs)
            place += (inputs + self.bias) * outputs
        return parameters

    def outputs(self, parameters: Vector, inputs: Vector) -> Vector:
        place, values = 0, inputs
        for layer, (width, height) in enumerate(pairwise(self.sizes)):
            weights = parameters[place : place + width * height].reshape(width, height)
            values = (np.tanh(values) if layer else values) @ weights
            place += width * height
            if self.bias:
                values = values + parameters[place : place + height]
                place += height
        return values


@dataclass(frozen=True)
class Policy:
    """A policy: `action = policy(observation)`.

    Args:
        task: the name of the environment it was trained on.
        network: its layers.
        parameters: the flat vector of its weights.
        shift, scale: of the observation before it enters the network.
        space: its observations and actions; see `cones.rl.spaces`.
        env_kwargs: what the environment was made with.
        source: makes the environment; it is not saved.
    """

    task: str
    network: Network
    parameters: Vector
    shift: Vector
    scale: Vector
    space: dict[str, Any]
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    source: Source | None = None

    def __post_init__(self) -> None:
        for name, size in (("parameters", self.network.dim), ("shift", self.inputs), ("scale", self.inputs)):
            array = getattr(self, name)
            check_array(name, array)
            check_shape(name, array, (size,))
            check_finite(name, array)

    @property
    def inputs(self) -> int:
        return self.network.sizes[0]

    def __call__(self, observation: Any) -> Any:
        return self.action(self.seen(observation))

    def seen(self, observation: Any) -> Vector:
        """An observation as a vector of finite numbers."""
        try:
            values = flat(observation, self.space["observation"])
        except (TypeError, ValueError, KeyError, IndexError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"observation: expected one of the observation space of {self.task}, got {observation!r:.80} "
                f"({type(error).__name__}: {error!s:.80})"
            ) from None
        if values.size != self.inputs:
            raise InputError(
                f"observation: expected {self.inputs} numbers, got {values.size}; the environment must return "
                "the shape that its observation space says"
            )
        if not np.isfinite(values).all():
            raise NotFiniteError(f"observation: expected finite numbers, got {observation!r:.80}", True)
        return values

    def action(self, seen: Vector) -> Any:
        """The action for an observation as a vector."""
        outputs = self.network.outputs(self.parameters, (seen - self.shift) * self.scale)
        if not np.isfinite(outputs).all():
            raise NotFiniteError("observation: expected one with a finite action", False)
        return action_from(outputs, self.space["action"])

    def save(self, path: str | Path) -> None:
        """Write the policy: NumPy's `.npz` with a checksum, data only."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "task": self.task,
            "sizes": self.network.sizes,
            "bias": self.network.bias,
            "space": self.space,
            "env_kwargs": self.env_kwargs,
        }
        write_archive(Path(path), header, {"parameters": self.parameters, "shift": self.shift, "scale": self.scale})

    @staticmethod
    def load(path: str | Path, allow: Iterable[Any] = ()) -> Policy:
        """The policy of a file that `save` has written. Every field is checked, and nothing is imported.

        A task "module:Name-v0" is refused unless it is in `allow`, or its module is imported already.
        """
        check_path("path", path)
        try:
            header, arrays = read_archive(Path(path))
            if header["format"] != FORMAT or header["version"] not in (2, VERSION):
                raise ValueError(f"format {header['format']!r:.80}, version {header['version']!r:.80}")
            if arrays.keys() != {"parameters", "shift", "scale"}:
                raise ValueError(f"arrays {', '.join(arrays)}")
            check_kind("task", header["task"], str)
            sizes = tuple(check_integer("sizes", size, 1) for size in header["sizes"])
            for name, size in (("observation", sizes[0]), ("action", sizes[-1])):
                check_space(name, header["space"][name])
                if flat_size(header["space"][name]) != size:
                    raise ValueError(f"a space of {name}s for a network of sizes {sizes}")
            network = Network(sizes, check_bool("bias", header["bias"]))
            if header["version"] == 2 and not _has_unit_actions(header["space"]["action"]):
                raise ValueError("of a version whose outputs were not scaled to the range of actions: train it again")
            kwargs = header.get("env_kwargs", {})
            check_kind("env_kwargs", kwargs, dict)
            shape, places = header["space"], (arrays["parameters"], arrays["shift"], arrays["scale"])
            policy = Policy(header["task"], network, *places, shape, kwargs)
        except FileNotFoundError:
            raise InputError(f"{path}: no such policy") from None
        except Exception as error:  # whatever is wrong with a file, it is one error
            raise InputError(f"{path}: not a policy of cones ({error})") from None
        check_task_allowed(policy.task, allow)
        return policy


def _has_unit_actions(space: dict[str, Any]) -> bool:
    """True if outputs are actions."""
    if "low" not in space:
        return True
    _, _, middle, half = action_range(space)
    return bool((middle == 0.0).all() and (half == 1.0).all())


def check_spaces(policy: Policy, spaces: dict[str, Any], name: str) -> None:
    """Refuse to run a policy on an environment with other spaces."""
    for side in ("observation", "action"):
        ours, theirs = ({k: v for k, v in s[side].items() if k != "dtype"} for s in (policy.space, spaces))
        if ours != theirs:
            raise InputError(
                f"policy: trained on {policy.task} with the {side} space {ours!r:.100}, and {name} has {theirs!r:.100}"
                "; use the policy of this task, or make the environment with the env_kwargs of its training"
            )
