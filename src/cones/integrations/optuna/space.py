"""An Optuna search space as a `cones.Space`.

float           a `Float`, on its own scale or that of the logarithm
int             an `Integer`, on either scale
with a step     the same with a step
categorical     a `Choice` of indices: categories may be equal, such as 1 and 1.0
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution

from cones.space.foreign import parameter_from
from cones.space.parameters import Choice, Parameter
from cones.space.space import Space

__all__ = ["Coordinates"]


class Coordinates:
    """The space of a study, and its values as Optuna has them.

    Example:
        >>> from optuna.distributions import FloatDistribution, IntDistribution
        >>> rate, size = FloatDistribution(1e-4, 1.0, log=True), IntDistribution(8, 64, step=8)
        >>> coordinates = Coordinates({"rate": rate, "size": size})
        >>> coordinates.params({"rate": 0.01, "size": 24})
        {'rate': 0.01, 'size': 24}
    """

    def __init__(self, space: Mapping[str, BaseDistribution], x0: Mapping[str, Any] | None = None) -> None:
        self._distributions = dict(space)
        self.space = Space([(name, _parameter(name, part)) for name, part in self._distributions.items()])
        guess = {name: self._guess(name, value) for name, value in (x0 or {}).items() if name in self._distributions}
        if guess:
            self.space = self.space.starting_at(guess)

    def params(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Optuna's values for those of the space."""
        params = dict(values)
        for name, distribution in self._distributions.items():
            if name in params and isinstance(distribution, CategoricalDistribution):
                params[name] = distribution.choices[params[name]]
        return params

    def _guess(self, name: str, value: Any) -> Any:
        distribution = self._distributions[name]
        if isinstance(distribution, CategoricalDistribution):
            return int(distribution.to_internal_repr(value))  # raises ValueError
        if not distribution.low <= value <= distribution.high:
            raise ValueError(f"x0: {name} = {value!r} is not in {distribution}")
        if distribution.step is None:
            return value
        return distribution.low + round((value - distribution.low) / distribution.step) * distribution.step


def _parameter(name: str, distribution: BaseDistribution) -> Parameter | None:
    if isinstance(distribution, CategoricalDistribution):
        return Choice(*range(len(distribution.choices)))
    return parameter_from(name, distribution)
