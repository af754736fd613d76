"""Parameters of a search space: numbers, integers, choices and flags, alone or in arrays."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cones.checks import check_bool, check_integer, check_number, store
from cones.component import Storable
from cones.errors import InputError
from cones.types import Vector

__all__ = ["Choice", "Flag", "Float", "Integer", "Number", "Parameter"]


@dataclass(frozen=True)
class Parameter(Storable, ABC):
    """A named value of a search space, or an array of them."""

    type: ClassVar[str]

    @property
    def count(self) -> int:
        """Number of values."""
        return math.prod(self._sizes)

    @property
    def _sizes(self) -> tuple[int, ...]:
        """The shape, which is a tuple by now."""
        return self.shape  # type: ignore[attr-defined, no-any-return]

    @abstractmethod
    def index(self, name: str, value: Any) -> float:
        """The coordinate of one value; the index of a choice. Refuses values outside the parameter."""

    @abstractmethod
    def value(self, index: float) -> Any:
        """The value at a coordinate."""

    def indices(self, name: str, value: Any) -> Vector:
        """The coordinates of a value, or of all values of an array."""
        shape = self._sizes
        if not shape:
            return np.array([self.index(name, value)])
        values = _array(value)
        if values.shape != shape:
            raise InputError(f"{name}: expected an array of shape {shape}, got shape {values.shape}")
        return np.array([self.index(name, one) for one in values.ravel()])

    def values(self, indices: Vector) -> Any:
        """The value at coordinates; an array if the parameter has a shape."""
        shape = self._sizes
        if not shape:
            return self.value(float(indices[0]))
        array = np.empty(len(indices), self._dtype())
        array[:] = [self.value(float(index)) for index in indices]
        return array.reshape(shape)

    def _dtype(self) -> Any:
        return object


@dataclass(frozen=True)
class Number(Parameter):
    """A range of numbers, on its own scale or that of the logarithm."""

    low: float = -math.inf
    high: float = math.inf
    log: bool = False
    shape: int | tuple[int, ...] = ()

    def __post_init__(self) -> None:
        low, high = (_end(name, getattr(self, name)) for name in ("low", "high"))
        if not low < high:
            raise InputError(f"low, high: expected low < high, got {self.low} and {self.high}")
        store(self, low=low, high=high, log=check_bool("log", self.log), shape=_shape(self.shape))
        if self.log and not (low > 0.0 and high < math.inf):
            raise InputError(f"low: expected a positive number and a finite high with log=True, got {low} to {high}")

    def index(self, name: str, value: Any) -> float:
        number = check_number(name, value)
        if not self.low <= number <= self.high:
            raise InputError(f"{name}: expected a number between {self.low:g} and {self.high:g}, got {value!r}")
        return math.log(number) if self.log else number

    def value(self, index: float) -> Any:
        number = math.exp(index) if self.log else index
        return min(max(number, self.low), self.high)  # rounding may leave the range

    def ends(self) -> tuple[float, float]:
        """The range of the coordinate."""
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def middle(self) -> float:
        """Where a run starts: the middle of the range, the end of a half line, or 0."""
        low, high = self.ends()
        if math.isfinite(high - low):
            return 0.5 * (low + high)
        return low if math.isfinite(low) else high if math.isfinite(high) else 0.0

    @property
    def whole(self) -> int:
        """See `Box.whole`."""
        return 0


@dataclass(frozen=True)
class Float(Number):
    """A real number.

    Args:
        low, high: its range; either may be infinite.
        log: search on a logarithmic scale.
        shape: of an array of such numbers; () for a single one.

    Example:
        >>> Float(1e-5, 1e-1, log=True)
        Float(low=1e-05, high=0.1, log=True, shape=())
    """

    type: ClassVar[str] = "float"

    def _dtype(self) -> Any:
        return float


@dataclass(frozen=True)
class Integer(Number):
    """An integer from low to high, both included.

    Args:
        low, high: its range; either may be infinite.
        log: search on a logarithmic scale.
        shape: of an array of such numbers; () for a single one.
    """

    type: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("low", "high"):
            if math.isfinite(end := getattr(self, name)) and end != int(end):
                raise InputError(f"{name}: expected an integer, got {end}")

    def index(self, name: str, value: Any) -> float:
        super().index(name, value)
        if float(value) != int(value):
            raise InputError(f"{name}: expected an integer, got {value!r}")
        return super().index(name, value)

    def value(self, index: float) -> int:
        number = math.floor((math.exp(index) if self.log else index) + 0.5)
        return int(min(max(number, self.low), self.high))

    def ends(self) -> tuple[float, float]:
        """Half a step beyond the outer integers: every integer has a cell of the same width."""
        low, high = self.low - 0.5, self.high + 0.5
        return (math.log(low), math.log(high)) if self.log else (low, high)

    @property
    def whole(self) -> int:
        return 2 if self.log else 1

    def _dtype(self) -> Any:
        return int


@dataclass(frozen=True, init=False)
class Choice(Parameter):
    """One of several options, without an order.

    Args:
        *options: at least two different values of any type.
        shape: of an array of such choices; () for a single one.

    Example:
        >>> Choice("relu", "tanh").options
        ('relu', 'tanh')
    """

    type: ClassVar[str] = "choice"

    options: tuple[Any, ...]
    shape: int | tuple[int, ...] = ()

    def __init__(self, *options: Any, shape: int | Sequence[int] = ()) -> None:
        if len(options) < 2:
            raise InputError(f"options: expected at least two, got {len(options)}")
        for index, option in enumerate(options):
            if any(_same(option, other) for other in options[:index]):
                raise InputError(f"options: expected different ones, got {option!r} twice")
        store(self, options=tuple(options), shape=_shape(shape))

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Choice:
        return cls(*parts["options"], shape=parts["shape"])

    def index(self, name: str, value: Any) -> float:
        for index, option in enumerate(self.options):
            if _same(option, value):
                return float(index)
        raise InputError(f"{name}: expected one of {', '.join(map(repr, self.options))}, got {value!r:.80}")

    def value(self, index: float) -> Any:
        return self.options[int(index)]


@dataclass(frozen=True)
class Flag(Parameter):
    """True or False.

    Args:
        shape: of an array of flags; () for a single one.
    """

    type: ClassVar[str] = "flag"

    shape: int | tuple[int, ...] = ()

    def __post_init__(self) -> None:
        store(self, shape=_shape(self.shape))

    def index(self, name: str, value: Any) -> float:
        if not isinstance(value, (bool, np.bool_)) and not (isinstance(value, (int, np.integer)) and value in (0, 1)):
            raise InputError(f"{name}: expected True or False, got {value!r:.80}")
        return float(value)

    def value(self, index: float) -> bool:
        return index > 0.5

    def _dtype(self) -> Any:
        return bool


def _same(one: Any, other: Any) -> bool:
    """Equal, and of the same kind: True is not 1."""
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    try:
        return one is other or bool(one == other)
    except (TypeError, ValueError):  # arrays
        return False


def _array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.asarray(value, dtype=object)
    except ValueError:
        return np.empty(0, dtype=object)


def _end(name: str, value: Any) -> float:
    if isinstance(value, float) and math.isinf(value):
        return value
    return check_number(name, value)


def _shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, (int, np.integer)) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise InputError(f"shape: expected an integer or a tuple of integers, got {shape!r:.80}")
    return tuple(check_integer("shape", size, 1) for size in shape)
