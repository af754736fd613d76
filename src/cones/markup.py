"""Views of results, strategies and beliefs in a notebook: HTML with a small SVG, without any package."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape

import numpy as np

from cones.types import Vector

__all__ = ["card", "curves", "intervals", "numbers"]

WIDTH, HEIGHT = 320, 150
LEFT, RIGHT, TOP, BOTTOM = 58, 8, 16, 20  # margins
COLOURS = ("#2b8cc4", "#d9661f")  # readable on white and on black
MOST_POINTS = 200  # of a curve
MOST_COORDINATES = 40
LOG_FROM = 100.0  # ratio of the largest to the smallest value from which an axis is logarithmic


def card(title: str, rows: Iterable[tuple[str, str]], picture: str = "") -> str:
    """A title, a table of names and texts, and a picture beside it."""
    lines = "".join(
        f'<div style="opacity:0.65">{escape(name)}</div><div style="overflow-wrap:anywhere">{escape(text)}</div>'
        for name, text in rows
    )
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start;font-size:13px;line-height:1.5">'
        f'<div style="max-width:30em"><div style="font-weight:600">{escape(title)}</div>'
        f'<div style="display:grid;grid-template-columns:max-content auto;column-gap:12px">{lines}</div></div>'
        f"{picture}</div>"
    )


def numbers(vector: Vector) -> str:
    """A vector in one line: the first and the last numbers, if there are many."""
    return np.array2string(vector, precision=5, threshold=8, edgeitems=3, max_line_width=10**6)


def curves(x: Vector, lines: Mapping[str, Vector], x_name: str) -> str:
    """Curves over x; on a logarithmic axis if they are positive and span orders of magnitude. Empty without numbers."""
    finite = {name: np.isfinite(y) for name, y in lines.items()}
    values = np.concatenate([y[finite[name]] for name, y in lines.items()] or [np.empty(0)])
    if values.size < 2:
        return ""
    low, high = float(values.min()), float(values.max())
    log = low > 0.0 and high > LOG_FROM * low
    scale = np.log10 if log else np.asarray
    parts = []
    for (name, y), colour, row in zip(lines.items(), COLOURS, range(len(COLOURS)), strict=False):
        known = np.flatnonzero(finite[name])
        if known.size > MOST_POINTS:
            known = known[np.linspace(0, known.size - 1, MOST_POINTS).astype(int)]
        across = _between(x[known], float(x.min()), float(x.max()), LEFT, WIDTH - RIGHT)
        down = _between(scale(y[known]), float(scale(low)), float(scale(high)), HEIGHT - BOTTOM, TOP)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(_text(LEFT + 70 * row, 10, name, "start", colour))
    ends = _text(LEFT, HEIGHT - 6, f"{x.min():g}", "start") + _text(
        WIDTH - RIGHT, HEIGHT - 6, f"{x.max():g} {x_name}", "end"
    )
    return _svg([*parts, *_side(low, high), ends])


def intervals(mean: Vector, deviations: Vector) -> str:
    """Mean and one standard deviation to either side, for each of the first coordinates."""
    mean, deviations = (np.asarray(v[:MOST_COORDINATES], dtype=np.float64) for v in (mean, deviations))
    low, high = float((mean - deviations).min()), float((mean + deviations).max())
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    slot = (WIDTH - LEFT - RIGHT) / mean.size
    ends = [_between(v, low, high, HEIGHT - BOTTOM, TOP) for v in (mean - deviations, mean, mean + deviations)]
    parts = []
    for index, (bottom, middle, top) in enumerate(zip(*ends, strict=True)):
        at = LEFT + (index + 0.5) * slot
        parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{bottom:.1f}" y2="{top:.1f}" stroke="{COLOURS[0]}" '
                     f'stroke-opacity="0.45" stroke-width="{min(8.0, 0.7 * slot):.1f}"/>')  # fmt: skip
        parts.append(f'<circle cx="{at:.1f}" cy="{middle:.1f}" r="{min(2.5, 0.4 * slot):.1f}" fill="{COLOURS[0]}"/>')
    parts.append(_text(LEFT, 10, "mean ± standard deviation", "start", COLOURS[0]))
    last = _text(WIDTH - RIGHT, HEIGHT - 6, f"coordinate {mean.size - 1}", "end")
    return _svg([*parts, *_side(low, high), _text(LEFT, HEIGHT - 6, "0", "start"), last if mean.size > 1 else ""])


def _between(values: Vector, low: float, high: float, first: float, last: float) -> Vector:
    """Values from [low, high] as lengths from `first` to `last`."""
    middle = np.full(np.shape(values), 0.5 * (first + last))
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = first + (last - first) * ((values - low) / (high - low)) if high > low else middle
    return np.where(np.isfinite(lengths), lengths, middle)  # a range beyond floats


def _side(low: float, high: float) -> list[str]:
    digits = 3 if f"{low:.3g}" != f"{high:.3g}" else 9
    return [
        _text(LEFT - 6, TOP + 4, f"{high:.{digits}g}", "end"),
        _text(LEFT - 6, HEIGHT - BOTTOM + 4, f"{low:.{digits}g}", "end"),
        f'<path d="M{LEFT - 3},{TOP} V{HEIGHT - BOTTOM + 2} H{WIDTH - RIGHT}" fill="none" stroke="currentColor" '
        'stroke-opacity="0.35"/>',
    ]


def _text(x: float, y: float, text: str, anchor: str, colour: str = "currentColor") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _svg(parts: Iterable[str]) -> str:
    return f'<svg width="{WIDTH}" height="{HEIGHT}" font-size="10" role="img">{"".join(parts)}</svg>'
