"""A nevergrad parametrization with choices as a `cones.Space`: choices are choices, all else is standardised data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nevergrad as ng
import numpy as np
from nevergrad.parametrization.choice import BaseChoice
from nevergrad.parametrization.container import Container

from cones.space.parameters import Choice, Float, Parameter
from cones.space.space import Space

__all__ = ["space_of", "with_values"]


def space_of(parametrization: Any) -> Space | None:
    """The space of a parametrization that has choices between constants; None if it has none, or other choices."""
    leaves = list(_leaves(parametrization))
    choices = [leaf for leaf in leaves if isinstance(leaf, BaseChoice)]
    if not choices or any(not isinstance(option, ng.p.Constant) for leaf in choices for option in _options(leaf)):
        return None
    return Space({str(index): _parameter(leaf) for index, leaf in enumerate(leaves)})


def with_values(parametrization: Any, values: dict[str, Any]) -> Any:
    """A child of the parametrization with these values of its space."""
    child = parametrization.spawn_child()
    for leaf, value in zip(_leaves(child), values.values(), strict=True):
        if not isinstance(leaf, BaseChoice):
            leaf.set_standardized_data(value)
            continue
        options = [option.value for option in _options(leaf)]
        picked = tuple(options[index] for index in np.atleast_1d(value))
        leaf.value = picked if leaf._repetitions is not None else picked[0]
    return child


def _leaves(parameter: Any) -> Iterator[Any]:
    """The parts that have data of their own, in a fixed order."""
    if isinstance(parameter, BaseChoice) or not isinstance(parameter, Container):
        if parameter.dimension:
            yield parameter
        return
    for _, part in sorted(parameter._content.items(), key=lambda pair: str(pair[0])):
        yield from _leaves(part)


def _options(choice: Any) -> list[Any]:
    return [choice.choices[index] for index in range(len(choice.choices))]


def _parameter(leaf: Any) -> Parameter:
    if isinstance(leaf, BaseChoice):
        count = len(leaf.choices)
        return Choice(*range(count), shape=() if leaf._repetitions is None else leaf._repetitions)
    return Float(shape=leaf.dimension)
