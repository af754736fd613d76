"""Run benchmarks and print their tables: `python -m benchmarks [NAME ...] [--save FILE]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import (
    ask_tell,
    divergences,
    full_covariance,
    import_time,
    low_rank,
    rollouts,
    scale,
    scaling_model,
    small_problems,
    step,
)
from benchmarks.measure import environment

BENCHMARKS = {
    "step": step.run,
    "divergences": divergences.run,
    "ask_tell": ask_tell.run,
    "full_covariance": full_covariance.run,
    "small_problems": small_problems.run,
    "low_rank": low_rank.run,
    "import_time": import_time.run,
    "rollouts": rollouts.run,
    "scale": scale.run,
    "scaling_model": scaling_model.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the tables to a file as well")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"unknown benchmark {', '.join(unknown)}; choose from {', '.join(BENCHMARKS)}")
    parts = [
        environment(
            ("cones", "numpy", "scipy", "cvxpy", "clarabel", "cma", "gymnasium", "mujoco", "numba", "evosax", "jax")
        )
        + "\n"
    ]
    print(parts[0])
    for name in options.names or BENCHMARKS:
        parts.append(BENCHMARKS[name]())
        print(parts[-1], flush=True)
    if options.save:
        options.save.write_text("# Benchmarks\n\n" + "\n".join(parts))


if __name__ == "__main__":
    main()
