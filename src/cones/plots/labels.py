"""Names of curves at their right end, where they are compared, instead of a legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cones.plots.colours import ink_of

__all__ = ["label_ends", "room_for", "spaced"]

GAP = 0.085  # between labels, as a part of the panel's height


def label_ends(axis: Any, ends: Sequence[tuple[float, str, str]], gap: float = GAP, fontsize: float = 8.0) -> None:
    """Write names beside the right edge of a panel, each as near to its height as the others allow.

    `ends` are height, text and colour. Call it when scale and limits are as they stay.
    """
    if not ends:
        return
    limits = axis.get_ylim()
    axis.set_ylim(limits)  # as they stay, indeed
    inside = np.clip([height for height, _, _ in ends], *sorted(limits))
    heights = axis.transAxes.inverted().transform(axis.transData.transform([(axis.get_xlim()[1], y) for y in inside]))
    for (_, text, colour), place in zip(ends, spaced([float(y) for y in heights[:, 1]], gap), strict=True):
        axis.annotate(
            text,
            (1.02, place),
            xycoords="axes fraction",
            color=ink_of(colour),
            fontsize=fontsize,
            va="center",
            annotation_clip=False,
        )


def room_for(names: Iterable[str]) -> float:
    """The width that names beside a panel take, in inches."""
    return 0.1 + 0.07 * max(map(len, names), default=0)


def spaced(values: Sequence[float], gap: float) -> list[float]:
    """Places near the values, in their order, at least a gap apart and, if they fit, from 0 to 1.

    The least squares of places that are a gap apart: neighbours that are too near become a block around their mean.
    """
    order = sorted(range(len(values)), key=lambda k: values[k])
    blocks: list[list[float]] = []  # sum of the first places that its members want, number of members
    for rank, k in enumerate(order):
        blocks.append([values[k] - rank * gap, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    most = max(0.0, 1.0 - (len(values) - 1) * gap)
    starts = [min(max(0.0, total / count), most) for total, count in blocks for _ in range(int(count))]
    found = [0.0] * len(values)
    for rank, (k, start) in enumerate(zip(order, starts, strict=True)):
        found[k] = start + rank * gap
    return found
