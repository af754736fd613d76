"""Policies: a network with tanh between its layers, its weights one flat vector; and policies as files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cones.checks import check_finite, check_shape
from cones.errors import InputError
from cones.types import Vector

__all__ = ["Network", "Policy"]

FORMAT, VERSION = "cones policy", 1


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
            check_shape(name, array, (size,))
            check_finite(name, array)

    @property
    def inputs(self) -> int:
        return self.network.sizes[0]

    def __call__(self, observation: Any) -> Any:
        from cones.rl.spaces import action_from, flat

        values = flat(observation, self.space["observation"])
        if values.size != self.inputs:
            raise InputError(f"observation: expected {self.inputs} numbers, got {values.size}")
        outputs = self.network.outputs(self.parameters, (values - self.shift) * self.scale)
        if not np.isfinite(outputs).all():
            raise InputError(f"observation: expected finite numbers, got {observation!r:.80}")
        return action_from(outputs, self.space["action"])

    def save(self, path: str | Path) -> None:
        """Write the policy as `.npz`, data only."""
        from cones.storage import write_arrays

        header = {
            "format": FORMAT,
            "version": VERSION,
            "task": self.task,
            "sizes": self.network.sizes,
            "bias": self.network.bias,
            "space": self.space,
        }
        write_arrays(
            Path(path),
            {
                "header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
                "parameters": self.parameters,
                "shift": self.shift,
                "scale": self.scale,
            },
        )

    @staticmethod
    def load(path: str | Path) -> Policy:
        """The policy of a file that `save` has written."""
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                header = json.loads(bytes(archive["header"]))
                if (header["format"], header["version"]) != (FORMAT, VERSION):
                    raise ValueError(f"format {header['format']!r}, version {header['version']!r}")
                return Policy(
                    header["task"],
                    Network(tuple(header["sizes"]), header.get("bias", True)),
                    archive["parameters"],
                    archive["shift"],
                    archive["scale"],
                    header["space"],
                )
        except FileNotFoundError:
            raise InputError(f"{path}: no such policy") from None
        except Exception as error:  # whatever is wrong with a file, it is one error
            raise InputError(f"{path}: not a policy of cones ({error})") from None
