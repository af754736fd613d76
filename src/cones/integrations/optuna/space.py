"""An Optuna search space as a `cones.Space`.

float           a `Float`, on its own scale or that of the logarithm
int             an `Integer`, on either scale
with a step     an `Integer` that counts the steps
categorical     a `Choice`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from cones.space.parameters import Choice, Float, Integer, Parameter
from cones.space.space import Space

__all__ = ["Coordinates"]


class Coordinates:
    """The space of a study, and its values as Optuna has them.

    Example:
        >>> from optuna.distributions import FloatDistribution, IntDistribution
        >>> rate, size = FloatDistribution(1e-4, 1.0, log=True), IntDistribution(8, 64, step=8)
        >>> coordinates = Coordinates({"rate": rate, "size": size})
        >>> coordinates.params({"rate": 0.01, "size": 2})
        {'rate': 0.01, 'size': 24}
    """

    def __init__(self, space: Mapping[str, BaseDistribution], x0: Mapping[str, Any] | None = None) -> None:
        self._distributions = dict(space)
        self.space = Space([(name, _parameter(distribution)) for name, distribution in self._distributions.items()])
        guess = {name: self._guess(name, value) for name, value in (x0 or {}).items() if name in self._distributions}
        if guess:
            self.space = self.space.starting_at(guess)

    def params(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Optuna's values for those of the space."""
        return {name: _value(self._distributions[name], value) for name, value in values.items()}

    def _guess(self, name: str, value: Any) -> Any:
        distribution = self._distributions[name]
        if isinstance(distribution, CategoricalDistribution):
            return int(distribution.to_internal_repr(value))  # raises ValueError
        if not distribution.low <= value <= distribution.high:
            raise ValueError(f"x0: {name} = {value!r} is not in {distribution}")
        return round((value - distribution.low) / distribution.step) if _counts(distribution) else value


def _counts(distribution: BaseDistribution) -> bool:
    """True if a parameter counts steps."""
    if isinstance(distribution, CategoricalDistribution) or distribution.step is None:
        return False
    return not (isinstance(distribution, IntDistribution) and distribution.step == 1)


def _parameter(distribution: BaseDistribution) -> Parameter:
    if isinstance(distribution, CategoricalDistribution):
        return Choice(*range(len(distribution.choices)))
    if _counts(distribution):
        return Integer(0, round((distribution.high - distribution.low) / distribution.step))
    kind = Integer if isinstance(distribution, IntDistribution) else Float
    return kind(distribution.low, distribution.high, distribution.log)


def _value(distribution: BaseDistribution, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[value]
    if _counts(distribution):
        value = min(distribution.low + value * distribution.step, distribution.high)  # rounding may leave the range
    return int(value) if isinstance(distribution, IntDistribution) else float(value)
