"""The losses of a population of trials, some of which violate constraints, were pruned or failed.

Complete trials come first, those that violate a constraint behind all that do not, in the order of their violation.
Then come pruned trials, those that came furthest first. Failed trials have no loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Standing", "losses_of"]


@dataclass(frozen=True)
class Standing:
    """How a trial ended.

    Attributes:
        loss: its value, to be minimised; of a pruned trial the last one reported; NaN if it failed.
        violation: the sum of its constraints' positive values.
        pruned_at: the last step of a pruned trial; None if it was not pruned.
    """

    loss: float = math.nan
    violation: float = 0.0
    pruned_at: int | None = None

    def key(self) -> tuple[float, float, float]:
        """In the order of this key, trials get worse."""
        if self.pruned_at is not None:
            return 2.0, -self.pruned_at, self.loss
        return (1.0, self.violation, self.loss) if self.violation > 0.0 else (0.0, 0.0, self.loss)


def losses_of(population: Sequence[Standing]) -> list[float]:
    """One loss per trial. Feasible complete trials keep theirs; the others follow in their order.

    Example:
        >>> losses_of([Standing(3.0), Standing(0.0, violation=0.5), Standing(1.0, pruned_at=7), Standing()])
        [3.0, 4.0, 5.0, nan]
    """
    losses = [standing.loss for standing in population]
    behind = sorted({standing.key() for standing in population if standing.key()[0] and not math.isnan(standing.loss)})
    worst = max(
        (loss for s, loss in zip(population, losses, strict=True) if not s.key()[0] and loss < math.inf), default=0.0
    )
    unit = max(1.0, 1e-9 * abs(worst))
    return [
        worst + unit * (1 + behind.index(standing.key())) if standing.key() in behind else loss
        for standing, loss in zip(population, losses, strict=True)
    ]
