"""Your own loop by ask and tell, with evaluations in a pool of processes, and a checkpoint.

    python examples/ask_tell_pool.py

`cones.minimize(loss, x0, workers=4)` does the same in one call; a loop of your own can do what it does not.
"""

import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import cones


def loss(x: np.ndarray) -> float:
    """Something that takes a while. At the top of the module, so that other processes find it."""
    return float(np.sum((x - np.arange(x.size)) ** 2))


def main() -> None:
    checkpoint = Path(tempfile.mkdtemp(), "run.ckpt")
    es = cones.CoNES(np.zeros(5), sigma0=1.0, popsize=20, rng=0, maxiter=200, ftarget=1e-6)
    with ProcessPoolExecutor(2) as pool:
        while not es.stop():
            X = es.ask()  # (popsize, n), one candidate per row
            es.tell(X, list(pool.map(loss, X, chunksize=10)))
            if es.state.iteration % 10 == 0:
                es.save(checkpoint)  # cones.load(checkpoint) goes on from here
                print(f"iteration {es.state.iteration}: best {es.state.best_fun:.4g}")
    result = es.result
    print(f"{result.message} Best loss {result.fun:.3g} at {np.round(result.x, 2)}")
    print(f"the last checkpoint is of iteration {cones.load(checkpoint).state.iteration}")


if __name__ == "__main__":
    main()
