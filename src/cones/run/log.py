"""What a run says to `logging`, under the name "cones". Nothing is shown unless the program asks for it:

    logging.basicConfig(level=logging.INFO)

INFO has starts, restarts and ends, WARNING evaluations that failed, DEBUG a line per iteration.
"""

from __future__ import annotations

import logging
from typing import Self

from cones.evaluate import Evaluator
from cones.progress.stopping import StopReason
from cones.run.display import describe
from cones.strategy import Strategy

__all__ = ["RunLog"]

_log = logging.getLogger("cones")
_log.addHandler(logging.NullHandler())  # without it, Python itself would print the warnings


class RunLog:
    """The log of one run."""

    def __init__(self, strategy: Strategy, evaluator: Evaluator) -> None:
        self._strategy, self._evaluator = strategy, evaluator
        self._restarts = strategy.state.restarts

    def __enter__(self) -> Self:
        state, method = self._strategy.state, self._strategy.method
        if state.iteration:
            _log.info("%s continues after iteration %d, best %g", method, state.iteration, state.best_fun)
        else:
            _log.info("%s starts: %d dimensions, popsize %d", method, state.belief.dim, state.popsize)
        return self

    def evaluated(self) -> None:
        for candidate, why in sorted(self._evaluator.failures.items()):
            _log.warning("iteration %d, candidate %d: %s", self._strategy.state.iteration, candidate, why)

    def told(self) -> None:
        state = self._strategy.state
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("%s", describe(self._strategy))
        if state.restarts != self._restarts:
            self._restarts = state.restarts
            best, popsize = state.best_fun, state.popsize
            _log.info(
                "restart %d after iteration %d: best %g, popsize %d", state.restarts, state.iteration, best, popsize
            )

    def finished(self, reason: StopReason) -> None:
        state = self._strategy.state
        _log.info("%s Best %g after %d evaluations.", reason.message, state.best_fun, state.evaluations)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            _log.info("ended in iteration %d by %s", self._strategy.state.iteration, kind.__name__)
