"""Checks of arguments. Each error names the argument, what was expected and what was received."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = [
    "check_array",
    "check_bool",
    "check_finite",
    "check_fraction",
    "check_integer",
    "check_kind",
    "check_matrix",
    "check_non_negative",
    "check_number",
    "check_one_of",
    "check_positive",
    "check_same",
    "check_shape",
    "check_vector",
    "store",
]


def check_array(name: str, value: ArrayLike) -> Vector:
    """A float64 array, copied only if it needs conversion."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"dtype {array.dtype}")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: expected real numbers, got {_brief(value)} ({error})") from None


def check_finite(name: str, array: Vector) -> None:
    # min and max propagate NaN: two reductions instead of a mask as large as the array.
    if array.size and not (math.isfinite(array.min()) and math.isfinite(array.max())):
        bad = np.argwhere(~np.isfinite(array))
        place = f" at index {tuple(int(i) for i in bad[0])}" if array.ndim else ""
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        raise InputError(f"{name}: expected finite numbers, got {array[tuple(bad[0])]}{place}{more}")


def check_shape(name: str, array: Vector, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise InputError(f"{name}: expected shape {shape}, got shape {array.shape}")


def check_same(name: str, told: Matrix, asked: Matrix) -> None:
    """Refuse candidates other than those asked for, unless all went through float32, as JAX and PyTorch have it."""
    if np.array_equal(told, asked):
        return
    with np.errstate(over="ignore", invalid="ignore"):
        difference = np.abs(told - asked)
        single = np.finfo(np.float32)
        # Numbers that need float64 were never rounded: they are others, however close.
        rounded = np.array_equal(told.astype(np.float32), told)
        if rounded and bool((difference <= single.eps * np.abs(asked) + single.smallest_normal).all()):
            return
        largest = np.max(difference / np.maximum(np.abs(asked), single.smallest_normal), initial=0.0)
        coarse = rounded and not (told.astype(np.float32).view(np.uint32) & 0x1FFF).any()  # few digits, ...
        coarse = coarse and bool((difference <= 2.0**-8 * np.abs(asked) + 2.0**-24).all())  # ... and close
    precision = "; they have the precision of float16 or bfloat16: use float32 or float64" if coarse else ""
    raise InputError(
        f"{name}: expected the candidates of the last ask(), in order and to the precision of float32, got others: "
        f"they differ by up to {largest:.1e} of their size{precision}"
    )


def check_vector(name: str, value: ArrayLike, size: int | None = None, *, positive: bool = False) -> Vector:
    """A finite vector. If `size` is given, a scalar is broadcast to it."""
    vector = check_array(name, value)
    if size is not None and vector.ndim == 0:
        vector = np.full(size, float(vector))
    if size is not None:
        check_shape(name, vector, (size,))
    if vector.ndim != 1 or vector.size == 0:
        raise InputError(f"{name}: expected a vector with at least one number, got shape {vector.shape}")
    check_finite(name, vector)
    if positive and vector.min() <= 0.0:
        first = int(np.argmax(vector <= 0.0))
        raise InputError(f"{name}: expected positive numbers, got {vector[first]} at index {first}")
    return vector


def check_matrix(name: str, value: ArrayLike, size: int) -> Matrix:
    """A finite symmetric matrix; asymmetry by rounding is averaged out."""
    matrix = check_array(name, value)
    check_shape(name, matrix, (size, size))
    check_finite(name, matrix)
    asymmetry, largest = float(np.abs(matrix - matrix.T).max()), float(np.abs(matrix).max())
    if asymmetry > 1e-8 * largest:
        raise InputError(
            f"{name}: expected a symmetric matrix, got one that differs from its transpose "
            f"by {asymmetry / largest:.1e} of its largest entry"
        )
    return matrix if asymmetry == 0.0 else 0.5 * (matrix + matrix.T)


def check_kind(name: str, value: Any, kind: type | tuple[type, ...]) -> None:
    """Refuse a value of another class."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise InputError(f"{name}: expected a {' or a '.join(k.__name__ for k in kinds)}, got {_brief(value)}")


def check_number(name: str, value: Any) -> float:
    """A finite number as a plain float."""
    try:
        if isinstance(value, (str, bytes, bool)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected a number, got {_brief(value)}") from None
    if not math.isfinite(number):
        raise InputError(f"{name}: expected a finite number, got {number}")
    return number


def check_positive(name: str, value: Any) -> float:
    number = check_number(name, value)
    if number <= 0.0:
        raise InputError(f"{name}: expected a positive number, got {number}")
    return number


def check_bool(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name}: expected True or False, got {_brief(value)}")
    return bool(value)


def check_non_negative(name: str, value: Any) -> float:
    number = check_number(name, value)
    if number < 0.0:
        raise InputError(f"{name}: expected at least 0, got {number}")
    return number


def check_fraction(name: str, value: Any) -> float:
    number = check_number(name, value)
    if not 0.0 <= number < 1.0:
        raise InputError(f"{name}: expected a number in [0, 1), got {number}")
    return number


def store(instance: object, **values: Any) -> None:
    """Set checked values in a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def check_integer(name: str, value: Any, least: int) -> int:
    """An integer; accepts floats with an integer value (1e5)."""
    try:
        if isinstance(value, bool):
            raise TypeError
        integer = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except TypeError:
        raise InputError(f"{name}: expected an integer, got {_brief(value)}") from None
    if integer < least:
        raise InputError(f"{name}: expected at least {least}, got {integer}")
    return integer


def check_one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise InputError(f"{name}: expected one of {', '.join(map(repr, allowed))}, got {_brief(value)}")
    return str(value)


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
