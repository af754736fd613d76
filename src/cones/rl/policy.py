"""Policies: a network with tanh between its layers, its weights one flat vector; and policies as files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cones.archive import read_archive, write_archive
from cones.checks import check_array, check_bool, check_finite, check_integer, check_kind, check_shape
from cones.errors import InputError
from cones.files import check_path
from cones.rl.environments import check_task_allowed
from cones.rl.spaces import action_from, check_space, flat, flat_size
from cones.types import Vector

__all__ = ["Network", "Policy"]

FORMAT, VERSION = "cones policy", 2


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
        """Deviations of random parameters that give every unit an input of variance 1, if observations have it.

        They are 1 / sqrt(k) for a unit with k weights, its bias among them (LeCun et al., Efficient BackProp, 1998).
        """
        layers = [(inputs + self.bias, outputs) for inputs, outputs in pairwise(self.sizes)]
        return np.concatenate([np.full(fan_in * outputs, fan_in**-0.5) for fan_in, outputs in layers])

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
        task: the gymnasium id of the environment it was trained on.
        network: its layers.
        parameters: the flat vector of its weights.
        shift, scale: of the observation before it enters the network.
        space: its observations and actions; see `cones.rl.spaces`.
    """

    task: str
    network: Network
    parameters: Vector
    shift: Vector
    scale: Vector
    space: dict[str, Any]

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
        values = flat(observation, self.space["observation"])
        if values.size != self.inputs:
            raise InputError(f"observation: expected {self.inputs} numbers, got {values.size}")
        outputs = self.network.outputs(self.parameters, (values - self.shift) * self.scale)
        if not np.isfinite(outputs).all():
            raise InputError(f"observation: expected finite numbers, got {observation!r:.80}")
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
            if (header["format"], header["version"]) != (FORMAT, VERSION):
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
            policy = Policy(header["task"], network, **arrays, space=header["space"])
        except FileNotFoundError:
            raise InputError(f"{path}: no such policy") from None
        except Exception as error:  # whatever is wrong with a file, it is one error
            raise InputError(f"{path}: not a policy of cones ({error})") from None
        check_task_allowed(policy.task, allow)
        return policy
