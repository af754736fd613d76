"""Parameters and spaces of other packages: Optuna's distributions, ConfigSpace, SciPy's bounds.

Objects are recognised by their type, without importing their packages.
"""

from __future__ import annotations

from typing import Any

from cones.errors import InputError
from cones.space.parameters import Choice, Constant, Float, Integer, Parameter

__all__ = ["describes_space", "foreign_pairs", "parameter_from"]

FLOATS = ("UniformFloatHyperparameter", "NormalFloatHyperparameter", "BetaFloatHyperparameter")
INTEGERS = ("UniformIntegerHyperparameter", "NormalIntegerHyperparameter", "BetaIntegerHyperparameter")


def describes_space(value: Any) -> bool:
    """True for a `ConfigSpace.ConfigurationSpace` and a `scipy.optimize.Bounds`."""
    return _is_configspace(value) or _is_bounds(value)


def foreign_pairs(value: Any) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """Names and parameters of a space of another package, and the values at which it starts."""
    if _is_bounds(value):
        return [("x", Float(value.lb, value.ub))], {}
    for what in ("conditions", "forbidden_clauses"):
        found: Any = getattr(value, what, ())
        if len(found):
            raise InputError(f"space: expected a ConfigurationSpace without {what}, got {found[0]}")
    parts = list(value.values())
    return [(part.name, part) for part in parts], {part.name: _plain(part.default_value) for part in parts}


def parameter_from(name: str, value: Any) -> Parameter | None:
    """The parameter for an Optuna distribution or a hyperparameter of ConfigSpace; None for anything else."""
    kinds = {kind.__name__ for kind in type(value).__mro__}
    if _comes_from(value, "optuna") and "BaseDistribution" in kinds:
        return _from_optuna(name, value, kinds)
    if _comes_from(value, "ConfigSpace") and hasattr(value, "default_value"):
        return _from_configspace(name, value, type(value).__name__)
    return None


def _from_optuna(name: str, part: Any, kinds: set[str]) -> Parameter:
    if "CategoricalDistribution" in kinds:
        return _choice(part.choices)
    if not kinds & {"FloatDistribution", "IntDistribution"}:
        raise InputError(f"{name}: expected a float, int or categorical distribution, got {part}")
    if part.low == part.high:
        return Constant(part.low)
    return (Float if "FloatDistribution" in kinds else Integer)(part.low, part.high, part.log, step=part.step)


def _from_configspace(name: str, part: Any, kind: str) -> Parameter:
    if kind in FLOATS:
        return Float(float(part.lower), float(part.upper), bool(part.log))
    if kind in INTEGERS:
        return Integer(int(part.lower), int(part.upper), bool(part.log))
    if kind == "CategoricalHyperparameter":
        return _choice([_plain(option) for option in part.choices])
    if kind == "OrdinalHyperparameter":
        return _choice([_plain(option) for option in part.sequence])
    if kind == "Constant":
        return Constant(_plain(part.value))
    raise InputError(f"{name}: expected a float, integer, categorical or ordinal hyperparameter, got {kind}")


def _choice(options: Any) -> Parameter:
    return Choice(*options) if len(options) > 1 else Constant(options[0])


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python value."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def _is_configspace(value: Any) -> bool:
    return _comes_from(value, "ConfigSpace") and hasattr(value, "conditions") and hasattr(value, "values")


def _is_bounds(value: Any) -> bool:
    return _comes_from(value, "scipy") and hasattr(value, "lb") and hasattr(value, "ub") and not hasattr(value, "A")


def _comes_from(value: Any, package: str) -> bool:
    return type(value).__module__.split(".")[0] == package
