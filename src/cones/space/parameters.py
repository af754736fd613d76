"""Parameters of a search space: numbers, integers, choices and flags, alone or in arrays."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cones.checks import check_array, check_bool, check_integer, check_positive, store
from cones.component import Storable
from cones.errors import InputError
from cones.types import Vector

__all__ = ["Choice", "Constant", "Flag", "Float", "Integer", "Number", "Parameter"]


# Values are multiples of a step up to this share of it.
ROUNDING = 1e-6


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
    def indices(self, name: str, value: Any) -> Vector:
        """The coordinates of a value, or of all values of an array; the index of a choice. Refuses other values."""

    @abstractmethod
    def values(self, indices: Vector) -> Any:
        """The value at coordinates; an array if the parameter has a shape."""

    def _elements(self, name: str, value: Any) -> list[Any]:
        """The value, or those of an array."""
        if not self._sizes:
            return [value]
        elements = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
        if elements.shape != self._sizes:
            raise InputError(f"{name}: expected {_described(self._sizes)}, got {value!r:.80}")
        return list(elements.ravel())


@dataclass(frozen=True)
class Number(Parameter):
    """A range of numbers, on its own scale or that of the logarithm."""

    low: float | Sequence[Any] = -math.inf
    high: float | Sequence[Any] = math.inf
    log: bool = False
    shape: int | tuple[int, ...] = ()
    step: float | None = None

    def __post_init__(self) -> None:
        low, high = (_ends(name, getattr(self, name)) for name in ("low", "high"))
        given = _shape(self.shape)
        try:
            shape = np.broadcast_shapes(low.shape, high.shape, given)
        except ValueError:
            shape = None
        if shape is None or (given and shape != given):
            raise InputError(
                f"shape: expected one that fits low and high, got {self.shape} for {low.shape}, {high.shape}"
            )
        store(self, low=_plain(low), high=_plain(high), log=check_bool("log", self.log), shape=shape)
        if not (low < high).all():
            raise InputError(f"low, high: expected low < high, got {self.low} and {self.high}")
        if self.log and not ((low > 0.0).all() and (high < math.inf).all()):
            raise InputError(f"low: expected a positive number and a finite high with log=True, got {self.low}")
        self._check_ends(low, high)
        if self.step is not None:
            self._check_step(check_positive("step", self.step), low, high)

    def _check_step(self, step: float, low: Vector, high: Vector) -> None:
        if self.log or not (np.isfinite(low) & np.isfinite(high)).all():
            raise InputError("step: expected none on a logarithmic scale or in an infinite range")
        if (low + step * (1.0 + ROUNDING) <= high + 2.0 * ROUNDING * step).all():
            store(self, step=step)
            return
        raise InputError(f"step: expected at most high - low, got {step:g} from {self.low} to {self.high}")

    def _check_ends(self, low: Vector, high: Vector) -> None:
        """Further conditions on the ends."""

    def limits(self) -> tuple[Vector, Vector]:
        """low and high of each value."""
        low, high = (np.broadcast_to(np.asarray(end, float), self._sizes).ravel() for end in (self.low, self.high))
        return low, high

    def _last(self) -> Vector:
        """The number of steps from low to the last value that is not above high."""
        low, high = self.limits()
        return np.floor((high - low) / (self.step or 1.0) + ROUNDING)

    def ends(self) -> tuple[Vector, Vector]:
        """The range of the coordinates; with steps, half a step beyond the outer values."""
        low, high = self.limits()
        if self.step is not None:
            return np.full_like(low, -0.5), self._last() + 0.5
        return (np.log(low), np.log(high)) if self.log else (low, high)

    def middle(self) -> Vector:
        """Where a run starts: the middle of the range, the end of a half line, or 0."""
        low, high = self.ends()
        with np.errstate(invalid="ignore", over="ignore"):
            middle = 0.5 * low + 0.5 * high
            finite = np.isfinite(high - low)
        return np.where(finite, middle, np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0)))

    def indices(self, name: str, value: Any) -> Vector:
        numbers = check_array(name, value)
        if numbers.shape != self._sizes:
            raise InputError(f"{name}: expected {_described(self._sizes)}, got {value!r:.80}")
        (low, high), flat = self.limits(), numbers.ravel()
        bad = ~((flat >= low) & (flat <= high))
        if bad.any():
            k = int(bad.argmax())
            raise InputError(f"{name}: expected a number between {low[k]:g} and {high[k]:g}, got {flat[k]}")
        self._check_values(name, flat)
        if self.step is not None:
            steps = np.round((flat - low) / self.step)
            off = np.abs(low + steps * self.step - flat) > ROUNDING * self.step
            if off.any() or (steps > self._last()).any():
                raise InputError(f"{name}: expected {self.low} plus steps of {self.step:g}, got {value!r:.80}")
            return steps
        return np.log(flat) if self.log else flat

    def _check_values(self, name: str, values: Vector) -> None:
        """Further conditions on values."""

    def values(self, indices: Vector) -> Any:
        low, high = self.limits()
        if self.step is not None:
            indices = low + self.step * np.floor(indices + 0.5)
        numbers = np.clip(self._numbers(np.exp(indices) if self.log else indices), low, high)  # rounding may leave them
        return numbers.reshape(self._sizes) if self._sizes else float(numbers[0])

    def _numbers(self, numbers: Vector) -> Vector:
        return numbers

    @property
    def whole(self) -> int:
        """See `Box.whole`."""
        return 0 if self.step is None else 1


@dataclass(frozen=True)
class Float(Number):
    """A real number, or an array of them.

    Args:
        low, high: its range; either may be infinite. Arrays give each number of an array a range of its own.
        log: search on a logarithmic scale.
        shape: of an array of such numbers; () for a single one, or that of low and high.
        step: values are low, low + step, and so on; None: all numbers in the range.

    Example:
        >>> Float(1e-5, 1e-1, log=True)
        Float(low=1e-05, high=0.1, log=True, shape=(), step=None)
    """

    type: ClassVar[str] = "float"


@dataclass(frozen=True)
class Integer(Number):
    """An integer from low to high, both included, or an array of them.

    Args:
        low, high: its range; either may be infinite. Arrays give each number of an array a range of its own.
        log: search on a logarithmic scale.
        shape: of an array of such numbers; () for a single one, or that of low and high.
        step: values are low, low + step, and so on; None: all integers in the range.
    """

    type: ClassVar[str] = "integer"

    def _check_step(self, step: float, low: Vector, high: Vector) -> None:
        if step != math.floor(step):
            raise InputError(f"step: expected an integer, got {self.step}")
        if step == 1.0:
            store(self, step=None)
            return
        super()._check_step(step, low, high)

    def _check_ends(self, low: Vector, high: Vector) -> None:
        for name, end in (("low", low), ("high", high)):
            if (np.isfinite(end) & (end != np.floor(end))).any():
                raise InputError(f"{name}: expected an integer, got {getattr(self, name)}")

    def _check_values(self, name: str, values: Vector) -> None:
        if (values != np.floor(values)).any():
            raise InputError(f"{name}: expected an integer, got {values[values != np.floor(values)][0]}")

    def _numbers(self, numbers: Vector) -> Vector:
        return np.floor(numbers + 0.5)

    def values(self, indices: Vector) -> Any:
        numbers = super().values(indices)
        return numbers.astype(int) if self._sizes else int(numbers)

    def ends(self) -> tuple[Vector, Vector]:
        """Half a step beyond the outer integers: every integer has a cell of the same width."""
        if self.step is not None:
            return super().ends()
        low, high = self.limits()
        return (np.log(low - 0.5), np.log(high + 0.5)) if self.log else (low - 0.5, high + 0.5)

    @property
    def whole(self) -> int:
        return 2 if self.log else 1


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
            several = options and isinstance(options[0], (list, tuple, set))
            hint = "; pass them one by one, Choice(*options)" if several else ""
            raise InputError(f"options: expected at least two, got {len(options)}{hint}")
        for index, option in enumerate(options):
            if any(_same(option, other) for other in options[:index]):
                raise InputError(f"options: expected different ones, got {option!r} twice")
        store(self, options=tuple(options), shape=_shape(shape))

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Choice:
        return cls(*parts["options"], shape=parts["shape"])

    def indices(self, name: str, value: Any) -> Vector:
        return np.array([self._index(name, element) for element in self._elements(name, value)])

    def _index(self, name: str, value: Any) -> float:
        for index, option in enumerate(self.options):
            if _same(option, value):
                return float(index)
        raise InputError(f"{name}: expected one of {', '.join(map(repr, self.options))}, got {value!r:.80}")

    def values(self, indices: Vector) -> Any:
        if not self._sizes:
            return self.options[int(indices[0])]
        array = np.empty(len(indices), object)
        array[:] = [self.options[int(index)] for index in indices]
        return array.reshape(self._sizes)


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

    def indices(self, name: str, value: Any) -> Vector:
        elements = self._elements(name, value)
        for element in elements:
            if not isinstance(element, (bool, np.bool_)) and not (isinstance(element, int) and element in (0, 1)):
                raise InputError(f"{name}: expected True or False, got {element!r:.80}")
        return np.array([float(element) for element in elements])

    def values(self, indices: Vector) -> Any:
        return indices.reshape(self._sizes) > 0.5 if self._sizes else bool(indices[0] > 0.5)


@dataclass(frozen=True)
class Constant(Parameter):
    """A value that is handed to `fun` with the others. It has no coordinates.

    Args:
        value: of any type.
    """

    type: ClassVar[str] = "constant"

    value: Any
    shape: tuple[int, ...] = ()

    def indices(self, name: str, value: Any) -> Vector:
        if not _same(self.value, value):
            raise InputError(f"{name}: expected {self.value!r:.80}, a constant, got {value!r:.80}")
        return np.empty(0)

    def values(self, indices: Vector) -> Any:
        return self.value


def _same(one: Any, other: Any) -> bool:
    """Equal, and of the same kind: True is not 1."""
    if isinstance(one, (bool, np.bool_)) != isinstance(other, (bool, np.bool_)):
        return False
    try:
        return one is other or bool(one == other)
    except (TypeError, ValueError):  # arrays
        return False


def _ends(name: str, value: Any) -> Vector:
    ends = check_array(name, value)
    if np.isnan(ends).any():
        raise InputError(f"{name}: expected numbers, got {value!r:.80}")
    return ends


def _plain(ends: Vector) -> Any:
    """A float, or nested tuples of them."""

    def tuples(values: Any) -> Any:
        return tuple(map(tuples, values)) if isinstance(values, list) else values

    return tuples(ends.tolist())


def _described(shape: tuple[int, ...]) -> str:
    return f"an array of shape {shape}" if shape else "one value"


def _shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, (int, np.integer)) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise InputError(f"shape: expected an integer or a tuple of integers, got {shape!r:.80}")
    return tuple(check_integer("shape", size, 1) for size in shape)
