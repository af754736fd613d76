"""Minimise a function: one call, a budget, a result.

python examples/minimize_function.py
"""

import numpy as np

import cones


def loss(x: np.ndarray) -> float:
    """A valley that bends, with its lowest point at (1, 1, ..., 1)."""
    return float((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum())


def main() -> None:
    result = cones.minimize(
        loss,
        np.zeros(10),  # where to start
        sigma0=0.5,  # how far to look around at first
        bounds=[(-2.0, 2.0)] * 10,
        belief="full",  # learn which coordinates go together
        maxfev=60_000,
        ftarget=1e-3,  # good enough
        rng=0,  # makes the run repeatable
    )
    print(f"{result.fun:.3g} after {result.nfev} evaluations: {result.message}")
    print("x =", np.round(result.x, 2))
    print("mean loss of the population, every 50 iterations:")
    print(np.round(result.history["mean_loss"][::50], 3))


if __name__ == "__main__":
    main()
