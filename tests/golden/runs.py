"""Runs whose iterates must never change: every method, belief and setting that touches the numbers.

`python tests/golden/runs.py` writes `iterates.json` anew. Do so only when a change of the numbers is meant.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

import cones

FILE = Path(__file__).with_name("iterates.json")
ITERATIONS = 10
COLUMNS = (
    "best", "mean_loss", "loss_deviation", "step", "spread", "kl", "multiplier", "gap",
    "mean_radius", "scale_radius", "shape_radius", "path_length",
)  # fmt: skip


def loss(X: Any) -> Any:
    """A rotated-looking, ridged and rippled loss, so that no part of a method is idle."""
    X = np.asarray(X, dtype=np.float64)
    weights = np.linspace(1.0, 30.0, X.shape[1])
    shifted = X - 1.5
    neighbours = shifted + 0.5 * np.roll(shifted, 1, axis=1)
    return (weights * neighbours**2).sum(axis=1) + np.abs(shifted).sum(axis=1) + 5.0 * (1.0 - np.cos(3 * X)).sum(axis=1)


def _case(method: str, dim: int, **settings: Any) -> dict[str, Any]:
    return {"method": method, "dim": dim, **settings}


def _cases() -> dict[str, dict[str, Any]]:
    cases: dict[str, dict[str, Any]] = {}
    for method in ("ES", "NES", "CoNES"):
        radius = {"radius": 1.5} if method == "CoNES" else {}
        for belief in ("diagonal", "full"):
            for dim, popsize in ((3, 10), (12, 8), (60, 14)):
                cases[f"{method} {belief} {dim}"] = _case(method, dim, belief=belief, popsize=popsize, **radius)
        cases[f"{method} sgd"] = _case(method, 12, optimizer="sgd", popsize=12, **radius)
        cases[f"{method} sgd full"] = _case(method, 12, optimizer="sgd", belief="full", popsize=12, **radius)
        cases[f"{method} independent"] = _case(method, 12, antithetic=False, popsize=11, **radius)
        cases[f"{method} many tiles"] = _case(method, 40_000, popsize=6, **radius)
        cases[f"{method} float32"] = _case(method, 500, dtype="float32", popsize=10, **radius)
    cases |= {
        "paper radius": _case("CoNES", 30, radius="paper", popsize=20),
        "large ball": _case("CoNES", 30, radius=100.0, popsize=20),
        "small ball": _case("CoNES", 30, radius=1e-4, popsize=20),
        "direct": _case("CoNES", 30, radius=0.3, popsize=20, optimizer="direct"),
        "normal scores": _case("CoNES", 10, radius=1.0, shaping="normal_scores", popsize=10),
        "standardised": _case("NES", 10, shaping="standardised", popsize=10),
        "raw": _case("ES", 10, shaping="raw", popsize=10),
        "noise table": _case("CoNES", 20, radius=1.0, noise_table=2**20, popsize=10),
        "chunked": _case("CoNES", 20, radius=1.0, chunked=True, popsize=10),
        "chunked, many tiles": _case("CoNES", 40_000, radius=1.0, chunked=True, popsize=4),
        "bounds": _case("CoNES", 8, radius=1.0, bounds=(-1.0, 1.0), popsize=10),
        "adaptive 2": _case("CoNES", 2, radius="adaptive"),
        "adaptive 10": _case("CoNES", 10, radius="adaptive"),
        "adaptive 40": _case("CoNES", 40, radius="adaptive"),
        "adaptive full 40": _case("CoNES", 40, radius="adaptive", belief="full"),
        "adaptive diagonal 5": _case("CoNES", 5, radius="adaptive", belief="diagonal"),
        "adaptive 40000": _case("CoNES", 40_000, radius="adaptive"),
        "adaptive float32": _case("CoNES", 300, radius="adaptive", dtype="float32"),
        "adaptive budget": _case("CoNES", 40, radius="adaptive", maxfev=1000),
        "adaptive pairs": _case("CoNES", 20, radius="adaptive", antithetic=True),
        "adaptive independent": _case("CoNES", 20, radius="adaptive", antithetic=False),
        "adaptive restarts": _case("CoNES", 3, radius="adaptive", restarts=2, sigma0=1e-9, xtol=1e-8),
    }
    return cases


CASES = _cases()
OPTIMIZERS = {"sgd": cones.SGD(0.2, 0.1, momentum=0.5), "direct": cones.Direct()}


def strategy(case: dict[str, Any]) -> Any:
    settings = dict(case)
    method, dim = settings.pop("method"), settings.pop("dim")
    if "optimizer" in settings:
        settings["optimizer"] = OPTIMIZERS[settings["optimizer"]]
    if "bounds" in settings:
        settings["bounds"] = [settings["bounds"]] * dim
    settings.setdefault("sigma0", 0.8)
    return getattr(cones, method)(np.linspace(-0.5, 0.5, dim), rng=7, **settings)


def measured(es: Any) -> dict[str, list[float]]:
    """What stands for all numbers of a run: its history, and its belief seen from four directions."""
    seen: dict[str, list[float]] = {name: [] for name in (*COLUMNS, "mean", "deviation", "candidates")}
    directions = np.cos(np.outer(np.arange(1.0, 5.0), np.arange(es.state.belief.dim)))
    for _ in range(ITERATIONS):
        X = es.ask()
        rows = np.asarray(X, dtype=np.float64)
        es.tell(X, loss(rows))
        seen["candidates"] += [float(v) for v in directions @ rows.sum(axis=0)]
        belief = es.state.belief
        for name, vector in (("mean", belief.mean), ("deviation", belief.standard_deviations())):
            seen[name] += [float(v) for v in directions @ np.asarray(vector, dtype=np.float64)]
    history = es.result.history
    for name in COLUMNS:
        seen[name] = [None if math.isnan(v) else float(v) for v in history[name]]
    return seen


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: measured(strategy(case)) for name, case in CASES.items()}) + "\n")
