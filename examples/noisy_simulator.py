"""Tune a controller against a simulator that is noisy, and that sometimes fails.

    python examples/noisy_simulator.py

Losses that change from call to call are no problem for a method that averages over a population, but the best candidate
is then the luckiest one: the answer is `result.mean`. A simulation that fails is NaN, which ranks worst.
"""

import math

import numpy as np

import cones

NOISE = np.random.default_rng(1)


def simulate(logs: np.ndarray) -> float:
    """Cost of bringing a mass to rest at 0 with a spring and a damper, whose logarithms are given, in gusts of wind."""
    stiffness, damping = 10.0**logs
    x, v, cost = 1.0 + 0.1 * NOISE.standard_normal(), 0.0, 0.0
    for _ in range(100):
        force = -stiffness * x - damping * v + 0.5 * NOISE.standard_normal()
        v += 0.05 * force
        x += 0.05 * v
        cost += 0.05 * (x**2 + 0.01 * force**2)
    return cost if abs(x) < 10.0 else math.nan  # it has left the room


def mean_cost(logs: np.ndarray, runs: int = 200) -> float:
    return float(np.mean([simulate(logs) for _ in range(runs)]))


def main() -> None:
    start = np.array([1.0, 1.4])
    result = cones.minimize(
        simulate,
        start,
        sigma0=0.3,
        bounds=[(-1.0, 2.0), (-1.0, 2.0)],
        popsize=40,
        maxiter=60,
        ftol=None,  # noise never settles
        noisy=True,  # measure the answer at the end
        rng=0,
    )
    print(f"{int(result.history['failures'].sum())} of {result.nfev} simulations failed")
    print(f"the luckiest simulation cost {result.fun:.3f}, with {np.round(10.0**result.x, 1)}")
    print(f"measured at the mean: {result.mean_fun:.3f} ± {result.mean_fun_error:.3f}, so use the {result.use}")
    print(f"mean cost at the start {mean_cost(start):.3f}, with {np.round(10.0**start, 1)}")
    print(f"mean cost at the answer {mean_cost(result.mean):.3f}, with {np.round(10.0**result.mean, 1)}")


if __name__ == "__main__":
    main()
