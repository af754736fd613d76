"""cones.plot(): runs over each other, a panel per quantity."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from cones.errors import InputError
from cones.files import check_folder
from cones.plots.curves import AXES, curves_of

__all__ = ["plot"]


def plot(
    *runs: Any,
    labels: Sequence[str] | None = None,
    x: str | None = None,
    title: str = "",
    out: str | PathLike[str] | None = None,
) -> Any:
    """Draw runs over each other, in up to four panels: loss or reward, spread, step length, radii, or else KL.

    Panels of what is not recorded are left out.

    Args:
        *runs: what there is of each run: the result of `minimize`, a strategy, what `cones.rl.train` returned, a
            history, or a path: a checkpoint, a record (`.json.gz`), the JSON that `cones minimize --out` writes, a
            folder of results. A list of them is several seeds of one thing: their mean, in a band of one standard
            deviation; fewer than five are drawn one by one.
        labels: one per run; runs with the same label are seeds of one thing. By default the method's name, the file's
            name, or a number. Records are grouped by their own labels.
        x: "evaluations" (default), "timesteps" (default where all are training runs), "seconds" or "iterations".
        title: of the figure.
        out: a file to write: .png, .pdf, .svg.

    Returns:
        The `matplotlib.figure.Figure`. It needs no screen; without `out`, where `matplotlib.pyplot` is in use, it is
        one of its figures, so that `plt.show()` shows it.

    Example:
        >>> import cones
        >>> sphere = lambda x: (x**2).sum()
        >>> seeds = [cones.minimize(sphere, [3.0] * 5, popsize=10, maxiter=20, rng=seed) for seed in range(3)]
        >>> figure = cones.plot(seeds, labels=["CoNES"])
        >>> [axis.get_title() for axis in figure.axes][:3]
        ['loss', 'spread', 'step length']
    """
    if not runs:
        raise InputError("runs: expected at least one, got none")
    if x is not None and x not in AXES:
        raise InputError(f"x: expected {', '.join(AXES[:-1])} or {AXES[-1]}, got {x!r}")
    place = None if out is None else _check_place(out)
    groups = curves_of(runs, labels)

    from cones.plots.panels import draw  # matplotlib is imported no earlier

    figure = draw(groups, x, title, to_show=place is None)
    if place is not None:
        from cones.plots.drawing import save_figure

        save_figure(figure, place)
    return figure


def _check_place(out: str | PathLike[str]) -> Path:
    """Check the file before anything is drawn."""
    if not isinstance(out, (str, PathLike)):
        raise InputError(f"out: expected a path, got {out!r}")
    place = Path(fspath(out))
    if place.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InputError(f"out: expected a name that ends in .png, .pdf or .svg, got {place.name}")
    check_folder("out", place)
    return place
