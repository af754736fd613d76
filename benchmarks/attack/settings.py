"""Random settings of `minimize`: refused by name, or a run whose result is what its evaluations say."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import cones
from benchmarks.attack import Row

__all__ = ["campaign"]


def campaign(count: int, rng: np.random.Generator) -> list[Row]:
    """`count` runs with random settings; every tenth twice, for the same numbers."""
    ran = refused = failed = 0
    for k in range(count):
        seed = int(rng.integers(2**32))
        try:
            holds = _holds(seed, twice=k % 10 == 0)
            ran += 1
            failed += not holds
        except cones.ConesError:
            refused += 1
        except TypeError as error:
            refused += 1
            failed += "not a setting of method" not in str(error)
        except Exception:
            ran += 1
            failed += 1
    return [Row(f"random settings of minimize ({refused} refused by name)", count, failed)]


def settings_of(rng: np.random.Generator) -> tuple[dict[str, Any], Any]:
    """Keyword arguments, and the start."""

    def pick(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    size = int(pick(1, 2, 3, 5, 12, 50))
    start = rng.standard_normal(size) * 10.0 ** rng.integers(-3, 4)
    given: dict[str, Any] = {
        "method": pick("cones", "cones", "cones", "cones", "nes", "es", "cma", "sepcma"),
        "sigma0": pick(None, None, 1e-140, 1e-30, 1e-9, 0.5, 1e3, 1e12, 1e39, 1e140, 10.0 ** rng.uniform(-3, 3)),
        "maxfev": pick(None, None, 1, 7, 120, 300, 1000),
        "maxiter": pick(None, 1, 3, 20),
        "popsize": pick(None, None, None, 2, 3, 6, 11),
        "belief": pick(None, None, None, "diagonal", "full", "low_rank"),
        "radius": pick(None, None, None, "paper", "adaptive", 1e-6, 1.0, 1e3),
        "antithetic": pick(None, None, None, None, True, False, "auto"),
        "estimator": pick(None, None, None, None, "score_function", "asebo,warm_up=1", "recombination", "quadratic"),
        "shaping": pick(None, None, None, None, "centred_ranks", "normal_scores", "standardised", "raw"),
        "step": pick(None, None, None, None, None, None, "evolution_path", "natural", "plain"),
        "optimizer": pick(None, None, None, None, None, "adam", "sgd,momentum=0.9", "direct"),
        "restarts": pick(None, None, None, 0, 2, "auto"),
        "noisy": pick(None, None, True, False),
        "dtype": pick(None, None, None, "float32"),
        "chunked": pick(None, None, None, True),
        "diagonal": pick(None, None, None, None, None, None, True),
        "xtol": pick(None, 1e-11),
        "ftarget": pick(None, None, 1e-3),
    }
    if given["maxfev"] is None and given["maxiter"] is None:
        given["maxiter"] = 15
    if rng.random() < 0.5:
        below, above = (10.0 ** rng.integers(-12, 4, size) * (rng.random(size) < 0.8) for _ in range(2))
        free = rng.random(size) < 0.2
        given["bounds"] = list(
            zip(np.where(free, -np.inf, start - below), np.where(free, np.inf, start + above), strict=True)
        )
    if rng.random() < 0.9:  # a few settings together are mostly accepted; many exclude each other
        common = ("method", "maxfev", "maxiter", "bounds", "sigma0")
        given = {name: value for name, value in given.items() if name in common or rng.random() < 0.2}
    return given, start


def _holds(seed: int, twice: bool) -> bool:
    rng = np.random.default_rng(seed)
    given, start = settings_of(rng)
    trouble, kind = float(rng.choice([0.0, 0.0, 0.3, 1.0])), int(rng.integers(3))
    lower, upper = np.array(given.get("bounds", [(-np.inf, np.inf)] * start.size)).T
    dtype = given.get("dtype") or "float64"
    # Bounds that are no numbers of the dtype: the nearest ones may be outside if the box holds none.
    with np.errstate(over="ignore"):
        lower, upper = np.fmin(lower, lower.astype(dtype)), np.fmax(upper, upper.astype(dtype))
    seen: list[tuple[Any, float]] = []

    def loss(x: Any) -> float:
        wide = np.asarray(x, np.float64)
        if not np.isfinite(x).all() or x.dtype != dtype:
            raise AssertionError("a candidate that is not finite, or of another dtype")
        if not ((wide >= lower) & (wide <= upper)).all():
            raise AssertionError("a candidate outside the bounds")
        value = float([wide @ wide, np.abs(wide).max(), np.floor(np.abs(wide)).sum()][kind])
        hashed = math.modf(abs(float(wide[0])) * 1e4)[0] if trouble else 1.0
        if hashed < trouble:
            value = [math.nan, math.inf, -math.inf][int(hashed * 1e4) % 3] if trouble < 1.0 else math.nan
        seen.append((np.array(x), value))
        return value

    def run() -> Any:
        seen.clear()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return cones.minimize(loss, start, rng=seed, **given)

    result = run()
    known = [value for _, value in seen if not math.isnan(value)]
    counted = result.nfev == len(seen) <= (given.get("maxfev") or math.inf)
    # The evaluations at the end of a noisy run measure the answers, and choose nothing.
    measured = given.get("noisy") is True
    best = measured or (result.fun == min(known) if known else math.isnan(result.fun))
    same_point = not known or any(value == result.fun and np.array_equal(x, result.x) for x, value in seen)
    if twice:
        again = run()
        best = best and np.array_equal(again.x, result.x) and np.array_equal(again.fun, result.fun, equal_nan=True)
    return bool(counted and best and same_point)
