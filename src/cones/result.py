"""The result of a run: SciPy's, with a table of the history and a view in notebooks."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from scipy.optimize import OptimizeResult

from cones.extras import require_extra
from cones.markup import card, curves, numbers

__all__ = ["Result"]


class Result(OptimizeResult):  # type: ignore[misc]  # SciPy has no types
    """What `cones.minimize` and `es.result` return: a `scipy.optimize.OptimizeResult`.

    Example:
        >>> import cones
        >>> result = cones.minimize(lambda x: (x**2).sum(), [1.0, 2.0], rng=0, maxiter=5)
        >>> result.to_dataframe()["evaluations"].tolist()
        [7.0, 13.0, 19.0, 25.0, 31.0]
    """

    def to_dataframe(self) -> Any:
        """The history as a pandas DataFrame: a row per iteration, a column per number. Needs pandas."""
        require_extra("pandas", "pandas", "result.to_dataframe()")
        pandas: Any = import_module("pandas")  # on first use: it takes long
        return pandas.DataFrame(self.history).rename_axis("iteration")

    def _repr_html_(self) -> str:
        rows = [
            ("fun", f"{self.fun:.6g}"),
            ("x", str(self.x) if isinstance(self.x, dict) else numbers(self.x)),
            ("spent", f"{self.nfev} evaluations, {self.nit} iterations"),
            ("message", self.message),
        ]
        if not math.isnan(at_mean := self.get("mean_fun", math.nan)):
            rows.insert(1, ("at the mean", f"{at_mean:.6g} ± {self.mean_fun_error:.2g}"))
        history = self.history
        lines = {"best": history["best"], "mean loss": history["mean_loss"]}
        return card(f"Result ({self.stop})", rows, curves(history["evaluations"], lines, "evaluations"))
