"""Whole MuJoCo episodes in compiled code that holds no interpreter lock.

`mj_step` and its kin are called by their addresses in MuJoCo's own library, on the memory of a `MjModel` and a
`MjData` that Python has made. Importing this module needs mujoco and numba; the compiled code is cached on disk.
"""

from __future__ import annotations

import math

import numpy as np

from cones.rl.dynamics import begin, observe, step
from cones.rl.library import compiled, quiet_warnings

__all__ = ["CUT", "DIVERGED", "ENDED", "NOT_A_NUMBER", "act", "episode", "episodes", "quiet_warnings", "replay"]

# How an episode ended.
ENDED, DIVERGED, NOT_A_NUMBER, CUT = 0, 1, 2, -1


@compiled
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


@compiled
def episode(  # type: ignore[no-untyped-def]
    model, data, sources, ctrl, start, task, actions, horizon, sizes, biased, parameters, shift, scale, layers, marks,
    floors, moments, record, so_far,
):  # fmt: skip
    """An episode from its start state to its end.

    The rows of `actions` are the lowest, the highest, and the middle and half width that outputs are scaled to. Writes
    (return, length, how it ended) to `record`, to `moments` the mean of the observations the policy saw and their
    summed squared deviations from it, and to `so_far` the return after each number of steps in `marks`. A return below
    the floor of its mark ends the episode.
    """
    observation = np.empty(sizes[0])
    action = np.empty(ctrl.size)
    parts, limits = task[4], task[5]
    low, high, middle, half = actions[0], actions[1], actions[2], actions[3]
    seen, scatter = moments[0], moments[1]
    seen[:] = 0.0
    scatter[:] = 0.0
    begin(model, data, sources, start)
    total, length, ended, mark = 0.0, 0, ENDED, 0
    while length < horizon:
        observe(sources, parts, limits, observation)
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
            action[i] = min(max(middle[i] + half[i] * action[i], low[i]), high[i])
        if not finite:
            ended = NOT_A_NUMBER
            break
        reward, terminal, sound = step(model, data, sources, ctrl, task, action)
        if not sound:
            ended = DIVERGED
            break
        total += reward
        if terminal:
            break
        if mark < marks.size and length == marks[mark]:
            so_far[mark] = total
            mark += 1
            if total < floors[mark - 1]:
                ended = CUT
                break
    for k in range(mark, marks.size):
        so_far[k] = total
    record[0], record[1], record[2] = total, length, ended


@compiled
def episodes(  # type: ignore[no-untyped-def]
    model, data, sources, ctrl, starts, task, actions, horizon, sizes, biased, rows, layers, marks, numbers, steps
):
    """Episodes one after the other, until all are done or `steps` steps; returns how many. See `cones.rl.episode`.

    The interpreter lock is taken once for all of them: an episode may take less time than that.
    """
    size, floors = sizes[0], rows.shape[1] - 1 - marks.size
    dim = floors - 2 * size
    done = 0
    for k in range(len(rows)):
        row, record = rows[k], numbers[k]
        episode(
            model, data, sources, ctrl, starts[k], task, actions, horizon, sizes, biased, row[:dim],
            row[dim : dim + size], row[dim + size : floors], layers, marks, row[floors:-1],
            record[3 : 3 + 2 * size].reshape(2, size), record[:3], record[3 + 2 * size :],
        )  # fmt: skip
        done += int(record[1])
        if done >= steps:
            return k + 1
    return len(rows)


@compiled
def replay(model, data, sources, ctrl, start, task, actions, observations, rewards, terminals):  # type: ignore[no-untyped-def]
    """Given actions, whatever happens: an observation more than there are actions, rewards, terminations."""
    parts, limits = task[4], task[5]
    begin(model, data, sources, start)
    observe(sources, parts, limits, observations[0])
    for k in range(len(actions)):
        rewards[k], terminals[k], sound = step(model, data, sources, ctrl, task, actions[k])
        observe(sources, parts, limits, observations[k + 1])
        if not sound:
            return k
    return len(actions)
