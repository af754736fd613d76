"""The picture of the front page: a belief on its way, and 5000 dimensions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from drawing import CONES, ES, NES, Ground, legend, main, panels

import cones
from cones.packed import names
from cones.plots.averages import mean_curve
from cones.plots.drawing import short_number
from cones.records import read_record

RUNS = Path(__file__).parents[2] / "results" / "functions" / "runs"
COLOURS = {"ES": ES, "NES": NES, "CoNES": CONES}


def valley(X: Any) -> Any:
    """A curved valley with its lowest point at (1, 1)."""
    x, y = np.moveaxis(np.asarray(X), -1, 0)
    return np.log1p((1.0 - x) ** 2 + 8.0 * (y - x**2) ** 2)


def journey(iterations: int = 160) -> list[Any]:
    """The beliefs of a run from (-1.4, 0.2) by the paper's method."""
    es = cones.CoNES(
        cones.FullGaussian([-1.4, 0.2], 0.16 * np.eye(2)), popsize=40, rng=2, optimizer=cones.Adam(0.06, 0.05)
    )
    beliefs = [es.state.belief]
    for _ in range(iterations):
        X = es.ask()
        es.tell(X, valley(X))
        beliefs.append(es.state.belief)
    return beliefs


def recorded(method: str) -> tuple[Any, Any, Any]:
    """Mean loss on the 5000-dimensional Rosenbrock function over ten seeds."""
    wanted = f"rosenbrock-5000-d-{method.lower()}-seed-"
    records = [read_record(RUNS / name) for name in names(RUNS) if name.startswith(wanted)]
    return mean_curve([(record.columns["evaluations"], record.columns["mean_loss"]) for record in records])


def draw(ground: Ground) -> Any:
    figure, (left, right) = panels(ground, (8.6, 3.6), 2)
    x, y = np.linspace(-2.1, 1.8, 200), np.linspace(-0.9, 2.2, 200)
    left.contour(x, y, valley(np.stack(np.meshgrid(x, y), axis=-1)), levels=12, colors=[ground.faint], linewidths=0.5)
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.array([np.cos(turn), np.sin(turn)])
    beliefs = journey()
    for number in range(0, len(beliefs), 12):
        belief = beliefs[number]
        edge = belief.mean[:, None] + np.linalg.cholesky(belief.covariance) @ circle
        left.fill(*edge, color=CONES, alpha=0.22, linewidth=0)
        left.plot(*edge, color=CONES, linewidth=1.0)
    left.plot(*np.array([belief.mean for belief in beliefs]).T, color=CONES, linewidth=1.6)
    left.plot(1.0, 1.0, "*", color=ground.ink, markersize=10)
    left.set_title("a belief on its way to the optimum")
    left.set_aspect("equal")
    for method, colour in COLOURS.items():
        place, mean, deviation = recorded(method)
        right.fill_between(place, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0)
        right.plot(place, mean, color=colour, linewidth=1.8, label=method)
    right.set_yscale("log")
    right.set_title("Rosenbrock in 5000 dimensions, 10 seeds")
    right.set_xlabel("evaluations")
    right.set_ylabel("mean loss")
    right.xaxis.set_major_formatter(short_number)
    legend(right, ground, loc="lower left")
    return figure


if __name__ == "__main__":
    main(draw)
