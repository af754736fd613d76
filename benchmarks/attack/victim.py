"""A run that can be killed and started again by the same command: `python -m benchmarks.attack.victim KIND FOLDER`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import cones
import cones.records.session
from cones.cli import main
from cones.experiments.runner import run_experiment
from cones.experiments.toml import read_experiment
from cones.records import read_record

KINDS = ("minimize", "command", "run", "train")
cones.records.session.KEEP_SECONDS = 0.0  # after every iteration, in the processes of a run, too

SPECIFICATION = """
name = "killed"
maxfev = 600
[[problems]]
problem = "rosenbrock"
dim = 12
[[methods]]
method = "cones"
[[methods]]
method = "cma"
"""


def loss(x: Any) -> float:
    time.sleep(0.0005)
    return float(np.square(x - 1.0).sum())


def minimized(folder: Path) -> int:
    path = folder / "run.ckpt"
    if path.exists():
        result = cones.resume(path, loss)
    else:
        result = cones.minimize(loss, np.zeros(6), rng=3, maxiter=60, xtol=None, checkpoint=path, checkpoint_every=1)
    columns = [column for name, column in result.history.items() if name != "seconds"]
    arrays = [result.x, *result.belief.state().values(), *columns]
    (folder / "numbers").write_bytes(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays))
    return 0


def victim(kind: str, folder: Path) -> int:
    if kind == "minimize":
        return minimized(folder)
    if kind == "command":
        flags = ["--dim", "6", "--seed", "3", "--maxiter", "60", "--quiet", "--out", str(folder / "out.json")]
        files = ["--checkpoint", str(folder / "run.ckpt"), "--checkpoint-every", "1", "--resume"]
        return main(["minimize", "benchmarks.attack.victim:loss", *flags, *files])
    if kind == "run":
        (folder / "spec.toml").write_text(SPECIFICATION)
        outcome = run_experiment(read_experiment(folder / "spec.toml"), folder / "out", workers=2)
        return len(outcome.failed)
    flags = ["--method", "es", "--timesteps", "4000", "--popsize", "6", "--linear", "--threads", "1", "--quiet"]
    return main(["train", "CartPole-v1", *flags, "--out", str(folder / "out")])


def numbers(kind: str, folder: Path) -> bytes:
    """All numbers of a finished run, without times."""
    if kind == "minimize":
        return (folder / "numbers").read_bytes()
    if kind == "command":
        lines = (folder / "out.json").read_text().splitlines()
        return "\n".join(line for line in lines if '"seconds"' not in line).encode()
    content = b""
    for path in sorted((folder / "out" / "runs").iterdir()):
        if path.name.endswith(".json.gz"):
            record = read_record(path)
            columns = {name: column for name, column in record.columns.items() if "seconds" not in name}
            content += repr((path.name, record.finished, record.stop, sorted(columns))).encode()
            content += b"".join(columns[name].tobytes() for name in sorted(columns))
        elif path.name.endswith(".policy.npz"):
            content += path.read_bytes()
    return content


if __name__ == "__main__":
    sys.exit(victim(sys.argv[1], Path(sys.argv[2])))
