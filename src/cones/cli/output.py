"""Standard output, which is for the result alone."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

__all__ = ["output_for_result"]


@contextmanager
def output_for_result() -> Iterator[None]:
    """Send to standard error what Python code, compiled code and programs print meanwhile."""
    with redirect_stdout(sys.stderr):
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()
        try:
            kept = os.dup(1)
        except OSError:  # standard output is closed
            yield
            return
        try:
            try:
                os.dup2(2, 1)
            except OSError:  # standard error is closed
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            yield
        finally:
            with suppress(OSError, AttributeError):
                ctypes.CDLL(None).fflush(None)  # what compiled code has not written yet
            os.dup2(kept, 1)
            os.close(kept)
