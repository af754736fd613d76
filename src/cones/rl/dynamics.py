"""One step of a MuJoCo task in compiled code: what is observed, the reward, whether the episode ends.

Every sum is in NumPy's order, so that the numbers are gymnasium's bit for bit.
"""

from __future__ import annotations

import math

import numpy as np

from cones.rl.library import compiled, mj_forces, mj_forward, mj_reset, mj_step, power

__all__ = ["begin", "observe", "step"]

# MuJoCo's own bound (mjMAXVAL): a position or velocity beyond it, or NaN, is a diverged simulation.
LARGEST = 1e10
# Indices into `SOURCES`, `FUNCTIONS`, `REWARDS` and the points of `cones.rl.physics`.
QPOS, QVEL, FORCES, XPOS, XIPOS, SITES = 0, 1, 6, 7, 8, 9
SIN, COS = 1, 2
FORWARD, STAND, BALANCE = 0, 1, 2
TORSO, MASS = 1, 2


@compiled
def begin(model, data, sources, start):  # type: ignore[no-untyped-def]
    mj_reset(model, data)
    qpos, qvel = sources[QPOS], sources[QVEL]
    for i in range(qpos.size):
        qpos[i] = start[i]
    for i in range(qvel.size):
        qvel[i] = start[qpos.size + i]
    mj_forward(model, data)


@compiled
def observe(sources, parts, limits, observation):  # type: ignore[no-untyped-def]
    """The parts one after another. A row of `parts`: source, first, count, function, first to subtract or -1."""
    place = 0
    for k in range(len(parts)):
        values, first, function, other, limit = sources[parts[k, 0]], parts[k, 1], parts[k, 3], parts[k, 4], limits[k]
        for i in range(parts[k, 2]):
            value = values[first + i]
            if function == SIN:
                value = math.sin(value)
            elif function == COS:
                value = math.cos(value)
            if other >= 0:
                value -= values[other + i]
            observation[place] = min(max(value, -limit), limit)
            place += 1


@compiled
def _sound(values):  # type: ignore[no-untyped-def]
    for value in values:  # noqa: SIM110 - numba compiles no generators
        if not (-LARGEST <= value <= LARGEST):  # NaN is neither
            return False
    return True


@compiled
def _squares(values, limit):  # type: ignore[no-untyped-def]
    """The sum of squares of numbers that are clipped to [-limit, limit], in the order of NumPy's `sum` below 128."""
    size = values.size
    total, done = 0.0, 0
    if size >= 8:
        sums = np.zeros(8)
        done = size - size % 8
        for i in range(done):
            value = min(max(values[i], -limit), limit)
            sums[i % 8] += value * value
        total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
    for i in range(done, size):
        value = min(max(values[i], -limit), limit)
        total += value * value
    return total


@compiled
def _position(sources, point, masses):  # type: ignore[no-untyped-def]
    """The coordinate whose velocity is paid; the last of `masses` is their sum."""
    if point == TORSO:
        return sources[XPOS][3]
    if point == MASS:
        total = 0.0
        for i in range(masses.size - 1):
            total += masses[i] * sources[XIPOS][3 * i]
        return total / masses[masses.size - 1]
    return sources[QPOS][0]


@compiled
def _distance(positions, one, other):  # type: ignore[no-untyped-def]
    difference = positions[one : one + 3] - positions[other : other + 3]
    return math.sqrt(np.dot(difference, difference))


@compiled
def _reach(sources, bodies, action, numbers):  # type: ignore[no-untyped-def]
    positions, cost, near = sources[XPOS], numbers[3], numbers[7]
    reward = -_distance(positions, bodies[0], bodies[1]) + -_squares(action, np.inf) * cost
    return reward + -_distance(positions, bodies[0], bodies[2]) * near if near > 0.0 else reward


@compiled
def _balance(sources, bonus, two):  # type: ignore[no-untyped-def]
    tip, velocity = sources[SITES], sources[QVEL]
    distance = 0.01 * power(tip[0], two) + power(tip[2] - 2.0, two)
    speed = 1e-3 * power(velocity[1], two) + 5e-3 * power(velocity[2], two)
    return bonus - distance - speed


@compiled
def _healthy(sources, bounds, intervals, limit):  # type: ignore[no-untyped-def]
    for k in range(len(bounds)):
        if not intervals[k, 0] < sources[bounds[k, 0]][bounds[k, 1]] < intervals[k, 1]:
            return False
    if limit < LARGEST:
        for value in sources[QPOS][2:]:
            if not -limit < value < limit:
                return False
        for value in sources[QVEL]:
            if not -limit < value < limit:
                return False
    return True


@compiled
def step(model, data, sources, ctrl, task, action):  # type: ignore[no-untyped-def]
    """One step of the environment: its reward, whether it is terminal, whether the simulation is sound.

    `task` is (integers, numbers, masses, bodies, parts, limits, bounds, intervals); see `Simulator`.
    """
    integers, numbers, masses, bodies, _, _, bounds, intervals = task
    frames, kind, point = integers[0], integers[1], integers[2]
    forces, alive_only, reward_first = integers[3] == 1, integers[4] == 1, integers[5] == 1
    reward = _reach(sources, bodies, action, numbers) if reward_first else 0.0
    before = _position(sources, point, masses)
    for i in range(ctrl.size):
        ctrl[i] = action[i]
    for _ in range(frames):
        mj_step(model, data)
    if not (_sound(sources[QPOS]) and _sound(sources[QVEL])):
        return 0.0, True, False
    if forces:
        mj_forces(model, data)
    healthy = _healthy(sources, bounds, intervals, numbers[8])
    if reward_first:
        return reward, not healthy, True
    dt, weight, bonus, cost = numbers[0], numbers[1], numbers[2], numbers[3]
    if alive_only and not healthy:
        bonus = 0.0
    contact = 0.0
    if numbers[4] > 0.0:
        contact = min(numbers[4] * _squares(sources[FORCES], numbers[5]), numbers[6])
    if kind == FORWARD:
        velocity = (_position(sources, point, masses) - before) / dt
        reward = (weight * velocity + bonus) - (cost * _squares(action, np.inf) + contact)
    elif kind == STAND:
        reward = sources[QPOS][2] / numbers[10] - cost * _squares(action, np.inf) - contact + bonus
    elif kind == BALANCE:
        reward = _balance(sources, bonus, numbers[9])
    else:
        reward = _reach(sources, bodies, action, numbers)
    return reward, not healthy, True
