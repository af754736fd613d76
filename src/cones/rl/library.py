"""MuJoCo's own library, called by compiled code. Importing this module needs mujoco and numba."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llvmlite.binding
import mujoco
import numba

__all__ = ["compiled", "mj_forces", "mj_forward", "mj_reset", "mj_step", "power", "quiet_warnings"]


def _library() -> str:
    folder = Path(mujoco.__file__).parent
    found = sorted(path for pattern in ("libmujoco*", "mujoco.dll") for path in folder.glob(pattern))
    if not found:
        raise ImportError(f"MuJoCo's library was not found in {folder}")
    return str(found[0])


LIBRARY = _library()
llvmlite.binding.load_library_permanently(LIBRARY)
_call = numba.void(numba.uintp, numba.uintp)
mj_step = numba.types.ExternalFunction("mj_step", _call)
mj_forward = numba.types.ExternalFunction("mj_forward", _call)
mj_reset = numba.types.ExternalFunction("mj_resetData", _call)
mj_forces = numba.types.ExternalFunction("mj_rnePostConstraint", _call)
# Of the C library, as in NumPy: its squares are not always those of a multiplication.
power: Any = numba.types.ExternalFunction("pow", numba.float64(numba.float64, numba.float64))


def compiled(function: Callable[..., Any]) -> Any:
    return numba.njit(nogil=True, cache=True)(function)


@numba.cfunc(numba.void(numba.uintp))
def _say_nothing(message):  # type: ignore[no-untyped-def]
    pass


_handler = ctypes.c_void_p.in_dll(ctypes.CDLL(LIBRARY), "mju_user_warning")
_quiet_lock = threading.Lock()
_quiet = 0  # threads inside `quiet_warnings`
_before: int | None = None  # the handler outside of it


@contextmanager
def quiet_warnings() -> Iterator[None]:
    """MuJoCo neither prints its warnings nor writes them to MUJOCO_LOG.TXT in the working directory.

    The handler belongs to the process: the first thread in sets it, and the last one out sets it back.
    """
    global _quiet, _before
    with _quiet_lock:
        if not _quiet:
            _before = _handler.value
            _handler.value = _before or _say_nothing.address
        _quiet += 1
    try:
        yield
    finally:
        with _quiet_lock:
            _quiet -= 1
            if not _quiet:
                _handler.value = _before
