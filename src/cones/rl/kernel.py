"""Whole MuJoCo episodes in compiled code that holds no interpreter lock.

`mj_step` and its kin are called by their addresses in MuJoCo's own library, on the memory of a `MjModel` and a
`MjData` that Python has made. Importing this module needs mujoco and numba; the compiled code is cached on disk.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llvmlite.binding
import mujoco
import numba
import numpy as np

__all__ = ["DIVERGED", "ENDED", "NOT_A_NUMBER", "act", "episode", "quiet_warnings", "replay"]

# How an episode ended.
ENDED, DIVERGED, NOT_A_NUMBER = 0, 1, 2
# MuJoCo's own bound (mjMAXVAL): a position or velocity beyond it, or NaN, is a diverged simulation.
LARGEST = 1e10


def _library() -> str:
    folder = Path(mujoco.__file__).parent
    found = sorted(path for pattern in ("libmujoco*", "mujoco.dll") for path in folder.glob(pattern))
    if not found:
        raise ImportError(f"MuJoCo's library was not found in {folder}")
    return str(found[0])


LIBRARY = _library()
llvmlite.binding.load_library_permanently(LIBRARY)
_call = numba.void(numba.uintp, numba.uintp)
_mj_step = numba.types.ExternalFunction("mj_step", _call)
_mj_forward = numba.types.ExternalFunction("mj_forward", _call)
_mj_reset = numba.types.ExternalFunction("mj_resetData", _call)


def _compiled(function: Callable[..., Any]) -> Any:
    return numba.njit(nogil=True, cache=True)(function)


@_compiled
def act(sizes, biased, parameters, observation, shift, scale, layers, action):  # type: ignore[no-untyped-def]
    """The policy: a network with tanh between its layers, on the normalised observation.

    `parameters` holds for each layer its weights, shape (inputs, outputs), and its biases, if it has any. The inner
    loop goes over outputs, which the processor does several at a time without changing the order of any sum.
    """
    inputs = layers[0]
    for i in range(sizes[0]):
        inputs[i] = (observation[i] - shift[i]) * scale[i]
    place = 0
    last = sizes.size - 2
    for layer in range(last + 1):
        inputs, outputs = layers[layer], layers[layer + 1]
        width, height = sizes[layer], sizes[layer + 1]
        bias = place + width * height
        for j in range(height):
            outputs[j] = parameters[bias + j] if biased else 0.0
        for i in range(width):
            value = inputs[i]
            row = place + i * height
            for j in range(height):
                outputs[j] += value * parameters[row + j]
        if layer < last:
            for j in range(height):
                outputs[j] = math.tanh(outputs[j])
        place = bias + height if biased else bias
    for j in range(sizes[last + 1]):
        action[j] = layers[last + 1, j]


@_compiled
def _observe(qpos, qvel, skipped, velocity_limit, observation):  # type: ignore[no-untyped-def]
    positions = qpos.size - skipped
    for i in range(positions):
        observation[i] = qpos[skipped + i]
    for i in range(qvel.size):
        observation[positions + i] = min(max(qvel[i], -velocity_limit), velocity_limit)


@_compiled
def _begin(model, data, qpos, qvel, start):  # type: ignore[no-untyped-def]
    _mj_reset(model, data)
    for i in range(qpos.size):
        qpos[i] = start[i]
    for i in range(qvel.size):
        qvel[i] = start[qpos.size + i]
    _mj_forward(model, data)


@_compiled
def _sound(values):  # type: ignore[no-untyped-def]
    for value in values:  # noqa: SIM110 - numba compiles no generators
        if not (-LARGEST <= value <= LARGEST):  # NaN is neither
            return False
    return True


@_compiled
def _step(model, data, qpos, qvel, ctrl, frames, task, action):  # type: ignore[no-untyped-def]
    """One step of the environment: its reward, whether it is terminal, whether the simulation is sound."""
    dt, cost, bonus = task[0], task[1], task[2]
    before = qpos[0]
    for i in range(ctrl.size):
        ctrl[i] = action[i]
    for _ in range(frames):
        _mj_step(model, data)
    if not (_sound(qpos) and _sound(qvel)):
        return 0.0, True, False
    squares = 0.0
    for i in range(ctrl.size):
        squares += action[i] * action[i]
    reward = ((qpos[0] - before) / dt + bonus) - cost * squares
    # Healthy: height, angle and, for Hopper, every other part of the state within bounds.
    healthy = task[3] < qpos[1] < task[4] and task[5] < qpos[2] < task[6]
    limit = task[7]
    if healthy and limit < LARGEST:
        for i in range(2, qpos.size):
            healthy = healthy and -limit < qpos[i] < limit
        for value in qvel:
            healthy = healthy and -limit < value < limit
    return reward, not healthy, True


@_compiled
def episode(  # type: ignore[no-untyped-def]
    model, data, qpos, qvel, ctrl, start, frames, skipped, task, low, high, horizon, sizes, biased, parameters, shift,
    scale, layers, moments, record,
):  # fmt: skip
    """An episode from its start state to its end.

    Writes (return, length, how it ended) to `record`, and to `moments` the mean of the observations the policy
    saw and their summed squared deviations from it.
    """
    observation = np.empty(sizes[0])
    action = np.empty(ctrl.size)
    seen, scatter = moments[0], moments[1]
    seen[:] = 0.0
    scatter[:] = 0.0
    _begin(model, data, qpos, qvel, start)
    total, length, ended = 0.0, 0, ENDED
    while length < horizon:
        _observe(qpos, qvel, skipped, task[8], observation)
        share = 1.0 / (length + 1)
        for i in range(observation.size):
            distance = observation[i] - seen[i]
            seen[i] += distance * share
            scatter[i] += distance * (observation[i] - seen[i])
        act(sizes, biased, parameters, observation, shift, scale, layers, action)
        length += 1
        finite = True
        for i in range(action.size):
            finite = finite and math.isfinite(action[i])
            action[i] = min(max(action[i], low[i]), high[i])
        if not finite:
            ended = NOT_A_NUMBER
            break
        reward, terminal, sound = _step(model, data, qpos, qvel, ctrl, frames, task, action)
        if not sound:
            ended = DIVERGED
            break
        total += reward
        if terminal:
            break
    record[0], record[1], record[2] = total, length, ended


@_compiled
def replay(  # type: ignore[no-untyped-def]
    model, data, qpos, qvel, ctrl, start, frames, skipped, task, actions, observations, rewards, terminals
):
    """Given actions, whatever happens: an observation more than there are actions, rewards, terminations."""
    _begin(model, data, qpos, qvel, start)
    _observe(qpos, qvel, skipped, task[8], observations[0])
    for k in range(len(actions)):
        rewards[k], terminals[k], sound = _step(model, data, qpos, qvel, ctrl, frames, task, actions[k])
        _observe(qpos, qvel, skipped, task[8], observations[k + 1])
        if not sound:
            return k
    return len(actions)


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
